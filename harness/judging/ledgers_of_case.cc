// From recorded hybrids to ledgers.
#include "harness/judging/ledgers_of_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "harness/base/find.h"
#include "harness/casefile/generate.h"
#include "harness/casefile/open.h"
#include "harness/hybrid/hybrid_runs.h"
#include "harness/judge/account.h"
#include "harness/judge/asked.h"
#include "harness/judge/classify.h"
#include "harness/judge/divergence.h"
#include "harness/judge/local.h"
#include "harness/judge/parting.h"
#include "harness/ledger/book.h"
#include "harness/ledger/hybrid.h"
#include "harness/model/flat_program.h"
#include "harness/model/tensor_diff.h"
#include "harness/words/remedies.h"

namespace ulpscope {
namespace {

bool IsModelled(const Classification& judged) { return judged.kind != ClassificationKind::kUnmodelled; }

/// One backend's steps, with the classification of each on its own operands.
using StepsOfBackend = std::map<std::string, Classification>;

class LedgersOfCase {
 public:
  LedgersOfCase(const RunToJudge& run, const CaseToBook& what, const CaseClassifiers& classifiers)
      : run_(run), what_(what), classifiers_(classifiers) {}

  Result<Ledger> Of(const AccountEntry& entry) {
    const std::string &a = entry.backends.at(0).front(), &b = entry.backends.at(1).front();
    const TensorData &left = ValueOf(a, entry.value), &right = ValueOf(b, entry.value);
    const RecordedWalk* of_a = ULPSCOPE_TRY(WalkOfBackend(a));
    const RecordedWalk* of_b = ULPSCOPE_TRY(WalkOfBackend(b));
    Ledger ledger;
    if (std::string left_out = WhyNot(entry.value, of_a, of_b, left); left_out.empty()) {
      ledger =
          Book(of_a->start.at(entry.value), {.hybrids = LookupOr(of_a->hybrids, entry.value), .end = left},
               {.hybrids = LookupOr(of_b->hybrids, entry.value), .end = right},
               ComputedValues(*what_.opened_case));
      ledger.carrier = of_a->carrier;
    } else {
      ledger = Book(left, {.end = left}, {.end = right}, {});
      // A program of one step has nowhere else to differ.
      if (IsOneStep(what_.test_case)) {
        for (LedgerEntry& only : ledger.entries) only.step = entry.value;
      } else {
        ledger.left_out = std::move(left_out);
      }
    }
    ledger.case_id = what_.test_case.id;
    ledger.value = entry.value;
    ledger.backends = entry.backends;
    ledger.nearness = classifiers_.asked.NearnessOf(entry.value, left, right);
    AddRemedies(a, of_a, right, &ledger);
    AddRemedies(b, of_b, left, &ledger);
    for (LedgerEntry& each : ledger.entries) {
      if (ledger.carrier.empty() || each.step.empty()) {
        each.causes = CausesAsAsked(entry.value, a, b);
        // Next to entries for steps, the difference of the value itself is no cause.
        if (!ledger.carrier.empty() && !each.IsExplained()) each.causes.clear();
        continue;
      }
      for (const auto& [backend, walk] : {std::pair{a, of_a}, std::pair{b, of_b}}) {
        auto cause = ULPSCOPE_TRY(CauseOf(each.step, backend, *walk));
        if (cause) each.causes.push_back(*std::move(cause));
      }
    }
    AddOrigins(&ledger);
    return ledger;
  }

 private:
  void AddOrigins(Ledger* ledger) const {
    const auto placed = SourceSteps(what_.test_case.program);
    for (LedgerEntry& entry : ledger->entries) {
      const SourceStep* step = Lookup(placed, entry.step);
      if (step == nullptr) continue;
      entry.at = step->at;
      entry.layers = step->layers;
    }
  }

  /// Adds the effect of `backend`'s settings on its distance from `other`.
  static void AddRemedies(const std::string& backend, const RecordedWalk* walk, const TensorData& other,
                          Ledger* ledger) {
    if (walk == nullptr) return;
    for (const auto& [setting, values] : walk->remedies) {
      const TensorData* with = Lookup(values, ledger->value);
      if (with == nullptr || with->dtype != other.dtype || with->shape != other.shape) continue;
      const TensorDifference difference = CompareTensors(*with, other);
      TriedRemedy tried{.backend = backend,
                        .setting = setting,
                        .source = {},
                        .differing = difference.number + difference.special};
      for (const RemedyRow& row : RemedyRows()) {
        if (setting == fmt::format("{}={}", row.knob, row.value)) tried.source = row.source;
      }
      ledger->remedies.push_back(std::move(tried));
    }
  }

