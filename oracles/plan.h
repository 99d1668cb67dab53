// Plan: a case's program as a graph of elementary operations, the one definition of what every op computes.
//
// An op is written once, as an expansion into elementary nodes (oracles/ops). An Arithmetic
// (oracles/evaluate.h) decides what a node evaluates to: exact, enclosed at a precision model, or emulated at
// one. Ops and precision models are therefore independent: adding one never touches the other. Gradients are
// expansions too (oracles/ops/autograd.cc), derived node by node.
//
// A node has what all nodes have, and one part: what nodes of its kind have beside. Kinds that are read alike share a part.
//
// Evaluation is by element and on demand: node(index) asks its arguments for the elements it needs. So
// judging a sample of a large result costs only what the sample depends on.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "harness/base/check.h"
#include "harness/model/case.h"

namespace ulpscope {

/// Functions, conditions and all kinds that round nothing are contiguous: IsFunction and the like compare with the
/// first and the last.
enum class NodeKind {
  kInput,     ///< an element of a tensor of the case
  kConstant,  ///< one number, the same for every element
  kView,      ///< another arrangement of the argument's elements
  kChoose,    ///< of its first two arguments the one that the third, a condition, names: rounds nothing
  kJoin,      ///< its arguments one after the other along an axis
  kTake,      ///< elements of the first argument, by the numbers in the second
  kCount,     ///< start + step times the element's place
  kLarger,    ///< of two, element by element; a NaN wins
  kSmaller,
  kFmod,   ///< remainder of the first by the second, with the sign of the first: exact in one common format
  kFloor,  ///< whole numbers: oracles/choices.h
  kCeil,
  kRound,  ///< to even
  kTrunc,
  kSign,   ///< -1, 0 or 1; 0 of a NaN, as PyTorch has it
  kEqual,  ///< conditions, 0 or 1
  kLess,
  kLessEqual,
  kNot,
  kAnd,
  kOr,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kNeg,
  kSqrt,
  kRsqrt,
  kRelu,
  kAbs,
  kExp,
  kExpm1,
  kLog,
  kLog1p,
  kSin,
  kCos,
  kTanh,
  kErf,
  kErfc,
  kExp2,
  kFastExp,  ///< an approximation of exp in float32, see kFastExpError; its exact value is that of exp
  kLog2,
  kSinh,
  kCosh,
  kPower,  ///< the first argument to the second
  kAtan2,  ///< the angle of the point (second, first); a zero counts as positive. All of these: oracles/functions
  kCast,      ///< a rounding that the program requests; an identity if a backend drops it
  kStore,     ///< an unrequested copy into another dtype (a gradient stored with its leaf)
  kContract,  ///< out[b,m,n] = alpha * sum_k a[b,m,k] * b[b,k,n] + beta * c[b,m,n]
  kReduce,    ///< sum over some axes
  kScan,      ///< sum along an axis of everything up to the element itself
  kMaximum,   ///< maximum over some axes: rounds nothing, so no precision model touches it
  kMinimum,
  kRanked,   ///< of the elements along an axis the one at a place of their order
  kPlace,    ///< which one that is
  kProduct,  ///< product over some axes
};

/// Real constants that no ratio of integers gives.
enum class Irrational { kSqrtHalf, kSqrtTwoOverPi, kTwoOverSqrtPi, kLn2 };

/// True for sums: the nodes that an accumulator rounds.
inline bool IsReduction(NodeKind kind) {
  return kind == NodeKind::kContract || kind == NodeKind::kReduce || kind == NodeKind::kScan;
}
/// True for the transcendental functions, which oracles/functions evaluates.
inline bool IsFunction(NodeKind kind) { return kind >= NodeKind::kExp && kind <= NodeKind::kAtan2; }
/// True for steps that put a row of elements in order.
inline bool IsRanked(NodeKind kind) { return kind == NodeKind::kRanked || kind == NodeKind::kPlace; }
/// True for steps that take a whole row of their argument and are no sum.
inline bool TakesLine(NodeKind kind) {
  return kind == NodeKind::kMaximum || kind == NodeKind::kMinimum || kind == NodeKind::kProduct ||
         IsRanked(kind);
}
/// True for steps whose result is true or false.
inline bool IsCondition(NodeKind kind) { return kind >= NodeKind::kEqual && kind <= NodeKind::kOr; }
/// True for steps whose result is one of their operands, or a small whole number: no precision model touches them.
inline bool RoundsNothing(NodeKind kind) {
  return (kind >= NodeKind::kChoose && kind <= NodeKind::kOr) || IsRanked(kind);
}

/// Which element of an ordered line is meant.
struct Ranking {
  int64_t place = 0;  ///< how many elements are before it
  bool descending = false;
  bool nan_first = false;  ///< else NaNs come last
  bool stable = false;     ///< ties keep their original order; else they may have any
  bool operator==(const Ranking&) const = default;
};

/// kInput: which tensor of the case.
struct TensorRead {
  std::string tensor;
  bool operator==(const TensorRead&) const = default;
};

/// kConstant: a ratio of integers; a number that is one double; or an Irrational.
struct IntegerRatio {
  int64_t numerator = 0, denominator = 1;
  bool operator==(const IntegerRatio&) const = default;
};
struct DoubleNumber {
  double value = 0;
  /// For a Python scalar, which backends convert as they like: the op that takes it ("scalar.mul"); else
  /// empty.
  std::string scalar = {};
  bool operator==(const DoubleNumber&) const = default;
};

/// kView, kChoose and all that is computed element by element: element `index` reads argument j at offset + sum over axes of
/// coordinate * strides[j].
struct Arrangement {
  std::vector<std::vector<int64_t>> strides = {};
  int64_t offset = 0;
  bool operator==(const Arrangement&) const = default;
};

/// kJoin.
struct Joined {
  int64_t axis = 0;
  bool operator==(const Joined&) const = default;
};

/// kTake: each number counts `apart` elements of the first argument and is below `extent`.
struct Taken {
  std::vector<int64_t> strides,
      numbers;  ///< of the first argument, without the axis that the numbers go along; of the second
  int64_t apart = 0, extent = 0;
  /// The axis that is taken whole for each number (Pick); none if one element is taken (Gather).
  std::optional<int64_t> axis = {};
  bool operator==(const Taken&) const = default;
};

/// kCount.
struct Progression {
  double start = 0, step = 1;
  bool operator==(const Progression&) const = default;
};

/// kContract.
struct Contraction {
  int64_t m = 0, n = 0, k = 0;
  double alpha = 1, beta = 1;
  bool operator==(const Contraction&) const = default;
};

/// kReduce, kScan and TakesLine: the elements of its argument that one element takes.
struct AlongAxes {
  std::vector<int64_t> axes = {};  ///< those that vanish, in order; of a kScan the one that stays
  int64_t length = 1;              ///< elements along them
  bool operator==(const AlongAxes&) const = default;
};
/// IsRanked.
struct RankedAlong : AlongAxes {
  Ranking ranking = {};
  bool operator==(const RankedAlong&) const = default;
};

struct PlanNode {
  using Part = std::variant<TensorRead, IntegerRatio, DoubleNumber, Irrational, Arrangement, Joined, Taken,
                            Progression, Contraction, AlongAxes, RankedAlong>;

