// From recorded steps to budgets.
#include "harness/judging/budgets_of_case.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "harness/base/find.h"
#include "harness/casefile/generate.h"
#include "harness/casefile/open.h"
#include "harness/hybrid/hybrid_runs.h"
#include "harness/ledger/budget.h"
#include "harness/ledger/hybrid.h"
#include "harness/ledger/nearer.h"
#include "oracles/exact_rest.h"

namespace ulpscope {
namespace {

/// The most that the hybrids of one value on one backend cost, in terms (ExactRest::Work) of kHybridsAtOnce hybrids
/// each: seconds if two backends differ in it, else a moment.
constexpr int64_t kMostTerms = int64_t{1} << 25, kCheapTerms = int64_t{1} << 16;

/// Step -> steps that it reads before they were rounded to their dtype, and in no other way.
using UnroundedReads = std::map<std::string, std::vector<std::string>>;

/// The stored intermediates before one value on one backend.
struct StoredBy {
  std::vector<StoredStep> steps = {};
  UnroundedReads unrounded = {};
  std::string unknown = {};  ///< why there are none
  bool at_stored_values = false;
};

/// One value, shared by all backends that stored the same bits.
struct ToBook {
  const std::string& value;
  const TensorData& own;
  const ExactElements& exact;
  const UnroundedReads& unrounded;
  bool has_ledger = false;
};

/// The elements of a value that have exact results, and the hybrids of it.
class BudgetOfValue {
 public:
  BudgetOfValue(const ToBook& what, ExactRest* rest) : what_(what), rest_(*rest) {
    for (size_t i = 0; i < what.exact.elements.size(); ++i) {
      const Reference& due = what.exact.references[i];
      if (due.kind == ReferenceKind::kUndecided || due.kind == ReferenceKind::kDomain) continue;
      elements_.push_back(what.exact.elements[i]);
      due_.push_back(due);
      walk_.end.push_back(what.own.At(elements_.back()));
    }
  }

  /// Nothing if it costs more than allowed.
  std::optional<ErrorBudget> Book() {
    ErrorBudget budget;
    if (elements_.empty() || !AreNumbers(walk_.end))
      return LeftOut("it has infinities or NaNs, or no exact result");
    const int64_t terms = std::max<int64_t>(1, rest_.Work(static_cast<int64_t>(elements_.size())));
    const int64_t most = what_.has_ledger ? kMostTerms : kCheapTerms;
    // The errors of single steps, the hybrids, and one step in float32.
    const int64_t groups = most / terms - 2;
    if (groups < 1) {
      if (!what_.has_ledger) return std::nullopt;
      return LeftOut("computing the rest exactly costs too much");
    }
    rest_.MeasureSteps(elements_);
    FindTurns();
    const int64_t together = Choose(groups * kHybridsAtOnce);
    if (!Walk()) return LeftOut("a hybrid with the exact program has infinities or NaNs");
    budget = BookErrors(walk_, Precision());
    budget.together = together;
    budget.in_float32 = TryFloat32(budget);
    return budget;
  }

 private:
  static bool AreNumbers(const std::vector<double>& values) {
    return std::ranges::all_of(values, [](double each) { return std::isfinite(each); });
  }

  static ErrorBudget LeftOut(const std::string& why) {
    ErrorBudget budget;
    budget.left_out = why;
    return budget;
  }

  /// Chooses the steps whose errors are booked separately: at most `most`, counting the value itself and the exact
  /// program. Returns the number of the others, whose errors are smaller.
  int64_t Choose(int64_t most) {
    const std::vector<StoredStep>& steps = rest_.steps();
    for (size_t i = 0; i < steps.size(); ++i) {
      if (steps[i].error > 0) erring_.push_back(i);
    }
    chosen_ = erring_;
    const auto affordable = static_cast<size_t>(std::max<int64_t>(1, most - 2));
    if (chosen_.size() <= affordable) return 0;
    const auto is_last = [&](size_t i) { return steps[i].name == what_.value; };
    std::ranges::stable_sort(chosen_, [&](size_t a, size_t b) {
      if (is_last(a) != is_last(b)) return is_last(a);
      return steps[a].error > steps[b].error;
    });
    chosen_.resize(affordable);
    std::ranges::sort(chosen_);
    return static_cast<int64_t>(erring_.size() - chosen_.size());
  }

