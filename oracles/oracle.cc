// Ties the plan, references, candidate models and searches to one case.
#include "oracles/oracle.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "harness/base/deadline.h"
#include "harness/base/find.h"
#include "oracles/bound_hypothesis.h"
#include "oracles/emulated.h"
#include "oracles/evaluate.h"
#include "oracles/exact_arithmetic.h"
#include "oracles/expand.h"
#include "oracles/fast/blas.h"
#include "oracles/fast/references.h"
#include "oracles/hypothesis.h"
#include "oracles/inputs.h"
#include "oracles/lines.h"
#include "oracles/plan_names.h"
#include "oracles/search.h"
#include "oracles/settled.h"
#include "oracles/zero_signs.h"

namespace ulpscope {
namespace {

/// With so few totals or fewer, chance can round each one as a sum in the rounding's format would.
constexpr int64_t kFewSums = 32;

class ConcreteOracle : public CaseOracle {
 public:
  ConcreteOracle(std::shared_ptr<Shared> shared, const std::string& name, const OracleOptions& options)
      : shared_(std::move(shared)), natural_(options.natural), as_written_(options.as_written) {
    if (options.engine == OracleEngine::kBoost) return;
    const auto truth = [this](int node, int64_t element) { return Decide(&boost_, {}, node, element); };
    fast_ = std::make_unique<fast::FastReferences>(shared_->plan, shared_->inputs, name, truth,
                                                   options.plant_fault);
    known_ = [this](int node, int64_t element) -> std::optional<Real> {
      if (!fast_->Has(node, asked_)) return std::nullopt;
      const Reference reference = fast_->At(node, element);
      if (reference.kind != ReferenceKind::kExact || !std::isfinite(reference.hi)) return std::nullopt;
      return Real::From(Dyadic::From(reference.hi) + Dyadic::From(reference.lo));
    };
  }

  Result<ValueShape> Describe(const std::string& value) const override {
    if (const auto gap = shared_->plan.gaps.find(value); gap != shared_->plan.gaps.end())
      return Fail(gap->second);
    const auto node = shared_->plan.values.find(value);
    if (node == shared_->plan.values.end()) return Fail("the program gives '" + value + "' no value");
    const ValuePath path = PathOf(shared_->plan, node->second);
    const PlanNode& view = shared_->plan.at(node->second);
    ValueShape shape{
        .name = value,
        .shape = view.shape,
        .declared = view.dtype,
        .reduction_length = path.reduction_length,
        .sums = 0,
        .terms = path.terms,
        .work_of_one = WorkOf(shared_->plan, path, 1),
        .work_of_all = WorkOf(shared_->plan, path, shared_->plan.size(node->second)),
        .operands = {},
        .cut_points = {},
        .line_cuts = {},
        .sum_cuts = {},
        .term_cuts = {},
        .tensors = {},
        .as_exact = FindAsExact(shared_->plan, path, view.dtype),
        .has_products = path.has_products,
        .is_mean = view.kind == NodeKind::kDiv && path.reductions.size() == 1 && !path.has_products &&
                   shared_->plan.at(shared_->plan.Root(view.args[1])).kind == NodeKind::kConstant,
        .has_steps = path.has_inner,
        .has_functions = HasFunctions(path)};
    for (const auto& [operand, dtype] : path.operands) shape.operands.push_back(operand);
    for (const auto& [scalar, words] : path.scalars) shape.operands.push_back(scalar);
    for (const int cut : path.cut_points) shape.cut_points.push_back(NameOf(shared_->plan, cut));
    for (const int id : path.reductions) shape.sums = std::max(shape.sums, shared_->plan.size(id));
    DescribeLines(node->second, path.has_inner ? PathOf(shared_->plan, node->second, StepsCut::kNamed) : path,
                  &shape);
    std::set<std::string> tensors;
    for (const int id : path.nodes) {
      const PlanNode& read = shared_->plan.at(id);
      if (read.kind == NodeKind::kInput && FormatOf(read.dtype) != nullptr)
        tensors.insert(read.Get<TensorRead>().tensor);
    }
    shape.tensors.assign(tensors.begin(), tensors.end());
    shape.settled = IsSettled(shared_->plan, path, shared_->inputs);
    if (path.cut_points.size() > 1 && !as_written_)
      shape.most_models =
          natural_ ? CountNaturals(shared_->plan, path) : CountChoices(shared_->plan, path, shape.declared);
    return shape;
  }

