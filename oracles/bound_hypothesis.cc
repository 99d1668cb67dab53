// The results that a model allows for an element: an interval, every value that some order gives, one order.
#include "oracles/bound_hypothesis.h"

#include <algorithm>
#include <cmath>

#include "harness/base/deadline.h"
#include "harness/num/error_free.h"
#include "oracles/dot/few_terms.h"
#include "oracles/dot/further_orders.h"
#include "oracles/dot/trees.h"
#include "oracles/emulated.h"
#include "oracles/evaluate.h"

namespace ulpscope {
namespace {

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
          shared_->plan, shared_->inputs, EnclosureArithmetic(&binding_, &shared_->cache, Alone()));
    KeepDeadline();
    return enclosure_->At(bank_->node, element);
  }

  Interval EncloseUnstored(int64_t element) const override {
    if (!unstored_) {
      unstored_binding_ = binding_;
      unstored_binding_.store[static_cast<size_t>(bank_->path.root)].clear();
      unstored_ = std::make_unique<Evaluator<EnclosureArithmetic>>(
          shared_->plan, shared_->inputs, EnclosureArithmetic(&unstored_binding_, &shared_->cache, Alone()));
    }
    KeepDeadline();
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
    const PlanNode& root = Root();
    if ((IsReduction(root.kind) || root.inner) && !binding_.acc.exact())
      before = StoreIn(binding_.acc, {.hi = before, .lo = 0});
    for (const auto& spec : Stores()) before = spec.Apply(before);
    return before;
  }

  bool SurelyHolds(int64_t element, double stored) const override {
    const AccSpec& acc = binding_.acc;
    const PlanNode& root = Root();
    if (acc.exact() || root.kind != NodeKind::kContract || root.args.size() > 2 || root.alpha() != 1 ||
        !std::isfinite(stored))
      return false;
    const int64_t at = shared_->plan.RootIndex(bank_->node, element);
    PlainSums* plain = Plain();
    if (plain == nullptr) return false;
    if (relative_ < 0) {
      const auto& in = In();
      const int64_t count = root.terms() * std::max(in[0].passes, in[1].passes);
      relative_ = RelativeBound(acc, count);
      absolute_ = AbsoluteBound(acc, count);
    }
    if (plain->raw().LeastProducts(at) <= static_cast<int64_t>(SumTrees::kMostSlots)) return false;
    const PlainSums::Sum* sum = plain->At(at);
    if (sum == nullptr) return false;
    if (plain->IsExact(at, acc)) return false;
    // Every rounding of the sum's bound is monotone, and leaves `stored` unchanged. A radius beyond `stored` makes the
    // interval more than a point.
    const double radius = (relative_ * sum->magnitude + absolute_) * (1 - 0x1p-20 - plain->relative()),
                 most = radius - plain->ErrorOf(sum->magnitude);
    return std::fabs(stored - sum->sum) <= most * (1 - 0x1p-20);
  }

  std::vector<double> Possible(int64_t element) const override {
    const PlanNode& root = Root();
    // Which neighbour is kept is not known: the results of sums are too few.
    const bool either = std::ranges::any_of(Stores(), [](const RoundSpec& spec) { return spec.faithful; });
    if (either || TooMany(element)) return {};
    if (root.kind == NodeKind::kReduce || root.kind == NodeKind::kDiv) return PossibleSums(element);
    // Operands have to be tensors of the case; alpha scales a finished sum, which the trees do not hold.
    if (binding_.acc.exact() || root.kind != NodeKind::kContract || !IsRaw(bank_->path.root) ||
        root.alpha() != 1)
      return {};
    const int64_t at = shared_->plan.RootIndex(bank_->node, element);
    const auto& in = In();
    if (in[0].pieces > 1 || in[1].pieces > 1) {
      if (root.args.size() == 3 && Addend(at).hi != 0) return {};
      return StoreEach(SumsOfPasses(binding_.acc, in, Probe().Raw(bank_->path.root, at)));
    }
    std::vector<SumTerm> terms;
    const RawOperands& raw = Probe().Raw(bank_->path.root, at);
    for (size_t k = 0; k < raw.a.size(); ++k) {
      if (raw.a[k] == 0 || raw.b[k] == 0) continue;
      if (terms.size() == SumTrees::kMostSlots) return {};
      const Products products = Multiply(in[0], in[1], binding_.prod, raw.a[k], raw.b[k]);
      SumTerm term = TermOf(products.a[0], products.b[0]);
      term.value = products.value[0];
      terms.push_back(term);
    }
    std::vector<double> values, halves;
    if (root.args.size() == 3) {
      const TwoDoubles addend = Addend(at);
      if (terms.size() == SumTrees::kMostSlots) return {};
      SumTerm term = TermOf(addend.hi, 1);
      term.value = addend;
      if (addend.hi != 0 && binding_.acc.binary() && binding_.acc.wide())
        halves = SumsFromHalves(binding_.acc, terms, term);
      if (addend.hi != 0) terms.push_back(term);
    }
    if (terms.empty()) return {};
    SumTrees::For(binding_.acc, static_cast<int>(terms.size()))->Evaluate(terms, &values);
    values.insert(values.end(), halves.begin(), halves.end());
    return StoreEach(std::move(values));
  }

  std::vector<int64_t> Together(int64_t element, double stored) const override {
    const PlanNode& root = Root();
    if (binding_.acc.partial == nullptr || !IsReduction(root.kind) || root.alpha() != 1 ||
        root.args.size() == 3 || !IsRaw(bank_->path.root))
      return {};
    RawOperands raw = Probe().Raw(bank_->path.root, shared_->plan.RootIndex(bank_->node, element));
    if (raw.b.empty()) raw.b.assign(raw.a.size(), 1.0);
    return PositionsTogether(
        binding_.acc, In(), binding_.prod, raw, [this](double sum) { return Store(sum); }, stored);
  }

  void Forget() const override {
    plain_.reset();
    enclosure_.reset();
    unstored_.reset();
    probe_.reset();
  }

  bool order_free() const override { return bank_->path.reductions.empty() || binding_.acc.exact(); }
  std::span<const std::string> orders() const override { return bank_->order_names; }

  std::span<const std::string> further_orders() const override {
    static const std::vector<std::string> sums = NamesOf(FurtherOrders(false)),
                                          means = NamesOf(FurtherOrders(true));
    if (!HasFurther()) return {};
    return IsPlainSum() ? sums : means;
  }

  std::vector<double> SimulateFurther(size_t further, std::span<const int64_t> elements) const override {
    Evaluator<EmulatedArithmetic> evaluator(
        shared_->plan, shared_->inputs,
        EmulatedArithmetic(&binding_, &shared_->cache, nullptr, bank_->path.root));
    const bool plain = IsPlainSum();
    const auto mean = plain ? std::nullopt : MeanOf();
    const FurtherOrder& order = FurtherOrders(!plain)[further];
    std::vector<double> values;
    for (const int64_t element : elements) {
      KeepDeadline();
      if (plain) {
        values.push_back(SumFurther(order, TermsOf(&evaluator, element).front()));
        continue;
      }
      std::vector<double> terms = Probe().Raw(mean->sum, shared_->plan.RootIndex(bank_->node, element)).a;
      for (double& term : terms) term = binding_.in[static_cast<size_t>(mean->sum)][0].Apply(term);
      values.push_back(MeanFurther(order, terms));
    }
    return values;
  }

  std::vector<double> Simulate(int order, std::span<const int64_t> elements) const override {
    // MID and OUT of the root do not matter here: hypotheses that differ in them alone share a simulation.
    std::string key = std::to_string(bank_->node) + "|" + std::to_string(order) + "|" + binding_.term_key +
                      "|" + AccWord(choice_.acc) + "|" + KeyOf(choice_);
    // One double holds what narrower roundings need (ToOdd). An output in binary64 is rounded here, from the pair.
    const RoundSpec& out = choice_.out;
    const bool whole = choice_.mid.none() && out.format != nullptr && out.format->precision > 51;
    if (whole) key += "|" + OutWord(out);
    // Few elements are requested before many, which begin with them.
    for (const int64_t element : elements.first(std::min<size_t>(elements.size(), 2)))
      key += ":" + std::to_string(element);
    Simulated& known = shared_->simulations[std::move(key)];
    const auto parted =
        std::mismatch(known.elements.begin(), known.elements.end(), elements.begin(), elements.end());
    const auto have = static_cast<size_t>(parted.second - elements.begin());
    if (have < elements.size()) {
      known.elements.assign(elements.begin(), elements.end());
      known.values.resize(have);
      SimulateInto(order, whole ? &out : nullptr, elements.subspan(have), &known.values);
    }
    return {known.values.begin(), known.values.begin() + static_cast<std::ptrdiff_t>(elements.size())};
  }

 private:
  /// The addend of the root's products.
  TwoDoubles Addend(int64_t at) const {
    return Multiply(TwoDoubles{.hi = Root().Get<Contraction>().beta, .lo = 0},
                    Probe().At(Root().args[2], at));
  }
  const PlanNode& Root() const { return shared_->plan.at(bank_->path.root); }
  const std::vector<RoundSpec>& Stores() const {
    return binding_.store[static_cast<size_t>(bank_->path.root)];
  }
  const std::array<RoundSpec, 2>& In() const { return binding_.in[static_cast<size_t>(bank_->path.root)]; }
  /// The operands of `node` are tensors of the case.
  bool IsRaw(int node) const { return shared_->cache.raw[static_cast<size_t>(node)]; }

  Evaluator<EmulatedArithmetic>& Probe() const {
    if (!probe_)
      probe_ = std::make_unique<Evaluator<EmulatedArithmetic>>(
          shared_->plan, shared_->inputs, EmulatedArithmetic(&binding_, &shared_->cache, nullptr));
    return *probe_;
  }
  /// The root, if it is itself a sum and not a later step.
  int Alone() const { return IsReduction(Root().kind) ? bank_->path.root : -1; }
  /// Sums of the root in plain binary64; null if it is no product of tensors of the case.
  PlainSums* Plain() const {
    if (!plain_) plain_ = shared_->cache.Plain(bank_->path.root, binding_);
    return plain_.get();
  }

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
      KeepDeadline();
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
    const PlanNode& root = Root();
    if (root.kind != NodeKind::kContract) return false;
    PlainSums* plain = Plain();
    return plain != nullptr && plain->raw().LeastProducts(shared_->plan.RootIndex(bank_->node, element)) >
                                   static_cast<int64_t>(SumTrees::kMostSlots);
  }

  /// A sum over a whole number.
  struct Quotient {
    int sum = -1;  ///< the node that is divided
    int64_t divisor = 1;
  };
  std::optional<Quotient> MeanOf() const {
    const PlanNode& root = Root();
    if (root.kind != NodeKind::kDiv) return std::nullopt;
    const PlanNode& by = shared_->plan.at(shared_->plan.Root(root.args[1]));
    const IntegerRatio* ratio = by.If<IntegerRatio>();
    // One double does not have enough bits for a quotient that is stored in binary64.
    const bool whole = ratio != nullptr && ratio->denominator == 1 && ratio->numerator > 0 &&
                       (IsPowerOfTwo(by) || choice_.out.format->precision <= Binary32().precision);
    const int sum = shared_->plan.Root(root.args[0]);
    // The quotient's element is the sum's: neither is a view of another shape.
    if (!whole || shared_->plan.size(sum) != shared_->plan.size(bank_->path.root) || sum != root.args[0])
      return std::nullopt;
    return Quotient{.sum = sum, .divisor = ratio->numerator};
  }

  static std::vector<std::string> NamesOf(const std::vector<FurtherOrder>& orders) {
    std::vector<std::string> names;
    for (const FurtherOrder& order : orders) names.push_back(order.name);
    return names;
  }

  /// Sums of tensors of the case in float32, or their mean, and no intermediate rounding.
  bool HasFurther() const {
    const AccSpec& acc = binding_.acc;
    if (!acc.binary() || acc.format != &Binary32() || acc.rounding != Rounding::kNearestEven ||
        acc.via_float32 || acc.subnormals != Subnormals::kGradual || !choice_.mid.none() ||
        !choice_.cuts.empty() || bank_->path.reductions.size() != 1)
      return false;
    const auto one_piece = [&](int node) {
      const auto& in = binding_.in[static_cast<size_t>(node)];
      return in[0].pieces == 1 && in[1].pieces == 1;
    };
    if (IsReduction(Root().kind)) return IsPlainSum() && one_piece(bank_->path.root);
    const auto mean = MeanOf();
    if (!mean) return false;
    const PlanNode& sum = shared_->plan.at(mean->sum);
    return sum.kind == NodeKind::kReduce && IsRaw(mean->sum) && one_piece(mean->sum) &&
           sum.terms() == mean->divisor;
  }

  /// The same for a sum of a tensor's elements, or one that is divided by a whole number.
  std::vector<double> PossibleSums(int64_t element) const {
    const int64_t at = shared_->plan.RootIndex(bank_->node, element);
    int64_t divisor = 1;
    int sum = bank_->path.root;
    if (Root().kind == NodeKind::kDiv) {
      const auto mean = MeanOf();
      if (!mean) return {};
      sum = mean->sum;
      divisor = mean->divisor;
    }
    const PlanNode& node = shared_->plan.at(sum);
    if (binding_.acc.exact() || node.kind != NodeKind::kReduce || !IsRaw(sum)) return {};
    const RoundSpec& in = binding_.in[static_cast<size_t>(sum)][0];
    if (in.pieces > 1) return {};
    std::vector<double> terms = Probe().Raw(sum, at).a;
    for (double& term : terms) term = in.Apply(term);
    std::vector<double> values = SumsOfTerms(binding_.acc, terms);
    if (sum == bank_->path.root) return StoreEach(std::move(values));
    const size_t count = values.size();
    const auto n = static_cast<double>(divisor);
    for (size_t i = 0; i < count; ++i) {
      for (const auto& spec : binding_.store[static_cast<size_t>(sum)]) values[i] = spec.Apply(values[i]);
      const double total = values[i], quotient = total / n;
      values[i] = ToOdd(TwoDoubles{.hi = quotient, .lo = std::fma(-quotient, n, total) / n});
      // As compilers have it that know the divisor.
      if (binding_.acc.format == &Binary32())
        values.push_back(total * static_cast<double>(1 / static_cast<float>(n)));
    }
    return StoreEach(std::move(values));
  }

  /// Sorted and each once; none if one is no number.
  std::vector<double> StoreEach(std::vector<double> values) const {
    for (double& value : values) {
      value = Store(value);
      if (std::isnan(value)) return {};
    }
    std::ranges::sort(values);
    values.erase(std::unique(values.begin(), values.end()), values.end());
    return values;
  }

  /// The value is one sum of tensors of the case, and nothing else.
  bool IsPlainSum() const {
    return IsReduction(Root().kind) && IsRaw(bank_->path.root) && Root().args.size() < 3 &&
           Root().alpha() == 1;
  }

  const ManySums* ManyOf(Evaluator<EmulatedArithmetic>* evaluator, std::span<const int64_t> elements) const {
    const int root = bank_->path.root;
    const std::string key =
        std::to_string(bank_->node) + "|" + std::to_string(root) + "|" + binding_.term_key;
    auto& all = shared_->many;
    const auto known = std::ranges::find_if(all, [&](const InLanes& entry) {
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

}  // namespace

std::unique_ptr<Hypothesis> MakeHypothesis(std::shared_ptr<Shared> shared,
                                           std::shared_ptr<const ValueBank> bank, size_t choice) {
  return std::make_unique<BoundHypothesis>(std::move(shared), std::move(bank), choice);
}

}  // namespace ulpscope
