// Gradients: reverse mode over elementary nodes, so that every op that is an expansion has one.
//
// The gradient of a cast is a cast back, of a broadcast a sum, of a product a product: textbook rules (Griewank and
// Walther, Evaluating Derivatives, 2008, chapter 3). A framework could round at additional places, so each gradient of
// a named intermediate is a cut point of its own, "grad(NAME)", stored with the dtype of the value it belongs to.
#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>

#include "harness/base/check.h"
#include "harness/words/gradient_name.h"
#include "oracles/lower.h"

namespace ulpscope {
namespace {

class Reverse {
 public:
  explicit Reverse(Lowering& low) : low_(low) {}

  void Run(int root, int seed) {
    if (!low_.needs_grad[static_cast<size_t>(root)])
      throw LoweringError{"backward of a value that does not require a gradient"};
    // Gradients of gradients are not requested: no node from here on needs one.
    const bool grad_before = low_.grad_enabled;
    low_.grad_enabled = false;
    pending_[Identity(root)] = seed;
    while (!pending_.empty() || !lost_.empty()) {
      const int node = std::max(Last(pending_), Last(lost_));
      if (const auto lost = lost_.find(node); lost != lost_.end()) {
        const std::string why = lost->second;
        lost_.erase(lost);
        pending_.erase(node);
        Lose(node, why);
        continue;
      }
      const int grad = pending_.at(node);
      pending_.erase(node);
      if (const auto leaf = low_.leaf.find(node); leaf != low_.leaf.end()) {
        ToLeaf(leaf->second, grad);
        continue;
      }
      try {
        Step(node, grad);
      } catch (const LoweringError& error) {
        LoseOperands(node, error.message);
      }
    }
    low_.grad_enabled = grad_before;
  }

 private:
  template <typename T>
  static int Last(const std::map<int, T>& nodes) {
    return nodes.empty() ? -1 : nodes.rbegin()->first;
  }

  /// Gradients through `node` have no reference, nor has the gradient of a leaf where they end; all others have theirs.
  void Lose(int node, const std::string& why) {
    if (const auto leaf = low_.leaf.find(node); leaf != low_.leaf.end()) {
      low_.lost_grads.try_emplace(leaf->second, why);
    } else {
      LoseOperands(node, why);
    }
  }

  void LoseOperands(int node, const std::string& why) {
    const std::vector<int> args = low_.at(node).args;
    for (const int arg : args) {
      if (low_.needs_grad[static_cast<size_t>(arg)]) lost_.try_emplace(Identity(arg), why);
    }
  }

  int Identity(int node) const {
    const auto known = low_.identity.find(node);
    return known == low_.identity.end() ? node : known->second;
  }

  /// Adds `grad` to the gradient of `arg`, in the shape and dtype of `arg`.
  void Give(int arg, int grad) {
    if (!low_.needs_grad[static_cast<size_t>(arg)]) return;
    grad = low_.SumTo(grad, low_.at(arg).shape);
    grad = InDtype(grad, low_.at(arg).dtype);
    const int target = Identity(arg);
    const auto known = pending_.find(target);
    if (known != pending_.end()) {
      NamePartial(target, known->second);
      grad = low_.Elementwise(NodeKind::kAdd, {known->second, grad}, low_.at(arg).dtype);
      sums_.insert(grad);
    }
    pending_[target] = grad;
    const std::string& name = low_.at(low_.plan.Root(arg)).name;
    auto& root = low_.at(low_.plan.Root(grad));
    if (!name.empty() && root.name.empty() && root.kind != NodeKind::kInput &&
        root.kind != NodeKind::kConstant)
      root.name = "grad(" + name + ")";
  }

  /// The partial sum of a leaf's gradient before more is added: a cut point of its own, which eager backward stores.
  void NamePartial(int target, int sum) {
    const auto leaf = low_.leaf.find(target);
    if (leaf == low_.leaf.end() || !sums_.contains(sum) || !low_.at(sum).name.empty()) return;
    low_.at(sum).name = PartialGradientOf(leaf->second + ".grad");
  }

  /// A freshly computed gradient is stored in the dtype of its value; anything else is copied into it.
  int InDtype(int grad, DType dtype) {
    if (low_.at(grad).dtype == dtype) return grad;
    const int root = low_.plan.Root(grad);
    const NodeKind kind = low_.at(root).kind;
    const bool fresh = root >= first_ && kind != NodeKind::kInput && kind != NodeKind::kConstant;
    if (!fresh) return low_.Store(grad, dtype);
    low_.at(root).dtype = dtype;
    low_.at(grad).dtype = dtype;
    return grad;
  }

