// Ledger: the difference of one observed value between two groups of backends, booked step by step.
//
// Hybrid k of a backend takes that backend's own values for the steps up to k and computes the rest op by op on a carrier, one backend for
// both sides. With G(k) the difference between the two sides' hybrids k, entry k is G(k) - G(k - 1). G(0) is zero: both sides are then the
// carrier's result. The last G is the difference itself, so the entries add up to it exactly, and a step in which both behave alike has none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/model/divergence_kind.h"
#include "harness/words/program.h"

namespace ulpscope {

/// What a backend does in one step otherwise than the carrier does with the same operands.
struct LedgerCause {
  std::string backend;
  /// Of the divergence between the two: precision, order, bits; value or special where no cause was found, and `is_explained` is false.
  DivergenceKind kind = DivergenceKind::kValue;
  bool is_explained = false;
  std::string sentence;
  /// What each of the two does in the step: their classes, or what a kernel rounds. Causes with one backend, kind and `does` are one
  /// cause in several steps.
  std::string does = {}, carrier_does = {};
};

struct LedgerEntry {
  std::string step;  ///< the value that the step gives; empty: what no step's stored value accounts for
  /// <entry, difference> / <difference, difference>; where `Ledger::counted`, the share of the elements that differ. All shares of a
  /// ledger add up to 1; one that works against the others is negative.
  double share = 0;
  int64_t moved = 0;  ///< elements of the observed value that it changes
  double rms = 0;     ///< root mean square over all elements of the value; 0 where `Ledger::counted`
  double largest = 0;
  std::vector<LedgerCause> causes =
      {};  ///< of each side that moves in it; empty where nothing is known of it
  StepOrigin at = {};
  int64_t layers = 0;  ///< modules that differ in numbers of layers alone and run this line; 0: not known

  /// Each of its causes, of which there is one, is.
  bool IsExplained() const;
  /// And is of the order of summation or of last bits.
  bool IsOrderOnly() const;
};

/// Of one observed value on one backend, against the exact result of the whole program.
struct ProgramError {
  double rms = 0, median = 0, largest = 0;  ///< absolute
  double largest_ulp = 0;                   ///< in units in the last place of the value's dtype
  int64_t worst = -1;                       ///< row-major element of `largest`
  double observed = 0, exact = 0;           ///< there
};

struct Nearness {
  enum class Side { kNeither, kFirst, kSecond };
  int64_t elements = 0;  ///< with an exact result, the same for both
  double scale = 0;      ///< root mean square of their exact results
  ProgramError first, second;
  Side nearer = Side::kNeither;  ///< by mean squared error, where that is no accident
};

/// A setting of one side that was tried: how far the two are apart with it.
struct TriedRemedy {
  std::string backend, setting;  ///< "emulate_precision_casts=true"
  std::string source;            ///< where its makers say what it does
  int64_t differing = 0;         ///< elements; `Ledger::differing` without it
};

struct Ledger {
  std::string case_id;
  std::string value;
  std::vector<std::vector<std::string>> backends = {};  ///< two groups
  std::string carrier = {};   ///< backend string; empty where no hybrid was computed: then there is one entry
  std::string left_out = {};  ///< why there are no entries of steps; empty where there are
  std::vector<int64_t> shape = {};  ///< of the value
  int64_t elements = 0;
  int64_t differing = 0;
  double rms = 0;  ///< of the difference, over all elements; 0 where `counted`
  double atol =
      0;  ///< the largest difference: comparing with this absolute tolerance and no relative one would just have passed
  double rtol =
      0;  ///< the same of the relative tolerance, of the second side, and no absolute one; infinite beside a zero
  std::optional<Nearness> nearness = {};  ///< nothing where the value has no exact result
  /// Elements are counted in the place of sums: of integers, and where one is infinite or NaN.
  bool counted = false;
  int64_t steps = 0;  ///< of the program, that compute something; the entries are those that are not zero
  std::vector<LedgerEntry> entries = {};
  std::vector<TriedRemedy> remedies = {};  ///< each was run on this program

  /// Entries that are of steps.
  int64_t StepsBooked() const;
  /// The share of the difference that has a cause: what Unexplained() leaves of all of it, 0 to 1. And the part of it in which only the
  /// order of summation or the last bits differ.
  double Explained() const;
  double OrderOnly() const;
  /// The shares of the entries without a cause, added up without their signs: what they may amount to.
  double Unexplained() const;
};

}  // namespace ulpscope
