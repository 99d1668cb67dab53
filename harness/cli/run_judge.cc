// Judging recorded runs.
#include "harness/cli/run_judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "harness/base/check.h"
#include "harness/base/text.h"
#include "harness/casefile/generate.h"
#include "harness/casefile/open.h"
#include "harness/casefile/prove.h"
#include "harness/judge/as_written.h"
#include "harness/judge/asked.h"
#include "harness/judge/classify.h"
#include "harness/judge/combine.h"
#include "harness/judge/contract.h"
#include "harness/judge/forms.h"
#include "harness/judge/knob_effect.h"
#include "harness/judge/local.h"
#include "harness/judge/sentence.h"
#include "harness/judge/step_contract.h"
#include "harness/judge/tensor_diff.h"
#include "harness/record/observation_json.h"
#include "oracles/oracle.h"
#include "reports/decisive.h"

namespace ulpscope {
namespace {

/// Terms of sums that judging several steps as one may cost: a second or so where they are observed only, minutes where a
/// contract or an expectation asks.
constexpr int64_t kJointWork = int64_t{1} << 28, kDemandedWork = int64_t{1} << 34;
/// What it may cost to say which plain program gives the results of a value that was not judged as one.
constexpr int64_t kNaturalWork = int64_t{1} << 26;

/// What judging one case yields; workers fill one slot each, so that the order of the report is no matter of
/// timing.
struct JudgedCase {
  std::vector<CaseResult> results;
  std::vector<Divergence> divergences;
  std::vector<KnobComparison> knobs;
  std::optional<Error> error;
};

class RunJudge {
 public:
  RunJudge(const RecordedRun& run, const Workspace& workspace, ClassifiedRun* classified,
           const JudgeRunOptions& options)
      : run_(run),
        results_(run),
        workspace_(workspace),
        cases_(workspace),
        classified_(*classified),
        options_(options),
        engine_(options.engine) {
    if (classified_.engine.empty()) classified_.engine = Name(engine_);
  }

  Result<RunReport> Judge() {
    std::vector<const Case*> cases;
    for (const auto& id : run_.header.cases) {
      // Companions are judged with the case that they belong to.
      if (!BaseOf(id).empty() && cases_.Find(id) == nullptr) continue;
      const auto test_case = FindCase(id);
      if (!test_case) return Fail(test_case.error());
      cases.push_back(*test_case);
    }
    std::vector<JudgedCase> judged(cases.size());
    ForEachInParallel(cases.size(), [&](size_t i) { judged[i] = JudgeOne(*cases[i]); });
    std::vector<CaseResult> results;
    std::vector<Divergence> divergences;
    std::vector<KnobComparison> knobs;
    for (auto& one : judged) {
      if (one.error) return Fail(*one.error);
      std::move(one.results.begin(), one.results.end(), std::back_inserter(results));
      std::move(one.divergences.begin(), one.divergences.end(), std::back_inserter(divergences));
      std::move(one.knobs.begin(), one.knobs.end(), std::back_inserter(knobs));
    }
    RunReport report = BuildReport(Facts(), std::move(results), std::move(divergences));
    report.knobs = SumUpKnobs(knobs, run_.header.backends);
    const OracleCounts& counted = classified_.counts;
    ULPSCOPE_CHECK(counted.fast == 0 || counted.compared > 0,
                   "nothing of what the fast oracle computed was compared with Boost");
    report.oracle_engine = classified_.engine;
    report.oracle_counts = counted;
    return report;
  }

 private:
  Result<const Case*> FindCase(const std::string& id) const {
    const Case* test_case = cases_.Find(id);
    if (test_case == nullptr) {
      return Fail(Problem("the run holds a case that is not in the suite", id, {},
                          "name its file on the command line"));
    }
    const auto digest = run_.header.digests.find(id);
    if (digest != run_.header.digests.end() && digest->second != CaseDigest(*test_case)) {
      return Fail(Error{
          .message = "case " + id + " has changed since the run: its record says nothing about it any more",
          .pos = test_case->pos,
          .found = {},
          .expected = {},
          .hint = "run it again"});
    }
    return test_case;
  }

