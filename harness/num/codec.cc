// Between the bits of an element and its value.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "harness/base/check.h"
#include "harness/num/float_format.h"

namespace ulpscope {
namespace {

/// The value of the narrow integer type T at `bytes`.
template <class T>
T Load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <class T>
void Store(T value, std::byte* bytes) {
  std::memcpy(bytes, &value, sizeof value);
}

/// A format of at most 16 bits as its codes have it: sign, exponent, mantissa.
struct Layout {
  const FloatFormat& format;
  int width;  ///< bits of a code

  int mantissa_bits() const { return format.precision - 1; }
  uint32_t sign_bit() const { return 1u << (width - 1); }
  uint32_t hidden_bit() const { return 1u << mantissa_bits(); }
  uint32_t infinity() const { return sign_bit() - hidden_bit(); }
};

double DecodeSmall(uint32_t code, const Layout& layout) {
  const uint32_t magnitude = code & (layout.sign_bit() - 1);
  const auto exponent = static_cast<int>(magnitude >> layout.mantissa_bits());
  const uint32_t mantissa = magnitude & (layout.hidden_bit() - 1);
  const int quantum = layout.format.emin - layout.mantissa_bits();
  double value;
  const Specials specials = layout.format.specials;
  if ((specials == Specials::kLastIsNan && magnitude == layout.sign_bit() - 1) ||
      (specials == Specials::kMinusZeroIsNan && code == layout.sign_bit())) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (specials == Specials::kIeee && magnitude >= layout.infinity()) {
    value = mantissa == 0 ? kInf : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<double>(mantissa), quantum);
  } else {
    value = std::ldexp(static_cast<double>(mantissa | layout.hidden_bit()), quantum + exponent - 1);
  }
  return (code & layout.sign_bit()) != 0 ? -value : value;
}

uint32_t EncodeSmall(double value, const Layout& layout) {
  const uint32_t sign = std::signbit(value) ? layout.sign_bit() : 0u;
  const bool ieee = layout.format.specials == Specials::kIeee;
  const bool unsigned_zero = layout.format.specials == Specials::kMinusZeroIsNan;
  if (std::isnan(value) && unsigned_zero) return layout.sign_bit();
  if (std::isnan(value))
    return sign | (ieee ? layout.infinity() | layout.hidden_bit() >> 1 : layout.sign_bit() - 1);
  if (std::isinf(value)) {
    ULPSCOPE_CHECK(ieee, "infinity has no encoding in a finite-only format");
    return sign | layout.infinity();
  }
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return unsigned_zero ? 0 : sign;
  // Subnormals count quanta from the code of zero on; normals in units of their own binade.
  const int steps = std::max(std::ilogb(magnitude) - layout.format.emin, 0);
  const auto quanta =
      static_cast<uint32_t>(std::ldexp(magnitude, layout.mantissa_bits() - layout.format.emin - steps));
  return sign | (quanta + (static_cast<uint32_t>(steps) << layout.mantissa_bits()));
}

}  // namespace

double DecodeElement(const std::byte* bytes, DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return Load<double>(bytes);
    case DType::kFloat32:
      return Load<float>(bytes);
    case DType::kBfloat16:
      return std::bit_cast<float>(static_cast<uint32_t>(Load<uint16_t>(bytes)) << 16);
    case DType::kInt64:
      return static_cast<double>(Load<int64_t>(bytes));
    case DType::kInt32:
      return Load<int32_t>(bytes);
    case DType::kInt16:
      return Load<int16_t>(bytes);
    case DType::kInt8:
      return Load<int8_t>(bytes);
    case DType::kUint8:
      return Load<uint8_t>(bytes);
    case DType::kBool:
      return Load<uint8_t>(bytes) != 0 ? 1 : 0;
    default:
      break;
  }
  const int width = 8 * static_cast<int>(SizeOf(dtype));
  return DecodeSmall(width == 8 ? Load<uint8_t>(bytes) : Load<uint16_t>(bytes), {*FormatOf(dtype), width});
}

void EncodeElement(double value, DType dtype, std::byte* bytes) {
  switch (dtype) {
    case DType::kFloat64:
      Store(value, bytes);
      return;
    case DType::kFloat32:
      Store(static_cast<float>(value), bytes);
      return;
    case DType::kBfloat16:
      Store(static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(value)) >> 16), bytes);
      return;
    case DType::kInt64:
      Store(static_cast<int64_t>(value), bytes);
      return;
    case DType::kInt32:
      Store(static_cast<int32_t>(value), bytes);
      return;
    case DType::kInt16:
      Store(static_cast<int16_t>(value), bytes);
      return;
    case DType::kInt8:
      Store(static_cast<int8_t>(value), bytes);
      return;
    case DType::kUint8:
      Store(static_cast<uint8_t>(value), bytes);
      return;
    case DType::kBool:
      Store(static_cast<uint8_t>(value != 0), bytes);
      return;
    default:
      break;
  }
  const int width = 8 * static_cast<int>(SizeOf(dtype));
  const uint32_t code = EncodeSmall(value, {*FormatOf(dtype), width});
  if (width == 8)
    Store(static_cast<uint8_t>(code), bytes);
  else
    Store(static_cast<uint16_t>(code), bytes);
}

}  // namespace ulpscope
