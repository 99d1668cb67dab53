// Ties plan, exact arithmetic, enclosures and emulation to one case.
#include "oracles/oracle.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <set>
#include <unordered_map>

#include "harness/base/check.h"
#include "oracles/dot/few_terms.h"
#include "oracles/dot/many_sums.h"
#include "oracles/dot/sum.h"
#include "oracles/dot/trees.h"
#include "oracles/emulated.h"
#include "oracles/enclosure.h"
#include "oracles/error_free.h"
#include "oracles/evaluate.h"
#include "oracles/exact_arithmetic.h"
#include "oracles/expand.h"
#include "oracles/fast/references.h"
#include "oracles/hypothesis.h"
#include "oracles/search.h"
#include "oracles/settled.h"

namespace ulpscope {
namespace {

/// Of so many totals or fewer chance rounds each as a sum in the format that it is rounded to would have.
constexpr int64_t kFewSums = 32;

/// The products of one element, by the pass of split operands.
using Passes = std::vector<std::vector<SumTerm>>;

/// One order of one model on the elements that were asked for so far.
struct Simulated {
  std::vector<int64_t> elements;
  std::vector<double> values;
};

struct InLanes {
  std::string key;
  std::vector<int64_t> elements;
  std::unique_ptr<ManySums> sums;
};

/// What all hypotheses of a case share.
struct Shared {
  Plan plan;
  std::map<std::string, TensorData> inputs;
  EvaluationCache cache;
  std::unordered_map<std::string, Simulated> simulations;
  /// Of the roundings of operands and products that were asked for last: all orders and accumulators sum the same terms.
  std::string term_key;
  std::unordered_map<int64_t, Passes> terms;
  /// The last few in lanes, by the roundings of operands and the elements; null where lanes cannot hold them.
  std::vector<InLanes> many;

  Shared(Plan p, std::map<std::string, TensorData> i)
      : plan(std::move(p)), inputs(std::move(i)), cache(plan, inputs) {}
};

const std::vector<SumOrder>& OrdersOf(const Plan& plan, const ValuePath& path) {
  const bool addend = std::any_of(path.reductions.begin(), path.reductions.end(), [&](int id) {
    return plan.nodes[static_cast<size_t>(id)].args.size() == 3;
  });
  return SumOrders(addend ? AddendOrders::kBoth : AddendOrders::kNone);
}

/// The bank of one value, shared by every backend that stored it in the same dtype.
struct ValueBank {
  int node = 0;  ///< as observed: a view of path.root, or the root itself
  ValuePath path;
  std::vector<Choice> choices;
  std::vector<std::string> order_names;
  std::vector<PrecisionModel> models;  ///< of each choice
  std::vector<Binding> bindings;       ///< of each choice

  /// Once all choices are there.
  void Bind(const Plan& plan) {
    for (const Choice& choice : choices) {
      models.push_back(ModelOf(plan, path, choice));
      bindings.push_back(BindingOf(plan, path, choice));
    }
  }
};

using Enumerate = std::vector<Choice> (*)(const Plan&, const ValuePath&, DType);

/// The banks that were made last, for the next case: a bank rests on the plan and on no input, and a suite asks one program of many
/// inputs. What decides is the plan itself, field by field, no digest of it.
class RecentBanks {
 public:
  using Bank = std::shared_ptr<const ValueBank>;

  Bank Find(const Plan& plan, int node, DType observed, Enumerate enumerate) {
    const std::lock_guard lock(mutex_);
    const auto same = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& kept) {
      return kept.bank->node == node && kept.observed == observed && kept.enumerate == enumerate &&
             kept.nodes == plan.nodes;
    });
    if (same == kept_.end()) return nullptr;
    std::rotate(kept_.begin(), same, same + 1);
    return kept_.front().bank;
  }

  void Keep(const Plan& plan, DType observed, Enumerate enumerate, Bank bank) {
    if (bank->choices.size() > kMostChoices) return;
    const std::lock_guard lock(mutex_);
    kept_.insert(
        kept_.begin(),
        {.nodes = plan.nodes, .observed = observed, .enumerate = enumerate, .bank = std::move(bank)});
    size_t choices = 0, banks = 0;
    while (banks < kept_.size() && (choices += kept_[banks].bank->choices.size()) <= kMostChoices) ++banks;
    kept_.resize(std::min(banks, kMostBanks));
  }

