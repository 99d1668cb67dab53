// Superaccumulator: a fixed-point number wide enough for every sum of products of binary64 values (Kulisch
// 1971).
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "harness/model/reference.h"
#include "oracles/exact/dyadic.h"

namespace ulpscope::fast {

/// Exact for all finite binary64 operands, subnormals included, and up to 2^60 products. Integer arithmetic
/// alone: it assumes nothing of the floating-point environment.
class Superaccumulator {
 public:
  void Clear() {
    digits_.fill(0);
    pending_ = 0;
  }
  /// Adds a * b; both finite.
  void Add(double a, double b);
  /// Adds the sum of x[i] * y[i]; all finite.
  void AddProducts(const double* x, const double* y, int64_t count);

  /// The exact sum.
  Dyadic Value();
  /// The same as Real::From(Value()).ToReference(), mostly without big integers.
  Reference ToReference();

 private:
  void Carry();
  std::optional<Reference> FromLeadingDigits(int top) const;

  // Digit i counts 2^(53 i - kBias): a product, 106 bits at any place, meets three digits. Digits are signed
  // and exceed 53 bits until carries run.
  static constexpr int kDigitBits = 53;
  static constexpr int kBias = 41 * kDigitBits;  // above 2150
  static constexpr int kDigits = (kBias + 2 * 1024 + 64) / kDigitBits + 3;
  std::array<int64_t, kDigits> digits_{};
  int64_t pending_ = 0;
};

}  // namespace ulpscope::fast
