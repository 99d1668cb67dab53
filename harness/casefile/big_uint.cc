// Schoolbook arithmetic on 32-bit limbs.
#include "harness/casefile/big_uint.h"

#include <algorithm>
#include <bit>

#include "harness/base/check.h"

namespace ulpscope {

int BitLength(Uint128 value) {
  const auto high = static_cast<uint64_t>(value >> 64);
  return high != 0 ? 128 - std::countl_zero(high) : 64 - std::countl_zero(static_cast<uint64_t>(value));
}

BigUint::BigUint(uint64_t value) : limbs_{static_cast<uint32_t>(value), static_cast<uint32_t>(value >> 32)} {
  Trim();
}

void BigUint::Trim() {
  while (!limbs_.empty() && limbs_.back() == 0) limbs_.pop_back();
}

void BigUint::MultiplyAdd(uint32_t factor, uint32_t addend) {
  uint64_t carry = addend;
  for (uint32_t& limb : limbs_) {
    carry += static_cast<uint64_t>(limb) * factor;
    limb = static_cast<uint32_t>(carry);
    carry >>= 32;
  }
  if (carry != 0) limbs_.push_back(static_cast<uint32_t>(carry));
  Trim();
}

void BigUint::MultiplyByPowerOf(uint32_t base, int exponent) {
  while (exponent > 0) {
    uint32_t factor = 1;
    while (exponent > 0 && static_cast<uint64_t>(factor) * base <= UINT32_MAX) {
      factor *= base;
      --exponent;
    }
    MultiplyAdd(factor, 0);
  }
}

void BigUint::ShiftLeft(int bits) {
  if (limbs_.empty() || bits == 0) return;
  const int within = bits % 32;
  if (within != 0) MultiplyAdd(1u << within, 0);
  limbs_.insert(limbs_.begin(), static_cast<size_t>(bits / 32), 0);
}

void BigUint::ShiftRight(int bits) {
  const auto whole = std::min(static_cast<size_t>(bits / 32), limbs_.size());
  limbs_.erase(limbs_.begin(), limbs_.begin() + static_cast<std::ptrdiff_t>(whole));
  const int within = bits % 32;
  if (within != 0) {
    uint32_t above = 0;
    for (size_t i = limbs_.size(); i-- > 0;) {
      const uint32_t limb = limbs_[i];
      limbs_[i] = (limb >> within) | (above << (32 - within));
      above = limb;
    }
  }
  Trim();
}

int BigUint::BitLength() const {
  return limbs_.empty() ? 0 : static_cast<int>(32 * limbs_.size()) - std::countl_zero(limbs_.back());
}

int BigUint::TrailingZeros() const {
  int zeros = 0;
  for (const uint32_t limb : limbs_) {
    if (limb != 0) return zeros + std::countr_zero(limb);
    zeros += 32;
  }
  return 0;
}

uint64_t BigUint::ToUint64() const {
  ULPSCOPE_CHECK(BitLength() <= 64, "number does not fit 64 bits");
  return static_cast<uint64_t>(Low128());
}

Uint128 BigUint::Low128() const {
  Uint128 value = 0;
  for (size_t i = std::min<size_t>(limbs_.size(), 4); i-- > 0;) value = (value << 32) | limbs_[i];
  return value;
}

BigUint::Division BigUint::DividedBy(const BigUint& divisor) const {
  ULPSCOPE_CHECK(!divisor.IsZero(), "division by zero");
  Division result;
  const int shift = std::countl_zero(divisor.limbs_.back());
  BigUint scaled_divisor = divisor;
  scaled_divisor.ShiftLeft(shift);
  BigUint scaled = *this;
  scaled.ShiftLeft(shift);
  const auto& v = scaled_divisor.limbs_;
  std::vector<uint32_t> u = scaled.limbs_;
  const size_t n = v.size();
  u.resize(std::max(u.size(), n) + 1, 0);
  std::vector<uint32_t> q(u.size() - n, 0);
  for (size_t j = q.size(); j-- > 0;) {
    const uint64_t top = (static_cast<uint64_t>(u[j + n]) << 32) | u[j + n - 1];
    uint64_t digit = top / v[n - 1];
    uint64_t rest = top % v[n - 1];
    const uint64_t second = n > 1 ? v[n - 2] : 0;
    const uint64_t below = n > 1 ? u[j + n - 2] : 0;
    while (digit > UINT32_MAX || (rest <= UINT32_MAX && digit * second > ((rest << 32) | below))) {
      --digit;
      rest += v[n - 1];
    }
    uint64_t carry = 0;
    int64_t borrow = 0;
    for (size_t i = 0; i < n; ++i) {
      carry += digit * v[i];
      const int64_t difference =
          static_cast<int64_t>(u[i + j]) - static_cast<int64_t>(carry & UINT32_MAX) + borrow;
      u[i + j] = static_cast<uint32_t>(difference);
      borrow = difference < 0 ? -1 : 0;
      carry >>= 32;
    }
    const int64_t difference = static_cast<int64_t>(u[j + n]) - static_cast<int64_t>(carry) + borrow;
    u[j + n] = static_cast<uint32_t>(difference);
    if (difference < 0) {  // the estimate was one too large: add the divisor back
      --digit;
      uint64_t sum = 0;
      for (size_t i = 0; i < n; ++i) {
        sum += static_cast<uint64_t>(u[i + j]) + v[i];
        u[i + j] = static_cast<uint32_t>(sum);
        sum >>= 32;
      }
      u[j + n] += static_cast<uint32_t>(sum);
    }
    q[j] = static_cast<uint32_t>(digit);
  }
  result.quotient.limbs_ = std::move(q);
  result.quotient.Trim();
  const bool exact = std::ranges::all_of(u, [](uint32_t limb) { return limb == 0; });
  result.remainder = exact ? Division::Remainder::kZero : Division::Remainder::kNonZero;
  return result;
}

}  // namespace ulpscope