 private:
  static constexpr size_t kMostBanks = 16, kMostChoices = 10000;  // some 1 KiB a choice
  struct Kept {
    std::vector<PlanNode> nodes;
    DType observed = DType::kFloat32;
    Enumerate enumerate = nullptr;
    Bank bank;
  };
  std::mutex mutex_;
  std::vector<Kept> kept_;  ///< the last one used first
};

RecentBanks& Recent() {
  static RecentBanks banks;
  return banks;
}

class BoundHypothesis : public Hypothesis {
 public:
  BoundHypothesis(std::shared_ptr<Shared> shared, std::shared_ptr<const ValueBank> bank, size_t choice)
      : shared_(std::move(shared)),
        bank_(std::move(bank)),
        choice_(bank_->choices[choice]),
        model_(bank_->models[choice]),
        binding_(bank_->bindings[choice]) {}

  const PrecisionModel& model() const override { return model_; }

  Interval Enclose(int64_t element) const override {
    if (!enclosure_)
      enclosure_ = std::make_unique<Evaluator<EnclosureArithmetic>>(
          shared_->plan, shared_->inputs, EnclosureArithmetic(&binding_, &shared_->cache));
    return enclosure_->At(bank_->node, element);
  }

  Interval EncloseUnstored(int64_t element) const override {
    if (!unstored_) {
      unstored_binding_ = binding_;
      unstored_binding_.store[static_cast<size_t>(bank_->path.root)].clear();
      unstored_ = std::make_unique<Evaluator<EnclosureArithmetic>>(
          shared_->plan, shared_->inputs, EnclosureArithmetic(&unstored_binding_, &shared_->cache));
    }
    return unstored_->At(bank_->node, element);
  }

  bool smooth() const override {
    for (const int id : bank_->path.nodes) {
      if (id == bank_->path.root) continue;
      for (const RoundSpec& spec : binding_.store[static_cast<size_t>(id)]) {
        if (spec.bits() < Binary32().precision) return false;
      }
    }
    return true;
  }

  double Store(double before) const override {
    const PlanNode& root = shared_->plan.nodes[static_cast<size_t>(bank_->path.root)];
    if ((IsReduction(root.kind) || root.inner) && !binding_.acc.exact())
      before = StoreIn(binding_.acc, {.hi = before, .lo = 0});
    for (const auto& spec : binding_.store[static_cast<size_t>(bank_->path.root)])
      before = spec.Apply(before);
    return before;
  }

  bool SurelyHolds(int64_t element, double stored) const override {
    const AccSpec& acc = binding_.acc;
    const PlanNode& root = shared_->plan.nodes[static_cast<size_t>(bank_->path.root)];
    if (acc.exact() || root.kind != NodeKind::kContract || root.args.size() > 2 || root.alpha() != 1 ||
        !std::isfinite(stored))
      return false;
    const int64_t at = shared_->plan.RootIndex(bank_->node, element);
    if (!plain_) plain_ = shared_->cache.Plain(bank_->path.root, binding_);
    if (!plain_) return false;
    if (relative_ < 0) {
      const auto& in = binding_.in[static_cast<size_t>(bank_->path.root)];
      const int64_t count = root.terms() * std::max(in[0].passes, in[1].passes);
      relative_ = RelativeBound(acc, count);
      absolute_ = AbsoluteBound(acc, count);
    }
    if (plain_->raw().LeastProducts(at) <= static_cast<int64_t>(SumTrees::kMostSlots)) return false;
    const PlainSums::Sum* sum = plain_->At(at);
    if (sum == nullptr) return false;
    // Whatever rounds the bound of a sum is monotone, and leaves `stored` as it is. A radius beyond what is stored makes
    // the interval more than a point.
    const double radius = (relative_ * sum->magnitude + absolute_) * (1 - 0x1p-20 - plain_->relative()),
                 most = radius - plain_->ErrorOf(sum->magnitude);
    return std::fabs(stored - sum->sum) <= most * (1 - 0x1p-20);
  }

