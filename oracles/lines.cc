// Lines by a walk that ends at sums; moves by a second evaluation with one step a little larger.
#include "oracles/lines.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "harness/num/error_free.h"
#include "oracles/emulated.h"
#include "oracles/evaluate.h"

namespace ulpscope {
namespace {

/// Which elements of shared sums a value rests on.
class SumsBelow {
 public:
  using Value = std::vector<std::pair<int, int64_t>>;  ///< node and element, in order
  static constexpr bool kNeedsSlack = false;
  static constexpr bool kSharesOperands = false;

  SumsBelow(const Plan& plan, int value) : plan_(plan), most_(plan.size(value)) {}

  Value Input(const PlanNode&, int, const TensorData&, int64_t) const { return {}; }
  Value Constant(const PlanNode&) const { return {}; }
  Value Count(const PlanNode&, int64_t) const { return {}; }
  Value Nowhere() const { return {}; }
  /// Either choice is possible, so the result depends on both.
  std::optional<bool> Truth(const Value&) const { return std::nullopt; }
  std::optional<int64_t> Whole(const Value&) const { return std::nullopt; }
  Value Either(const Value& a, const Value& b) const {
    const std::vector<Value> both{a, b};
    return United(both);
  }
  Value Elementwise(const PlanNode&, int, std::span<const Value> args, std::span<const Value>) const {
    return United(args);
  }
  /// Terms of a sum do not matter here: no sum is walked through.
  std::optional<Value> Known(const PlanNode&, int id, int64_t index, const Value* addend) const {
    Value own;
    if (plan_.size(id) < most_) own.emplace_back(id, index);
    if (addend == nullptr) return own;
    return Either(own, *addend);
  }
  Value Contract(const PlanNode&, int, int64_t, std::span<const Value>, std::span<const Value>,
                 const Value*) const {
    return {};
  }
  Value Reduce(const PlanNode&, int, int64_t, std::span<const Value>) const { return {}; }

 private:
  static Value United(std::span<const Value> parts) {
    Value all;
    for (const Value& part : parts) all.insert(all.end(), part.begin(), part.end());
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  const Plan& plan_;
  int64_t most_;
};

/// Exact, but for one node that is a little larger.
class Nudged : public EmulatedArithmetic {
 public:
  static constexpr double kBy = 0x1p-20;

  Nudged(const Binding* binding, EvaluationCache* cache, int node)
      : EmulatedArithmetic(binding, cache, nullptr), node_(node) {}

  std::optional<TwoDoubles> Known(const PlanNode& node, int id, int64_t index,
                                  const TwoDoubles* addend) const {
    const auto known = EmulatedArithmetic::Known(node, id, index, addend);
    return known ? std::optional(Moved(id, *known)) : std::nullopt;
  }
  TwoDoubles Elementwise(const PlanNode& node, int id, std::span<const TwoDoubles> args,
                         std::span<const TwoDoubles> slack) const {
    return Moved(id, EmulatedArithmetic::Elementwise(node, id, args, slack));
  }
  TwoDoubles Reduce(const PlanNode& node, int id, int64_t index, std::span<const TwoDoubles> terms) const {
    return Moved(id, EmulatedArithmetic::Reduce(node, id, index, terms));
  }
  TwoDoubles Contract(const PlanNode& node, int id, int64_t index, std::span<const TwoDoubles> a,
                      std::span<const TwoDoubles> b, const TwoDoubles* addend) const {
    return Moved(id, EmulatedArithmetic::Contract(node, id, index, a, b, addend));
  }

 private:
  TwoDoubles Moved(int id, TwoDoubles value) const {
    return id == node_ ? Multiply(value, TwoDoubles{.hi = 1 + kBy, .lo = 0}) : value;
  }

  int node_;
};

}  // namespace

std::vector<int64_t> LinesOf(const Shared& shared, int value, std::span<const int64_t> elements) {
  Evaluator<SumsBelow> walk(shared.plan, shared.inputs, SumsBelow(shared.plan, shared.plan.Root(value)));
  std::map<SumsBelow::Value, int64_t> known;
  std::vector<int64_t> lines;
  lines.reserve(elements.size());
  for (const int64_t element : elements) {
    const auto sums = walk.At(value, element);
    // An element that shares no sum is a row of its own.
    const int64_t next = static_cast<int64_t>(lines.size());
    lines.push_back(sums.empty() ? next : known.try_emplace(sums, next).first->second);
  }
  return lines;
}

std::vector<double> MovesOf(Shared* shared, int value, int node, std::span<const int64_t> elements) {
  Binding exact;
  exact.store.resize(shared->plan.nodes.size());
  exact.in.resize(shared->plan.nodes.size());
  Evaluator<EmulatedArithmetic> as_is(shared->plan, shared->inputs,
                                      EmulatedArithmetic(&exact, &shared->cache, nullptr));
  Evaluator<Nudged> nudged(shared->plan, shared->inputs, Nudged(&exact, &shared->cache, node));
  std::vector<double> moves;
  moves.reserve(elements.size());
  for (const int64_t element : elements) {
    const TwoDoubles before = as_is.At(value, element), after = nudged.At(value, element);
    moves.push_back(Add(after, Negate(before)).hi / Nudged::kBy);
  }
  return moves;
}

}  // namespace ulpscope
