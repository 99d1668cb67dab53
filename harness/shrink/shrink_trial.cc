// Warm adapters, a record in memory, and the judge.
#include "harness/shrink/shrink_trial.h"

#include <algorithm>
#include <optional>
#include <set>

#include "harness/base/check.h"
#include "harness/casefile/generate.h"
#include "harness/casefile/open.h"
#include "harness/judging/run_judge.h"
#include "harness/record/observation_json.h"
#include "harness/run/interrupt.h"
#include "harness/run/run_plan.h"

namespace ulpscope {

class Trials::Impl {
 public:
  Impl(const Workspace& workspace, std::vector<BackendSpec> backends, const Options& options,
       std::unique_ptr<Scratch> scratch)
      : asked_(options), backends_(std::move(backends)), workspace_(workspace), scratch_(std::move(scratch)) {
    options_.seed = options.seed;
    options_.timeout_s = options.timeout_s;
    workspace_.cases.clear();
    workspace_.selectors.clear();
    workspace_.deviations.clear();
  }

  void Plan(const Case& first) {
    first_ = {first};
    plan_ = MakePlan(first_, backends_, workspace_.registry, options_, nullptr);
    ULPSCOPE_CHECK(plan_.groups.size() == backends_.size(), "a backend has no adapter of its own");
    for (const auto& group : plan_.groups)
      runners_.push_back(std::make_unique<CaseRunner>(group->key, workspace_.registry, *scratch_, options_,
                                                      interrupt_.fd()));
  }

  Result<Observation> One(const Case& candidate, const std::map<std::string, TensorData>& inputs, size_t i) {
    auto observation = runners_[i]->Run(candidate, inputs);
    if (!observation) return Fail("interrupted");
    return *std::move(observation);
  }

  Result<Observation> Observe(const Case& candidate, size_t backend) {
    options_.repeat = 1;
    options_.trace = false;
    const auto inputs = ULPSCOPE_TRY(MakeInputs(candidate, asked_.seed));
    return One(candidate, inputs, backend);
  }

  Result<ShrinkTrial> Run(const Case& candidate, IfRefused if_refused) {
    ++ran_;
    options_.repeat = 1;
    options_.trace = asked_.trace;
    const auto inputs = ULPSCOPE_TRY(MakeInputs(candidate, asked_.seed));
    const std::optional<Case> opened = Opened(candidate);
    // One after the other, by this thread: an adapter does not outlive the thread that started it.
    std::vector<Result<std::vector<RecordedResult>>> sides;
    for (size_t i = 0; i < backends_.size(); ++i) {
      sides.push_back(Side(candidate, opened, inputs, i));
      if (!sides[i]) return Fail(sides[i].error());
      const Outcome& outcome = sides[i]->front().observation.outcome;
      if (if_refused == IfRefused::kStop && outcome.kind != OutcomeKind::kCompleted)
        return Fail(backends_[i].Text() + ": " + std::string(Name(outcome.kind)) + ": " + outcome.text);
    }
    RecordedRun run;
    run.header.seed = asked_.seed;
    run.header.cases = {candidate.id};
    run.complete = true;
    for (size_t i = 0; i < backends_.size(); ++i) {
      run.header.backends.push_back(backends_[i].Text());
      run.versions[backends_[i].Text()] = Versions(i);
      for (auto& result : *sides[i]) run.results.push_back(std::move(result));
    }
    workspace_.cases = {candidate};
    ClassifiedRun classified;
    auto report = ULPSCOPE_TRY(JudgeRun(run, workspace_, &classified));
    ShrinkTrial trial{.report = std::move(report)};
    for (const auto& backend : run.header.backends)
      trial.observations.push_back(run.Find(candidate.id, backend)->observation);
    return trial;
  }

  std::map<std::string, std::string> Versions(size_t i) const {
    const auto& info = plan_.groups[i]->key.info;
    return info ? info->versions : std::map<std::string, std::string>();
  }

  bool interrupted() const { return interrupt_.IsRaised(); }
  int64_t ran() const { return ran_; }

 private:
  /// The candidate, and its opened program: where everything is observed anyway, they are one.
  Result<std::vector<RecordedResult>> Side(const Case& candidate, const std::optional<Case>& opened,
                                           const std::map<std::string, TensorData>& inputs, size_t i) {
    const auto recorded = [&](const Case& c, Observation observation) {
      RecordedResult result;
      result.case_id = c.id;
      result.backend = backends_[i].Text();
      result.digest = CaseDigest(c);
      result.observation = std::move(observation);
      return result;
    };
    auto plain = ULPSCOPE_TRY(One(candidate, inputs, i));
    std::vector<RecordedResult> results{recorded(candidate, plain)};
    if (!opened || plain.outcome.kind != OutcomeKind::kCompleted) return results;
    const std::set<std::string> all(opened->observe.begin(), opened->observe.end());
    if (all == std::set<std::string>(candidate.observe.begin(), candidate.observe.end())) {
      results.push_back(recorded(*opened, std::move(plain)));
      return results;
    }
    auto inside = ULPSCOPE_TRY(One(*opened, inputs, i));
    results.push_back(recorded(*opened, std::move(inside)));
    return results;
  }

  Options asked_;
  std::vector<BackendSpec> backends_;
  Workspace workspace_;
  RunOptions options_;
  Interrupt interrupt_;
  std::unique_ptr<Scratch> scratch_;
  std::vector<Case> first_;
  RunPlan plan_;
  std::vector<std::unique_ptr<CaseRunner>> runners_;
  int64_t ran_ = 0;
};

Trials::Trials(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Trials::~Trials() = default;

Result<std::unique_ptr<Trials>> Trials::Open(const Workspace& workspace, std::vector<BackendSpec> backends,
                                             const Case& first, const Options& options) {
  auto scratch = ULPSCOPE_TRY(Scratch::Create());
  auto impl = std::make_unique<Impl>(workspace, std::move(backends), options, std::move(scratch));
  impl->Plan(first);
  return std::unique_ptr<Trials>(new Trials(std::move(impl)));
}

Result<ShrinkTrial> Trials::Run(const Case& candidate, IfRefused if_refused) {
  return impl_->Run(candidate, if_refused);
}
Result<Observation> Trials::Observe(const Case& candidate, size_t backend) {
  return impl_->Observe(candidate, backend);
}
bool Trials::interrupted() const { return impl_->interrupted(); }
int64_t Trials::ran() const { return impl_->ran(); }
std::map<std::string, std::string> Trials::Versions(size_t backend) const { return impl_->Versions(backend); }

}  // namespace ulpscope
