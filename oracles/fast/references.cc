// Finds the exact operands of a node, computes it, compares it.
#include "oracles/fast/references.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "harness/base/check.h"
#include "harness/base/hash.h"
#include "oracles/fast/agree.h"
#include "oracles/fast/self_test.h"

namespace ulpscope::fast {
namespace {

/// Boost's time for one element buys the fast path this many elements.
constexpr int64_t kFastPerBoost = 2000;
/// A value is small, and compared as a whole, up to this many elements and multiply-adds.
constexpr int64_t kSmallElements = 4096, kSmallTerms = int64_t{1} << 16;
/// Fallen-back elements of larger values are compared at once for up to this many multiply-adds, the others
/// when requested.
constexpr int64_t kFallenTerms = int64_t{1} << 21;
/// One element in this many is compared however sure the fast path was.
constexpr uint64_t kSampleOneIn = 1000;

/// A counter-based choice: the same elements in every run.
bool InSample(int node, int64_t element) {
  return MixBits((static_cast<uint64_t>(node) << 40) + static_cast<uint64_t>(element) + kGoldenGamma) %
             kSampleOneIn ==
         0;
}

}  // namespace

/// A tensor of numbers that a floating dtype holds exactly, row-major.
struct FastReferences::Operand {
  DType dtype = DType::kFloat64;
  Shape shape;
  const std::byte* data = nullptr;
  std::shared_ptr<std::vector<std::byte>> owned;

  double At(int64_t index) const {
    return DecodeElement(data + static_cast<size_t>(index) * SizeOf(dtype), dtype);
  }
  static Operand Make(DType dtype, const Shape& shape) {
    Operand made{.dtype = dtype,
                 .shape = shape,
                 .data = nullptr,
                 .owned = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(ElementCount(shape)) *
                                                                   SizeOf(dtype))};
    made.data = made.owned->data();
    return made;
  }
};

struct FastReferences::Value {
  Results results;
  std::vector<char> compared;
  int64_t terms = 0;
};

FastReferences::FastReferences(const Plan& plan, const std::map<std::string, TensorData>& inputs,
                               std::string name, Truth truth, Corruption corrupt)
    : plan_(plan),
      inputs_(inputs),
      name_(std::move(name)),
      truth_(std::move(truth)),
      corrupt_(std::move(corrupt)) {}
FastReferences::~FastReferences() = default;

bool FastReferences::Has(int node, int64_t asked) {
  const PlanNode& at = plan_.at(node);
  if (!IsReduction(at.kind) || at.kind == NodeKind::kScan) return false;
  auto known = values_.find(node);
  if (known == values_.end()) {
    if (plan_.size(node) > asked * kFastPerBoost) return false;
    known = values_.emplace(node, Compute(node)).first;
  }
  return known->second != nullptr;
}

Reference FastReferences::Fast(const Value& value, int64_t element) const {
  Reference reference = value.results.At(element);
  if (corrupt_) corrupt_(element, &reference);
  return reference;
}

Reference FastReferences::At(int node, int64_t element) {
  Value& value = *values_.at(node);
  if (value.results.FellBack(element)) CompareOne(node, value, element);
  return Fast(value, element);
}

std::unique_ptr<FastReferences::Value> FastReferences::Compute(int node) {
  const PlanNode& at = plan_.at(node);
  if (plan_.size(node) == 0) return nullptr;
  if (engine_ == nullptr) {
    static const std::string kWrong = SelfTest({});
    ULPSCOPE_CHECK(kWrong.empty(), "the fast oracle fails its self-test: " + kWrong);
    engine_ = std::make_unique<Engine>();
  }
  auto value = std::make_unique<Value>();
  value->terms = std::max<int64_t>(1, at.terms());
  if (!(at.kind == NodeKind::kContract ? Multiply(at, &value->results) : Sum(at, &value->results)))
    return nullptr;
  ULPSCOPE_CHECK(value->results.size() == plan_.size(node), "the fast path computed another shape");
  value->compared.assign(static_cast<size_t>(value->results.size()), 0);
  computed_ += value->results.size();
  CompareSome(node, *value);
  return value;
}