  void ToLeaf(const std::string& leaf, int grad) {
    const auto known = low_.grads.find(leaf);
    if (known == low_.grads.end()) {
      low_.grads[leaf] = grad;
    } else {
      known->second = low_.Elementwise(NodeKind::kAdd, {known->second, grad}, low_.at(known->second).dtype);
    }
  }

  int Mul(int a, int b) { return low_.Elementwise(NodeKind::kMul, {a, b}); }

  int Less(int a, int b) { return low_.Elementwise(NodeKind::kLess, {a, b}, DType::kBool); }

  /// `grad` where the condition is true, else nothing.
  int Where(int condition, int grad) {
    const DType dtype = low_.at(grad).dtype;
    return low_.Elementwise(NodeKind::kChoose, {grad, low_.Scalar(0, dtype), condition}, dtype);
  }

  int OneMinus(int a) {
    return low_.Elementwise(NodeKind::kSub, {low_.Scalar(1, low_.at(a).dtype), a}, low_.at(a).dtype);
  }

  /// Whether the node has no operand, or a result of a finite set: no gradient passes through it.
  static bool EndsHere(NodeKind kind) {
    using enum NodeKind;
    constexpr std::array kEnds{kInput, kConstant, kEqual, kLess, kLessEqual, kNot, kAnd, kOr, kCount};
    return std::ranges::find(kEnds, kind) != kEnds.end();
  }

  void Step(int id, int grad) {
    first_ = static_cast<int>(low_.plan.nodes.size());
    if (const auto own = low_.own_gradients.find(id); own != low_.own_gradients.end()) {
      const auto [operand, make] = own->second;
      return Give(operand, make(low_, grad));
    }
    const PlanNode node = low_.at(id);
    if (EndsHere(node.kind)) return;
    const auto arg = [&](size_t i) { return node.args.at(i); };
    switch (node.kind) {
      case NodeKind::kView:
        View(id, node, grad);
        break;
      case NodeKind::kChoose: {
        const int none = low_.Scalar(0, node.dtype);
        Give(arg(0), low_.Elementwise(NodeKind::kChoose, {grad, none, arg(2)}, node.dtype));
        Give(arg(1), low_.Elementwise(NodeKind::kChoose, {none, grad, arg(2)}, node.dtype));
        break;
      }
      case NodeKind::kJoin:
        Join(node, grad);
        break;
      case NodeKind::kTake:
        Take(node, grad);
        break;
      case NodeKind::kScan:
        Scan(node, grad);
        break;
      case NodeKind::kProduct:
        Product(id, node, grad);
        break;
      case NodeKind::kRanked:
      case NodeKind::kPlace:
        throw LoweringError{"the oracle has no gradient for this op"};
      case NodeKind::kMinimum:
      case NodeKind::kMaximum:
        Extreme(id, node, grad);
        break;
      case NodeKind::kContract:
        Contract(node, grad);
        break;
      case NodeKind::kReduce:
        Reduce(node, grad);
        break;
      case NodeKind::kAdd:
      case NodeKind::kSub:
      case NodeKind::kMul:
      case NodeKind::kDiv:
      case NodeKind::kPower:
      case NodeKind::kAtan2:
      case NodeKind::kFmod:
      case NodeKind::kLarger:
      case NodeKind::kSmaller:
        OfTwo(id, node, grad);
        break;
      default:
        Give(arg(0), OfOne(id, node, grad));
        break;
    }
  }

  /// An element receives the sum from its own place to the end.
  void Scan(const PlanNode& node, int grad) {
    const int axis = static_cast<int>(node.along().axes[0]);
    Give(node.args.at(0), Turned(low_.Scan(Turned(grad, axis), axis), axis));
  }

  /// Each part receives its own slice.
  void Join(const PlanNode& node, int grad) {
    const int64_t axis = node.Get<Joined>().axis;
    int64_t start = 0;
    for (const int part : node.args) {
      const int64_t extent = low_.at(part).shape[static_cast<size_t>(axis)];
      if (low_.needs_grad[static_cast<size_t>(part)])
        Give(part, low_.Slice(grad, axis, start, start + extent, 1));
      start += extent;
    }
  }