  /// A step that others read unrounded has the place of the last of them.
  void FindTurns() {
    const std::vector<StoredStep>& steps = rest_.steps();
    for (size_t i = 0; i < steps.size(); ++i) turns_.push_back(i);
    for (size_t reader = steps.size(); reader-- > 0;) {
      const auto* operands = Lookup(what_.unrounded, steps[reader].name);
      for (size_t i = 0; operands != nullptr && i < reader; ++i) {
        if (Contains(*operands, steps[i].name)) turns_[i] = std::max(turns_[i], turns_[reader]);
      }
    }
  }

  /// False if a hybrid is no number.
  bool Walk() {
    const std::vector<StoredStep>& steps = rest_.steps();
    HybridOfSteps hybrid{.given = std::vector<bool>(steps.size(), false)};
    std::vector<HybridOfSteps> hybrids{hybrid};
    std::vector<BudgetWalk::Hybrid> named{{.step = "", .values = {}}};
    std::vector<std::string> with_itself;
    bool ends_with_itself = false;
    const auto is_itself = [&](size_t i) { return steps[i].name == what_.value; };
    for (const size_t i : chosen_) {
      if (turns_[i] != i && Contains(chosen_, turns_[i])) continue;
      std::vector<std::string> with;
      for (const size_t before : chosen_) {
        if (before < i && turns_[before] == i) with.push_back(steps[before].name);
      }
      if (is_itself(i)) {
        ends_with_itself = true;
        with_itself = std::move(with);
        continue;
      }
      hybrid.given[i] = true;
      for (const size_t before : chosen_) hybrid.given[before] = hybrid.given[before] || turns_[before] == i;
      hybrids.push_back(hybrid);
      named.push_back({.step = steps[i].name, .with = std::move(with), .values = {}});
    }
    if (chosen_.size() < erring_.size()) {
      for (const size_t i : erring_) hybrid.given[i] = !is_itself(i) && !is_itself(turns_[i]);
      hybrids.push_back(hybrid);
      named.push_back({.step = "", .values = {}});
    }
    auto values = rest_.Evaluate(elements_, hybrids);
    for (const auto& each : values) {
      if (!std::ranges::all_of(each, [](TwoDoubles one) { return std::isfinite(one.hi); })) return false;
    }
    walk_.exact = std::move(values.front());
    for (size_t i = 1; i < values.size(); ++i) {
      named[i].values = std::move(values[i]);
      walk_.hybrids.push_back(std::move(named[i]));
    }
    if (!ends_with_itself) return true;
    walk_.hybrids.push_back({.step = what_.value, .with = std::move(with_itself), .values = {}});
    for (const double each : walk_.end) walk_.hybrids.back().values.push_back({.hi = each, .lo = 0});
    return true;
  }

  double Precision() const {
    double most = 0;
    for (size_t i = 0; i < due_.size(); ++i) {
      const TwoDoubles apart = Minus(walk_.exact[i], due_[i].value());
      most = std::max(most, std::fabs(apart.hi) + due_[i].err);
    }
    return most;
  }

  /// The remedy for the largest entry that belongs to a step of a 16-bit output.
  std::optional<StepInFloat32> TryFloat32(const ErrorBudget& budget) const {
    const std::vector<StoredStep>& steps = rest_.steps();
    const BudgetEntry* largest = nullptr;
    size_t number = 0;
    for (const BudgetEntry& entry : budget.entries) {
      for (size_t i = 0; i < steps.size(); ++i) {
        const FloatFormat* format = FormatOf(steps[i].data.dtype);
        if (steps[i].name != entry.step || format == nullptr || SizeOf(steps[i].data.dtype) != 2) continue;
        if (largest != nullptr && std::fabs(entry.share) <= std::fabs(largest->share)) continue;
        largest = &entry;
        number = i;
      }
    }
    if (largest == nullptr) return std::nullopt;
    HybridOfSteps as_stored{.given = std::vector<bool>(steps.size(), false), .rounds = true};
    for (size_t i = 0; i < number; ++i) as_stored.given[i] = turns_[i] < number;
    HybridOfSteps in_float32 = as_stored;
    as_stored.given[number] = true;
    in_float32.in_float32 = static_cast<int>(number);
    const std::vector<HybridOfSteps> both{as_stored, in_float32};
    const auto values = rest_.Evaluate(elements_, both);
    return Compared(largest->step, values[0], values[1]);
  }

