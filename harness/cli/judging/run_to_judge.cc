// Results of a run as judging takes them.
#include "harness/cli/judging/run_to_judge.h"

#include <fmt/format.h>

#include "harness/base/text.h"
#include "harness/casefile/prove.h"
#include "harness/record/observation_json.h"

namespace ulpscope {

Result<Classified> Classifications::Take(const std::string& id, const std::string& backend,
                                         CaseClassifier* classifier, const Observation& observation) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = run_.results.find({id, backend}); known != run_.results.end())
      return known->second;
  }
  if (run_.recorded != nullptr && run_.recorded->Has(id, backend)) return run_.recorded->Read(id, backend);
  Classified found = classifier->Classify(observation);
  if (found_ == Found::kDropped) return found;
  const std::lock_guard lock(mutex_);
  return run_.results[{id, backend}] = std::move(found);
}

void Classifications::Complete(const std::string& id, const std::string& backend, const std::string& value,
                               const Classification& classification) {
  const std::lock_guard lock(mutex_);
  if (const auto kept = run_.results.find({id, backend}); kept != run_.results.end())
    kept->second.values[value] = classification;
}

void Classifications::Count(const OracleCounts& counts) {
  const std::lock_guard lock(mutex_);
  run_.counts += counts;
}

Result<std::optional<RecordedResult>> RunToJudge::FindRelated(const Case& test_case,
                                                              const std::string& backend) const {
  const RecordedResult* found = Find(test_case.id, backend);
  if (found == nullptr || found->digest != CaseDigest(test_case)) return std::optional<RecordedResult>();
  RecordedResult result = *found;
  ULPSCOPE_TRY(LoadTensors(run_, result));
  return std::optional(std::move(result));
}

std::string RunToJudge::WhyNotReached(const std::string& id, const std::string& backend) const {
  for (const auto& [unfinished_id, unfinished_backend] : run_.unfinished) {
    if (unfinished_id == id && unfinished_backend == backend) return "the run ended while it was running";
  }
  if (run_.stopped_after > 0)
    return "the run stopped after " + Counted(run_.stopped_after, "failure") +
           ", as it was asked to, before it was reached";
  return "the run ended before it was reached";
}

JudgeContext RunToJudge::ContextFor(const Case& test_case, const std::string& backend) const {
  JudgeContext context;
  context.seed = run_.header.seed;
  if (const auto versions = run_.versions.find(backend); versions != run_.versions.end())
    context.versions = versions->second;
  context.date = run_.header.started.substr(0, 10);
  context.deviations = workspace_.deviations;
  if (const auto selector = workspace_.selectors.find(test_case.id); selector != workspace_.selectors.end())
    context.selector = selector->second;
  context.extra_flags = workspace_.ExtraFlags();
  context.provable = Provable(test_case);
  return context;
}

}  // namespace ulpscope