  std::vector<Reference> References(const std::string& value,
                                    std::span<const int64_t> elements) const override {
    const int node = shared_->plan.values.at(value), root = shared_->plan.Root(node);
    std::vector<Reference> references;
    references.reserve(elements.size());
    asked_ = static_cast<int64_t>(elements.size());
    if (fast_ != nullptr && fast_->Has(root, asked_)) {
      for (const int64_t element : elements)
        references.push_back(fast_->At(root, shared_->plan.RootIndex(node, element)));
      return references;
    }
    answered_ += asked_;
    for (const int64_t element : elements) references.push_back(Decide(&mixed_, known_, node, element));
    return references;
  }

  std::vector<Reference> ReferencesReading(const std::string& value, std::span<const int64_t> elements,
                                           const std::string& tensor, int bits) const override {
    auto inputs = shared_->inputs;
    TensorData& read = inputs.at(tensor);
    const RoundSpec rounding = ToBits(bits);
    for (int64_t i = 0; i < read.size(); ++i) read.Set(i, rounding.Apply(read.At(i)));
    OracleOptions options;
    options.engine = OracleEngine::kBoost;
    return ConcreteOracle(std::make_shared<Shared>(shared_->plan, std::move(inputs)), "", options)
        .References(value, elements);
  }

  OracleCounts Counts() const override {
    OracleCounts counts{.fast = 0, .compared = 0, .boost = answered_};
    if (fast_ != nullptr) {
      counts.fast = fast_->computed();
      counts.compared = fast_->compared();
    }
    return counts;
  }

  std::vector<std::unique_ptr<Hypothesis>> Bank(const std::string& value, DType observed) const override {
    return BankOf(value, observed,
                  as_written_ ? AsWritten
                  : natural_  ? NaturalBank
                              : EnumerateChoices,
                  &banks_);
  }

  Search Explain(const std::string& value, std::span<const int64_t> elements,
                 const Deviates& deviates) const override {
    const int node = shared_->plan.values.at(value), root = shared_->plan.Root(node);
    const LinearPart part = LinearPartOf(shared_->plan, root);
    if (part.reduction < 0 || !shared_->cache.raw[static_cast<size_t>(part.reduction)] ||
        shared_->plan.size(part.reduction) != shared_->plan.size(root))
      return {};
    const PlanNode& sum = shared_->plan.at(part.reduction);
    Binding plain;
    plain.store.resize(shared_->plan.nodes.size());
    plain.in.resize(shared_->plan.nodes.size());
    Evaluator<EmulatedArithmetic> exact(shared_->plan, shared_->inputs,
                                        EmulatedArithmetic(&plain, &shared_->cache, nullptr));
    std::vector<SearchElement> searched;
    for (const int64_t element : elements) {
      const int64_t at = shared_->plan.RootIndex(node, element);
      const RawOperands& raw = exact.Raw(part.reduction, at);
      const double addend =
          sum.args.size() == 3 ? sum.Get<Contraction>().beta * exact.At(sum.args[2], at).hi : 0;
      searched.push_back({.a = raw.a,
                          .b = raw.b,
                          .centre = exact.At(node, element).hi,
                          .factor = part.factor,
                          .addend = addend * part.factor / sum.alpha()});
    }
    std::vector<SearchOperand> operands;
    for (size_t i = 0; i < (sum.kind == NodeKind::kContract ? 2u : 1u); ++i) {
      const PlanNode& operand = shared_->plan.at(shared_->plan.Root(sum.args[i]));
      const FloatFormat* format = FormatOf(operand.dtype);
      SearchOperand& one = operands.emplace_back();
      one.name = NameOf(shared_->plan, sum.args[i]);
      one.bits = format == nullptr ? 53 : format->precision;
      const TensorRead* read = operand.If<TensorRead>();
      if (const auto data = read == nullptr ? shared_->inputs.end() : shared_->inputs.find(read->tensor);
          data != shared_->inputs.end()) {
        for (int64_t k = 0; k < data->second.size(); ++k)
          one.largest = std::max(one.largest, std::fabs(data->second.At(k)));
      }
    }
    return SearchSums(searched, operands, deviates);
  }

