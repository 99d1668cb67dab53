// The representation behind Results, which the tiers write to.
#pragma once

#include <mutex>
#include <vector>

#include "oracles/fast/buffer.h"
#include "oracles/fast/results.h"

namespace ulpscope::fast {

/// The rule for every element of one product of the batch that has no mark of its own.
enum class Rule : uint8_t {
  kNone,     ///< every element has a mark
  kExact,    ///< P1: exact
  kExactHi,  ///< P1 with nothing peeled: exact, and lo was not even written: it is 0
  kGrid,     ///< P2: exact from Store::exact_from on, certified elsewhere
};

/// Elements that fell back, or need more than the rule has.
enum class Mark : uint8_t { kNone, kExact, kCertified, kWide, kDomain };

/// The tier that computed a marked element; the others are the rule's.
enum class Tier : uint8_t { kMain, kDeep, kAccumulated, kSpecial };

struct Results::Store {
  int64_t batch = 0, m = 0, n = 0;
  Buffer<double> hi, lo;
  std::vector<Rule> rules;
  // For rule kGrid: per row (b * m + i) and per column (b * n + j).
  Buffer<double> row_low, row_scale, column_low, column_scale;
  double exact_from = 0, twice_delta = 0;  ///< set by who starts it
  // Only once something is marked.
  std::vector<Mark> marks;
  std::vector<double> errs;
  std::vector<Tier> tiers;
  TierCounts counts;
  std::mutex mutex;

  void Start(const Product& product);
  /// Makes room for marks; safe from several threads.
  void NeedMarks();
  void Set(int64_t element, const Reference& reference, Tier tier);
  void Count();
  Mark MarkOf(int64_t element) const {
    return marks.empty() ? Mark::kNone : marks[static_cast<size_t>(element)];
  }
};

}  // namespace ulpscope::fast