  static void ForEachInParallel(size_t count, const std::function<void(size_t)>& work) {
    std::atomic<size_t> next{0};
    std::vector<std::thread> threads;
    const size_t workers = std::min<size_t>(count, std::max(1u, std::thread::hardware_concurrency()));
    for (size_t i = 0; i < workers; ++i) {
      threads.emplace_back([&] {
        for (size_t index = next++; index < count; index = next++) work(index);
      });
    }
    for (auto& thread : threads) thread.join();
  }

  JudgeContext ContextFor(const Case& test_case, const std::string& backend) const {
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

  /// The companions of one case, each with the classifier of its bits.
  struct Companions {
    std::vector<Companion> all;
    std::vector<std::unique_ptr<CaseClassifier>> classifiers;
  };

  Companions CompanionsFor(const Case& test_case) const {
    Companions companions{.all = CompanionsOf(test_case), .classifiers = {}};
    for (const Companion& companion : companions.all)
      companions.classifiers.push_back(
          std::make_unique<CaseClassifier>(companion.test_case, run_.header.seed, engine_));
    return companions;
  }

  /// What `backend` showed on the companions, joined with what it showed on the case's own data.
  Result<Proof> Join(const Case& test_case, const std::string& backend, const Observation& own,
                     const Classified& classified, Companions* companions, std::string* fault) {
    std::vector<RecordedResult> records;
    records.reserve(companions->all.size());  // runs point into it
    std::vector<Result<Classified>> taken;
    taken.reserve(companions->all.size());
    std::vector<CompanionRun> runs;
    for (size_t i = 0; i < companions->all.size(); ++i) {
      const Companion& companion = companions->all[i];
      runs.push_back(
          {.name = companion.name, .observation = nullptr, .taint = {}, .classifications = nullptr});
      const RecordedResult* found = results_.Find(companion.test_case.id, backend);
      if (found == nullptr || found->digest != CaseDigest(companion.test_case)) continue;
      records.push_back(*found);
      if (auto loaded = LoadTensors(run_, records.back()); !loaded) return Fail(loaded.error());
      taken.push_back(
          Take(companion.test_case.id, backend, *companions->classifiers[i], records.back().observation));
      if (!taken.back()) return Fail(taken.back().error());
      const Classified& known = *taken.back();
      if (!known.fault.empty()) *fault = "further input " + companion.name + ": " + known.fault;
      runs.back().observation = &records.back().observation;
      runs.back().taint = FindTaint(records.back().observation);
      runs.back().classifications = &known.values;
    }
    return JoinCompanions(test_case, own, classified.values, runs);
  }

  /// The opened program of a case, with what one backend showed on it.
  struct OpenedRecord {
    RecordedResult record;
    std::map<std::string, Classification> steps;
    OpenedRun told;
  };

  /// Nothing where the case has no opened program, or this run did not run it.
  Result<std::optional<OpenedRecord>> FindOpened(const std::optional<Case>& opened,
                                                 const std::string& backend, const Observation& own,
                                                 CaseClassifier* classifier, std::string* fault) {
    std::optional<OpenedRecord> none;
    if (!opened || own.outcome.kind != OutcomeKind::kCompleted) return none;
    const RecordedResult* found = results_.Find(opened->id, backend);
    if (found == nullptr || found->digest != CaseDigest(*opened)) return none;
    OpenedRecord here{.record = *found, .steps = {}, .told = {}};
    if (auto loaded = LoadTensors(run_, here.record); !loaded) return Fail(loaded.error());
    const Observation& observation = here.record.observation;
    here.told.left_out = WhyItProvesNothing(observation, FindTaint(observation));
    if (!here.told.left_out.empty()) return std::optional(std::move(here));
    auto taken = Take(opened->id, backend, *classifier, observation);
    if (!taken) return Fail(taken.error());
    if (!taken->fault.empty()) *fault = "step by step: " + taken->fault;
    here.steps = std::move(taken->values);
    std::map<std::string, TensorData> asked;
    for (const auto& [name, tensor] : own.values) {
      if (here.steps.contains(name)) asked.emplace(name, tensor);
    }
    const auto changed = ChangedByOpening(asked, observation.values);
    here.told.changed.assign(changed.begin(), changed.end());
    TellSteps(opened->program, here, &here.told.steps);
    return std::optional(std::move(here));
  }

  static void TellSteps(const std::vector<Step>& steps, const OpenedRecord& here,
                        std::vector<OpenedRun::StepResult>* told) {
    for (const Step& step : steps) {
      TellSteps(step.steps, here, told);
      const auto classification = here.steps.find(step.as);
      if (step.as.empty() || classification == here.steps.end()) continue;
      const TensorData& tensor = here.record.observation.values.at(step.as);
      ValueResult value{.dtype = tensor.dtype, .shape = tensor.shape, .part = {}, .classification = {}};
      value.classification = classification->second;
      told->push_back({.value = step.as, .op = step.op, .result = std::move(value)});
    }
  }

  /// What was not asked of the whole program, from its steps; where there are none, from the whole program after all.
  void Complete(const Case& test_case, const std::string& backend, const Observation& observation,
                const std::optional<OpenedRecord>& opened, CaseClassifier* classifier,
                CaseClassifier* opened_classifier, Classified* classified) {
    std::set<std::string> jointly;
    for (const auto& [name, tensor] : observation.values) {
      if (classified->values.contains(name)) continue;
      const bool kept = opened && std::find(opened->told.changed.begin(), opened->told.changed.end(), name) ==
                                      opened->told.changed.end();
      if (kept && opened->steps.contains(name))
        classified->values[name] = opened->steps.at(name);
      else
        jointly.insert(name);
    }
    if (jointly.empty()) return;
    // Where observing the steps changes what is computed: what was rounded on the way, if anything says it.
    Classified rest;
    if (opened) rest = opened_classifier->ClassifyAsAsked(observation, jointly);
    for (const auto& [name, found] : rest.values) jointly.erase(name);
    if (!jointly.empty()) {
      Classified joint = classifier->ClassifyJointly(observation, jointly);
      rest.values.merge(joint.values);
      if (rest.fault.empty()) rest.fault = joint.fault;
    }
    if (!rest.fault.empty()) classified->fault = rest.fault;
    for (auto& [name, classification] : rest.values) {
      const std::lock_guard lock(mutex_);
      if (const auto kept = classified_.results.find({test_case.id, backend});
          kept != classified_.results.end())
        kept->second.values[name] = classification;
      classified->values[name] = std::move(classification);
    }
  }

  /// What is too much to be judged as one, by its steps, where the opened program computes the same bits.
  static void JudgeBySteps(const Case& test_case, const std::optional<OpenedRecord>& opened,
                           const std::optional<Case>& opened_case, Classified* classified) {
    if (!opened || !opened->told.left_out.empty()) return;
    const auto& changed = opened->told.changed;
    for (auto& [name, found] : classified->values) {
      if (found.kind != ClassificationKind::kNotJudged ||
          std::find(changed.begin(), changed.end(), name) != changed.end())
        continue;
      const auto demand = test_case.contract.values.find(name);
      auto stand_in = StandInFromSteps(
          *opened_case, name, demand == test_case.contract.values.end() ? ValueDemand() : demand->second,
          opened->steps);
      if (!stand_in) continue;
      stand_in->elements = found.elements;
      stand_in->checked = found.checked;
      stand_in->max_ulp = found.max_ulp;
      stand_in->max_abs = found.max_abs;
      found = std::move(*stand_in);
    }
  }

  static bool IsAnyJudgedAsOne(const std::set<std::string>& names, const CaseResult& result) {
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      const auto value = result.values.find(name);
      if (value == result.values.end()) return false;
      const Classification& found = value->second.classification;
      return found.kind != ClassificationKind::kNotJudged && !found.piece.starts_with("steps ");
    });
  }

