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

  /// Of what `value` of `result` excludes, in the order in which it stands there: what the reason of the result
  /// cites; what parts it from each backend that a divergence sets against it; the first of each further input;
  /// float32 throughout; and the nearest rival.
  std::vector<const Exclusion*> Of(const CaseResult& result, const std::string& value) const;

 private:
  void AddRivals(const CaseResult& result, const std::string& value,
                 std::vector<const ValueResult*>* rivals) const;

  std::map<std::string, std::vector<const Divergence*>> divergences_;  ///< by case
  std::map<std::pair<std::string, std::string>, const CaseResult*> results_;
};

/// Cuts the results of one case down to the exclusions that some report of them shows; how many there were stays known.
void KeepShownExclusions(const std::vector<Divergence>& divergences, std::vector<CaseResult>* results);

/// The rival that differs in the fewest facets from a model that is left; null where nothing is excluded.
const Exclusion* NearestRival(const Classification& classification);

}  // namespace ulpscope
