// Products, and the steps inside of an op.
#include <utility>

#include "harness/words/promotion.h"
#include "oracles/lower.h"

namespace ulpscope {
namespace {

/// PyTorch has no common type of two float8 types; a product that requests its dtype has one all the same.
DType TypeOfProduct(DType a, DType b) { return Promote(a, b).value_or(DType::kFloat32); }

}  // namespace

int Lowering::Matmul(int a, int b, int addend, double alpha, double beta) {
  const Shape shape_a = at(a).shape, shape_b = at(b).shape;
  if (shape_a.empty() || shape_b.empty())
    throw LoweringError{"both arguments to matmul need to be at least 1-dimensional"};
  const bool vector_a = shape_a.size() == 1, vector_b = shape_b.size() == 1;
  if (vector_a) a = Reshape(a, {1, shape_a[0]});
  if (vector_b) b = Reshape(b, {shape_b[0], 1});
  const Shape full_a = at(a).shape, full_b = at(b).shape;
  const int64_t m = full_a[full_a.size() - 2], k = full_a.back(), n = full_b.back();
  if (full_b[full_b.size() - 2] != k) throw LoweringError{"matmul: inner dimensions differ"};
  const Shape batch =
      BroadcastShapes(Shape(full_a.begin(), full_a.end() - 2), Shape(full_b.begin(), full_b.end() - 2));
  const auto batched = [&](int node, int64_t rows, int64_t columns) {
    Shape shape = batch;
    shape.push_back(rows);
    shape.push_back(columns);
    return Reshape(Expand(node, shape), {ElementCount(batch), rows, columns});
  };
  PlanNode product{.kind = NodeKind::kContract,
                   .args = {batched(a, m, k), batched(b, k, n)},
                   .shape = {ElementCount(batch), m, n},
                   .part = Contraction{.m = m, .n = n, .k = k, .alpha = alpha, .beta = beta}};
  product.dtype = autocast && IsFloating(at(a).dtype) ? *autocast : TypeOfProduct(at(a).dtype, at(b).dtype);
  if (addend >= 0) {
    if (!autocast) product.dtype = TypeOfProduct(product.dtype, at(addend).dtype);
    product.args.push_back(batched(addend, m, n));
  }
  const int id = Emit(std::move(product));
  Shape result = batch;
  if (!vector_a) result.push_back(m);
  if (!vector_b) result.push_back(n);
  return Reshape(id, result);
}

int Lowering::Slack(int node, std::vector<int> nodes, double factor) {
  at(node).slack = std::move(nodes);
  at(node).slack_factor = factor;
  return node;
}

int Lowering::Inner(int node, const std::string& name) {
  const int root = plan.Root(node);
  at(root).inner = true;
  at(root).name = name;
  return node;
}

int Lowering::Materialised(int node, const std::string& name) {
  Inner(node, name);
  at(plan.Root(node)).materialised = true;
  return node;
}

}  // namespace ulpscope