  /// The gradients of the operands of a step on two elements.
  void OfTwo(int id, const PlanNode& node, int grad) {
    const auto arg = [&](size_t i) { return node.args.at(i); };
    switch (node.kind) {
      case NodeKind::kAdd:
        Give(arg(0), grad);
        Give(arg(1), grad);
        break;
      case NodeKind::kSub:
        Give(arg(0), grad);
        if (low_.needs_grad[static_cast<size_t>(arg(1))])
          Give(arg(1), low_.Elementwise(NodeKind::kNeg, {grad}));
        break;
      case NodeKind::kMul:
        if (low_.needs_grad[static_cast<size_t>(arg(0))]) Give(arg(0), Mul(grad, arg(1)));
        if (low_.needs_grad[static_cast<size_t>(arg(1))]) Give(arg(1), Mul(grad, arg(0)));
        break;
      case NodeKind::kDiv:
        if (low_.needs_grad[static_cast<size_t>(arg(0))])
          Give(arg(0), low_.Elementwise(NodeKind::kDiv, {grad, arg(1)}));
        if (low_.needs_grad[static_cast<size_t>(arg(1))]) {
          const int ratio = low_.Elementwise(NodeKind::kDiv, {id, arg(1)});
          Give(arg(1), low_.Elementwise(NodeKind::kNeg, {Mul(grad, ratio)}));
        }
        break;
      case NodeKind::kPower: {
        if (low_.needs_grad[static_cast<size_t>(arg(1))])
          throw LoweringError{"the oracle has no gradient for an exponent"};
        const int lower = low_.Elementwise(NodeKind::kSub, {arg(1), low_.Scalar(1, node.dtype)}, node.dtype);
        const int power = low_.Elementwise(NodeKind::kPower, {arg(0), lower}, node.dtype);
        Give(arg(0), Mul(grad, low_.Elementwise(NodeKind::kMul, {power, arg(1)}, node.dtype)));
        break;
      }
      case NodeKind::kAtan2:
        Atan2(node, grad);
        break;
      case NodeKind::kFmod: {
        if (low_.needs_grad[static_cast<size_t>(arg(0))]) Give(arg(0), grad);
        if (!low_.needs_grad[static_cast<size_t>(arg(1))]) break;
        const int quotient = low_.Elementwise(NodeKind::kDiv, {arg(0), arg(1)}, node.dtype);
        const int whole = low_.Elementwise(NodeKind::kTrunc, {quotient}, node.dtype);
        Give(arg(1), Mul(low_.Elementwise(NodeKind::kNeg, {grad}), whole));
        break;
      }
      case NodeKind::kLarger:
      case NodeKind::kSmaller:
        LargerOrSmaller(node, grad);
        break;
      default:
        ULPSCOPE_CHECK(false, "no step on two elements");
    }
  }

  void Atan2(const PlanNode& node, int grad) {
    const int y = node.args.at(0), x = node.args.at(1);
    const int square = low_.Elementwise(NodeKind::kAdd, {Mul(y, y), Mul(x, x)}, node.dtype);
    const int reciprocal = low_.Elementwise(NodeKind::kDiv, {low_.Scalar(1, node.dtype), square}, node.dtype);
    if (low_.needs_grad[static_cast<size_t>(y)]) Give(y, Mul(Mul(grad, x), reciprocal));
    if (low_.needs_grad[static_cast<size_t>(x)])
      Give(x, Mul(Mul(grad, low_.Elementwise(NodeKind::kNeg, {y})), reciprocal));
  }

  /// A tie shares its gradient.
  void LargerOrSmaller(const PlanNode& node, int grad) {
    const auto arg = [&](size_t i) { return node.args.at(i); };
    const int half = Mul(grad, low_.Constant(1, 2, node.dtype));
    const int tie = low_.Elementwise(NodeKind::kEqual, {arg(0), arg(1)}, DType::kBool);
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const bool larger = node.kind == NodeKind::kLarger;
      const int wins = larger ? Less(arg(1 - i), arg(i)) : Less(arg(i), arg(1 - i));
      if (low_.needs_grad[static_cast<size_t>(arg(i))])
        Give(arg(i), low_.Elementwise(NodeKind::kChoose, {half, Where(wins, grad), tie}, node.dtype));
    }
  }