  /// Where the backends of `stepwise` part at single steps; those that did not complete take part where all others do.
  std::vector<Divergence> StepDivergences(const Case& test_case, const std::vector<Participant>& participants,
                                          const std::vector<std::optional<OpenedRecord>>& opened,
                                          const std::set<std::string>& stepwise) {
    const bool all = std::all_of(participants.begin(), participants.end(), [&](const Participant& each) {
      return each.result->outcome.kind != OutcomeKind::kCompleted || stepwise.contains(each.result->backend);
    });
    std::vector<CaseResult> results;
    std::vector<Observation> observations;
    results.reserve(participants.size());
    observations.reserve(participants.size());
    std::vector<Participant> shown;
    for (size_t i = 0; i < participants.size(); ++i) {
      if (!all && !stepwise.contains(participants[i].result->backend)) continue;
      results.push_back(*participants[i].result);
      observations.push_back(*participants[i].observation);
      if (opened[i]) {
        CaseResult& result = results.back();
        // Gradients are no values of steps: they are compared as they were asked.
        const CaseResult& asked = *participants[i].result;
        result.values.clear();
        result.value_order.clear();
        observations.back().values = opened[i]->record.observation.values;
        for (const auto& step : opened[i]->told.steps) {
          result.value_order.push_back(step.value);
          result.values[step.value] = step.result;
        }
        for (const auto& name : asked.value_order) {
          const auto value = participants[i].observation->values.find(name);
          if (result.values.contains(name) || value == participants[i].observation->values.end()) continue;
          result.value_order.push_back(name);
          result.values[name] = asked.values.at(name);
          observations.back().values.insert_or_assign(name, value->second);
        }
      }
      shown.push_back({.result = &results.back(), .observation = &observations.back()});
    }
    return FindDivergences(test_case, shown, JudgedAs::kStepByStep);
  }

