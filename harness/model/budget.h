// ErrorBudget: the error of one observed value on one backend, booked step by step: which rounding costs how much accuracy.
//
// Hybrid k of a backend takes the values that this backend stored for the steps up to k, and computes the rest exactly, with no step and no
// cast rounded. With H(k) the observed value of hybrid k, entry k is H(k) - H(k - 1). H(0) is the exact result of the whole program and the
// last H is what the backend gave: the entries add up to its error, and a step that gives the exact result of its own operands has none.
//
// A step may read what another one computed before that was rounded to its dtype. The value that the other stored is then no operand of it,
// and with that value alone the rest would err by a rounding that nothing has. The two have one entry.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/words/program.h"

namespace ulpscope {

struct BudgetEntry {
  std::string
      step;  ///< the value that it stores; empty: the steps that share one entry, `ErrorBudget::together`
  std::vector<std::string> with =
      {};  ///< steps that share the entry: `step` reads them, or one of them another, unrounded
  /// <entry, error> / <error, error>. All shares of a budget add up to 1; one that works against the others is negative.
  double share = 0;
  double rms = 0;
  int64_t moved = 0;  ///< elements of the observed value that it changes
  StepOrigin at = {};
  int64_t layers = 0;  ///< as LedgerEntry has it
};

/// One step of a 16-bit output, with that output rounded to float32 in its place. The steps before it are those that the backend stored; the
/// step itself and all that follow are computed exactly, and each stored value is rounded once to its dtype.
struct StepInFloat32 {
  std::string step;
  /// Root mean squares of the error with the stored output of the step, and with that in float32.
  double before = 0, after = 0;
  bool lowers = false;  ///< where that is no accident
};

struct ErrorBudget {
  std::string case_id, value;
  std::vector<std::string> backends = {};  ///< that stored the same values
  std::string left_out = {};               ///< why there are no entries; empty where there are
  int64_t elements = 0, of = 0;            ///< that are looked at and have an exact result; of the value
  double rms = 0;                          ///< of the error, over `elements`
  /// How far the exact result in pairs of doubles, which the entries begin with, lies from the one of proven error, at most.
  double precision = 0;
  /// Not every step was observed: the entries are of the values that the backend's program stores anyway.
  bool at_stored_values = false;
  int64_t steps = 0;     ///< stored values that the value rests on
  int64_t together = 0;  ///< that share the entry without a step: booking each by itself costs too much
  std::vector<BudgetEntry> entries = {};  ///< those that are not zero, in program order
  std::optional<StepInFloat32> in_float32 = {};
};

}  // namespace ulpscope