  int SlopeOfErf(int x, DType dtype) {
    const int bell = low_.Elementwise(NodeKind::kExp, {low_.Elementwise(NodeKind::kNeg, {Mul(x, x)})});
    return Mul(bell, low_.IrrationalConstant(Irrational::kTwoOverSqrtPi, dtype));
  }

  /// The gradient of the operand of a step on one element.
  int OfOne(int id, const PlanNode& node, int grad) {
    const int x = node.args.at(0);
    switch (node.kind) {
      case NodeKind::kNeg:
        return low_.Elementwise(NodeKind::kNeg, {grad});
      case NodeKind::kSqrt: {
        const int twice = low_.Elementwise(NodeKind::kAdd, {id, id});
        return low_.Elementwise(NodeKind::kDiv, {grad, twice});
      }
      case NodeKind::kRsqrt: {
        const int cube = Mul(Mul(id, id), id);
        const int half = low_.Constant(-1, 2, node.dtype);
        return Mul(grad, Mul(cube, half));
      }
      case NodeKind::kExp:
        return Mul(grad, id);
      case NodeKind::kLog:
        return low_.Elementwise(NodeKind::kDiv, {grad, x});
      case NodeKind::kSin:
        return Mul(grad, low_.Elementwise(NodeKind::kCos, {x}));
      case NodeKind::kCos:
        return Mul(low_.Elementwise(NodeKind::kNeg, {grad}), low_.Elementwise(NodeKind::kSin, {x}));
      case NodeKind::kTanh:
        return Mul(grad, OneMinus(Mul(id, id)));
      case NodeKind::kRelu:
        return Where(Less(low_.Scalar(0, node.dtype), x), grad);
      case NodeKind::kAbs:
        return Mul(grad, low_.Elementwise(NodeKind::kSign, {x}));
      case NodeKind::kExpm1:
        return Mul(grad, low_.Elementwise(NodeKind::kAdd, {id, low_.Scalar(1, node.dtype)}, node.dtype));
      case NodeKind::kLog1p:
        return low_.Elementwise(
            NodeKind::kDiv,
            {grad, low_.Elementwise(NodeKind::kAdd, {x, low_.Scalar(1, node.dtype)}, node.dtype)});
      case NodeKind::kErf:
        return Mul(grad, SlopeOfErf(x, node.dtype));
      case NodeKind::kErfc:
        return low_.Elementwise(NodeKind::kNeg, {Mul(grad, SlopeOfErf(x, node.dtype))});
      case NodeKind::kExp2:
        return Mul(Mul(grad, id), low_.IrrationalConstant(Irrational::kLn2, node.dtype));
      case NodeKind::kLog2:
        return low_.Elementwise(NodeKind::kDiv,
                                {grad, Mul(x, low_.IrrationalConstant(Irrational::kLn2, node.dtype))});
      case NodeKind::kSinh:
        return Mul(grad, low_.Elementwise(NodeKind::kCosh, {x}));
      case NodeKind::kCosh:
        return Mul(grad, low_.Elementwise(NodeKind::kSinh, {x}));
      case NodeKind::kFloor:
      case NodeKind::kCeil:
      case NodeKind::kRound:
      case NodeKind::kTrunc:
      case NodeKind::kSign:
        return low_.Expand(low_.Scalar(0, node.dtype), node.shape);
      case NodeKind::kCast:
      case NodeKind::kStore:
        return low_.Store(grad, low_.at(x).dtype);
      default:
        throw LoweringError{"the oracle has no gradient for this op"};
    }
  }

  /// The elements along `axis` from the last to the first.
  int Turned(int node, int axis) {
    const Shape shape = low_.at(node).shape;
    auto strides = RowMajorStrides(shape);
    const auto at = static_cast<size_t>(axis);
    const int64_t last = (shape[at] - 1) * strides[at];
    strides[at] = -strides[at];
    return low_.Strided(node, shape, std::move(strides), last);
  }

  /// The elements that equal the largest one share its gradient.
  void Extreme(int id, const PlanNode& node, int grad) {
    const Shape from = low_.at(node.args[0]).shape;
    Shape kept = from;
    for (const int64_t axis : node.along().axes) kept[static_cast<size_t>(axis)] = 1;
    const int is = low_.Elementwise(NodeKind::kEqual, {node.args[0], low_.Reshape(id, kept)}, DType::kBool);
    const int count = low_.Sum(low_.Store(is, node.dtype), node.along().axes, true);
    Give(node.args[0],
         low_.Elementwise(NodeKind::kDiv, {Where(is, low_.Expand(low_.Reshape(grad, kept), from)), count},
                          node.dtype));
  }