  /// Of what differs for no cause that was found, and on a backend that computes otherwise where its steps are observed: what those
  /// steps show there, said as that.
  void TellObservedSteps(const Case& test_case, const std::vector<Participant>& participants,
                         const std::vector<std::optional<OpenedRecord>>& opened,
                         std::vector<Divergence>* divergences) {
    std::map<std::string, std::vector<std::string>> changed;
    std::set<std::string> seen;
    for (size_t i = 0; i < opened.size(); ++i) {
      if (participants[i].result->outcome.kind != OutcomeKind::kCompleted || !opened[i] ||
          !opened[i]->told.left_out.empty())
        continue;
      seen.insert(participants[i].result->backend);
      if (!opened[i]->told.changed.empty())
        changed[participants[i].result->backend] = opened[i]->told.changed;
    }
    if (changed.empty() || seen.size() < 2) return;
    std::optional<std::vector<Divergence>> steps;
    for (Divergence& each : *divergences) {
      if (each.kind != DivergenceKind::kValue || each.backends.size() != 2) continue;
      const std::vector<ObservedChange> who = ChangedIn(each, participants, opened, changed);
      if (who.empty()) continue;
      const bool has_cause = !each.sentence.ends_with(").");
      if (!steps && !has_cause) steps = StepDivergences(test_case, participants, opened, seen);
      each.sentence += ObservedStepsSentence(each, who, has_cause ? nullptr : &*steps);
    }
  }

  static const TensorData* FindValueOf(const Observation& observation, const std::string& name) {
    const auto found = observation.values.find(name);
    return found == observation.values.end() ? nullptr : &found->second;
  }