  NodeKind kind = NodeKind::kInput;
  std::vector<int> args = {};
  Shape shape = {};
  DType dtype = DType::kFloat32;  ///< declared: the stored dtype by PyTorch's type rules
  std::string name =
      {};  ///< program name of a cut point; empty for views, inputs and inner steps without one
  Part part = {};
  /// A step inside a composite op (layer_norm): frameworks compute it in the op's own accumulation format.
  bool inner = false;
  /// An inner step that some framework is known to store, so that it may be rounded on its own.
  bool materialised = false;
  /// True if readers read the value before it is stored in its dtype.
  bool handed_on = false;
  /// Other algebraic forms of the same composite op err by up to slack_factor * u * (sum of |slack nodes|)
  /// here.
  std::vector<int> slack = {};
  double slack_factor = 0;

  /// Null if nodes of this kind have another part.
  template <class T>
  const T* If() const {
    return std::get_if<T>(&part);
  }
  /// The part that nodes of this kind have; a CHECK that they do.
  template <class T>
  const T& Get() const {
    const T* held = std::get_if<T>(&part);
    ULPSCOPE_CHECK(held != nullptr, "a node of another kind");
    return *held;
  }
  template <class T>
  T& Get() {
    return const_cast<T&>(std::as_const(*this).template Get<T>());
  }
  /// The axes of a sum or of a TakesLine, ranked or not.
  const AlongAxes& along() const {
    const RankedAlong* ranked = If<RankedAlong>();
    return ranked != nullptr ? *ranked : Get<AlongAxes>();
  }
  /// How many elements of its argument one element takes; 1 if no axis vanishes.
  int64_t terms() const;
  /// Factor of a finished sum: 1 except for a contraction.
  double alpha() const { return kind == NodeKind::kContract ? Get<Contraction>().alpha : 1; }
  /// True for a Python scalar, which backends convert as they like.
  bool is_scalar() const { return If<DoubleNumber>() != nullptr && !If<DoubleNumber>()->scalar.empty(); }
  /// A constant's value as a double; nothing for an irrational one.
  std::optional<double> constant() const;

  bool operator==(const PlanNode&) const = default;
};

/// True if the part of `node` is the one that its kind has.
bool HasItsPart(const PlanNode& node);

/// The format that the program itself rounds to at a node; null if there is none, or if readers of the node
/// read the operand of the cast.
const FloatFormat* AskedFormat(const PlanNode& node);

/// A constant by which a quotient keeps its bits.
bool IsPowerOfTwo(const PlanNode& node);

struct Plan {
  std::vector<PlanNode> nodes;
  std::map<std::string, int> values;        ///< observed name -> node
  std::map<std::string, std::string> gaps;  ///< observed name -> why the oracle has no reference for it

  const PlanNode& at(int node) const { return nodes[static_cast<size_t>(node)]; }
  int64_t size(int node) const { return ElementCount(at(node).shape); }
  /// The node below `node` that computes: views are skipped.
  int Root(int node) const;
  /// The element of Root(node) that element `index` of the view `node` shows.
  int64_t RootIndex(int node, int64_t index) const;

  /// Elements `position` + k * `stride` of `node`.
  struct Line {
    int node = 0;
    int64_t position = 0, stride = 1;
  };
  /// The same `count` elements, as far below the views on top of them as they stay on one line.
  Line LineBelow(int node, int64_t first, int64_t step, int64_t count) const;

  /// RootIndex of whole views, made at the first use; evaluation reads it millions of times.
  mutable std::vector<std::vector<int64_t>> view_maps;
};

/// The strides of a contiguous tensor.
std::vector<int64_t> RowMajorStrides(const Shape& shape);

/// The place that `strides` give the element at `index` of a contiguous tensor of this shape.
inline int64_t PlaceBy(const std::vector<int64_t>& strides, const Shape& shape, int64_t index) {
  int64_t place = 0;
  for (size_t axis = shape.size(); axis-- > 0;) {
    place += index % shape[axis] * strides[axis];
    index /= shape[axis];
  }
  return place;
}

}  // namespace ulpscope