void FastReferences::CompareSome(int node, Value& value) {
  const int64_t size = value.results.size(), before = compared_;
  const bool small = size <= kSmallElements && size * value.terms <= kSmallTerms;
  int64_t fallen = 0;
  for (int64_t i = 0; i < size; ++i) {
    const bool fell = value.results.FellBack(i);
    if (small || InSample(node, i) || (fell && fallen * value.terms < kFallenTerms)) {
      fallen += fell ? 1 : 0;
      CompareOne(node, value, i);
    }
  }
  if (compared_ == before) CompareOne(node, value, size / 2);
}

void FastReferences::CompareOne(int node, Value& value, int64_t element) {
  char& done = value.compared[static_cast<size_t>(element)];
  if (done != 0) return;
  done = 1;
  ++compared_;
  const Reference fast = Fast(value, element), truth = truth_(node, element);
  if (Agree(fast, truth)) return;
  const std::string& step = plan_.at(node).name;
  ULPSCOPE_CHECK(false, "the fast oracle and Boost disagree in case " + name_ + ", value '" +
                            (step.empty() ? "node " + std::to_string(node) : step) + "', element " +
                            std::to_string(element) + ": fast " + Describe(fast) + "; Boost " +
                            Describe(truth));
}

// ---- the two kinds of node ----

bool FastReferences::Multiply(const PlanNode& node, Results* results) {
  std::vector<Operand> operands;
  for (const int arg : node.args) {
    auto operand = Exact(arg);
    if (!operand) return false;
    operands.push_back(std::move(*operand));
  }
  const int64_t batch = node.shape.at(0);
  const auto& [m, n, k, alpha, beta] = node.Get<Contraction>();
  const auto matrix = [&](const Operand& operand, int64_t rows, int64_t columns) {
    return Matrix{.data = operand.data,
                  .dtype = operand.dtype,
                  .batch_stride = rows * columns,
                  .row_stride = columns,
                  .column_stride = 1};
  };
  Product product{
      .batch = batch, .m = m, .n = n, .k = k, .a = {}, .b = {}, .c = {}, .alpha = alpha, .beta = beta};
  product.a = matrix(operands[0], m, k);
  product.b = matrix(operands[1], k, n);
  if (operands.size() == 3) product.c = matrix(operands[2], m, n);
  return engine_->Compute(product, results);
}

/// A sum over neighbouring axes is a product with a column of ones.
bool FastReferences::Sum(const PlanNode& node, Results* results) {
  const std::vector<int64_t>& axes = node.along().axes;
  if (axes.empty()) return false;
  if (axes.back() - axes.front() + 1 != static_cast<int64_t>(axes.size())) return false;
  const auto operand = Exact(node.args.at(0));
  if (!operand) return false;
  int64_t outer = 1, summed = 1, inner = 1;
  for (int64_t axis = 0; axis < static_cast<int64_t>(operand->shape.size()); ++axis) {
    int64_t& extent = axis < axes.front() ? outer : axis <= axes.back() ? summed : inner;
    extent *= operand->shape[static_cast<size_t>(axis)];
  }
  static constexpr float kOne = 1;
  Product product{
      .batch = 1, .m = outer, .n = 1, .k = summed, .a = {}, .b = {}, .c = {}, .alpha = 1, .beta = 1};
  product.a = {.data = operand->data,
               .dtype = operand->dtype,
               .batch_stride = 0,
               .row_stride = summed,
               .column_stride = 1};
  if (inner != 1) {
    product.batch = outer;
    product.m = inner;
    product.a.batch_stride = summed * inner;
    product.a.row_stride = 1;
    product.a.column_stride = inner;
  }
  product.b = {
      .data = &kOne, .dtype = DType::kFloat32, .batch_stride = 0, .row_stride = 0, .column_stride = 0};
  return engine_->Compute(product, results);
}

