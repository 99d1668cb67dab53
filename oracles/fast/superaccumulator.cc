// Adds 106-bit products to 32-bit digits with deferred carries.
#include "oracles/fast/superaccumulator.h"

#include <bit>
#include <cmath>

#include "oracles/exact/real.h"
#include "oracles/fast/expansion.h"

namespace ulpscope::fast {
namespace {

__extension__ using Wide = unsigned __int128;

/// Each addition changes a digit by less than 2^32: carries are due before 2^30 additions overflow 63 bits.
constexpr int64_t kMostPending = int64_t{1} << 30;

/// Integer and exponent of a finite double's magnitude: integer * 2^(exponent - 1075), exponent >= 1.
inline void Split(uint64_t bits, uint64_t* integer, int* exponent) {
  const int field = static_cast<int>(bits >> 52 & 2047);
  *integer = (bits & ((uint64_t{1} << 52) - 1)) | (field == 0 ? 0 : uint64_t{1} << 52);
  *exponent = field == 0 ? 1 : field;
}

}  // namespace

void Superaccumulator::Add(double a, double b) { AddProducts(&a, &b, 1); }

void Superaccumulator::AddProducts(const double* x, const double* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const auto a = std::bit_cast<uint64_t>(x[i]), b = std::bit_cast<uint64_t>(y[i]);
    uint64_t integer_a, integer_b;
    int exponent_a, exponent_b;
    Split(a, &integer_a, &exponent_a);
    Split(b, &integer_b, &exponent_b);
    // The product's lowest bit has the place exponent_a + exponent_b - 2150 >= -2148.
    const int place = exponent_a + exponent_b - 2150 + kBias;
    const auto product = static_cast<Wide>(integer_a) * integer_b;
    const int shift = place & 31;
    int64_t* digit = digits_.data() + (place >> 5);
    const auto low = static_cast<uint64_t>(product), high = static_cast<uint64_t>(product >> 64);
    // 106 + 31 bits: five digits.
    const uint64_t low_shifted = low << shift;
    const uint64_t middle = high << shift | (shift == 0 ? 0 : low >> (64 - shift));
    const uint64_t top = shift == 0 ? 0 : high >> (64 - shift);
    const auto sign = static_cast<int64_t>(a ^ b) >> 63;  // 0 or -1: (d ^ sign) - sign negates
    const auto add = [&](int at, uint64_t value) { digit[at] += (static_cast<int64_t>(value) ^ sign) - sign; };
    add(0, low_shifted & 0xffffffff);
    add(1, low_shifted >> 32);
    add(2, middle & 0xffffffff);
    add(3, middle >> 32);
    add(4, top);
    if (++pending_ >= kMostPending) Carry();
  }
}

void Superaccumulator::Carry() {
  int64_t carry = 0;
  for (int i = 0; i + 1 < kDigits; ++i) {
    const int64_t sum = digits_[static_cast<size_t>(i)] + carry;
    carry = sum >> 32;  // floor
    digits_[static_cast<size_t>(i)] = sum & 0xffffffff;
  }
  digits_.back() += carry;
  pending_ = 0;
}

Dyadic Superaccumulator::Value() {
  Carry();
  Dyadic value;
  value.e = -kBias;
  for (size_t i = kDigits; i-- > 0;) value.m = (value.m << 32) + digits_[i];
  if (value.is_zero()) return {};
  const boost::multiprecision::cpp_int magnitude = abs(value.m);
  const auto zeros = lsb(magnitude);
  const bool negative = value.m.sign() < 0;
  value.m = magnitude >> zeros;
  if (negative) value.m = -value.m;
  value.e += static_cast<int64_t>(zeros);
  return value;
}

Reference Superaccumulator::ToReference() {
  Carry();
  // Negative numbers have the last digit negative and all others in [0, 2^32): negate to keep the leading digits leading.
  const bool negative = digits_.back() < 0;
  if (negative) {
    for (auto& digit : digits_) digit = -digit;
    Carry();
  }
  int top = kDigits - 1;
  while (top >= 0 && digits_[static_cast<size_t>(top)] == 0) --top;
  int bottom = 0;
  while (bottom < top && digits_[static_cast<size_t>(bottom)] == 0) ++bottom;
  constexpr int kMostParts = 12;
  const bool narrow = top - bottom < kMostParts && 32 * (top + 1) - kBias < 1000 && 32 * bottom - kBias >= -1074;
  std::optional<Reference> reference;
  if (top < 0) {
    reference = Reference{.hi = 0, .lo = 0, .err = 0, .kind = ReferenceKind::kExact};
  } else if (narrow) {
    std::array<double, kMostParts> parts{};
    for (int i = top; i >= bottom; --i) {
      parts[static_cast<size_t>(top - i)] = std::ldexp(static_cast<double>(digits_[static_cast<size_t>(i)]), 32 * i - kBias);
    }
    reference = RoundSum(std::span(parts).first(static_cast<size_t>(top - bottom + 1)), 0);
  }
  if (negative) {
    for (auto& digit : digits_) digit = -digit;
    Carry();
    if (reference) *reference = {.hi = -reference->hi, .lo = reference->lo == 0 ? 0 : -reference->lo, .err = reference->err, .kind = reference->kind};
  }
  if (!reference) reference = Real::From(Value()).ToReference();
  return *reference;
}

}  // namespace ulpscope::fast
