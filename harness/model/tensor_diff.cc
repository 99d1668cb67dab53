// Element-wise comparison.
#include "harness/model/tensor_diff.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "harness/base/check.h"
#include "harness/num/float_format.h"

namespace ulpscope {

bool DiffersInKind(double left, double right) {
  if (std::isnan(left) || std::isnan(right)) return std::isnan(left) != std::isnan(right);
  if (std::isinf(left) || std::isinf(right)) return left != right;
  return left == 0 && right == 0 && std::signbit(left) != std::signbit(right);
}

bool DiffersInNumber(double left, double right) {
  return std::isfinite(left) && std::isfinite(right) && left != right;
}

double ElementDistance(double left, double right, DType dtype) {
  const FloatFormat* format = FormatOf(dtype);
  return format == nullptr ? std::fabs(left - right) : UlpDistance(left, right, *format);
}

bool IsSubnormal(double value, DType dtype) {
  const FloatFormat* format = FormatOf(dtype);
  return format != nullptr && value != 0 && std::fabs(value) < std::ldexp(1.0, format->emin);
}

Flushing FindFlushing(const TensorData& left, const TensorData& right) {
  ULPSCOPE_CHECK(left.dtype == right.dtype && left.shape == right.shape, "tensors of one dtype and shape");
  Flushing flushing;
  if (left.bytes == right.bytes) return flushing;
  const int64_t count = left.size();
  for (int64_t i = 0; i < count && flushing.alone; ++i) {
    const double a = left.At(i), b = right.At(i);
    if (!DiffersInNumber(a, b)) continue;
    const bool is_left = a == 0 && IsSubnormal(b, right.dtype),
               is_right = b == 0 && IsSubnormal(a, left.dtype);
    flushing.left = flushing.left || is_left;
    flushing.right = flushing.right || is_right;
    flushing.alone = is_left || is_right;
  }
  return flushing;
}

void AddPair(const TensorDifference& difference, DifferenceSize* size) {
  const int64_t count = difference.number + difference.special;
  size->fewest = size->elements == 0 ? count : std::min(size->fewest, count);
  size->most = std::max(size->most, count);
  size->elements = difference.elements;
  size->largest_ulp = std::max(size->largest_ulp, difference.largest_ulp);
  size->largest = std::max(size->largest, difference.largest);
  size->scale = std::max(size->scale, difference.scale);
}

TensorDifference CompareTensors(const TensorData& left, const TensorData& right) {
  ULPSCOPE_CHECK(left.dtype == right.dtype && left.shape == right.shape, "tensors of one dtype and shape");
  TensorDifference difference{.elements = left.size()};
  if (left.bytes == right.bytes) return difference;
  const FloatFormat* format = FormatOf(left.dtype);
  const size_t width = SizeOf(left.dtype);
  const auto note_scale = [&](double value) {
    if (std::isfinite(value)) difference.scale = std::max(difference.scale, std::fabs(value));
  };
  for (int64_t i = 0; i < difference.elements; ++i) {
    note_scale(left.At(i));
    const size_t offset = static_cast<size_t>(i) * width;
    if (std::memcmp(left.bytes.data() + offset, right.bytes.data() + offset, width) == 0) continue;
    const double a = left.At(i);
    const double b = right.At(i);
    note_scale(b);
    // Integers beyond 2^53 may decode to one double: their bytes differ, so they do.
    if (format == nullptr || DiffersInNumber(a, b)) {
      if (difference.number++ == 0) difference.first_number = i;
      difference.largest = std::max(difference.largest, std::fabs(a - b));
      if (format != nullptr)
        difference.largest_ulp = std::max(difference.largest_ulp, UlpDistance(a, b, *format));
    } else if (DiffersInKind(a, b)) {
      if (difference.special++ == 0) difference.first_special = i;
      difference.one_finite += std::isfinite(a) != std::isfinite(b) ? 1 : 0;
      difference.zero_signs += a == 0 && b == 0 ? 1 : 0;
    }
  }
  return difference;
}

}  // namespace ulpscope