  std::vector<double> Possible(int64_t element) const override {
    const PlanNode& root = shared_->plan.nodes[static_cast<size_t>(bank_->path.root)];
    if (TooMany(element)) return {};
    if (root.kind == NodeKind::kReduce || root.kind == NodeKind::kDiv) return PossibleSums(element);
    // Operands have to be tensors of the case; alpha scales a finished sum, which the trees do not hold.
    if (binding_.acc.exact() || root.kind != NodeKind::kContract ||
        !shared_->cache.raw[static_cast<size_t>(bank_->path.root)] || root.alpha() != 1)
      return {};
    if (!probe_)
      probe_ = std::make_unique<Evaluator<EmulatedArithmetic>>(
          shared_->plan, shared_->inputs, EmulatedArithmetic(&binding_, &shared_->cache, nullptr));
    const int64_t at = shared_->plan.RootIndex(bank_->node, element);
    const auto& in = binding_.in[static_cast<size_t>(bank_->path.root)];
    if (in[0].pieces > 1 || in[1].pieces > 1) {
      if (root.args.size() == 3) return {};
      return StoreEach(SumsOfPasses(binding_.acc, in, probe_->Raw(bank_->path.root, at)));
    }
    std::vector<SumTerm> terms;
    const RawOperands& raw = probe_->Raw(bank_->path.root, at);
    for (size_t k = 0; k < raw.a.size(); ++k) {
      if (raw.a[k] == 0 || raw.b[k] == 0) continue;
      if (terms.size() == SumTrees::kMostSlots) return {};
      const Products products = Multiply(in[0], in[1], binding_.prod, raw.a[k], raw.b[k]);
      SumTerm term = TermOf(products.a[0], products.b[0]);
      term.value = products.value[0];
      terms.push_back(term);
    }
    if (root.args.size() == 3) {
      const TwoDoubles addend =
          Multiply(TwoDoubles{.hi = root.Get<Contraction>().beta, .lo = 0}, probe_->At(root.args[2], at));
      if (terms.size() == SumTrees::kMostSlots) return {};
      SumTerm term = TermOf(addend.hi, 1);
      term.value = addend;
      if (addend.hi != 0) terms.push_back(term);
    }
    if (terms.empty()) return {};
    std::vector<double> values;
    SumTrees::For(binding_.acc, static_cast<int>(terms.size()))->Evaluate(terms, &values);
    return StoreEach(std::move(values));
  }

  std::vector<int64_t> Together(int64_t element, double stored) const override {
    const PlanNode& root = shared_->plan.nodes[static_cast<size_t>(bank_->path.root)];
    if (binding_.acc.partial == nullptr || !IsReduction(root.kind) || root.alpha() != 1 ||
        root.args.size() == 3 || !shared_->cache.raw[static_cast<size_t>(bank_->path.root)])
      return {};
    if (!probe_)
      probe_ = std::make_unique<Evaluator<EmulatedArithmetic>>(
          shared_->plan, shared_->inputs, EmulatedArithmetic(&binding_, &shared_->cache, nullptr));
    RawOperands raw = probe_->Raw(bank_->path.root, shared_->plan.RootIndex(bank_->node, element));
    if (raw.b.empty()) raw.b.assign(raw.a.size(), 1.0);
    return PositionsTogether(
        binding_.acc, binding_.in[static_cast<size_t>(bank_->path.root)], binding_.prod, raw,
        [this](double sum) { return Store(sum); }, stored);
  }

  void Forget() const override {
    plain_.reset();
    enclosure_.reset();
    unstored_.reset();
    probe_.reset();
  }

  bool order_free() const override { return bank_->path.reductions.empty() || binding_.acc.exact(); }
  std::span<const std::string> orders() const override { return bank_->order_names; }

  std::vector<double> Simulate(int order, std::span<const int64_t> elements) const override {
    // MID and OUT of the root do not matter here: hypotheses that differ in them alone share a simulation.
    std::string key = choice_.mode + std::to_string(bank_->node) + "|" + std::to_string(order) + "|" +
                      binding_.term_key + "|" + choice_.acc;
    for (const auto& [cut, words] : choice_.cuts) {
      key += "|" + std::to_string(cut);
      for (const auto& word : words) key += ">" + word;
    }
    // One double holds what narrower roundings need (ToOdd). A store in binary64 is made here, from the pair.
    const auto out = ParseOut(choice_.out);
    const bool whole = choice_.mid == "none" && out && out->format->precision > 51;
    if (whole) key += "|" + choice_.out;
    // Few elements are asked for before many, which begin with them.
    for (const int64_t element : elements.first(std::min<size_t>(elements.size(), 2)))
      key += ":" + std::to_string(element);
    Simulated& known = shared_->simulations[std::move(key)];
    const auto parted =
        std::mismatch(known.elements.begin(), known.elements.end(), elements.begin(), elements.end());
    const auto have = static_cast<size_t>(parted.second - elements.begin());
    if (have < elements.size()) {
      known.elements.assign(elements.begin(), elements.end());
      known.values.resize(have);
      SimulateInto(order, whole ? &*out : nullptr, elements.subspan(have), &known.values);
    }
    return {known.values.begin(), known.values.begin() + static_cast<std::ptrdiff_t>(elements.size())};
  }