  /// The number of an existing participant.
  size_t NumberOf(const std::string& backend) const {
    const auto found = std::ranges::find_if(
        what_.participants, [&](const Participant& each) { return each.result->backend == backend; });
    return static_cast<size_t>(found - what_.participants.begin());
  }

  const TensorData& ValueOf(const std::string& backend, const std::string& value) const {
    return what_.participants[NumberOf(backend)].observation->values.at(value);
  }

  Result<const RecordedWalk*> WalkOfBackend(const std::string& backend) {
    const auto known = walks_.find(backend);
    if (known != walks_.end()) return known->second ? &*known->second : nullptr;
    std::optional<RecordedWalk>& walk = walks_[backend];
    const auto found = ULPSCOPE_TRY(run_.FindHybrids(what_.test_case.id, backend));
    if (!found) return nullptr;
    walk = WalkOf(*found);
    return &*walk;
  }

  std::string WhyNot(const std::string& value, const RecordedWalk* a, const RecordedWalk* b,
                     const TensorData& like) const {
    if (!what_.opened_case) return "its steps cannot be observed";
    if (!Contains(what_.opened_case->observe, value)) return value + " is no value of a step";
    if (a == nullptr || b == nullptr) {
      return run_.limit().empty() ? "the steps were not observed on both sides"
                                  : run_.limit() + " came before its steps were booked";
    }
    for (const RecordedWalk* walk : {a, b}) {
      if (!walk->left_out.empty()) return walk->left_out;
      const TensorData* start = Lookup(walk->start, value);
      if (start == nullptr || start->dtype != like.dtype || start->shape != like.shape)
        return walk->carrier + " gives " + value + " another dtype or shape";
      for (const auto& hybrid : LookupOr(walk->hybrids, value)) {
        if (hybrid.value.dtype != like.dtype || hybrid.value.shape != like.shape)
          return walk->carrier + " gives " + value + " another dtype or shape behind " + hybrid.step;
      }
    }
    if (a->carrier != b->carrier || !(a->start.at(value) == b->start.at(value)))
      return "the hybrids of the two sides have different carriers";
    return "";
  }

  const OpenedRecord* OpenedOf(const std::string& backend) const {
    const size_t i = NumberOf(backend);
    const bool says = i < what_.opened.size() && what_.opened[i] && what_.opened[i]->Says();
    return says ? &*what_.opened[i] : nullptr;
  }

  Result<const StepsOfBackend*> StepsOfCarrier(const std::string& carrier) {
    if (const OpenedRecord* opened = OpenedOf(carrier)) return &opened->steps;
    if (outside_) return &*outside_;
    outside_.emplace();
    if (const auto found = ULPSCOPE_TRY(run_.FindHybrids(what_.opened_case->id, carrier))) {
      auto taken = ULPSCOPE_TRY(run_.classifications().Take(what_.opened_case->id, carrier,
                                                            &classifiers_.opened, found->observation));
      *outside_ = std::move(taken.values);
    }
    return &*outside_;
  }

  /// The difference of `backend` in `step` from the carrier's result on the same operands; nothing if they are equal.
  Result<std::optional<LedgerCause>> CauseOf(const std::string& step, const std::string& backend,
                                             const RecordedWalk& walk) {
    const auto known = causes_.find({step, backend});
    if (known != causes_.end()) return known->second;
    std::optional<LedgerCause>& cause = causes_[{step, backend}];
    const TensorData* again = Lookup(walk.again, step);
    if (again == nullptr) return cause;
    if (!walk.stored.empty()) return cause = ULPSCOPE_TRY(CauseOfKernel(step, backend, walk));
    const OpenedRecord* opened = OpenedOf(backend);
    if (opened == nullptr) return cause;
    const StepsOfBackend* of_carrier = ULPSCOPE_TRY(StepsOfCarrier(walk.carrier));
    const Classification *own = Lookup(opened->steps, step), *other = Lookup(*of_carrier, step);
    if (own == nullptr || other == nullptr) return cause;
    return cause = Compare(step, {.backend = backend, .judged = *own},
                           {.backend = walk.carrier, .judged = *other}, opened->record.observation, *again);
  }

