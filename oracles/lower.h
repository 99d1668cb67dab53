// Lowering: the state of expanding a program into a Plan, and the building blocks that ops are written with.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "oracles/plan.h"

namespace ulpscope {

/// The common broadcast shape of two shapes; throws LoweringError if there is none.
Shape BroadcastShapes(const Shape& a, const Shape& b);

class Lowering {
 public:
  // Building blocks. Each appends nodes and returns the id of the result.
  int Emit(PlanNode node);
  int Input(const TensorSpec& tensor);
  int Constant(int64_t numerator, int64_t denominator, DType dtype);
  int IrrationalConstant(Irrational constant, DType dtype);
  /// A 0-dim constant with exactly this value.
  int Scalar(double value, DType dtype);
  /// The same of the program's own, which `op` takes: backends convert it as they like.
  int PythonScalar(double value, DType dtype, std::string_view op);
  int Elementwise(NodeKind kind, std::vector<int> args, std::optional<DType> dtype = std::nullopt);
  int Cast(int node, DType dtype);
  int Store(int node, DType dtype);
  int Reshape(int node, Shape shape);
  int Permute(int node, const std::vector<int64_t>& order);
  int Transpose(int node, int64_t dim0, int64_t dim1);
  // Shapes come by value: most callers hand over that of a node, and the list of nodes grows underneath.
  int Expand(int node, Shape shape);
  int Select(int node, int64_t dim, int64_t index);
  /// Every step-th of the elements from `start` up to, not including, `end` along `dim`; Python's rules for both.
  int Slice(int node, int64_t dim, int64_t start, int64_t end, int64_t step);
  int Join(const std::vector<int>& nodes, int64_t dim, DType dtype);
  /// Another arrangement of the elements, by strides of the coordinates of `shape`.
  int Strided(int node, Shape shape, std::vector<int64_t> strides, int64_t offset = 0);
  /// Takes the elements of `node` that the whole numbers in `index` name along `dim`: in place of the
  /// coordinate there (gather), or with all axes of `index` in place of `dim`.
  int Gather(int node, int64_t dim, int index);
  int Pick(int node, int64_t dim, int index);
  /// start, start + step, ...: `count` numbers.
  int Count(double start, double step, int64_t count, DType dtype);
  int Scan(int node, int64_t dim, std::optional<DType> dtype = std::nullopt);
  /// A kReduce, kMaximum, kMinimum or kProduct over `axes` (all without any).
  int Along(NodeKind kind, int node, std::vector<int64_t> axes, bool keepdim,
            std::optional<DType> dtype = std::nullopt);
  int Sum(int node, std::vector<int64_t> axes, bool keepdim, std::optional<DType> dtype = std::nullopt);
  int Maximum(int node, std::vector<int64_t> axes, bool keepdim);
  int Minimum(int node, std::vector<int64_t> axes, bool keepdim);
  /// The element at a place of the order along `dim` (kRanked), or which one that is (kPlace); the dimension stays, of extent 1.
  int Ranked(NodeKind kind, int node, int64_t dim, const Ranking& ranking);
  /// Sums `node` down to `shape` (the reverse of broadcasting).
  int SumTo(int node, Shape shape);
  /// Matrix product with PyTorch's rules for 1-d operands and batch broadcasting; `addend` (or -1) is
  /// broadcast.
  int Matmul(int a, int b, int addend = -1, double alpha = 1, double beta = 1);

  /// Other algebraic forms of `node` err by up to `factor` * u * (sum of |nodes|) there.
  int Slack(int node, std::vector<int> nodes, double factor);

  /// Valid until the next node is emitted.
  PlanNode& at(int node) { return plan.nodes[static_cast<size_t>(node)]; }
  const PlanNode& at(int node) const { return plan.nodes[static_cast<size_t>(node)]; }

  /// Marks `node` as an inner step of a composite op, with a name under the op's result name.
  int Inner(int node, const std::string& name);
  /// The same for a step that some framework is known to store: it may be rounded on its own.
  int Materialised(int node, const std::string& name);

  Plan plan;
  // Autograd state.
  std::vector<bool> needs_grad;                   ///< by node
  std::map<int, int> identity;                    ///< data version made by set_data -> its node in autograd
  std::map<int, std::string> leaf;                ///< identity node -> leaf name
  std::map<std::string, int> grads;               ///< leaf -> accumulated gradient
  std::map<std::string, std::string> lost_grads;  ///< leaf -> why its gradient has no reference
  bool grad_enabled = true;
  std::optional<DType> autocast;  ///< compute dtype of matrix products in scope

  // View bookkeeping for gradients: the origin of each view.
  struct ViewOrigin {
    enum class Kind { kReshape, kPermute, kExpand, kSlice } kind = Kind::kReshape;
    std::vector<int64_t> order;  ///< kPermute; kSlice: dimension, start, step
  };
  std::map<int, ViewOrigin> views;

  /// Ops whose gradient frameworks compute in steps of its own, not step by step backwards: the node of the result ->
  /// the operand that receives one, and the function from the result's gradient to it.
  struct OwnGradient {
    int operand = 0;
    std::function<int(Lowering&, int grad)> make;
  };
  std::map<int, OwnGradient> own_gradients;
};

/// A shape or type error of the program, as PyTorch would refuse it.
struct LoweringError {
  std::string message;
};

/// One op: operands are nodes (scalars already made constants of dtype float64 in `scalars`), attributes are in the
/// step.
struct OpCall {
  const Step& step;
  std::vector<int> args;
  std::vector<bool> is_scalar;  ///< args made from Python scalars
};
using OpLowering = int (*)(Lowering&, const OpCall&);

/// The expansion of a word of the vocabulary, or of the dispatcher's op of the same name if it is a matrix product.
/// Null if the oracle has none.
OpLowering FindLowering(std::string_view op);
std::vector<std::string> KnownOps();

// Attribute access with the errors a program can make.
std::optional<DType> DTypeAttr(const Step& step, const std::string& name);
std::vector<int64_t> IntsAttr(const Step& step, const std::string& name);
std::optional<int64_t> IntAttr(const Step& step, const std::string& name);
double NumberAttr(const Step& step, const std::string& name, double otherwise);
bool BoolAttr(const Step& step, const std::string& name, bool otherwise);
std::string TextAttr(const Step& step, const std::string& name, const std::string& otherwise);

/// Adds the gradients of `root` (seeded with node `seed`) to the leaves it depends on.
void Backward(Lowering& lowering, int root, int seed);

}  // namespace ulpscope