 private:
  void SimulateInto(int order, const RoundSpec* out, std::span<const int64_t> elements,
                    std::vector<double>* values) const {
    const auto& family = OrdersOf(shared_->plan, bank_->path);
    const auto count = static_cast<int>(family.size());
    const SumOrder* tree = order < 0 ? nullptr : &family[static_cast<size_t>(order % count)];
    const int inexact = order < count ? 0 : order - count + 1;
    Evaluator<EmulatedArithmetic> evaluator(
        shared_->plan, shared_->inputs,
        EmulatedArithmetic(&binding_, &shared_->cache, tree, bank_->path.root, inexact));
    const bool plain = IsPlainSum();
    if (plain && tree != nullptr && out == nullptr && ManySums::Can(binding_.acc, binding_.prod)) {
      if (const ManySums* many = ManyOf(&evaluator, elements)) {
        const auto sums = many->Sum(binding_.acc, binding_.prod, *tree);
        values->insert(values->end(), sums.begin(), sums.end());
        return;
      }
    }
    for (const int64_t element : elements) {
      const TwoDoubles value = plain
                                   ? EmulatedArithmetic::SumPasses(tree == nullptr ? AccSpec{} : binding_.acc,
                                                                   tree == nullptr ? SumOrder{} : *tree,
                                                                   TermsOf(&evaluator, element), nullptr)
                                   : evaluator.At(bank_->node, element);
      values->push_back(out != nullptr ? out->Apply(value) : ToOdd(value));
    }
  }

  /// More products are not zero than any list of trees holds.
  bool TooMany(int64_t element) const {
    const PlanNode& root = shared_->plan.nodes[static_cast<size_t>(bank_->path.root)];
    if (root.kind != NodeKind::kContract) return false;
    if (!plain_) plain_ = shared_->cache.Plain(bank_->path.root, binding_);
    return plain_ && plain_->raw().LeastProducts(shared_->plan.RootIndex(bank_->node, element)) >
                         static_cast<int64_t>(SumTrees::kMostSlots);
  }

  /// The same for a sum of a tensor's elements, or one that is divided by a power of two.
  std::vector<double> PossibleSums(int64_t element) const {
    const PlanNode& root = shared_->plan.nodes[static_cast<size_t>(bank_->path.root)];
    int64_t at = shared_->plan.RootIndex(bank_->node, element), divisor = 1;
    int sum = bank_->path.root;
    if (root.kind == NodeKind::kDiv) {
      const PlanNode& by = shared_->plan.nodes[static_cast<size_t>(shared_->plan.Root(root.args[1]))];
      const bool whole = IsPowerOfTwo(by);
      sum = shared_->plan.Root(root.args[0]);
      // The quotient's element is the sum's: neither is a view of another shape.
      if (!whole || shared_->plan.size(sum) != shared_->plan.size(bank_->path.root) || sum != root.args[0])
        return {};
      divisor = by.Get<IntegerRatio>().numerator;
    }
    const PlanNode& node = shared_->plan.nodes[static_cast<size_t>(sum)];
    if (binding_.acc.exact() || node.kind != NodeKind::kReduce ||
        !shared_->cache.raw[static_cast<size_t>(sum)])
      return {};
    if (!probe_)
      probe_ = std::make_unique<Evaluator<EmulatedArithmetic>>(
          shared_->plan, shared_->inputs, EmulatedArithmetic(&binding_, &shared_->cache, nullptr));
    const RoundSpec& in = binding_.in[static_cast<size_t>(sum)][0];
    if (in.pieces > 1) return {};
    std::vector<double> terms = probe_->Raw(sum, at).a;
    for (double& term : terms) term = in.Apply(term);
    std::vector<double> values = SumsOfTerms(binding_.acc, terms);
    for (double& value : values) {
      if (sum != bank_->path.root) {
        for (const auto& spec : binding_.store[static_cast<size_t>(sum)]) value = spec.Apply(value);
      }
      value /= static_cast<double>(divisor);
    }
    return StoreEach(std::move(values));
  }

