// Convolutions and pooling: windows are a view of the padded input, a convolution the product of windows and weights.
#include <limits>
#include <map>
#include <set>

#include "oracles/ops/composite.h"

namespace ulpscope {
namespace {

/// One number for each spatial dimension; a single one applies to all.
std::vector<int64_t> Each(const Step& step, const std::string& name, size_t count, int64_t otherwise) {
  auto values = IntsAttr(step, name);
  if (values.empty()) values.assign(count, otherwise);
  if (values.size() == 1) values.assign(count, values[0]);
  if (values.size() != count)
    throw LoweringError{step.op + ": " + name + " has another number of dimensions"};
  return values;
}

struct Window {
  std::vector<int64_t> kernel, stride, dilation;
};

/// `x` with `value` around its last dimensions.
int Padded(Lowering& low, int x, const std::vector<int64_t>& padding, double value) {
  const size_t first = low.at(x).shape.size() - padding.size();
  for (size_t i = 0; i < padding.size(); ++i) {
    if (padding[i] == 0) continue;
    Shape around = low.at(x).shape;
    around[first + i] = padding[i];
    const DType dtype = low.at(x).dtype;
    const int edge = low.Expand(low.Scalar(value, dtype), around);
    x = low.Join({edge, x, edge}, static_cast<int64_t>(first + i), dtype);
  }
  return x;
}

/// Places of the window along each dimension.
Shape PlacesOf(const Shape& shape, const Window& window, const std::string& op) {
  const size_t first = shape.size() - window.kernel.size();
  Shape places;
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    const int64_t reach = (window.kernel[i] - 1) * window.dilation[i] + 1;
    if (window.kernel[i] < 1 || window.stride[i] < 1 || window.dilation[i] < 1 || shape[first + i] < reach)
      throw LoweringError{op + ": the window does not fit"};
    places.push_back((shape[first + i] - reach) / window.stride[i] + 1);
  }
  return places;
}

/// x [N, C, ...] as [N, groups, places..., C / groups, kernel...].
int Windows(Lowering& low, int x, int64_t groups, const Window& window, const std::string& op) {
  const Shape shape = low.at(x).shape;
  const auto own = RowMajorStrides(shape);
  const int64_t channels = shape[1] / groups;
  Shape view{shape[0], groups};
  std::vector<int64_t> strides{own[0], own[1] * channels};
  const Shape places = PlacesOf(shape, window, op);
  for (size_t i = 0; i < places.size(); ++i) {
    view.push_back(places[i]);
    strides.push_back(own[2 + i] * window.stride[i]);
  }
  view.push_back(channels);
  strides.push_back(own[1]);
  for (size_t i = 0; i < places.size(); ++i) {
    view.push_back(window.kernel[i]);
    strides.push_back(own[2 + i] * window.dilation[i]);
  }
  return low.Strided(x, std::move(view), std::move(strides));
}

/// x [N, C, ...], weight [O, C / groups, ...][, bias]: a product of every window with every filter. The bias is an addend of the
/// same accumulation, as in linear.
int Convolution(Lowering& low, const OpCall& call, size_t spatial) {
  NeedOperands(call, 2, 3);
  const int weight = call.args[1];
  const Shape shape = low.at(call.args[0]).shape, filter = low.at(weight).shape;
  const int64_t groups = IntAttr(call.step, "groups").value_or(1);
  if (shape.size() != spatial + 2 || filter.size() != spatial + 2)
    throw LoweringError{call.step.op + ": input and weight have another number of dimensions"};
  if (groups < 1 || filter[0] % groups != 0 || filter[1] * groups != shape[1])
    throw LoweringError{call.step.op + ": groups, channels and weight do not agree"};
  const Window window{.kernel = {filter.begin() + 2, filter.end()},
                      .stride = Each(call.step, "stride", spatial, 1),
                      .dilation = Each(call.step, "dilation", spatial, 1)};
  const int x = Padded(low, call.args[0], Each(call.step, "padding", spatial, 0), 0);
  const Shape places = PlacesOf(low.at(x).shape, window, call.step.op);
  const int64_t terms = ElementCount(filter) / filter[0], outputs = filter[0] / groups;
  const int rows = low.Reshape(Windows(low, x, groups, window, call.step.op),
                               {shape[0], groups, ElementCount(places), terms});
  const int filters = low.Transpose(low.Reshape(weight, {1, groups, outputs, terms}), 2, 3);
  const int addend = call.args.size() == 3 ? low.Reshape(call.args[2], {1, groups, 1, outputs}) : -1;
  const int product = low.Matmul(rows, filters, addend);
  Shape result{shape[0], filter[0]};
  result.insert(result.end(), places.begin(), places.end());
  return low.Reshape(low.Transpose(product, 2, 3), result);
}

enum class Pool { kMean, kMost };

int Pooled(Lowering& low, const OpCall& call, size_t spatial, Pool pool) {
  NeedOperands(call, 1, 1);
  if (low.at(call.args[0]).shape.size() != spatial + 2)
    throw LoweringError{call.step.op + ": the input has another number of dimensions"};
  Window window{.kernel = Each(call.step, "kernel_size", spatial, 0), .stride = {}, .dilation = {}};
  window.dilation.assign(spatial, 1);
  window.stride = call.step.Find("stride") == nullptr ? window.kernel : Each(call.step, "stride", spatial, 1);
  const double edge = pool == Pool::kMost ? -std::numeric_limits<double>::infinity() : 0;
  const int x = Padded(low, call.args[0], Each(call.step, "padding", spatial, 0), edge);
  const Shape shape = low.at(x).shape, places = PlacesOf(shape, window, call.step.op);
  // Channels are groups of one: [N, C, places..., 1, kernel...].
  const int view = Windows(low, x, shape[1], window, call.step.op);
  Shape result{shape[0], shape[1]};
  result.insert(result.end(), places.begin(), places.end());
  const int64_t terms = ElementCount(window.kernel);
  Shape lines = result;
  lines.push_back(terms);
  const int rows = low.Reshape(view, lines);
  const DType own = low.at(x).dtype;
  if (pool == Pool::kMost) return low.Store(low.Maximum(rows, {-1}, false), own);
  const int sum = low.Sum(rows, {-1}, false);
  low.at(low.plan.Root(sum)).inner = true;
  return low.Elementwise(NodeKind::kDiv, {sum, low.Constant(terms, 1, own)}, own);
}

/// Windows of one extent, side by side: means over the elements that one place of the result covers.
int Adaptive(Lowering& low, const OpCall& call, size_t spatial) {
  const Shape shape = low.at(call.args.at(0)).shape;
  if (shape.size() != spatial + 2)
    throw LoweringError{call.step.op + ": the input has another number of dimensions"};
  Attr::List kernel;
  const auto places = Each(call.step, "output_size", spatial, 0);
  for (size_t i = 0; i < spatial; ++i) {
    if (places[i] < 1 || shape[2 + i] % places[i] != 0)
      throw LoweringError{call.step.op + ": the oracle has windows of one extent"};
    kernel.push_back(Attr{.value = shape[2 + i] / places[i]});
  }
  Step step = call.step;
  step.attrs["kernel_size"] = Attr{.value = std::move(kernel)};
  return Pooled(low, {.step = step, .args = call.args, .is_scalar = call.is_scalar}, spatial, Pool::kMean);
}

/// The letters of one operand or of the result.
std::string Letters(std::string_view text) {
  std::string letters;
  for (const char c : text) {
    if (c == ' ') continue;
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter || letters.find(c) != letters.npos)
      throw LoweringError{"einsum: the oracle has letters, each once in an operand"};
    letters += c;
  }
  return letters;
}

}  // namespace

