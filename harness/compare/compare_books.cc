// Walks g's program with f's values, and names the roundings of each step of the walk.
#include "harness/compare/compare_books.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/casefile/program_edits.h"
#include "harness/hybrid/hybrid_runs.h"
#include "harness/judge/asked.h"
#include "harness/judging/case_classifier.h"
#include "harness/ledger/book.h"
#include "harness/ledger/nearer.h"
#include "harness/words/backend_name.h"
#include "harness/words/ops.h"

namespace ulpscope {

class ComparisonBooks::Impl {
 public:
  Impl(const Registry& registry, const CompareOptions& options, Carriers* carriers, const Programs& programs,
       const std::map<std::string, std::string>& in_f)
      : registry_(registry),
        options_(options),
        carriers_(*carriers),
        f_(*programs.f),
        g_(*programs.g),
        in_f_(in_f) {}

  Result<std::vector<Ledger>> BookAll(const std::vector<ComparedResult>& results) {
    std::vector<Ledger> ledgers;
    std::set<std::string> observed;
    for (const ComparedResult& result : results) {
      if (result.differing > 0) observed.insert(result.g);
    }
    if (observed.empty()) return ledgers;
    if (g_.opened) ULPSCOPE_TRY(ChooseCarrier());
    std::string left_out = WhyNoSteps();
    if (left_out.empty()) {
      order_ = ComputedValues(*g_.opened);
      for (const std::string& name : order_) {
        const TensorData* own = Lookup(g_.steps.values, name);
        const std::string* of_f = Lookup(in_f_, name);
        const TensorData* other = of_f == nullptr ? nullptr : f_.StepValue(*of_f);
        if (own == nullptr || other == nullptr || other->dtype != own->dtype || other->shape != own->shape)
          continue;
        given_f_.emplace(name, *other);
      }
      NamedTensors start, given_g;
      for (const std::string& name : observed) {
        if (const TensorData* tensor = Lookup(carried_.values, name)) start.emplace(name, *tensor);
      }
      for (const std::string& name : order_) {
        if (const TensorData* tensor = Lookup(g_.steps.values, name)) given_g.emplace(name, *tensor);
      }
      walk_f_ = ULPSCOPE_TRY(WalkWith(given_f_, observed, start));
      walk_g_ = ULPSCOPE_TRY(WalkWith(given_g, observed, start));
      left_out = walk_f_.left_out.empty() ? walk_g_.left_out : walk_f_.left_out;
    }
    for (const ComparedResult& result : results) {
      if (result.differing <= 0) continue;
      auto ledger = ULPSCOPE_TRY(LedgerOf(result, left_out));
      ledgers.push_back(std::move(ledger));
    }
    return ledgers;
  }

 private:
  /// The reason why no steps are booked; empty if they are.
  std::string WhyNoSteps() const {
    for (const ProgramRun* run : {&f_, &g_}) {
      if (!run->opened || run->steps.values.empty())
        return "the steps of " + run->name + " cannot be observed";
      if (!run->keeps)
        return fmt::format("observing the steps of {} changes its result on {}", run->name, options_.backend);
    }
    return carrier_.empty() ? kNoCarrier : "";
  }

  Result<void> ChooseCarrier() {
    const RegistryRow* own = registry_.Find(BackendSpec::NameOf(options_.backend));
    if (own != nullptr && own->op_by_op) {
      carrier_ = options_.backend;
      carried_ = g_.steps;
      return {};
    }
    auto found =
        ULPSCOPE_TRY(FindCarrier(&carriers_, registry_, {.program = *g_.opened, .inputs = g_.inputs}));
    if (!found) return {};
    carrier_ = found->backend;
    carried_ = std::move(found->run);
    return {};
  }

  Result<RecordedWalk> WalkWith(const NamedTensors& given, const std::set<std::string>& observed,
                                const NamedTensors& start) {
    const GivenValues values{
        .opened = *g_.opened, .inputs = g_.inputs, .observed = observed, .values = given};
    auto made = ULPSCOPE_TRY(WalkHybrids(&carriers_, carrier_, values, start));
    if (!made) return Fail("interrupted");
    RecordedResult recorded;
    recorded.observation = *std::move(made);
    return WalkOf(recorded);
  }