  /// Sorted and each once; none where one is no number.
  std::vector<double> StoreEach(std::vector<double> values) const {
    for (double& value : values) {
      value = Store(value);
      if (std::isnan(value)) return {};
    }
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
  }

  /// The value is one sum of tensors of the case, and nothing else.
  bool IsPlainSum() const {
    const auto root = static_cast<size_t>(bank_->path.root);
    const PlanNode& node = shared_->plan.nodes[root];
    return shared_->cache.raw[root] && node.args.size() < 3 && node.alpha() == 1;
  }

  const ManySums* ManyOf(Evaluator<EmulatedArithmetic>* evaluator, std::span<const int64_t> elements) const {
    const int root = bank_->path.root;
    const std::string key =
        std::to_string(bank_->node) + "|" + std::to_string(root) + "|" + binding_.term_key;
    auto& all = shared_->many;
    const auto known = std::find_if(all.begin(), all.end(), [&](const InLanes& entry) {
      return entry.key == key &&
             std::equal(entry.elements.begin(), entry.elements.end(), elements.begin(), elements.end());
    });
    if (known != all.end()) {
      std::rotate(all.begin(), known, known + 1);
      return all.front().sums.get();
    }
    const auto& in = binding_.in[static_cast<size_t>(root)];
    const bool split = in[0].pieces > 1 || in[1].pieces > 1;
    std::unique_ptr<ManySums> many;
    for (size_t i = 0; i < elements.size(); ++i) {
      const RawOperands& raw = evaluator->Raw(root, shared_->plan.RootIndex(bank_->node, elements[i]));
      bool held = true;
      for (size_t k = 0; k < raw.a.size() && held; ++k) {
        if (raw.b.empty() || !split) {
          if (!many) many = std::make_unique<ManySums>(elements.size(), 1, raw.a.size());
          held = many->Set(i, 0, k, in[0].Apply(raw.a[k]), raw.b.empty() ? 1 : in[1].Apply(raw.b[k]));
          continue;
        }
        const Products products = Multiply(in[0], in[1], RoundSpec{}, raw.a[k], raw.b[k]);
        const auto passes = static_cast<size_t>(products.count);
        if (!many) many = std::make_unique<ManySums>(elements.size(), passes, raw.a.size());
        for (size_t pass = 0; pass < passes; ++pass)
          held = held && many->Set(i, pass, k, products.a[pass], products.b[pass]);
      }
      if (held) continue;
      many.reset();
      break;
    }
    constexpr size_t kMost = 4;
    if (all.size() == kMost) all.pop_back();
    all.insert(all.begin(),
               InLanes{.key = key, .elements = {elements.begin(), elements.end()}, .sums = std::move(many)});
    return all.front().sums.get();
  }

  const Passes& TermsOf(Evaluator<EmulatedArithmetic>* evaluator, int64_t element) const {
    const int root = bank_->path.root;
    const std::string key = std::to_string(root) + "|" + binding_.term_key;
    if (shared_->term_key != key) {
      shared_->term_key = key;
      shared_->terms.clear();
    }
    const int64_t at = shared_->plan.RootIndex(bank_->node, element);
    const auto known = shared_->terms.find(at);
    if (known != shared_->terms.end()) return known->second;
    const RawOperands& raw = evaluator->Raw(root, at);
    const auto& in = binding_.in[static_cast<size_t>(root)];
    return shared_->terms.emplace(at, EmulatedArithmetic::PassesOf(in, binding_.prod, raw.a, raw.b))
        .first->second;
  }