  struct OneSide {
    const std::string& backend;
    const Classification& judged;
  };

  /// The difference of `own` (values: `observed`) from `other`, which gives `again` for the step on the same operands.
  std::optional<LedgerCause> Compare(const std::string& step, const OneSide& own, const OneSide& other,
                                     const Observation& observed, const TensorData& again) const {
    Observation carried = observed;
    carried.values.insert_or_assign(step, again);
    const CaseResult mine = ResultOf(step, own.backend, own.judged, observed),
                     theirs = ResultOf(step, other.backend, other.judged, carried);
    const Participant sides[] = {{.result = &mine, .observation = &observed},
                                 {.result = &theirs, .observation = &carried}};
    const bool modelled = IsModelled(own.judged) && IsModelled(other.judged);
    std::optional<LedgerCause> cause;
    for (const Divergence& each :
         FindDivergences(*what_.opened_case, sides, JudgedAs::kStepByStep, {}, {step}))
      cause = Better(cause, CauseFrom(each, own.backend, modelled));
    if (cause) {
      cause->does = FindOtherRead(own.judged, other.judged) ? "another read" : own.judged.label;
      cause->carrier_does = other.judged.label;
    }
    return cause;
  }

  /// For a program observed only at its stored values: what one of them shows of the steps since the previous one.
  Result<std::optional<LedgerCause>> CauseOfKernel(const std::string& step, const std::string& backend,
                                                   const RecordedWalk& walk) {
    const TensorData &stored = walk.stored.at(step), &again = walk.again.at(step);
    NamedTensors before;
    for (const std::string& name : ComputedValues(*what_.opened_case)) {
      if (name == step) break;
      if (const TensorData* known = Lookup(walk.stored, name)) before.emplace(name, *known);
    }
    const GivenProgram kernel = ULPSCOPE_TRY(KernelOf(step, before));
    const OpenPiece open = classifiers_.opened.PieceOracle();
    OracleCounts counts;
    std::optional<LedgerCause> cause;
    const auto compared = [&](const Classification& own, const Classification& other) {
      Observation observed;
      observed.values = kernel.inputs;
      observed.values.insert_or_assign(step, stored);
      return Compare(step, {.backend = backend, .judged = own}, {.backend = walk.carrier, .judged = other},
                     observed, again);
    };
    if (kernel.program.observe.size() == 1) {
      const auto judge = [&](const TensorData& tensor) {
        return JudgeSteps(kernel.program, kernel.inputs, {{step, tensor}}, open, &counts);
      };
      const auto own = judge(stored), other = judge(again);
      if (own.contains(step) && other.contains(step)) cause = compared(own.at(step), other.at(step));
    } else if (const auto found = JudgeAsAsked(kernel.program, kernel.inputs, step, stored, open, &counts)) {
      cause = CauseOfRoundings(*found, step, backend, walk.carrier);
    } else if (auto oracle = open(kernel.program, kernel.inputs, {.natural = true})) {
      // Sums in float32 and the program's roundings: if both sides conform to that, orders or last bits differ.
      const Classification own = ClassifyValue(**oracle, step, stored),
                           other = ClassifyValue(**oracle, step, again);
      if (IsModelled(own) && IsModelled(other)) cause = compared(own, other);
      counts += (*oracle)->Counts();
    }
    if (!cause || !cause->is_explained) {
      // The same kernel may have computed the stored values that it reads, and use them unrounded.
      const NamedTensors earlier = WithoutComputed(before, kernel);
      if (earlier.size() < before.size()) {
        const GivenProgram wider = ULPSCOPE_TRY(KernelOf(step, earlier));
        if (const auto found = JudgeAsAsked(wider.program, wider.inputs, step, stored, open, &counts))
          cause = CauseOfRoundings(*found, step, backend, walk.carrier);
      }
    }
    run_.classifications().Count(counts);
    return cause;
  }