  Result<Ledger> LedgerOf(const ComparedResult& result, std::string left_out) {
    const TensorData &of_f = f_.own.values.at(result.f), &of_g = g_.own.values.at(result.g);
    const TensorData* start = Lookup(walk_f_.start, result.g);
    if (left_out.empty() && (start == nullptr || start->dtype != of_g.dtype || start->shape != of_g.shape))
      left_out = start == nullptr ? result.g + " is no value of a step"
                                  : carrier_ + " gives " + result.g + " another dtype or shape";
    Ledger ledger;
    if (left_out.empty()) {
      ledger = Book(*start, {.hybrids = LookupOr(walk_f_.hybrids, result.g), .end = of_f},
                    {.hybrids = LookupOr(walk_g_.hybrids, result.g), .end = of_g}, order_);
      ledger.carrier = carrier_;
      for (LedgerEntry& entry : ledger.entries) {
        const std::string f = entry.step.empty() ? result.f : LookupOr(in_f_, entry.step);
        // The rest, behind the last value that both have, is the way to the result.
        if (entry.step.empty()) entry.step = result.g;
        TellCauses(f, &entry);
      }
    } else {
      ledger = Book(of_f, {.end = of_f}, {.end = of_g}, {});
      ledger.left_out = std::move(left_out);
      for (LedgerEntry& entry : ledger.entries) TellWholeCauses(result, &entry);
    }
    ledger.case_id = g_.asked.id;
    ledger.value = result.g;
    ledger.backends = {{f_.name}, {g_.name}};
    if (IsFloating(of_g.dtype)) {
      const ProgramValue& exact = g_.Exactly(result.g);
      ledger.nearness = MeasureNearness(exact.elements, exact.references, of_f, of_g);
    }
    return ledger;
  }

  /// The steps of `run` to `target`, from values that both programs have before `step` of g.
  std::vector<const Step*> StepsTo(const ProgramRun& run, const std::string& target,
                                   const std::string& step) {
    NamedTensors known;
    for (const std::string& name : order_) {
      if (name == step) break;
      const std::string f = LookupOr(in_f_, name);
      if (!given_f_.contains(name)) continue;
      const std::string& own = &run == &f_ ? f : name;
      if (own != target) known.emplace(own, given_f_.at(name));
    }
    parts_.push_back(std::make_unique<Case>(WithGiven(*run.opened, run.inputs, known, {target}).program));
    return FlatSteps(parts_.back()->program);
  }

  /// "cast, mul, sum in float32, then cast to bfloat16"
  static std::string OpsText(const ProgramRun& run, const std::vector<const Step*>& steps) {
    constexpr size_t kMostOps = 8;
    std::vector<std::pair<DType, std::vector<std::string>>> groups;
    size_t count = 0;
    for (const Step* step : steps) {
      const TensorData* value = Lookup(run.steps.values, step->as);
      const OpRow* row = FindOp(step->op);
      if (value == nullptr || (row != nullptr && row->kind == OpRow::Kind::kView)) continue;
      ++count;
      if (groups.empty() || groups.back().first != value->dtype) groups.push_back({value->dtype, {}});
      groups.back().second.push_back(step->op);
    }
    std::vector<std::string> texts;
    for (const auto& [dtype, ops] : groups) {
      const bool casts = std::ranges::all_of(ops, [](const std::string& op) { return op == "cast"; });
      const std::string what =
          count > kMostOps ? Counted(static_cast<int64_t>(ops.size()), "step") : Join(ops, ", ");
      texts.push_back(fmt::format("{} {} {}", what, casts ? "to" : "in", Name(dtype)));
    }
    return texts.empty() ? "no step that rounds" : Join(texts, ", then ");
  }

  static std::set<DType> DTypesOf(const ProgramRun& run, const std::vector<const Step*>& steps) {
    std::set<DType> dtypes;
    for (const Step* step : steps) {
      const TensorData* value = Lookup(run.steps.values, step->as);
      if (value != nullptr && IsFloating(value->dtype)) dtypes.insert(value->dtype);
    }
    return dtypes;
  }

  /// The judge's classification of each step, on the operands that were computed for it.
  const std::map<std::string, Classification>& Judged(ProgramRun* run) {
    if (!run->judged) {
      CaseClassifier classifier(*run->opened, options_.seed);
      run->judged = classifier.Classify(run->steps).values;
    }
    return *run->judged;
  }

  /// Whether the judge knows how each of these steps was rounded. One that rounds nothing is not judged.
  bool AreModelled(ProgramRun* run, const std::vector<const Step*>& steps) {
    return std::ranges::all_of(steps, [&](const Step* step) {
      const Classification* judged = Lookup(Judged(run), step->as);
      return judged == nullptr || judged->kind != ClassificationKind::kUnmodelled;
    });
  }