  /// Those of its backends on which its value is another one where the steps are observed.
  static std::vector<ObservedChange> ChangedIn(
      const Divergence& divergence, const std::vector<Participant>& participants,
      const std::vector<std::optional<OpenedRecord>>& opened,
      const std::map<std::string, std::vector<std::string>>& changed) {
    const auto holds = [](const std::vector<std::string>& names, const std::string& name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    std::vector<ObservedChange> who;
    for (size_t i = 0; i < participants.size(); ++i) {
      const std::string& backend = participants[i].result->backend;
      const auto values = changed.find(backend);
      if (values == changed.end() || !holds(values->second, divergence.value)) continue;
      const bool left = holds(divergence.backends[0], backend);
      if (!left && !holds(divergence.backends[1], backend)) continue;
      const TensorData *asked = FindValueOf(*participants[i].observation, divergence.value),
                       *observed = FindValueOf(opened[i]->record.observation, divergence.value);
      if (asked == nullptr || observed == nullptr || asked->shape != observed->shape ||
          asked->dtype != observed->dtype)
        continue;
      ObservedChange change{.backend = backend, .of = CompareTensors(*asked, *observed), .same_as = {}};
      for (const Participant& other : participants) {
        if (!holds(divergence.backends[left ? 1 : 0], other.result->backend)) continue;
        const TensorData* theirs = FindValueOf(*other.observation, divergence.value);
        if (theirs != nullptr && theirs->shape == observed->shape && theirs->dtype == observed->dtype &&
            CompareTensors(*theirs, *observed).Same())
          change.same_as.push_back(other.result->backend);
      }
      who.push_back(std::move(change));
    }
    return who;
  }

  JudgedCase JudgeOne(const Case& test_case) {
    JudgedCase judged;
    CaseClassifier classifier(test_case, run_.header.seed, engine_);
    const std::optional<Case> opened_case = Opened(test_case);
    CaseClassifier opened_classifier(opened_case ? *opened_case : test_case, run_.header.seed, engine_);
    std::vector<std::optional<OpenedRecord>> opened;
    Companions companions = CompanionsFor(test_case);
    std::vector<RecordedResult> records;
    records.reserve(run_.header.backends.size());  // participants point into it
    std::vector<size_t> record_of;
    for (const auto& backend : run_.header.backends) {
      JudgeContext context = ContextFor(test_case, backend);
      if (!IsSwept(run_.header.swept, test_case, backend)) continue;
      const RecordedResult* found = results_.Find(test_case.id, backend);
      if (found == nullptr) {
        judged.results.push_back(
            NotReachedResult(test_case, backend, WhyNotReached(test_case.id, backend), context));
        continue;
      }
      records.push_back(*found);
      auto loaded = LoadTensors(run_, records.back());
      if (loaded) loaded = LoadTrace(run_, records.back());
      if (!loaded) {
        judged.error = loaded.error();
        return judged;
      }
      const Observation& observation = records.back().observation;
      auto taken = Take(test_case.id, backend, classifier, observation);
      if (!taken) {
        judged.error = taken.error();
        return judged;
      }
      Classified classified = *std::move(taken);
      auto steps = FindOpened(opened_case, backend, observation, &opened_classifier, &classified.fault);
      if (!steps) {
        judged.error = steps.error();
        return judged;
      }
      Complete(test_case, backend, observation, *steps, &classifier, &opened_classifier, &classified);
      JudgeBySteps(test_case, *steps, opened_case, &classified);
      opened.push_back(std::move(*steps));
      Proof proof{.values = classified.values, .verdicts = {}, .inputs = {}};
      std::string fault = classified.fault;
      if (!companions.all.empty() && observation.outcome.kind == OutcomeKind::kCompleted) {
        auto joined = Join(test_case, backend, observation, classified, &companions, &fault);
        if (!joined) {
          judged.error = joined.error();
          return judged;
        }
        proof = std::move(*joined);
      }
      context.proof = &proof;
      judged.results.push_back(fault.empty()
                                   ? JudgeCase(test_case, backend, observation, proof.values, context)
                                   : HarnessFaultResult(test_case, backend, observation, fault, context));
      if (opened.back()) judged.results.back().opened = opened.back()->told;
      record_of.push_back(judged.results.size() - 1);
    }
    std::vector<Participant> participants;
    for (size_t i = 0; i < records.size(); ++i)
      participants.push_back(
          {.result = &judged.results[record_of[i]], .observation = &records[i].observation});
    const std::set<std::string> demanded = DemandedValues(test_case);
    // Those whose steps are known are compared step by step; the others, and these with them, as far as they were asked.
    std::set<std::string> stepwise;
    size_t completed = 0;
    for (size_t i = 0; i < opened.size(); ++i) {
      if (participants[i].result->outcome.kind != OutcomeKind::kCompleted) continue;
      ++completed;
      if (opened_case && opened[i] && opened[i]->told.left_out.empty() && opened[i]->told.changed.empty() &&
          !IsAnyJudgedAsOne(demanded, *participants[i].result))
        stepwise.insert(participants[i].result->backend);
    }
    if (stepwise.size() > 1 || (stepwise.size() == completed && opened_case))
      judged.divergences = StepDivergences(test_case, participants, opened, stepwise);
    if (stepwise.size() < completed || stepwise.empty()) {
      for (auto& each : FindDivergences(test_case, participants, JudgedAs::kWholeProgram, stepwise))
        judged.divergences.push_back(std::move(each));
      if (opened_case) TellObservedSteps(test_case, participants, opened, &judged.divergences);
    }
    judged.knobs = CompareKnobs(participants, run_.knobs);
    if (options_.exclusions == JudgeRunOptions::Exclusions::kShown)
      KeepShownExclusions(judged.divergences, &judged.results);
    const std::lock_guard lock(mutex_);
    classified_.counts += classifier.Counts();
    classified_.counts += opened_classifier.Counts();
    for (const auto& each : companions.classifiers) classified_.counts += each->Counts();
    return judged;
  }

  /// What is recorded, or else found now.
  Result<Classified> Take(const std::string& id, const std::string& backend, CaseClassifier& classifier,
                          const Observation& observation) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = classified_.results.find({id, backend}); known != classified_.results.end())
        return known->second;
    }
    if (classified_.recorded != nullptr && classified_.recorded->Has(id, backend))
      return classified_.recorded->Read(id, backend);
    Classified found = classifier.Classify(observation);
    if (options_.found == JudgeRunOptions::Found::kDropped) return found;
    const std::lock_guard lock(mutex_);
    return classified_.results[{id, backend}] = std::move(found);
  }

  std::string WhyNotReached(const std::string& id, const std::string& backend) const {
    for (const auto& [unfinished_id, unfinished_backend] : run_.unfinished) {
      if (unfinished_id == id && unfinished_backend == backend) return "the run ended while it was running";
    }
    if (run_.stopped_after > 0)
      return fmt::format("the run stopped after {} failure{}, as it was asked to, before it was reached",
                         run_.stopped_after, run_.stopped_after == 1 ? "" : "s");
    return "the run ended before it was reached";
  }

  RunFacts Facts() const {
    RunFacts facts;
    facts.seed = run_.header.seed;
    facts.complete = run_.complete;
    facts.stopped_after = run_.stopped_after;
    facts.backends = run_.header.backends;
    facts.versions = run_.versions;
    facts.not_installed = run_.header.not_installed;
    facts.environment = run_.header.environment;
    facts.id = run_.header.id;
    facts.started = run_.header.started;
    return facts;
  }

  const RecordedRun& run_;
  ResultIndex results_;
  const Workspace& workspace_;
  CaseIndex cases_;
  ClassifiedRun& classified_;
  JudgeRunOptions options_;
  OracleEngine engine_;
  std::mutex mutex_;
};

}  // namespace

