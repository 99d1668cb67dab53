// Access to the results of a run for judging.
#include "harness/judging/run_to_judge.h"

#include <fmt/format.h>

#include "harness/base/secrets.h"
#include "harness/base/text.h"
#include "harness/casefile/prove.h"
#include "harness/record/observation_json.h"
#include "harness/run/backend.h"

namespace ulpscope {

Result<Classified> Classifications::Take(const std::string& id, const std::string& backend,
                                         CaseClassifier* classifier, const Observation& observation) {
  const auto looked_as_well = [&](const Classified& one) {
    return one.looked_at == classifier->BeyondSample();
  };
  {
    const std::lock_guard lock(mutex_);
    const auto known = run_.results.find({id, backend});
    if (known != run_.results.end() && looked_as_well(known->second)) return known->second;
  }
  if (run_.recorded != nullptr && run_.recorded->Has(id, backend)) {
    auto recorded = ULPSCOPE_TRY(run_.recorded->Read(id, backend));
    if (looked_as_well(recorded)) return recorded;
  }
  Classified found = classifier->Classify(observation);
  const std::lock_guard lock(mutex_);
  if (writer_ != nullptr) ULPSCOPE_TRY(writer_->Store(id, header_.digests.at(id), backend, found));
  if (found_ == Found::kDropped) return found;
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

Result<std::optional<RecordedResult>> RunToJudge::FindHybrids(const std::string& id,
                                                              const std::string& backend) const {
  const RecordedResult* found = hybrid_results_ ? hybrid_results_->Find(id, backend) : nullptr;
  if (found == nullptr) return std::optional<RecordedResult>();
  RecordedResult result = *found;
  ULPSCOPE_TRY(LoadTensors(*hybrids_, result));
  return std::optional(std::move(result));
}

std::string RunToJudge::WhyNotReached(const std::string& id, const std::string& backend) const {
  for (const auto& [unfinished_id, unfinished_backend] : run_.unfinished) {
    if (unfinished_id == id && unfinished_backend == backend) return "the run ended while it was running";
  }
  if (run_.stopped_after > 0)
    return "the run stopped after " + Counted(run_.stopped_after, "failure") +
           ", as it was asked to, before it was reached";
  return (limit_.empty() ? "the run ended" : limit_ + " came") + " before it was reached";
}

std::string RunToJudge::WhyNotJudged() const {
  return fmt::format("recorded, and not judged {} (`ulpscope judge` does)",
                     limit_.empty() ? "when the run was interrupted" : "when " + limit_ + " came");
}

JudgeContext RunToJudge::ContextFor(const Case& test_case, const std::string& backend) const {
  JudgeContext context;
  context.seed = run_.header.seed;
  if (const auto versions = run_.versions.find(backend); versions != run_.versions.end())
    context.versions = versions->second;
  context.date = run_.header.started.substr(0, 10);
  context.deviations = workspace_.deviations;
  if (const auto selector = workspace_.selectors.find(test_case.id); selector != workspace_.selectors.end())
    context.selector = WithoutSecrets(selector->second);
  context.extra_flags = WithoutSecrets(workspace_.ExtraFlags());
  const RegistryRow* row = workspace_.registry.Find(BackendSpec::NameOf(backend));
  if (row != nullptr && row->of_caller) context.start = JudgeContext::Start::kByCaller;
  context.provable = Provable(test_case);
  return context;
}

}  // namespace ulpscope