  std::shared_ptr<Shared> shared_;
  std::shared_ptr<const ValueBank> bank_;
  const Choice& choice_;
  const PrecisionModel& model_;
  const Binding& binding_;
  mutable Binding unstored_binding_;
  mutable std::unique_ptr<Evaluator<EnclosureArithmetic>> enclosure_, unstored_;
  mutable std::unique_ptr<Evaluator<EmulatedArithmetic>> probe_;
  mutable std::shared_ptr<PlainSums> plain_;
  mutable double relative_ = -1, absolute_ = 0;
};

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
    const PlanNode& view = shared_->plan.nodes[static_cast<size_t>(node->second)];
    ValueShape shape{.name = value,
                     .shape = view.shape,
                     .declared = view.dtype,
                     .reduction_length = path.reduction_length,
                     .terms = path.terms,
                     .work_of_one = WorkOf(shared_->plan, path, 1),
                     .work_of_all = WorkOf(shared_->plan, path, shared_->plan.size(node->second)),
                     .operands = {},
                     .cut_points = {},
                     .line_cuts = {},
                     .sum_cuts = {},
                     .tensors = {},
                     .has_products = path.has_products,
                     .has_steps = path.has_inner};
    for (const auto& [operand, dtype] : path.operands) shape.operands.push_back(operand);
    for (const auto& [scalar, words] : path.scalars) shape.operands.push_back(scalar);
    for (const int cut : path.cut_points) {
      shape.cut_points.push_back(NameOf(shared_->plan, cut));
      if (shared_->plan.size(cut) < shared_->plan.size(node->second))
        shape.line_cuts.push_back(shape.cut_points.back());
      if (IsReduction(shared_->plan.nodes[static_cast<size_t>(cut)].kind) &&
          shared_->plan.size(cut) <= kFewSums && shared_->plan.size(cut) < shared_->plan.size(node->second))
        shape.sum_cuts.push_back(shape.cut_points.back());
    }
    std::set<std::string> tensors;
    for (const int id : path.nodes) {
      const PlanNode& read = shared_->plan.nodes[static_cast<size_t>(id)];
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
    const RoundSpec rounding = ParseMid("p" + std::to_string(bits)).value();
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
    const PlanNode& sum = shared_->plan.nodes[static_cast<size_t>(part.reduction)];
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
      const PlanNode& operand = shared_->plan.nodes[static_cast<size_t>(shared_->plan.Root(sum.args[i]))];
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
        if (plain.acc != "exact") choice.acc = proposal.acc;
        choice.mid = proposal.mid;
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
    const int node = shared_->plan.values.at(value);
    auto made = std::make_shared<ValueBank>();
    made->node = node;
    made->path = PathOf(shared_->plan, node, StepsCut::kNamed);
    for (const auto& order : OrdersOf(shared_->plan, made->path)) made->order_names.push_back(order.name);
    const int64_t work = std::max<int64_t>(1, WorkOf(shared_->plan, made->path, 1));
    made->choices = EnumerateSteps(shared_->plan, made->path, observed,
                                   static_cast<size_t>(std::max<int64_t>(1, most_work / work)));
    made->Bind(shared_->plan);
    return Hypotheses(made);
  }

  std::vector<std::unique_ptr<Hypothesis>> FlushingBank(const std::string& value,
                                                        DType observed) const override {
    return BankOf(value, observed, EnumerateFlushing, &flushing_banks_);
  }

 private:
  /// Evaluators by the precision of their divisions and roots.
  using Evaluators = std::map<int64_t, std::unique_ptr<Evaluator<ExactArithmetic>>>;
  using Banks = std::map<std::pair<int, DType>, std::shared_ptr<const ValueBank>>;

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
      // Nobody's exp is ours: each order once more, with functions that are off as implementations are.
      const bool functions = std::any_of(made->path.nodes.begin(), made->path.nodes.end(), [&](int id) {
        return IsFunction(shared_->plan.nodes[static_cast<size_t>(id)].kind);
      });
      if (functions) {
        for (const auto& order : OrdersOf(shared_->plan, made->path))
          made->order_names.push_back(order.name + ", functions inexact");
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
      all.push_back(std::make_unique<BoundHypothesis>(shared_, bank, choice));
    return all;
  }

  /// Ziv's strategy: doubles the precision until the enclosure decides, up to a cap (then UNDECIDED).
  Reference Decide(Evaluators* evaluators, const ExactArithmetic::Source& known, int node,
                   int64_t element) const {
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

Result<void> CheckInputs(const Case& c, const std::map<std::string, TensorData>& inputs) {
  for (const auto& tensor : c.tensors) {
    const auto data = inputs.find(tensor.name);
    if (data == inputs.end()) return Fail("no input data for tensor '" + tensor.name + "'");
    if (data->second.shape != tensor.shape || data->second.dtype != tensor.dtype)
      return Fail("input data of tensor '" + tensor.name + "' is " +
                  Describe(data->second.dtype, data->second.shape) + ", the case says " +
                  Describe(tensor.dtype, tensor.shape));
  }
  return {};
}

}  // namespace