  std::vector<std::unique_ptr<Hypothesis>> Propose(const std::string& value, DType observed,
                                                   std::span<const Proposal> roundings) const override {
    const int node = shared_->plan.values.at(value);
    auto made = std::make_shared<ValueBank>();
    made->node = node;
    made->path = PathOf(shared_->plan, node);
    for (const auto& order : OrdersOf(shared_->plan, made->path)) made->order_names.push_back(order.name);
    std::set<std::string> seen;
    auto& naturals = naturals_[{node, observed}];
    if (naturals.empty()) naturals = NaturalChoices(shared_->plan, made->path, observed);
    for (const Choice& plain : naturals) {
      for (const Proposal& proposal : roundings) {
        Choice choice = plain;
        choice.in = proposal.in;
        if (!plain.acc.exact()) choice.acc = proposal.acc;
        choice.mid = proposal.mid;
        if (!proposal.out.none()) choice.out = proposal.out;
        if (made->path.has_products) choice.prod = proposal.prod;
        choice = Canonical(shared_->plan, made->path, std::move(choice));
        if (seen.insert(ModelOf(shared_->plan, made->path, choice).Name()).second)
          made->choices.push_back(std::move(choice));
      }
    }
    made->Bind(shared_->plan);
    return Hypotheses(made);
  }

  std::vector<std::unique_ptr<Hypothesis>> StepBank(const std::string& value, DType observed,
                                                    int64_t most_work) const override {
    return NamedSteps(value, [&](const ValuePath& path) {
      const int64_t work = std::max<int64_t>(1, WorkOf(shared_->plan, path, 1));
      return EnumerateSteps(shared_->plan, path, observed,
                            static_cast<size_t>(std::max<int64_t>(1, most_work / work)));
    });
  }

  std::vector<std::unique_ptr<Hypothesis>> StepsKept(const std::string& value, DType observed,
                                                     int bits) const override {
    return NamedSteps(value, [&](const ValuePath& path) {
      return EnumerateKept(shared_->plan, path, observed, FormatOfBits(bits));
    });
  }

  std::vector<int64_t> LinesOf(const std::string& value, std::span<const int64_t> elements) const override {
    return ulpscope::LinesOf(*shared_, shared_->plan.values.at(value), elements);
  }

  std::vector<MovingStep> MovesOfSteps(const std::string& value, std::span<const int64_t> elements,
                                       WhichSteps which) const override {
    const Plan& plan = shared_->plan;
    const int node = plan.values.at(value);
    std::vector<MovingStep> steps;
    const ValuePath path = PathOf(plan, node, StepsCut::kNamed);
    const auto asked = [&](int id) {
      if (which == WhichSteps::kShared)
        return Contains(path.cut_points, id) && plan.size(id) < plan.size(node);
      return id != node && IsStep(plan.at(id)) && !plan.at(id).name.empty();
    };
    for (const int id : path.nodes) {
      if (asked(id))
        steps.push_back({.name = NameOf(plan, id), .moves = MovesOf(shared_.get(), node, id, elements)});
    }
    return steps;
  }

  std::vector<int> ZeroSigns(const std::string& value, std::span<const int64_t> elements) const override {
    return ZeroSignsOf(shared_.get(), shared_->plan.values.at(value), elements);
  }

  std::vector<std::unique_ptr<Hypothesis>> FlushingBank(const std::string& value,
                                                        DType observed) const override {
    return BankOf(value, observed, EnumerateFlushing, &flushing_banks_);
  }

 private:
  /// Evaluators by the precision of their divisions and roots.
  using Evaluators = std::map<int64_t, std::unique_ptr<Evaluator<ExactArithmetic>>>;
  using Banks = std::map<std::pair<int, DType>, std::shared_ptr<const ValueBank>>;

  bool HasFunctions(const ValuePath& path) const {
    return std::ranges::any_of(path.nodes, [&](int id) { return IsFunction(shared_->plan.at(id).kind); });
  }

  /// Hypotheses of a path in which all named steps are cut points.
  template <typename EnumerateCuts>
  std::vector<std::unique_ptr<Hypothesis>> NamedSteps(const std::string& value,
                                                      const EnumerateCuts& enumerate) const {
    auto made = std::make_shared<ValueBank>();
    made->node = shared_->plan.values.at(value);
    made->path = PathOf(shared_->plan, made->node, StepsCut::kNamed);
    for (const auto& order : OrdersOf(shared_->plan, made->path)) made->order_names.push_back(order.name);
    made->choices = enumerate(made->path);
    made->Bind(shared_->plan);
    return Hypotheses(made);
  }

  /// The steps that elements of a value share, for all steps that have a name, including those that only StepBank
  /// rounds.
  void DescribeLines(int value, const ValuePath& path, ValueShape* shape) const {
    const Plan& plan = shared_->plan;
    std::set<int> few;
    for (const int cut : path.cut_points) {
      if (plan.size(cut) >= plan.size(value)) continue;
      shape->line_cuts.push_back(NameOf(plan, cut));
      if (!IsReduction(plan.at(cut).kind) || plan.size(cut) > kFewSums) continue;
      shape->sum_cuts.push_back(NameOf(plan, cut));
      few.insert(cut);
    }
    std::map<int, bool> summed;  // of each operand: read only by these sums
    for (const int reader : path.nodes) {
      for (const int arg : plan.at(reader).args) {
        auto& only = summed.try_emplace(plan.Root(arg), true).first->second;
        only = only && few.contains(reader);
      }
    }
    for (const int cut : path.cut_points) {
      if (const auto read = summed.find(cut); read != summed.end() && read->second)
        shape->term_cuts.push_back(NameOf(plan, cut));
    }
  }