  void TellCauses(const std::string& f, LedgerEntry* entry) {
    const auto of_g = StepsTo(g_, entry->step, entry->step);
    const bool carried_modelled = CarriedModelled(of_g);
    const bool moved_f = walk_f_.again.contains(entry->step) || !walk_g_.again.contains(entry->step);
    if (moved_f) {
      const bool is_tensor = f_.inputs.contains(f);
      const auto of_f = is_tensor ? std::vector<const Step*>() : StepsTo(f_, f, entry->step);
      const bool precision = DTypesOf(f_, of_f) != DTypesOf(g_, of_g);
      entry->causes.push_back(
          {.backend = f_.name,
           .kind = precision ? DivergenceKind::kPrecision : DivergenceKind::kBits,
           .is_explained = carried_modelled && AreModelled(&f_, of_f),
           .sentence =
               fmt::format("{} {}; {} by {}.", f_.name,
                           is_tensor ? fmt::format("takes {} as a tensor", entry->step)
                                     : fmt::format("computes {} by {}", entry->step, OpsText(f_, of_f)),
                           g_.name, OpsText(g_, of_g))});
    }
    if (walk_g_.again.contains(entry->step)) {
      entry->causes.push_back({.backend = g_.name,
                               .kind = DivergenceKind::kPrecision,
                               .is_explained = carried_modelled && AreModelled(&g_, of_g),
                               .sentence = fmt::format("{} computes {} of {} otherwise than {} does.",
                                                       options_.backend, entry->step, g_.name, carrier_)});
    }
  }

  /// Adds to the entry of a result without booked steps the roundings before it, of both programs.
  void TellWholeCauses(const ComparedResult& result, LedgerEntry* entry) {
    for (ProgramRun* run : {&f_, &g_}) {
      const std::string& value = run == &f_ ? result.f : result.g;
      LedgerCause cause{
          .backend = run->name, .kind = DivergenceKind::kPrecision, .is_explained = false, .sentence = {}};
      if (!run->opened || !Contains(run->opened->observe, value)) {
        cause.sentence = fmt::format("The steps to {} of {} are not judged.", value, run->name);
      } else if (run->keeps) {
        cause.is_explained = AreModelled(run, StepsTo(*run, value, ""));
        cause.sentence = fmt::format("{} rounds each step of {}.", options_.backend, run->name);
      } else {
        CaseClassifier classifier(*run->opened, options_.seed);
        const Classified whole = classifier.ClassifyAsAsked(run->own, {value});
        const Classification* found = Lookup(whole.values, value);
        cause.is_explained = found != nullptr;
        cause.sentence =
            found == nullptr
                ? fmt::format("No set of roundings that was tried gives {} of {}.", value, run->name)
                : fmt::format("{} likely {} when computing {} of {}.", options_.backend,
                              DescribeOnTheWay(found->on_the_way, false), value, run->name);
      }
      entry->causes.push_back(std::move(cause));
    }
  }

  /// The same of the steps of g as the carrier computes them.
  bool CarriedModelled(const std::vector<const Step*>& steps) {
    if (carrier_ == options_.backend) return AreModelled(&g_, steps);
    if (!by_carrier_) {
      by_carrier_.emplace();
      by_carrier_->opened = g_.opened;
      by_carrier_->steps = carried_;
    }
    return AreModelled(&*by_carrier_, steps);
  }

  const Registry& registry_;
  const CompareOptions& options_;
  Carriers& carriers_;
  ProgramRun &f_, &g_;
  const std::map<std::string, std::string>& in_f_;
  std::vector<std::string> order_;
  NamedTensors given_f_;  ///< by steps of g
  std::string carrier_;
  Observation carried_;  ///< g on the carrier
  std::optional<ProgramRun> by_carrier_;
  RecordedWalk walk_f_, walk_g_;
  std::vector<std::unique_ptr<Case>> parts_;  ///< of programs, pointed at by steps
};

ComparisonBooks::ComparisonBooks(const Registry& registry, const CompareOptions& options, Carriers* carriers,
                                 const Programs& programs, const std::map<std::string, std::string>& in_f)
    : impl_(std::make_unique<Impl>(registry, options, carriers, programs, in_f)) {}
ComparisonBooks::~ComparisonBooks() = default;

Result<std::vector<Ledger>> ComparisonBooks::Make(const std::vector<ComparedResult>& results) {
  return impl_->BookAll(results);
}

}  // namespace ulpscope