namespace {

/// Two numbers of two steps are converted each in its own way: of as many as can be tried, each gets the name of the value that
/// reads it besides ("scalar.mul@half").
void TellScalarsApart(Plan* plan) {
  constexpr size_t kMost = 3;
  std::map<std::string, std::map<int, std::string>> readers;  // of the numbers of an op
  size_t numbers = 0;
  for (const PlanNode& node : plan->nodes) {
    for (const int arg : node.args) {
      const int root = plan->Root(arg);
      const PlanNode& constant = plan->nodes[static_cast<size_t>(root)];
      if (!constant.is_scalar() || node.name.empty()) continue;
      if (readers[constant.Get<DoubleNumber>().scalar].emplace(root, node.name).second) ++numbers;
    }
  }
  if (numbers > kMost) return;
  for (const auto& [name, nodes] : readers) {
    if (nodes.size() < 2) continue;
    for (const auto& [node, reader] : nodes)
      plan->nodes[static_cast<size_t>(node)].Get<DoubleNumber>().scalar += "@" + reader;
  }
}

}  // namespace

Result<std::unique_ptr<CaseOracle>> OpenCaseOracle(const Case& c, std::map<std::string, TensorData> inputs,
                                                   OracleOptions options) {
  if (auto ok = CheckInputs(c, inputs); !ok) return Fail(ok.error());
  auto plan = Lower(c);
  if (!plan) return Fail(plan.error());
  for (PlanNode& node : plan->nodes) node.handed_on = options.unrounded.contains(node.name);
  if (!options.unrounded.empty()) TellScalarsApart(&*plan);
  return std::make_unique<ConcreteOracle>(std::make_shared<Shared>(std::move(*plan), std::move(inputs)), c.id,
                                          options);
}

Result<std::map<std::string, TensorData>> EmulateProgram(const Case& c,
                                                         const std::map<std::string, TensorData>& inputs,
                                                         const PrecisionModel& model,
                                                         const std::string& order) {
  if (auto ok = CheckInputs(c, inputs); !ok) return Fail(ok.error());
  auto plan = Lower(c);
  if (!plan) return Fail(plan.error());
  for (const auto& [value, why] : plan->gaps) return Fail(why + " (value '" + value + "')");
  const SumOrder* tree = nullptr;
  std::vector<std::string> known;
  for (const auto& candidate : SumOrders(AddendOrders::kBoth)) {
    known.push_back(candidate.name);
    if (candidate.name == order) tree = &candidate;
  }
  if (tree == nullptr) return Fail("unknown accumulation order '" + order + "'");
  const Binding binding = BindingOfProgramModel(*plan, model);
  EvaluationCache cache(*plan, inputs);
  Evaluator<EmulatedArithmetic> evaluator(*plan, inputs, EmulatedArithmetic(&binding, &cache, tree));
  std::map<std::string, TensorData> values;
  for (const auto& [name, node] : plan->values) {
    const PlanNode& view = plan->nodes[static_cast<size_t>(node)];
    TensorData data = TensorData::Zeros(view.dtype, view.shape);
    for (int64_t i = 0; i < data.size(); ++i) data.Set(i, evaluator.At(node, i).hi);
    values.emplace(name, std::move(data));
  }
  return values;
}

Result<PrecisionModel> TrueModel(const Case& c, const std::string& value, const PrecisionModel& model,
                                 DType observed) {
  const auto plan = Lower(c);
  if (!plan) return Fail(plan.error());
  const auto node = plan->values.find(value);
  if (node == plan->values.end()) return Fail("no value '" + value + "'");
  const ValuePath path = PathOf(*plan, node->second);
  return ModelOf(*plan, path, ChoiceOfProgramModel(*plan, path, model, observed));
}

Result<int64_t> EmulationCost(const Case& c) {
  const auto plan = Lower(c);
  if (!plan) return Fail(plan.error());
  int64_t cost = 0;
  for (const auto& [name, node] : plan->values) {
    for (const int id : PathOf(*plan, node).nodes)
      cost += plan->size(id) * std::max<int64_t>(1, plan->nodes[static_cast<size_t>(id)].terms());
  }
  return cost;
}

}  // namespace ulpscope
