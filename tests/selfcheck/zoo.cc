// Data and the kernels that no model describes.
#include "tests/selfcheck/zoo.h"

#include <cmath>
#include <memory>

namespace ulpscope::selfcheck {

uint64_t Numbers::Next() { return MixBits(state_ += kGoldenGamma); }

double Numbers::Uniform() { return static_cast<double>(static_cast<int64_t>(Next()) >> 11) * 0x1p-52; }

double Numbers::Draw(const std::string& distribution, DType dtype) {
  const FloatFormat& format = *FormatOf(dtype);
  double value = 0;
  if (distribution == "uniform")
    value = Uniform();
  else if (distribution == "positive")
    value = std::fabs(Uniform());
  else if (distribution == "wide")
    value = std::ldexp(Uniform(), static_cast<int>(Next() % 12) - 6);
  else {
    for (int i = 0; i < 12; ++i) value += Uniform() / 2;  // normal enough: variance 1
  }
  return RoundTo(value, format);
}

const std::vector<std::string>& OutsiderNames() {
  static const std::vector<std::string> names{"kahan", "strassen",    "winograd", "stochastic_bfloat16",
                                              "noise", "dropped_last"};
  return names;
}

std::function<double(std::span<const double>, std::span<const double>)> Outsider(const std::string& name,
                                                                                 DType out, uint64_t seed) {
  const FloatFormat& stored = *FormatOf(out);
  const FloatFormat& single = Binary32();
  const auto round = [](double value) { return RoundTo(value, Binary32()); };
  if (name == "kahan") {
    return [&stored, round](std::span<const double> a, std::span<const double> b) {
      double sum = 0, carry = 0;
      for (size_t k = 0; k < a.size(); ++k) {
        if (a[k] == 0 && b[k] == 0 && carry == 0) continue;
        const double y = round(round(a[k] * b[k]) - carry), t = round(sum + y);
        carry = round(round(t - sum) - y);
        sum = t;
      }
      return RoundTo(sum, stored);
    };
  }
  // Both multiply sums of operands; the operands beside an output's own are those of the next row or column,
  // made up here.
  if (name == "strassen" || name == "winograd") {
    const bool winograd = name == "winograd";
    return [&stored, &single, round, winograd, seed](std::span<const double> a, std::span<const double> b) {
      double sum = 0;
      Numbers other(seed);
      for (size_t k = 0; k + 1 < a.size(); k += 2) {
        if (winograd) {
          // (a0 + b1)(a1 + b0) - a0 a1 - b0 b1 = a0 b0 + a1 b1
          const double left = round(a[k] + b[k + 1]), right = round(a[k + 1] + b[k]);
          sum = round(sum +
                      round(round(round(left * right) - round(a[k] * a[k + 1])) - round(b[k] * b[k + 1])));
        } else {
          const double x = RoundTo(other.Uniform(), single), y = RoundTo(other.Uniform(), single);
          // M1 + M4 - M5 + M7 of Strassen's scheme with A22 = x, B22 = y, A12 = a1, B21 = b1, A11 = a0, B11 =
          // b0
          const double m1 = round(round(a[k] + x) * round(b[k] + y)), m4 = round(x * round(b[k + 1] - b[k]));
          const double m5 = round(round(a[k] + a[k + 1]) * y),
                       m7 = round(round(a[k + 1] - x) * round(b[k + 1] + y));
          sum = round(sum + round(round(round(m1 + m4) - m5) + m7));
        }
      }
      if (a.size() % 2 == 1) sum = round(sum + round(a.back() * b.back()));
      return RoundTo(sum, stored);
    };
  }
  if (name == "dropped_last") {
    return [&stored, round](std::span<const double> a, std::span<const double> b) {
      double sum = 0;
      for (size_t k = 0; k + 1 < a.size(); ++k) sum = round(std::fma(a[k], b[k], sum));
      return RoundTo(sum, stored);
    };
  }
  auto noise = std::make_shared<Numbers>(seed);
  const bool stochastic = name == "stochastic_bfloat16";
  return [&stored, noise, stochastic](std::span<const double> a, std::span<const double> b) {
    double sum = 0;
    for (size_t k = 0; k < a.size(); ++k) sum = RoundTo(sum + a[k] * b[k], Binary32());
    if (!stochastic) return RoundTo(sum * (1 + 0x1p-9 * noise->Uniform()), stored);
    const double down = RoundTo(sum, Bfloat16(), Rounding::kTowardZero);
    if (down == sum) return RoundTo(sum, stored);
    const double up = down + std::copysign(Ulp(down, Bfloat16()), sum);
    const double share = std::fabs((sum - down) / (up - down));
    return RoundTo(std::fabs(noise->Uniform()) < share ? up : down, stored);
  };
}

}  // namespace ulpscope::selfcheck