  /// The product without the element: if one element is zero, no quotient gives that, and the element has no reference.
  void Product(int id, const PlanNode& node, int grad) {
    const Shape from = low_.at(node.args[0]).shape;
    const DType dtype = node.dtype;
    Shape kept = from;
    for (const int64_t axis : node.along().axes) kept[static_cast<size_t>(axis)] = 1;
    const int argument = node.args[0];
    const int weighted = Mul(low_.Reshape(grad, kept), low_.Reshape(id, kept));
    Give(argument, low_.Elementwise(NodeKind::kDiv, {low_.Expand(weighted, from), argument}, dtype));
  }

  void View(int id, const PlanNode& node, int grad) {
    const auto origin = low_.views.find(id);
    const int source = node.args[0];
    if (origin == low_.views.end()) throw LoweringError{"the oracle has no gradient for this view"};
    switch (origin->second.kind) {
      case Lowering::ViewOrigin::Kind::kReshape:
        Give(source, low_.Reshape(grad, low_.at(source).shape));
        break;
      case Lowering::ViewOrigin::Kind::kExpand:
        Give(source, low_.SumTo(grad, low_.at(source).shape));
        break;
      case Lowering::ViewOrigin::Kind::kPermute: {
        std::vector<int64_t> inverse(origin->second.order.size());
        for (size_t i = 0; i < inverse.size(); ++i)
          inverse[static_cast<size_t>(origin->second.order[i])] = static_cast<int64_t>(i);
        Give(source, low_.Permute(grad, inverse));
        break;
      }
      case Lowering::ViewOrigin::Kind::kSlice:
        Give(source, Around(grad, low_.at(source).shape, origin->second.order));
        break;
    }
  }

  /// The gradient of a part in the part's place, with zeros around it. `whole` by value: it is a node's, and the list
  /// of nodes grows.
  int Around(int grad, Shape whole, const std::vector<int64_t>& part) {
    const auto axis = static_cast<size_t>(part[0]);
    Shape shape = whole;
    shape[axis] = ElementCount(whole) == 0 ? 0 : low_.plan.size(grad) / (ElementCount(whole) / whole[axis]);
    if (part[2] != 1) {
      grad = Apart(grad, shape, axis, part[2]);
      shape = low_.at(grad).shape;
      shape[axis] = std::min(shape[axis], whole[axis] - part[1]);
      grad = low_.Slice(grad, part[0], 0, shape[axis], 1);
    }
    const int64_t before = part[1], after = whole[axis] - before - shape[axis];
    std::vector<int> parts;
    const auto zeros = [&](int64_t extent) {
      Shape of = whole;
      of[axis] = extent;
      if (extent > 0) parts.push_back(low_.Expand(low_.Scalar(0, low_.at(grad).dtype), of));
    };
    zeros(before);
    parts.push_back(low_.Reshape(grad, shape));
    zeros(after);
    return low_.Join(parts, part[0], low_.at(grad).dtype);
  }

  /// The elements along `axis` at every `step`-th place, zeros between them.
  int Apart(int grad, Shape shape, size_t axis, int64_t step) {
    const DType dtype = low_.at(grad).dtype;
    Shape rows = shape, gaps = shape;
    const auto inside = static_cast<std::ptrdiff_t>(axis) + 1;
    rows.insert(rows.begin() + inside, 1);
    gaps.insert(gaps.begin() + inside, step - 1);
    const int joined =
        low_.Join({low_.Reshape(grad, rows), low_.Expand(low_.Scalar(0, dtype), gaps)}, inside, dtype);
    shape[axis] *= step;
    return low_.Reshape(joined, shape);
  }

  /// One row for each number, 1 where an index names it.
  int OneHot(int index, int64_t count, DType dtype) {
    const int numbers = low_.Reshape(low_.Count(0, 1, count, low_.at(index).dtype), {count, 1});
    return low_.Store(
        low_.Elementwise(NodeKind::kEqual, {low_.Reshape(index, {1, -1}), numbers}, DType::kBool), dtype);
  }