  /// The steps that compute `step` from values that are known.
  Result<GivenProgram> KernelOf(const std::string& step, const NamedTensors& known) {
    GivenProgram kernel = WithGiven(*what_.opened_case, ULPSCOPE_TRY(Inputs()), known, {step});
    kernel.program.observe = ComputedValues(kernel.program);  // an oracle knows only observed values
    return kernel;
  }

  /// `known` without the 16-bit operands of `kernel`, except products, which libraries compute.
  NamedTensors WithoutComputed(const NamedTensors& known, const GivenProgram& kernel) const {
    NamedTensors left;
    for (const auto& [name, tensor] : known) {
      const Step* step = FindStep(what_.opened_case->program, name);
      const OpRow* op = step == nullptr ? nullptr : FindOp(step->op);
      const bool computed = op != nullptr && op->kind != OpRow::Kind::kProduct && IsFloating(tensor.dtype) &&
                            SizeOf(tensor.dtype) <= 2;
      if (!computed || !kernel.inputs.contains(name)) left.emplace(name, tensor);
    }
    return left;
  }

  static LedgerCause CauseOfRoundings(const Classification& found, const std::string& step,
                                      const std::string& backend, const std::string& carrier) {
    const std::string does = DescribeOnTheWay(found.on_the_way, false);
    return {.backend = backend,
            .kind = DivergenceKind::kPrecision,
            .is_explained = true,
            .sentence = fmt::format("{} likely {} when computing {}; {} rounds each step.", backend, does,
                                    Code(step), carrier),
            .does = does,
            .carrier_does = "rounds each step"};
  }

  Result<NamedTensors> Inputs() {
    if (!inputs_) inputs_ = ULPSCOPE_TRY(MakeInputs(what_.test_case, run_.run().header.seed));
    return *inputs_;
  }

  CaseResult ResultOf(const std::string& step, const std::string& backend, const Classification& judged,
                      const Observation& observation) const {
    const TensorData& tensor = observation.values.at(step);
    CaseResult result;
    result.id = what_.test_case.id;
    result.backend = backend;
    result.status = Status::kPass;
    result.value_order = {step};
    result.values[step] = {.dtype = tensor.dtype, .shape = tensor.shape, .classification = judged};
    return result;
  }

  /// If there are several divergences of one step, the one that explains it.
  static std::optional<LedgerCause> Better(std::optional<LedgerCause> a, LedgerCause b) {
    if (a && (a->is_explained || !b.is_explained)) return a;
    return b;
  }

  static LedgerCause CauseFrom(const Divergence& divergence, const std::string& backend, bool modelled) {
    return {.backend = backend,
            .kind = divergence.kind,
            .is_explained = RowOf(divergence.kind).explains_entry && modelled,
            .sentence = divergence.sentence};
  }

  /// The causes of a difference that no step accounts for: the findings about the requested value.
  std::vector<LedgerCause> CausesAsAsked(const std::string& value, const std::string& a,
                                         const std::string& b) const {
    const auto modelled = [&](const std::string& backend) {
      const ValueResult* result = Lookup(what_.participants[NumberOf(backend)].result->values, value);
      return result != nullptr && IsModelled(result->classification);
    };
    std::optional<LedgerCause> cause;
    for (const Divergence& each : what_.divergences) {
      if (each.kind != DivergenceKind::kCarried && SetsApart(each, value, a, b))
        cause = Better(cause, CauseFrom(each, b, modelled(a) && modelled(b)));
    }
    if (!cause) return {};
    return {*cause};
  }

  const RunToJudge& run_;
  const CaseToBook& what_;
  CaseClassifiers classifiers_;
  std::optional<NamedTensors> inputs_;
  std::map<std::string, std::optional<RecordedWalk>> walks_;
  std::map<std::pair<std::string, std::string>, std::optional<LedgerCause>> causes_;
  std::optional<StepsOfBackend> outside_;
};

}  // namespace

Result<std::vector<Ledger>> LedgersOf(const RunToJudge& run, const CaseToBook& what,
                                      std::span<const AccountEntry> account,
                                      const CaseClassifiers& classifiers) {
  LedgersOfCase ledgers(run, what, classifiers);
  std::vector<Ledger> all;
  for (const AccountEntry& entry : account) {
    if (entry.size.elements == 0) continue;
    all.push_back(ULPSCOPE_TRY(ledgers.Of(entry)));
  }
  return all;
}

}  // namespace ulpscope
