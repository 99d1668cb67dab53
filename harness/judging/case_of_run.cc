// Judging one case.
#include "harness/judging/case_of_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "harness/base/deadline.h"
#include "harness/casefile/open.h"
#include "harness/judge/account.h"
#include "harness/judge/judge.h"
#include "harness/judge/non_finite.h"
#include "harness/judge/participant.h"
#include "harness/judge/sample.h"
#include "harness/judge/side.h"
#include "harness/judging/budgets_of_case.h"
#include "harness/judging/case_divergences.h"
#include "harness/judging/companion_results.h"
#include "harness/judging/ledgers_of_case.h"
#include "harness/judging/opened_record.h"
#include "harness/model/tensor_diff.h"

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
      const RecordedResult* found =
          IsSwept(header.swept, case_, backend) ? run_.Find(case_.id, backend) : nullptr;
      if (found == nullptr) continue;
      RecordedResult& record = records_.emplace_back(*found);
      const auto due = [this](const std::string& value) { return classifier_.ShapeOf(value); };
      if (auto sound = CheckHoles(run_.run(), record, due); !sound) return Fail(sound.error());
      if (auto loaded = LoadTensors(run_.run(), record); !loaded) return Fail(loaded.error());
      if (auto loaded = LoadTrace(run_.run(), record); !loaded) return Fail(loaded.error());
    }
    LookAtDifferences();
    size_t reached = 0;
    for (const auto& backend : header.backends) {
      if (!IsSwept(header.swept, case_, backend)) continue;
      if (run_.Find(case_.id, backend) == nullptr) {
        judged_.results.push_back(NotReachedResult(case_, backend, run_.WhyNotReached(case_.id, backend),
                                                   run_.ContextFor(case_, backend)));
      } else if (auto done = JudgeResult(records_[reached++], backend); !done) {
        return Fail(done.error());
      }
    }
    std::vector<Participant> participants;
    for (size_t i = 0; i < records_.size(); ++i)
      participants.push_back(
          {.result = &judged_.results[result_of_[i]], .observation = &records_[i].observation});
    judged_.divergences = FindCaseDivergences(case_, participants, opened_, opened_case_);
    for (Divergence& each : judged_.divergences) TellBirth(&each);
    judged_.account = TakeAccount(participants, judged_.divergences);
    CoverTheRest(participants);
    ULPSCOPE_TRY(BookLedgers(participants));
    TellObservedSteps(case_, participants, opened_, judged_.ledgers, &judged_.divergences);
    judged_.knobs = CompareKnobs(participants, run_.run().knobs);
    run_.classifications().Count(classifier_.Counts());
    run_.classifications().Count(opened_classifier_.Counts());
    run_.classifications().Count(companions_.Counts());
    return std::move(judged_);
  }

 private:
  /// If a time limit comes first, the case is still judged, and the report states that it is not booked.
  Result<void> BookLedgers(const std::vector<Participant>& participants) {
    const CaseToBook to_book{.test_case = case_,
                             .opened_case = opened_case_,
                             .participants = participants,
                             .opened = opened_,
                             .divergences = judged_.divergences};
    ULPSCOPE_TRY(Book("differences", &judged_.ledgers, [&] {
      return LedgersOf(run_, to_book, judged_.account, {.asked = classifier_, .opened = opened_classifier_});
    }));
    return Book("errors", &judged_.budgets,
                [&] { return BudgetsOf(run_, to_book, judged_.ledgers, &classifier_); });
  }

  template <class T, class Make>
  Result<void> Book(std::string_view what, std::vector<T>* booked, const Make& make) {
    Result<std::vector<T>> made;
    if (run_.limit().empty())
      made = make();
    else if (!BeforeDeadline([&] { made = make(); }))
      judged_.left_out.push_back(fmt::format("the {} of {} not booked", what, case_.id));
    if (!made) return Fail(made.error());
    *booked = *std::move(made);
    return {};
  }

  /// The elements in which a backend differs from the first one that has the value: a sample of many holds few of them.
  void LookAtDifferences() {
    constexpr int64_t kMostElements = 256;  // chosen: more than any sample of a step holds
    std::map<std::string, std::set<int64_t>> differing;
    std::map<std::string, const TensorData*> first;
    for (const RecordedResult& record : records_) {
      for (const auto& [name, tensor] : record.observation.values) {
        const auto [known, is_new] = first.try_emplace(name, &tensor);
        const TensorData& other = *known->second;
        if (is_new || !IsFloating(tensor.dtype) || tensor.dtype != other.dtype ||
            tensor.shape != other.shape || tensor.bytes == other.bytes)
          continue;
        std::vector<int64_t> all;
        for (int64_t k = 0; k < tensor.size(); ++k) {
          if (DiffersInNumber(tensor.At(k), other.At(k))) all.push_back(k);
        }
        const auto count = static_cast<int64_t>(all.size());
        for (const int64_t k : Spread(count, std::min(count, kMostElements)))
          differing[name].insert(all[static_cast<size_t>(k)]);
      }
    }
    std::map<std::string, std::vector<int64_t>> elements;
    std::map<std::string, int64_t> sizes;
    for (const auto& [name, set] : differing) {
      elements[name].assign(set.begin(), set.end());
      sizes[name] = first.at(name)->size();
    }
    classifier_.LookAt(elements, sizes);
    opened_classifier_.LookAt(std::move(elements), sizes);
  }

  /// Records where infinities and NaNs of observed values begin: data of the result, and text for their divergence.
  void NoteNonFinite(const std::string& backend, const Observation& observation,
                     const std::optional<OpenedRecord>& opened, CaseResult* result) {
    for (const std::string& name : result->value_order) {
      const auto tensor = observation.values.find(name);
      if (tensor == observation.values.end() || !HasNonFinite(tensor->second)) continue;
      const auto whole = classifier_.FindNonFiniteValue(name, tensor->second);
      const bool steps = opened && opened->Says() && opened->Keeps(name);
      std::vector<NonFinite> births;
      if (steps)
        births = opened_classifier_.FindBirthsOf(name, opened->record.observation.values);
      else if (IsOneStep(case_))
        births = classifier_.FindBirthsOf(name, observation.values);
      for (const NonFinite& born : births) {
        const auto& program = steps ? *opened_case_ : case_;
        const auto& values = steps ? opened->record.observation.values : observation.values;
        AddBirth(name, BirthOf(born, whole), SpreadFrom(program, values, born.value), &result->not_finite);
      }
      if (births.empty() && whole) {
        AddBirth(name, BirthOf(*whole, whole),
                 {{.step = name, .count = whole->count, .elements = whole->elements}}, &result->not_finite);
      }
      const auto lost =
          std::ranges::find_if(births, [](const NonFinite& each) { return each.exact.has_value(); });
      if (lost != births.end())
        births_[{backend, name}] = DescribeNonFinite(*lost);
      else if (!births.empty() || whole)
        births_[{backend, name}] = DescribeNonFinite(births.empty() ? *whole : births.front());
    }
  }

  /// `whole`: the value in which it shows at the end, if that has an exact result.
  static NonFiniteBirth BirthOf(const NonFinite& born, const std::optional<NonFinite>& whole) {
    const auto element = [](const NonFinite& of) {
      return SpecialElement{.value = of.value, .at = of.first, .observed = of.observed, .exact = of.exact};
    };
    NonFiniteBirth birth;
    birth.what = std::isnan(born.observed) ? "NaN" : "inf";
    birth.op = born.op;
    birth.born = element(born);
    birth.operands = born.operands;
    birth.dtype = born.dtype;
    if (whole) birth.end = element(*whole);
    return birth;
  }

  /// A birth known from another value is also this value's.
  static void AddBirth(const std::string& value, NonFiniteBirth birth,
                       std::vector<NonFiniteBirth::Spread> spread, std::vector<NonFiniteBirth>* all) {
    for (NonFiniteBirth& known : *all) {
      if (known.op.empty() || known.what != birth.what || known.born.value != birth.born.value) continue;
      known.values.push_back(value);
      return;
    }
    birth.values = {value};
    birth.spread = std::move(spread);
    all->push_back(std::move(birth));
  }

  void TellBirth(Divergence* divergence) const {
    if (divergence->kind != DivergenceKind::kSpecial) return;
    std::map<std::string, std::vector<std::string>> said;
    for (const auto& group : divergence->backends) {
      for (const std::string& backend : group) {
        const auto birth = births_.find({backend, divergence->value});
        if (birth != births_.end()) said[birth->second].push_back(backend);
      }
    }
    for (const auto& [birth, backends] : said)
      divergence->sentence += fmt::format(" On {} it begins where {}.", JoinNames(backends), birth);
  }

  /// A difference that no relation covers is reported by its size alone.
  void CoverTheRest(const std::vector<Participant>& participants) {
    const size_t before = judged_.divergences.size();
    for (const AccountEntry& entry : judged_.account) {
      if (entry.by.empty()) judged_.divergences.push_back(TellBySize(entry));
    }
    if (judged_.divergences.size() > before) judged_.account = TakeAccount(participants, judged_.divergences);
  }

  Result<void> JudgeResult(const RecordedResult& record, const std::string& backend) {
    const Observation& observation = record.observation;
    auto classified = ULPSCOPE_TRY(run_.classifications().Take(case_.id, backend, &classifier_, observation));
    classifier_.NameForms(observation, &classified);
    auto opened = ULPSCOPE_TRY(
        FindOpened(run_, opened_case_, backend, observation, &opened_classifier_, &classified.fault));
    Complete(backend, observation, opened, &classified);
    JudgeBySteps(case_, opened, opened_case_, &classified);
    if (opened_case_) {
      for (auto& [name, found] : classified.values) {
        const auto tensor = observation.values.find(name);
        if (tensor != observation.values.end()) classifier_.MeasureWhole(name, tensor->second, &found);
      }
    }
    Proof proof{.values = classified.values, .verdicts = {}, .inputs = {}};
    std::string fault = classified.fault;
    if (!companions_.empty() && observation.outcome.kind == OutcomeKind::kCompleted) {
      proof = ULPSCOPE_TRY(companions_.Join(case_, backend, observation, classified, &fault));
    }
    JudgeContext context = run_.ContextFor(case_, backend);
    context.proof = &proof;
    CaseResult result = fault.empty() ? JudgeCase(case_, backend, observation, proof.values, context)
                                      : HarnessFaultResult(case_, backend, observation, fault, context);
    if (fault.empty() && observation.outcome.kind == OutcomeKind::kCompleted)
      NoteNonFinite(backend, observation, opened, &result);
    if (opened) result.opened = opened->told;
    result_of_.push_back(judged_.results.size());
    judged_.results.push_back(std::move(result));
    opened_.push_back(std::move(opened));
    return {};
  }

  /// Classifies the remaining values from their steps, or, if there are none, from the whole program after all.
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
    // If observing the steps changes what is computed: the intermediate roundings, if they can be found.
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
  std::map<std::pair<std::string, std::string>, std::string>
      births_;                     ///< (backend, value) -> the place where it becomes infinite or NaN
  std::vector<size_t> result_of_;  ///< one each: its place in the results
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
    const std::string why = run.Find(test_case.id, backend) == nullptr
                                ? run.WhyNotReached(test_case.id, backend)
                                : run.WhyNotJudged();
    judged.results.push_back(NotReachedResult(test_case, backend, why, run.ContextFor(test_case, backend)));
  }
  return judged;
}

}  // namespace ulpscope
