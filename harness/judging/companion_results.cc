// Collects the results of a case's auxiliary inputs.
#include "harness/judging/companion_results.h"

#include <list>
#include <utility>

namespace ulpscope {

CompanionResults::CompanionResults(const RunToJudge& run, const Case& test_case)
    : run_(run), all_(CompanionsOf(test_case)) {
  for (const Companion& companion : all_) classifiers_.push_back(run.ClassifierOf(companion.test_case));
}

Result<Proof> CompanionResults::Join(const Case& test_case, const std::string& backend,
                                     const Observation& own, const Classified& classified,
                                     std::string* fault) {
  // Runs point into both.
  std::list<RecordedResult> records;
  std::list<Classified> known;
  std::vector<CompanionRun> runs;
  for (size_t i = 0; i < all_.size(); ++i) {
    const Companion& companion = all_[i];
    runs.push_back({.name = companion.name, .observation = nullptr, .taint = {}, .classifications = nullptr});
    auto found = ULPSCOPE_TRY(run_.FindRelated(companion.test_case, backend));
    if (!found) continue;
    const Observation& observation = records.emplace_back(*std::move(found)).observation;
    auto taken = ULPSCOPE_TRY(
        run_.classifications().Take(companion.test_case.id, backend, &classifiers_[i], observation));
    const Classified& here = known.emplace_back(std::move(taken));
    if (!here.fault.empty()) *fault = "auxiliary input " + companion.name + ": " + here.fault;
    runs.back().observation = &observation;
    runs.back().taint = FindTaint(observation);
    runs.back().classifications = &here.values;
  }
  return JoinCompanions(test_case, own, classified.values, runs);
}

OracleCounts CompanionResults::Counts() const {
  OracleCounts counts;
  for (const CaseClassifier& each : classifiers_) counts += each.Counts();
  return counts;
}

}  // namespace ulpscope
