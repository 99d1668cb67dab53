// Which exclusions a reader of a report needs. A value may exclude dozens of models, and the run folder keeps
// them all (harness/record/classified.h); a report keeps those that something rests on.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/model/run_report.h"

namespace ulpscope {

class DecisiveExclusions {
 public:
  /// `report` must outlive this.
  explicit DecisiveExclusions(const RunReport& report);

  /// The exclusions of `value` of `result` to keep, in their original order: the one that the result's reason cites;
  /// those that separate it from each backend opposite it in a divergence; the first of each auxiliary input; float32
  /// throughout; and the nearest rival.
  std::vector<const Exclusion*> Of(const CaseResult& result, const std::string& value) const;

 private:
  void AddRivals(const CaseResult& result, const std::string& value,
                 std::vector<const ValueResult*>* rivals) const;

  std::map<std::string, std::vector<const Divergence*>> divergences_;  ///< by case
  std::map<std::pair<std::string, std::string>, const CaseResult*> results_;
};

/// Reduces the results of one case to the exclusions that some report shows; their original number is kept.
void KeepShownExclusions(const std::vector<Divergence>& divergences, std::vector<CaseResult>* results);

/// The rival that differs in the fewest facets from a surviving model; null if nothing is excluded.
const Exclusion* NearestRival(const Classification& classification);

}  // namespace ulpscope