  std::optional<StepInFloat32> Compared(const std::string& step, const std::vector<TwoDoubles>& before,
                                        const std::vector<TwoDoubles>& after) const {
    TensorData as_stored = TensorData::Zeros(DType::kFloat64, what_.own.shape), in_float32 = as_stored;
    for (size_t i = 0; i < elements_.size(); ++i) {
      as_stored.Set(elements_[i], before[i].hi);
      in_float32.Set(elements_[i], after[i].hi);
    }
    const auto nearness = MeasureNearness(elements_, due_, as_stored, in_float32);
    if (!nearness || !std::isfinite(nearness->first.rms) || !std::isfinite(nearness->second.rms))
      return std::nullopt;
    return StepInFloat32{.step = step,
                         .before = nearness->first.rms,
                         .after = nearness->second.rms,
                         .lowers = nearness->nearer == Nearness::Side::kSecond};
  }

  const ToBook& what_;
  ExactRest& rest_;
  std::vector<int64_t> elements_;
  std::vector<Reference> due_;
  std::vector<size_t> erring_, chosen_;
  std::vector<size_t> turns_;  ///< step -> the one with which it is given
  BudgetWalk walk_;
};

class BudgetsOfCase {
 public:
  BudgetsOfCase(const RunToJudge& run, const CaseToBook& what, std::span<const Ledger> ledgers,
                CaseClassifier* asked)
      : run_(run), what_(what), asked_(*asked), origins_(SourceSteps(what.test_case.program)) {
    for (const Ledger& ledger : ledgers) differing_.insert(ledger.value);
  }

  Result<std::vector<ErrorBudget>> All() {
    std::vector<ErrorBudget> all;
    if (!what_.opened_case) return all;
    for (const std::string& value : what_.test_case.observe) {
      if (!Contains(what_.opened_case->observe, value)) continue;
      auto budgets = ULPSCOPE_TRY(Of(value));
      std::move(budgets.begin(), budgets.end(), std::back_inserter(all));
    }
    return all;
  }

 private:
  Result<std::vector<ErrorBudget>> Of(const std::string& value) {
    struct Known {
      const TensorData* own;
      StoredBy stored;
      std::optional<ErrorBudget> budget;
    };
    std::vector<Known> known;
    for (size_t i = 0; i < what_.participants.size(); ++i) {
      const Participant& each = what_.participants[i];
      const TensorData* own = Lookup(each.observation->values, value);
      if (own == nullptr || !IsFloating(own->dtype) || (!differing_.contains(value) && !IsSmall(i))) continue;
      StoredBy stored = ULPSCOPE_TRY(StoredOf(i, value));
      const auto same = std::ranges::find_if(
          known, [&](const Known& one) { return *one.own == *own && SameSteps(one.stored, stored); });
      if (same != known.end()) {
        if (same->budget) same->budget->backends.push_back(each.result->backend);
        continue;
      }
      std::optional<ErrorBudget> budget = ULPSCOPE_TRY(BudgetOf(value, *own, stored));
      if (budget) budget->backends = {each.result->backend};
      known.push_back({.own = own, .stored = std::move(stored), .budget = std::move(budget)});
    }
    std::vector<ErrorBudget> budgets;
    for (Known& each : known) {
      if (each.budget) budgets.push_back(*std::move(each.budget));
    }
    return budgets;
  }

  /// True if the steps of a participant, by number, are known and few enough to cost next to nothing.
  bool IsSmall(size_t number) const {
    if (!what_.opened[number]) return false;
    int64_t elements = 0;
    for (const auto& [name, data] : what_.opened[number]->record.observation.values) elements += data.size();
    return elements <= kCheapTerms;
  }

