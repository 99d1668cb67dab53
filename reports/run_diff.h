// The changes between two runs: statuses, precision classes, divergences, conversions, time. A pure function of their
// reports.
//
// Cells are compared if both runs have them; divergences among the backends that both have, so that an additional
// backend changes nothing for the others. A change is for the worse if
//   - a status falls (PASS, XFAIL and SKIP, then the statuses that exit 1, then those that exit 6 or 3), or a result that
//     was computed is skipped,
//   - a value keeps fewer bits than before at its coarsest rounding, or no model explains it any more,
//   - a divergence of class is new. If the same backends differ at the same value in another way, the divergence has
//     changed, and is reported once.
// All other changes are reported and fail nothing: classes that are as coarse as before, order, conversions, time.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "harness/model/run_report.h"

namespace ulpscope {

struct RunChange {
  enum class Kind { kStatus, kClass, kDivergence, kCasts } kind = Kind::kStatus;
  enum class Way { kWorse, kBetter, kOther } way = Way::kOther;
  std::string id, backend = {};  ///< backend empty for a divergence
  std::string what;              ///< "product: f32 -> f32>bf16>f32"
};

struct RunDiff {
  std::vector<std::string>
      versions;                    ///< "torch 2.12.1 -> 2.13.0 (torch-eager, torch-inductor)", "seed 0 -> 1"
  std::vector<RunChange> changes;  ///< by kind, id, backend
  std::vector<std::string> only_before, only_after;  ///< backends, then cases, that one run alone has
  std::vector<std::string>
      rewritten;        ///< cases that compute something else in the second run: nothing of them is compared
  size_t compared = 0;  ///< cells of both
  double seconds_before = 0, seconds_after = 0;  ///< in them
  std::vector<std::string> slower;  ///< cells that take twice as long and a tenth of a second more
};

RunDiff CompareRuns(const RunReport& before, const RunReport& after, const std::set<std::string>& rewritten);

bool HasWorse(const RunDiff& diff);

/// The number of changes of each part that are listed; all of them on request.
enum class DiffLength { kBrief, kWhole };
std::string WriteRunDiff(const RunDiff& diff, DiffLength length, size_t columns);

}  // namespace ulpscope