  std::vector<std::unique_ptr<Hypothesis>> BankOf(const std::string& value, DType observed,
                                                  Enumerate enumerate, Banks* banks) const {
    const int node = shared_->plan.values.at(value);
    auto& bank = (*banks)[{node, observed}];
    if (!bank) bank = Recent().Find(shared_->plan, node, observed, enumerate);
    if (!bank) {
      auto made = std::make_shared<ValueBank>();
      made->node = node;
      made->path = PathOf(shared_->plan, node);
      made->choices = enumerate(shared_->plan, made->path, observed);
      for (const auto& order : OrdersOf(shared_->plan, made->path)) made->order_names.push_back(order.name);
      // Implementations of exp differ from ours: each order once more, with functions that are off as implementations
      // are.
      if (HasFunctions(made->path)) {
        for (const auto& order : OrdersOf(shared_->plan, made->path))
          made->order_names.push_back(order.name + std::string(kInexact));
      }
      made->Bind(shared_->plan);
      bank = std::move(made);
      Recent().Keep(shared_->plan, observed, enumerate, bank);
    }
    return Hypotheses(bank);
  }

  std::vector<std::unique_ptr<Hypothesis>> Hypotheses(const std::shared_ptr<const ValueBank>& bank) const {
    std::vector<std::unique_ptr<Hypothesis>> all;
    all.reserve(bank->choices.size());
    for (size_t choice = 0; choice < bank->choices.size(); ++choice)
      all.push_back(MakeHypothesis(shared_, bank, choice));
    return all;
  }

  /// Ziv's strategy: doubles the precision until the enclosure decides, up to a cap (then UNDECIDED).
  Reference Decide(Evaluators* evaluators, const ExactArithmetic::Source& known, int node,
                   int64_t element) const {
    KeepDeadline();
    Reference reference;
    for (const int64_t precision : {128, 256, 1024, 4096}) {
      auto& evaluator = (*evaluators)[precision];
      if (!evaluator)
        evaluator = std::make_unique<Evaluator<ExactArithmetic>>(shared_->plan, shared_->inputs,
                                                                 ExactArithmetic(precision, known));
      reference = evaluator->At(node, element).ToReference();
      if (reference.kind != ReferenceKind::kUndecided) return reference;
    }
    return reference;
  }

  std::shared_ptr<Shared> shared_;
  bool natural_ = false, as_written_ = false;
  mutable Banks banks_, flushing_banks_;
  mutable std::map<std::pair<int, DType>, std::vector<Choice>> naturals_;
  std::unique_ptr<fast::FastReferences> fast_;  ///< null with OracleEngine::kBoost
  ExactArithmetic::Source known_;
  mutable Evaluators mixed_;  ///< take sums and products from fast_
  mutable Evaluators boost_;  ///< take nothing from it
  mutable int64_t asked_ = 0, answered_ = 0;
};

}  // namespace

std::vector<std::string> NamesInside(const Case& c) {
  const auto plan = Lower(c);
  return plan ? Keys(InsideOf(*plan)) : std::vector<std::string>();
}

Result<std::unique_ptr<CaseOracle>> OpenCaseOracle(const Case& c, std::map<std::string, TensorData> inputs,
                                                   OracleOptions options) {
  if (auto ok = CheckInputs(c, inputs); !ok) return Fail(ok.error());
  auto plan = Lower(c);
  if (!plan) return Fail(plan.error());
  for (PlanNode& node : plan->nodes) {
    const bool is_cast = options.real && node.kind == NodeKind::kCast && IsFloating(node.dtype);
    node.handed_on = is_cast || options.unrounded.contains(node.name);
  }
  if (options.real) {
    for (const auto& [name, node] : InsideOf(*plan)) plan->values.emplace(name, node);
  }
  if (!options.unrounded.empty()) TellScalarsApart(&*plan);
  return std::make_unique<ConcreteOracle>(std::make_shared<Shared>(std::move(*plan), std::move(inputs)), c.id,
                                          options);
}

void BindOracleLibraries() { fast::Blas::GetWithoutThreads(); }

}  // namespace ulpscope