int LowerConv1d(Lowering& low, const OpCall& call) { return Convolution(low, call, 1); }
int LowerConv2d(Lowering& low, const OpCall& call) { return Convolution(low, call, 2); }
int LowerAvgPool1d(Lowering& low, const OpCall& call) { return Pooled(low, call, 1, Pool::kMean); }
int LowerAvgPool2d(Lowering& low, const OpCall& call) { return Pooled(low, call, 2, Pool::kMean); }
int LowerMaxPool1d(Lowering& low, const OpCall& call) { return Pooled(low, call, 1, Pool::kMost); }
int LowerMaxPool2d(Lowering& low, const OpCall& call) { return Pooled(low, call, 2, Pool::kMost); }

int LowerAdaptiveAvgPool1d(Lowering& low, const OpCall& call) { return Adaptive(low, call, 1); }
int LowerAdaptiveAvgPool2d(Lowering& low, const OpCall& call) { return Adaptive(low, call, 2); }

/// beta * c + alpha * (matrix @ vector).
int LowerAddmv(Lowering& low, const OpCall& call) {
  NeedOperands(call, 3, 3);
  const double alpha = NumberAttr(call.step, "alpha", 1), beta = NumberAttr(call.step, "beta", 1);
  const auto column = [&](int vector) { return low.Reshape(vector, {-1, 1}); };
  const int product = low.Matmul(call.args[1], column(call.args[2]), column(call.args[0]), alpha, beta);
  return low.Reshape(product, {-1});
}