std::string_view Name(OracleEngine engine) { return engine == OracleEngine::kFast ? "fast" : "boost"; }

OracleCounts CaseClassifier::Counts() const {
  OracleCounts counts = pieces_;
  if (oracle_ != nullptr) counts += oracle_->Counts();
  return counts;
}

Classified CaseClassifier::Classify(const Observation& observation) {
  if (!CanBeOpened(case_)) return ClassifyBits(observation.values);
  return ClassifyJointly(observation, DemandedValues(case_));
}

Classified CaseClassifier::ClassifyJointly(const Observation& observation,
                                           const std::set<std::string>& names) {
  std::map<std::string, TensorData> values;
  for (const auto& [name, tensor] : observation.values) {
    if (names.contains(name)) values.emplace(name, tensor);
  }
  return ClassifyBits(values);
}

void CaseClassifier::Open() {
  if (opened_) return;
  opened_ = true;
  auto inputs = MakeInputs(case_, seed_);
  if (!inputs) {
    no_inputs_ = "the inputs cannot be made: " + inputs.error().Text();
    return;
  }
  inputs_ = std::move(*inputs);
  if (IsOpened(case_)) return;
  auto oracle = OpenCaseOracle(case_, inputs_, {.engine = engine_});
  if (oracle) {
    oracle_ = std::move(*oracle);
  } else {
    no_oracle_ = oracle.error().Text();
  }
}