// ---- exact operands ----

std::optional<FastReferences::Operand> FastReferences::Exact(int id) {
  if (const auto known = operands_.find(id); known != operands_.end()) return known->second;
  const PlanNode& node = plan_.at(id);
  std::optional<Operand> operand;
  switch (node.kind) {
    case NodeKind::kInput: {
      const TensorData& tensor = inputs_.at(node.Get<TensorRead>().tensor);
      if (IsFastType(tensor.dtype))
        operand = Operand{
            .dtype = tensor.dtype, .shape = tensor.shape, .data = tensor.bytes.data(), .owned = nullptr};
      break;
    }
    case NodeKind::kConstant: {
      const IntegerRatio* ratio = node.If<IntegerRatio>();
      const bool exact =
          ratio == nullptr || (ratio->denominator == 1 && std::llabs(ratio->numerator) <= int64_t{1} << 53);
      const std::optional<double> value = exact ? node.constant() : std::nullopt;
      if (!value || ElementCount(node.shape) != 1) break;
      operand = Operand::Make(DType::kFloat64, node.shape);
      EncodeElement(*value, DType::kFloat64, operand->owned->data());
      break;
    }
    case NodeKind::kView:
      if (const auto of = Exact(node.args.at(0))) operand = View(node, *of);
      break;
    case NodeKind::kCast:
    case NodeKind::kStore:
    case NodeKind::kNeg:
    case NodeKind::kRelu:
      if (const auto of = Exact(node.args.at(0))) operand = Elementwise(node, *of);
      break;
    default:
      break;
  }
  operands_.emplace(id, operand);
  return operand;
}

std::optional<FastReferences::Operand> FastReferences::View(const PlanNode& node, const Operand& of) const {
  Operand made = Operand::Make(of.dtype, node.shape);
  const size_t size = SizeOf(of.dtype), rank = node.shape.size();
  std::vector<int64_t> at(rank, 0);
  const Arrangement& shown = node.Get<Arrangement>();
  const std::vector<int64_t>& strides = shown.strides[0];
  int64_t position = shown.offset;
  std::byte* to = made.owned->data();
  for (int64_t left = ElementCount(node.shape); left > 0; --left, to += size) {
    std::memcpy(to, of.data + static_cast<size_t>(position) * size, size);
    for (size_t axis = rank; axis-- > 0;) {
      position += strides[axis];
      if (++at[axis] < node.shape[axis]) break;
      position -= node.shape[axis] * strides[axis];
      at[axis] = 0;
    }
  }
  return made;
}

/// Operations whose results are single doubles again: casts, copies, changes of sign.
std::optional<FastReferences::Operand> FastReferences::Elementwise(const PlanNode& node,
                                                                   const Operand& of) const {
  if (of.shape != node.shape) return std::nullopt;
  const FloatFormat* format = AskedFormat(node);
  std::vector<double> values(static_cast<size_t>(ElementCount(node.shape)));
  bool finite = true;
  for (size_t i = 0; i < values.size(); ++i) {
    double x = of.At(static_cast<int64_t>(i));
    if (node.kind == NodeKind::kNeg) x = -x;
    if (node.kind == NodeKind::kRelu && !(x > 0) && !std::isnan(x)) x = std::isfinite(x) ? 0 : x;
    if (format != nullptr && std::isfinite(x)) x = RoundTo(x, *format);
    finite = finite && std::isfinite(x);
    values[i] = x;
  }
  const bool narrow = format != nullptr && finite;
  Operand made = Operand::Make(narrow ? node.dtype : DType::kFloat64, node.shape);
  std::byte* to = made.owned->data();
  for (const double x : values) {
    EncodeElement(x, made.dtype, to);
    to += SizeOf(made.dtype);
  }
  return made;
}

}  // namespace ulpscope::fast
