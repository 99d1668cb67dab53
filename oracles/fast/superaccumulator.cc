// Adds 106-bit products to 53-bit digits with deferred carries.
#include "oracles/fast/superaccumulator.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "oracles/exact/real.h"
#include "oracles/fast/expansion.h"

namespace ulpscope::fast {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr uint64_t kDigitMask = (uint64_t{1} << 53) - 1;
/// Each addition changes a digit by less than 2^54: carries are due before 2^9 additions overflow 63 bits.
constexpr int64_t kMostPending = 500;

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
    const int shift = place % kDigitBits;
    int64_t* digit = digits_.data() + place / kDigitBits;
    // integer_a * integer_b = high * 2^53 + low, both below 2^53.
    const Wide product = static_cast<Wide>(integer_a << 11) * integer_b;
    const auto high = static_cast<uint64_t>(product >> 64), low = static_cast<uint64_t>(product) >> 11;
    const auto sign = static_cast<int64_t>(a ^ b) >> 63;  // 0 or -1: (d ^ sign) - sign negates
    const auto add = [&](int at, uint64_t value) {
      digit[at] += (static_cast<int64_t>(value) ^ sign) - sign;
    };
    add(0, low << shift & kDigitMask);
    add(1, (low >> (kDigitBits - shift)) + (high << shift & kDigitMask));
    add(2, high >> (kDigitBits - shift));
    if (++pending_ >= kMostPending) Carry();
  }
}

void Superaccumulator::Carry() {
  int64_t carry = 0;
  for (int i = 0; i + 1 < kDigits; ++i) {
    const int64_t sum = digits_[static_cast<size_t>(i)] + carry;
    carry = sum >> kDigitBits;  // floor
    digits_[static_cast<size_t>(i)] = sum & static_cast<int64_t>(kDigitMask);
  }
  digits_.back() += carry;
  pending_ = 0;
}

Dyadic Superaccumulator::Value() {
  Carry();
  Dyadic value;
  value.e = -kBias;
  for (size_t i = kDigits; i-- > 0;) value.m = (value.m << kDigitBits) + digits_[i];
  if (value.is_zero()) return {};
  const boost::multiprecision::cpp_int magnitude = abs(value.m);
  const auto zeros = lsb(magnitude);
  const bool negative = value.m.sign() < 0;
  value.m = magnitude >> zeros;
  if (negative) value.m = -value.m;
  value.e += static_cast<int64_t>(zeros);
  return value;
}

/// The reference of a sum whose digits are not negative and whose leading one is `top`, if the leading digits decide
/// it.
std::optional<Reference> Superaccumulator::FromLeadingDigits(int top) const {
  if (top < 0) return Reference{.hi = 0, .lo = 0, .err = 0, .kind = ReferenceKind::kExact};
  const int place = kDigitBits * top - kBias;  // the sum is at least 2^place, and below 2^(place + 54)
  if (place >= 1024)
    return Reference{.hi = HUGE_VAL, .lo = 0, .err = 0, .kind = ReferenceKind::kDomain};  // as Real has it
  constexpr int kLeading = 8;
  std::array<double, kLeading + 1> parts{};
  double unit = 1;  // of the digit at hand, in units of the leading one
  for (int i = top; i >= std::max(0, top - kLeading + 1); --i, unit *= 0x1p-53)
    parts[static_cast<size_t>(top - i)] = static_cast<double>(digits_[static_cast<size_t>(i)]) * unit;
  unit *= 0x1p53;
  bool more = false;
  for (int i = top - kLeading; i >= 0; --i) more |= digits_[static_cast<size_t>(i)] != 0;
  // Digits below the last unit round like half of it, if both words of the result end far above.
  if (more) parts[kLeading] = unit / 2;
  auto reference = RoundSum(parts, 0);
  if (!reference || place + 54 >= 1023) return std::nullopt;
  if (more && (reference->kind != ReferenceKind::kWide || std::fabs(reference->lo) < unit * 0x1p60))
    return std::nullopt;
  const double least = reference->lo != 0 ? std::fabs(reference->lo) : reference->hi;
  if (std::ilogb(least) + place < -900) return std::nullopt;
  reference->hi = std::ldexp(reference->hi, place);
  reference->lo = std::ldexp(reference->lo, place);
  reference->err = std::ldexp(reference->err, place);
  return reference;
}

Reference Superaccumulator::ToReference() {
  Carry();
  // Negative numbers have the last digit negative and all others in [0, 2^53): negate to keep the leading
  // digits leading.
  const bool negative = digits_.back() < 0;
  if (negative) {
    for (auto& digit : digits_) digit = -digit;
    Carry();
  }
  int top = kDigits - 1;
  while (top >= 0 && digits_[static_cast<size_t>(top)] == 0) --top;
  std::optional<Reference> reference = FromLeadingDigits(top);
  if (negative) {
    for (auto& digit : digits_) digit = -digit;
    Carry();
    if (reference)
      *reference = {.hi = -reference->hi,
                    .lo = reference->lo == 0 ? 0 : -reference->lo,
                    .err = reference->err,
                    .kind = reference->kind};
  }
  if (!reference) reference = Real::From(Value()).ToReference();
  return *reference;
}

}  // namespace ulpscope::fast