/// Two operands: batched over the letters that all three have, summed over those that the result has not.
int LowerEinsum(Lowering& low, const OpCall& call) {
  if (call.args.size() != 2) throw LoweringError{"einsum: the oracle has equations of two operands"};
  const std::string equation = TextAttr(call.step, "equation", "");
  const size_t comma = equation.find(','), arrow = equation.find("->");
  if (comma == equation.npos || arrow == equation.npos || comma > arrow)
    throw LoweringError{"einsum: the oracle has equations as in 'ij,jk->ik'"};
  const std::string_view text = equation;
  const std::string a = Letters(text.substr(0, comma)),
                    b = Letters(text.substr(comma + 1, arrow - comma - 1)),
                    out = Letters(text.substr(arrow + 2));
  std::map<char, int64_t> extents;
  for (const auto& [letters, arg] : {std::pair(a, call.args[0]), std::pair(b, call.args[1])}) {
    const Shape& shape = low.at(arg).shape;
    if (shape.size() != letters.size())
      throw LoweringError{"einsum: an operand has another number of dimensions"};
    for (size_t i = 0; i < letters.size(); ++i) {
      if (!extents.emplace(letters[i], shape[i]).second && extents[letters[i]] != shape[i])
        throw LoweringError{"einsum: extents differ"};
    }
  }
  const auto has = [](const std::string& letters, char c) { return letters.find(c) != letters.npos; };
  std::string batch, summed, rows, columns;
  for (const char c : out) {
    if (!has(a, c) && !has(b, c)) throw LoweringError{"einsum: the result has a letter of its own"};
    (has(a, c) && has(b, c) ? batch : has(a, c) ? rows : columns) += c;
  }
  for (const auto& [c, extent] : extents) {
    if (has(out, c)) continue;
    if (!has(a, c) || !has(b, c))
      throw LoweringError{"einsum: the oracle sums over letters of both operands"};
    summed += c;
  }
  const auto count = [&](const std::string& letters) {
    int64_t product = 1;
    for (const char c : letters) product *= extents[c];
    return product;
  };
  const auto arranged = [&](int arg, const std::string& letters, const std::string& middle,
                            const std::string& last) {
    std::vector<int64_t> order;
    for (const char c : batch + middle + last) order.push_back(static_cast<int64_t>(letters.find(c)));
    return low.Reshape(low.Permute(arg, order), {count(batch), count(middle), count(last)});
  };
  const int product =
      low.Matmul(arranged(call.args[0], a, rows, summed), arranged(call.args[1], b, summed, columns));
  const std::string made = batch + rows + columns;
  Shape shape;
  for (const char c : made) shape.push_back(extents[c]);
  std::vector<int64_t> order;
  for (const char c : out) order.push_back(static_cast<int64_t>(made.find(c)));
  return low.Permute(low.Reshape(product, shape), order);
}

}  // namespace ulpscope