OpenPiece CaseClassifier::PieceOracle() const {
  return [this](const Case& piece, std::map<std::string, TensorData> inputs, const PieceOptions& how) {
    return OpenCaseOracle(piece, std::move(inputs),
                          {.engine = engine_,
                           .unrounded = how.unrounded,
                           .natural = how.natural,
                           .as_written = how.as_written});
  };
}

std::map<std::string, Classification> CaseClassifier::StepByStep(
    const std::map<std::string, TensorData>& values) {
  return JudgeSteps(case_, inputs_, values, PieceOracle(), &pieces_);
}

Classified CaseClassifier::ClassifyAsAsked(const Observation& observation,
                                           const std::set<std::string>& names) {
  Classified classified;
  Open();
  if (!no_inputs_.empty()) return classified;
  for (const auto& [name, tensor] : observation.values) {
    if (!names.contains(name) || !IsFloating(tensor.dtype)) continue;
    auto found = JudgeAsAsked(case_, inputs_, name, tensor, PieceOracle(), &pieces_);
    if (found) classified.values.emplace(name, std::move(*found));
  }
  return classified;
}

void CaseClassifier::SayWhatFits(const std::map<std::string, TensorData>& values, ClassifyOptions options,
                                 Classified* classified) {
  std::unique_ptr<CaseOracle> natural;
  for (auto& [name, found] : classified->values) {
    if (found.kind != ClassificationKind::kNotJudged) continue;
    if (natural == nullptr) {
      auto opened = OpenCaseOracle(case_, inputs_, {.engine = engine_, .unrounded = {}, .natural = true});
      if (!opened) return;
      natural = std::move(*opened);
    }
    options.search = false;
    options.most_work = kNaturalWork;
    const Classification fits = ClassifyValue(*natural, name, values.at(name), options);
    pieces_ += natural->Counts();
    if (!fits.fits || fits.reproduced < kNearlyAll) continue;
    found.says.push_back(
        fmt::format("{:.0f} % of the results are those of: {}", 100 * fits.reproduced, fits.label));
    found.reproduced = fits.reproduced;
    found.label = Join(found.says, "; ");
  }
}

void CaseClassifier::TryForms(const std::map<std::string, TensorData>& values, Classified* classified) {
  const std::set<std::string> demanded = DemandedValues(case_);
  const bool any = std::any_of(classified->values.begin(), classified->values.end(), [&](const auto& value) {
    return value.second.kind == ClassificationKind::kUnmodelled && !demanded.contains(value.first);
  });
  if (!any) return;
  for (auto& [name, found] : StepByStep(values)) {
    Classification& whole = classified->values[name];
    if (whole.kind != ClassificationKind::kUnmodelled || !found.fits || demanded.contains(name)) continue;
    whole = std::move(found);
    whole.piece.clear();
  }
}