  static bool SameSteps(const StoredBy& a, const StoredBy& b) {
    return std::ranges::equal(a.steps, b.steps, [](const StoredStep& left, const StoredStep& right) {
      return left.name == right.name && left.data == right.data;
    });
  }

  /// For a participant: all steps, if observing them keeps the value; else the values that its program stores anyway.
  Result<StoredBy> StoredOf(size_t number, const std::string& value) const {
    StoredBy found;
    const std::optional<OpenedRecord>& opened = what_.opened[number];
    if (opened && opened->Says() && opened->Keeps(value)) {
      Take(opened->record.observation.values, &found);
      for (const auto& step : opened->told.steps) {
        for (const auto& [operand, read] : step.result.classification.reads) {
          if (read == std::vector<std::string>{"unrounded"}) found.unrounded[step.value].push_back(operand);
        }
      }
      return found;
    }
    found.unknown = !opened          ? "its steps were not observed"
                    : opened->Says() ? "observing its steps changes it"
                                     : "with its steps observed, the program " + opened->told.left_out;
    const auto hybrids =
        ULPSCOPE_TRY(run_.FindHybrids(what_.test_case.id, what_.participants[number].result->backend));
    if (!hybrids) return found;
    Take(WalkOf(*hybrids).stored, &found);
    found.at_stored_values = !found.steps.empty();
    return found;
  }

  void Take(const std::map<std::string, TensorData>& values, StoredBy* found) const {
    for (const std::string& name : ComputedValues(*what_.opened_case)) {
      if (const TensorData* data = Lookup(values, name))
        found->steps.push_back({.name = name, .data = *data});
    }
  }

  /// Nothing if the value has no exact result, or costs more than allowed.
  Result<std::optional<ErrorBudget>> BudgetOf(const std::string& value, const TensorData& own,
                                              const StoredBy& stored) {
    std::optional<ErrorBudget> budget;
    const bool has_ledger = differing_.contains(value);
    if (stored.steps.empty() && !has_ledger) return budget;
    if (!inputs_) inputs_ = ULPSCOPE_TRY(MakeInputs(what_.test_case, run_.run().header.seed));
    auto rest =
        OpenExactRest(*what_.opened_case, *inputs_, FloatingCasts(what_.test_case), value, stored.steps);
    if (!has_ledger && (!rest || (*rest)->Work(own.size()) > kCheapTerms)) return budget;
    const ExactElements* exact = asked_.UnroundedOf(value, own.shape);
    if (exact == nullptr) return budget;
    if (stored.steps.empty()) {
      budget.emplace().left_out = stored.unknown;
    } else if (!rest) {
      budget.emplace().left_out = rest.error().message;
    } else {
      const ToBook what{.value = value,
                        .own = own,
                        .exact = *exact,
                        .unrounded = stored.unrounded,
                        .has_ledger = has_ledger};
      budget = BudgetOfValue(what, rest->get()).Book();
      if (!budget || (!has_ledger && budget->entries.empty())) return std::optional<ErrorBudget>();
      budget->steps = static_cast<int64_t>((*rest)->steps().size());
    }
    budget->case_id = what_.test_case.id;
    budget->value = value;
    budget->of = own.size();
    budget->at_stored_values = stored.at_stored_values;
    for (BudgetEntry& entry : budget->entries) {
      const SourceStep* step = Lookup(origins_, entry.step);
      if (step == nullptr) continue;
      entry.at = step->at;
      entry.layers = step->layers;
    }
    return budget;
  }

  const RunToJudge& run_;
  const CaseToBook& what_;
  CaseClassifier& asked_;
  std::map<std::string, SourceStep> origins_;
  std::set<std::string> differing_;  ///< values that have a ledger
  std::optional<std::map<std::string, TensorData>> inputs_;
};

}  // namespace

Result<std::vector<ErrorBudget>> BudgetsOf(const RunToJudge& run, const CaseToBook& what,
                                           std::span<const Ledger> ledgers, CaseClassifier* asked) {
  return BudgetsOfCase(run, what, ledgers, asked).All();
}

}  // namespace ulpscope
