// BigUint: natural numbers of any size, with just the arithmetic that reading a number exactly needs.
#pragma once

#include <cstdint>
#include <vector>

namespace ulpscope {

/// 128 bits, for fixed-point arithmetic and for the leading bits of a quotient.
__extension__ typedef unsigned __int128 Uint128;
__extension__ typedef __int128 Int128;

/// The number of significant bits; 0 for 0.
int BitLength(Uint128 value);

class BigUint {
 public:
  BigUint() = default;
  explicit BigUint(uint64_t value);

  void MultiplyAdd(uint32_t factor, uint32_t addend);
  void MultiplyByPowerOf(uint32_t base, int exponent);
  void ShiftLeft(int bits);
  void ShiftRight(int bits);  ///< drops the bits shifted out

  bool IsZero() const { return limbs_.empty(); }
  int BitLength() const;
  int TrailingZeros() const;  ///< 0 for 0
  /// The value, which must fit.
  uint64_t ToUint64() const;
  /// The low 128 bits.
  Uint128 Low128() const;

  struct Division;
  /// this / divisor, for a divisor that is not 0 (Knuth, The Art of Computer Programming, volume 2, 4.3.1,
  /// algorithm D).
  Division DividedBy(const BigUint& divisor) const;

 private:
  void Trim();
  std::vector<uint32_t> limbs_;  ///< least significant first; the last one is never 0
};

struct BigUint::Division {
  BigUint quotient;
  enum class Remainder { kZero, kNonZero } remainder = Remainder::kZero;
};

}  // namespace ulpscope