void CaseClassifier::DoubtViolations(const std::map<std::string, TensorData>& values,
                                     Classified* classified) {
  const Step& step = case_.program.front();
  const auto demand = case_.contract.values.find(step.as);
  const auto value = classified->values.find(step.as);
  if (demand == case_.contract.values.end() || value == classified->values.end() ||
      OtherForms(step).empty() || JudgeFacets(demand->second, value->second) != ContractVerdict::kViolates)
    return;
  const auto steps = StepByStep(values);
  const auto form = steps.find(step.as);
  if (form == steps.end() || !form->second.fits || form->second.reproduced < kNearlyEvery ||
      JudgeFacets(demand->second, form->second) == ContractVerdict::kViolates)
    return;
  Classification& found = value->second;
  found.kind = ClassificationKind::kUnmodelled;
  found.fits = false;
  found.models.clear();
  found.models_proved.clear();
  found.says = {fmt::format("{:.0f} % of the results are those of: {}", 100 * form->second.reproduced,
                            form->second.label)};
  found.label = "unmodelled: " + found.says.front();
}

bool CaseClassifier::IsStepOfManyModels() const {
  if (!IsOneStep(case_) || !case_.companion_of.empty() || !DemandedValues(case_).empty()) return false;
  const auto shape = oracle_->Describe(case_.program.front().as);
  return shape && shape->most_models >= kManyModels;
}

void CaseClassifier::ShowWritten(const std::map<std::string, TensorData>& values, Classified* classified) {
  for (auto& [name, found] : classified->values) {
    if (!IsMeasured(found.kind) || !found.as_written.empty() || IsAsWritten(found)) continue;
    auto written = OpenCaseOracle(case_, inputs_, {.engine = engine_, .as_written = true});
    if (!written) return;
    ShowAsWritten(**written, name, values.at(name), &found);
    pieces_ += (*written)->Counts();
  }
}

Classified CaseClassifier::ClassifyBits(const std::map<std::string, TensorData>& values) {
  if (values.empty()) return {};
  const auto known =
      std::find_if(done_.begin(), done_.end(), [&](const auto& one) { return one.first == values; });
  if (known != done_.end()) return known->second;
  Classified classified;
  try {
    Open();
    if (!no_inputs_.empty()) return {.values = {}, .fault = no_inputs_};
    if (IsOpened(case_)) {
      classified.values = StepByStep(values);
    } else if (oracle_ != nullptr) {
      using Evidence = ClassifyOptions::Evidence;
      // What companions are likely to say is not asked: they are there to prove.
      ClassifyOptions options;
      options.evidence = case_.companion_of.empty() ? Evidence::kAll : Evidence::kHard;
      const bool one_step = IsOneStep(case_);
      if (!one_step) options.most_work = DemandedValues(case_).empty() ? kJointWork : kDemandedWork;
      const auto& demands = case_.companion_of.empty() ? case_.contract.values : case_.asked_of;
      if (IsStepOfManyModels()) classified.values = StepByStep(values);
      for (auto& [name, found] : classified.values) found.piece.clear();
      for (const auto& [name, data] : values) {
        if (classified.values.contains(name)) continue;
        ClassifyOptions own = options;
        const auto demand = demands.find(name);
        const auto shape = oracle_->Describe(name);
        if (demand != demands.end() && shape) own.named = RoundingsNamed(demand->second, shape->operands);
        classified.values.emplace(name, ClassifyValue(*oracle_, name, data, own));
      }
      if (one_step) {
        TryForms(values, &classified);
        DoubtViolations(values, &classified);
        if (options.evidence == Evidence::kAll) ShowWritten(values, &classified);
      } else if (case_.companion_of.empty())
        SayWhatFits(values, options, &classified);
    } else {
      for (const auto& [name, tensor] : values) {
        Classification& unknown = classified.values[name];
        unknown.elements = tensor.size();
        unknown.notes = {"no reference: " + no_oracle_};
        if (!IsFloating(tensor.dtype)) unknown.kind = ClassificationKind::kNotFloating;
      }
    }
  } catch (const std::exception& broken) {
    return {.values = {}, .fault = fmt::format("the oracle or the classifier broke: {}", broken.what())};
  }
  done_.emplace_back(values, classified);
  return classified;
}

Result<RunReport> JudgeRun(const RecordedRun& run, const Workspace& workspace, ClassifiedRun* classified,
                           const JudgeRunOptions& options) {
  return RunJudge(run, workspace, classified, options).Judge();
}

}  // namespace ulpscope
