// Judging one case.
#include "harness/cli/judging/case_of_run.h"

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "harness/casefile/open.h"
#include "harness/cli/judging/case_divergences.h"
#include "harness/cli/judging/companion_results.h"
#include "harness/cli/judging/opened_record.h"
#include "harness/judge/judge.h"
#include "harness/judge/participant.h"

namespace ulpscope {
namespace {

class CaseOfRun {
 public:
  CaseOfRun(const RunToJudge& run, const Case& test_case)
      : run_(run),
        case_(test_case),
        classifier_(run.ClassifierOf(test_case)),
        opened_case_(Opened(test_case)),
        opened_classifier_(run.ClassifierOf(opened_case_ ? *opened_case_ : test_case)),
        companions_(run, test_case) {}

  Result<JudgedCase> Judge() {
    const RunHeader& header = run_.run().header;
    records_.reserve(header.backends.size());  // participants point into it
    for (const auto& backend : header.backends) {
      if (!IsSwept(header.swept, case_, backend)) continue;
      const RecordedResult* found = run_.Find(case_.id, backend);
      if (found == nullptr) {
        judged_.results.push_back(NotReachedResult(case_, backend, run_.WhyNotReached(case_.id, backend),
                                                   run_.ContextFor(case_, backend)));
      } else if (auto done = JudgeResult(*found, backend); !done) {
        return Fail(done.error());
      }
    }
    std::vector<Participant> participants;
    for (size_t i = 0; i < records_.size(); ++i)
      participants.push_back(
          {.result = &judged_.results[result_of_[i]], .observation = &records_[i].observation});
    judged_.divergences = FindCaseDivergences(case_, participants, opened_, opened_case_);
    judged_.knobs = CompareKnobs(participants, run_.run().knobs);
    run_.classifications().Count(classifier_.Counts());
    run_.classifications().Count(opened_classifier_.Counts());
    run_.classifications().Count(companions_.Counts());
    return std::move(judged_);
  }

 private:
  Result<void> JudgeResult(const RecordedResult& found, const std::string& backend) {
    RecordedResult& record = records_.emplace_back(found);
    auto loaded = LoadTensors(run_.run(), record);
    if (loaded) loaded = LoadTrace(run_.run(), record);
    if (!loaded) return loaded;
    const Observation& observation = record.observation;
    auto classified = ULPSCOPE_TRY(run_.classifications().Take(case_.id, backend, &classifier_, observation));
    auto opened = ULPSCOPE_TRY(
        FindOpened(run_, opened_case_, backend, observation, &opened_classifier_, &classified.fault));
    Complete(backend, observation, opened, &classified);
    JudgeBySteps(case_, opened, opened_case_, &classified);
    Proof proof{.values = classified.values, .verdicts = {}, .inputs = {}};
    std::string fault = classified.fault;
    if (!companions_.empty() && observation.outcome.kind == OutcomeKind::kCompleted) {
      proof = ULPSCOPE_TRY(companions_.Join(case_, backend, observation, classified, &fault));
    }
    JudgeContext context = run_.ContextFor(case_, backend);
    context.proof = &proof;
    CaseResult result = fault.empty() ? JudgeCase(case_, backend, observation, proof.values, context)
                                      : HarnessFaultResult(case_, backend, observation, fault, context);
    if (opened) result.opened = opened->told;
    result_of_.push_back(judged_.results.size());
    judged_.results.push_back(std::move(result));
    opened_.push_back(std::move(opened));
    return {};
  }

  /// What was not asked of the whole program, from its steps; where there are none, from the whole program after all.
  void Complete(const std::string& backend, const Observation& observation,
                const std::optional<OpenedRecord>& opened, Classified* classified) {
    std::set<std::string> jointly;
    for (const auto& [name, tensor] : observation.values) {
      if (classified->values.contains(name)) continue;
      if (opened && opened->Keeps(name) && opened->steps.contains(name))
        classified->values[name] = opened->steps.at(name);
      else
        jointly.insert(name);
    }
    if (jointly.empty()) return;
    // Where observing the steps changes what is computed: what was rounded on the way, if anything says it.
    Classified rest;
    if (opened) rest = opened_classifier_.ClassifyAsAsked(observation, jointly);
    for (const auto& [name, found] : rest.values) jointly.erase(name);
    if (!jointly.empty()) {
      Classified joint = classifier_.ClassifyJointly(observation, jointly);
      rest.values.merge(joint.values);
      if (rest.fault.empty()) rest.fault = joint.fault;
    }
    if (!rest.fault.empty()) classified->fault = rest.fault;
    for (auto& [name, classification] : rest.values) {
      run_.classifications().Complete(case_.id, backend, name, classification);
      classified->values[name] = std::move(classification);
    }
  }

  const RunToJudge& run_;
  const Case& case_;
  CaseClassifier classifier_;
  std::optional<Case> opened_case_;
  CaseClassifier opened_classifier_;
  CompanionResults companions_;
  std::vector<RecordedResult> records_;              ///< of the backends that were reached
  std::vector<std::optional<OpenedRecord>> opened_;  ///< one each
  std::vector<size_t> result_of_;                    ///< one each: its place in the results
  JudgedCase judged_;
};

}  // namespace

Result<JudgedCase> JudgeCaseOfRun(const RunToJudge& run, const Case& test_case) {
  return CaseOfRun(run, test_case).Judge();
}

JudgedCase CaseNotJudged(const RunToJudge& run, const Case& test_case) {
  JudgedCase judged;
  const RunHeader& header = run.run().header;
  for (const auto& backend : header.backends) {
    if (!IsSwept(header.swept, test_case, backend)) continue;
    const std::string why =
        run.Find(test_case.id, backend) == nullptr
            ? run.WhyNotReached(test_case.id, backend)
            : "recorded, and not judged when the run was interrupted (`ulpscope judge` does)";
    judged.results.push_back(NotReachedResult(test_case, backend, why, run.ContextFor(test_case, backend)));
  }
  return judged;
}

}  // namespace ulpscope