  /// The gradient of taking: every element sums up the gradients of all places that it was taken to.
  void Take(const PlanNode& node, int grad) {
    const Taken& taken = node.Get<Taken>();
    if (!taken.axis) return Gathered(node, grad);
    const Shape from = low_.at(node.args[0]).shape;
    const auto axis = static_cast<size_t>(*taken.axis);
    int64_t outer = 1, inner = 1;
    for (size_t i = 0; i < axis; ++i) outer *= from[i];
    for (size_t i = axis + 1; i < from.size(); ++i) inner *= from[i];
    const auto autocast = low_.autocast;
    low_.autocast.reset();
    const int hot = OneHot(node.args[1], taken.extent, low_.at(grad).dtype);
    const int rows = low_.Reshape(grad, {outer, low_.plan.size(node.args[1]), inner});
    Give(node.args[0], low_.Reshape(low_.Matmul(hot, rows), from));
    low_.autocast = autocast;
  }

  /// The same for gather, row by row: along its dimension every element sums up the gradients of the places that named
  /// it.
  void Gathered(const PlanNode& node, int grad) {
    const int source = node.args[0];
    const Shape from = low_.at(source).shape, of = low_.at(node.args[1]).shape;
    // The coordinate along the dimension is the index's: it moves by nothing of its own.
    const std::vector<int64_t>& strides = node.Get<Taken>().strides;
    const auto axis = static_cast<size_t>(std::ranges::find(strides, 0) - strides.begin());
    std::vector<int64_t> last, back(from.size());
    Shape others;
    for (size_t i = 0; i < from.size(); ++i) {
      if (i == axis) continue;
      if (from[i] != of[i]) throw LoweringError{"the oracle has no gradient for a gather of a part"};
      last.push_back(static_cast<int64_t>(i));
      others.push_back(from[i]);
    }
    last.push_back(static_cast<int64_t>(axis));
    for (size_t i = 0; i < last.size(); ++i) back[static_cast<size_t>(last[i])] = static_cast<int64_t>(i);
    const int64_t lines = ElementCount(others), places = of[axis], count = from[axis];
    const int index = low_.Reshape(low_.Permute(node.args[1], last), {lines, places, 1});
    const int given = low_.Reshape(low_.Permute(grad, last), {lines, 1, places});
    const int numbers = low_.Reshape(low_.Count(0, 1, count, low_.at(index).dtype), {1, 1, count});
    const int named = low_.Elementwise(NodeKind::kEqual, {index, numbers}, DType::kBool);
    int received;
    if (places == 1) {  // nothing to sum
      received = Where(named, low_.Expand(given, {lines, 1, count}));
    } else {
      const auto autocast = low_.autocast;
      low_.autocast.reset();
      received = low_.Matmul(given, low_.Store(named, low_.at(grad).dtype));
      low_.autocast = autocast;
    }
    others.push_back(count);
    Give(source, low_.Permute(low_.Reshape(received, others), back));
  }

  void Contract(const PlanNode& node, int grad) {
    const auto autocast = low_.autocast;
    low_.autocast.reset();
    const auto times = [&](double factor, int gradient) {
      return factor == 1 ? gradient : Mul(gradient, low_.Scalar(factor, low_.at(gradient).dtype));
    };
    const int a = node.args[0], b = node.args[1];
    const auto& [m, n, k, alpha, beta] = node.Get<Contraction>();
    if (low_.needs_grad[static_cast<size_t>(a)])
      Give(a, times(alpha, low_.Matmul(grad, low_.Transpose(b, 1, 2))));
    if (low_.needs_grad[static_cast<size_t>(b)])
      Give(b, times(alpha, low_.Matmul(low_.Transpose(a, 1, 2), grad)));
    if (node.args.size() == 3) Give(node.args[2], times(beta, grad));
    low_.autocast = autocast;
  }

  void Reduce(const PlanNode& node, int grad) {
    const Shape from = low_.at(node.args[0]).shape;
    Shape kept = from;
    for (const int64_t axis : node.along().axes) kept[static_cast<size_t>(axis)] = 1;
    Give(node.args[0], low_.Expand(low_.Reshape(grad, kept), from));
  }

  Lowering& low_;
  std::map<int, int>
      pending_;  ///< identity node -> gradient so far; nodes are made in order, so the last one is complete
  std::map<int, std::string> lost_;  ///< identity node -> the reason why its gradient has no reference
  std::set<int> sums_;               ///< of two contributions or more
  int first_ = 0;
};

}  // namespace

void Backward(Lowering& lowering, int root, int seed) { Reverse(lowering).Run(root, seed); }

}  // namespace ulpscope
