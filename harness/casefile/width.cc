// Bit ranges and shapes through the vocabulary, as far as lint needs them.
#include "harness/casefile/width.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "harness/base/find.h"
#include "harness/casefile/generate.h"

namespace ulpscope {
namespace {

constexpr int64_t kSample = 4096;
/// Elements that are looked up are read whole, or not at all: their places depend on the shape.
constexpr int64_t kLiteralSample = 1 << 18;

std::optional<BitRange> RangeOf(double value) {
  if (value == 0) return BitRange{};
  if (!std::isfinite(value)) return std::nullopt;
  const int high = std::ilogb(value) + 1;
  return BitRange{.low = high - SignificantBits(value), .high = high};
}

BitRange Hull(const BitRange& a, const BitRange& b) {
  if (a.width() == 0) return b;
  if (b.width() == 0) return a;
  return {.low = std::min(a.low, b.low), .high = std::max(a.high, b.high)};
}

BitRange Product(const BitRange& a, const BitRange& b) {
  return {.low = a.low + b.low, .high = a.high + b.high};
}

/// The sum of `count` such values and all its partial sums.
BitRange Sum(BitRange range, int64_t count) {
  range.high += std::bit_width(static_cast<uint64_t>(std::max<int64_t>(count - 1, 0)));
  return range;
}

std::optional<BitRange> BitsOfTensor(const TensorSpec& spec) {
  TensorSpec sample = spec;
  const auto* map = std::get_if<Attr::Map>(&spec.fill.value);
  const bool literal = map != nullptr && (map->contains("values") || map->contains("probe") ||
                                          map->contains("cross") || map->contains("record"));
  const int64_t count = ElementCount(spec.shape);
  if (literal && count > kLiteralSample) return std::nullopt;
  // Element i depends on i alone, so the first elements of the whole are a valid sample.
  if (!literal) sample.shape = {std::min(count, kSample)};
  const auto data = GenerateTensor(sample, 0);
  if (!data) return std::nullopt;
  std::optional<BitRange> bits = BitRange{};
  for (int64_t i = 0; bits && i < data->size(); ++i) {
    const auto element = RangeOf(data->At(i));
    bits = element ? std::optional(Hull(*bits, *element)) : std::nullopt;
  }
  return bits;
}

std::optional<Shape> Broadcast(const std::optional<Shape>& a, const std::optional<Shape>& b) {
  if (!a || !b) return std::nullopt;
  Shape longer = a->size() >= b->size() ? *a : *b;
  const Shape& shorter = a->size() >= b->size() ? *b : *a;
  for (size_t i = 0; i < shorter.size(); ++i) {
    int64_t& extent = longer[longer.size() - 1 - i];
    extent = std::max(extent, shorter[shorter.size() - 1 - i]);
  }
  return longer;
}

/// a @ b for operands of two dimensions or more.
std::optional<Shape> MatmulShape(const std::optional<Shape>& a, const std::optional<Shape>& b) {
  if (!a || !b || a->size() < 2 || b->size() < 2) return std::nullopt;
  auto batch = Broadcast(Shape(a->begin(), a->end() - 2), Shape(b->begin(), b->end() - 2));
  batch->push_back((*a)[a->size() - 2]);
  batch->push_back(b->back());
  return batch;
}

std::optional<int64_t> Integer(const Step& step, const char* name) {
  const auto place = step.attrs.find(name);
  const auto* value = place == step.attrs.end() ? nullptr : std::get_if<int64_t>(&place->second.value);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<Shape> ShapeAttribute(const Step& step) {
  const auto place = step.attrs.find("shape");
  const auto* list = place == step.attrs.end() ? nullptr : std::get_if<Attr::List>(&place->second.value);
  if (list == nullptr) return std::nullopt;
  Shape shape;
  for (const Attr& extent : *list) shape.push_back(std::get<int64_t>(extent.value));
  return !Contains(shape, -1) ? std::optional(shape) : std::nullopt;
}

class Follower {
 public:
  explicit Follower(const Case& one) {
    for (const TensorSpec& tensor : one.tensors) {
      facts_[tensor.name] = {.bits = BitsOfTensor(tensor), .shape = tensor.shape, .tensors = {tensor.name}};
    }
    FollowAll(one.program);
  }

  std::map<std::string, ValueFacts> Take() { return std::move(facts_); }

 private:
  void FollowAll(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      FollowAll(step.steps);
      if (step.as.empty() && step.out.empty()) continue;
      ValueFacts result = Follow(step);
      // The step overwrites its buffer: later readers of the buffer read the result.
      if (!step.out.empty()) facts_[step.out] = result;
      if (!step.as.empty()) facts_[step.as] = std::move(result);
    }
  }

  ValueFacts FactsOf(const Operand& operand) const {
    if (operand.scalar) {
      ValueFacts facts{.shape = Shape{}};
      if (const auto* number = std::get_if<double>(&operand.scalar->value)) facts.bits = RangeOf(*number);
      if (const auto* integer = std::get_if<int64_t>(&operand.scalar->value))
        facts.bits = RangeOf(static_cast<double>(*integer));
      return facts;
    }
    return LookupOr(facts_, operand.name);
  }

  ValueFacts Follow(const Step& step) const {
    std::vector<ValueFacts> of;
    ValueFacts result;
    for (const Operand& operand : step.of) {
      of.push_back(FactsOf(operand));
      result.tensors.insert(of.back().tensors.begin(), of.back().tensors.end());
      result.longest_sum = std::max(result.longest_sum, of.back().longest_sum);
    }
    const std::string& op = step.op;
    const bool plain = step.attrs.empty();
    if (of.empty()) {
      result.shape = ShapeAttribute(step);
    } else if (op == "matmul" || op == "mm" || op == "bmm") {
      Multiply(of[0], of[1], MatmulShape(of[0].shape, of[1].shape), result);
    } else if (op == "linear") {
      if (of[0].shape && !of[0].shape->empty() && of[1].shape && of[1].shape->size() == 2) {
        Shape shape = *of[0].shape;
        shape.back() = (*of[1].shape)[0];
        Multiply(of[0], of[1], shape, result);
        if (of.size() == 3) Add(of[2], result);
      }
    } else if ((op == "addmm" || op == "baddbmm") && !step.attrs.contains("alpha") &&
               !step.attrs.contains("beta")) {
      Multiply(of[1], of[2], MatmulShape(of[1].shape, of[2].shape), result);
      Add(of[0], result);
    } else if ((op == "add" || op == "sub") && plain) {
      result.shape = Broadcast(of[0].shape, of[1].shape);
      result.bits = of[0].bits;
      Add(of[1], result);
    } else if (op == "mul") {
      result.shape = Broadcast(of[0].shape, of[1].shape);
      if (of[0].bits && of[1].bits) result.bits = Product(*of[0].bits, *of[1].bits);
    } else if (op == "sum") {
      Reduce(step, of[0], result);
    } else {
      Rearrange(step, of[0], result);
    }
    return result;
  }

  static void Multiply(const ValueFacts& a, const ValueFacts& b, std::optional<Shape> shape,
                       ValueFacts& result) {
    result.shape = std::move(shape);
    if (!result.shape || a.shape->empty()) return;
    const int64_t terms = a.shape->back();
    result.longest_sum = std::max(result.longest_sum, terms);
    if (a.bits && b.bits) result.bits = Sum(Product(*a.bits, *b.bits), terms);
  }

  static void Add(const ValueFacts& addend, ValueFacts& result) {
    if (result.bits && addend.bits) {
      result.bits = Sum(Hull(*result.bits, *addend.bits), 2);
    } else {
      result.bits.reset();
    }
  }

  /// A sum over one dimension, or over all.
  static void Reduce(const Step& step, const ValueFacts& a, ValueFacts& result) {
    if (!a.shape || step.attrs.contains("keepdim")) return;
    int64_t terms = ElementCount(*a.shape);
    result.shape = Shape{};
    if (step.attrs.contains("dim")) {
      const auto dim = Integer(step, "dim");
      const auto rank = static_cast<int64_t>(a.shape->size());
      result.shape.reset();
      if (!dim || *dim < -rank || *dim >= rank) return;
      const auto axis = static_cast<size_t>(*dim < 0 ? *dim + rank : *dim);
      terms = (*a.shape)[axis];
      result.shape = a.shape;
      result.shape->erase(result.shape->begin() + static_cast<std::ptrdiff_t>(axis));
    }
    result.longest_sum = std::max(result.longest_sum, terms);
    if (a.bits) result.bits = Sum(*a.bits, terms);
  }

  /// Ops that keep the elements, and those that keep at least the shape.
  static void Rearrange(const Step& step, const ValueFacts& a, ValueFacts& result) {
    const std::string& op = step.op;
    const auto is = [&](std::initializer_list<const char*> words) { return Contains(words, op); };
    if (is({"neg", "abs", "relu", "clone", "detach", "cast", "transpose", "t", "reshape", "view", "expand",
            "permute", "select", "unsqueeze", "squeeze"}))
      result.bits = a.bits;
    if (is({"neg",        "abs",        "relu",  "clone", "detach", "cast",     "sqrt",    "rsqrt",
            "layer_norm", "rms_norm",   "exp",   "expm1", "log",    "log1p",    "sin",     "cos",
            "tanh",       "sigmoid",    "erf",   "erfc",  "gelu",   "silu",     "softmax", "log_softmax",
            "square",     "reciprocal", "pow",   "exp2",  "log2",   "sinh",     "cosh",    "sign",
            "floor",      "ceil",       "round", "trunc", "clamp",  "hardtanh", "relu6",   "leaky_relu",
            "elu",        "softplus",   "mish"}))
      result.shape = a.shape;
    if (is({"reshape", "view", "expand"})) result.shape = ShapeAttribute(step);
    if (op == "t" && a.shape && a.shape->size() == 2) result.shape = Shape{(*a.shape)[1], (*a.shape)[0]};
    const auto dim0 = Integer(step, "dim0"), dim1 = Integer(step, "dim1");
    if (op == "transpose" && a.shape && dim0 && dim1) {
      const auto rank = static_cast<int64_t>(a.shape->size());
      const auto axis = [&](int64_t dim) { return static_cast<size_t>(dim < 0 ? dim + rank : dim); };
      if (axis(*dim0) >= a.shape->size() || axis(*dim1) >= a.shape->size()) return;
      result.shape = a.shape;
      std::swap((*result.shape)[axis(*dim0)], (*result.shape)[axis(*dim1)]);
    }
  }

  std::map<std::string, ValueFacts> facts_;
};

}  // namespace

std::map<std::string, ValueFacts> FollowWidths(const Case& one) { return Follower(one).Take(); }

}  // namespace ulpscope
