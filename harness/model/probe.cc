// The values of the ten probe families.
#include "harness/model/probe.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "harness/base/find.h"
#include "harness/base/hash.h"
#include "harness/base/text.h"
#include "harness/num/float_format.h"

namespace ulpscope {
namespace {

constexpr const char* kChunkProbe = "{a b, -c} apart";

double Pow2(int exponent) { return std::ldexp(1.0, exponent); }

/// A value as the product of two operands.
struct Factors {
  double a = 0, b = 0;
};

class Maker {
 public:
  Maker(DType dtype, int64_t k) : format_(*FormatOf(dtype)), k_(k) {}

  bool Holds(double value) const {
    return value == 0 || (std::isfinite(value) && RoundTo(value, format_) == value);
  }
  bool Normal(double value) const {
    return std::fabs(value) >= Pow2(format_.emin) && std::fabs(value) <= format_.max_finite;
  }

  /// value = a * b in the operands' format: by a power of two where possible, else by the odd factors of its
  /// significand.
  std::optional<Factors> Split(double value) const {
    if (value == 0) return Factors{};
    int exponent = 0;
    const double fraction = std::frexp(value, &exponent);  // in [1/2, 1)
    // Halves of the exponent on both sides keep both operands in range.
    const int half = exponent >= 0 ? std::min(exponent, format_.emax) : std::max(exponent, format_.emin + 2);
    // A kernel may convert its operands to float16: they stay in its range where they can.
    const bool small = std::fabs(value) >= Pow2(-14) && std::fabs(value) <= Pow2(15);
    const int upper = (exponent + 1) / 2;
    const Factors even{.a = std::ldexp(fraction, upper), .b = Pow2(exponent - upper)};
    if (!small && std::abs(exponent) <= 31 && Holds(even.a) && Normal(even.a)) return even;
    if (Holds(value) && Normal(value)) return Factors{.a = value, .b = 1};
    const Factors by_power{.a = std::ldexp(fraction, half), .b = Pow2(exponent - half)};
    if (Holds(by_power.a) && Holds(by_power.b) && Normal(by_power.a) && Normal(by_power.b)) return by_power;
    const Factors middle{.a = std::ldexp(fraction, exponent / 2), .b = Pow2(exponent - exponent / 2)};
    if (Holds(middle.a) && Holds(middle.b) && Normal(middle.a) && Normal(middle.b)) return middle;
    const int bits = SignificantBits(value);
    if (bits > 2 * format_.precision || bits > 30) return std::nullopt;
    const auto whole = static_cast<int64_t>(std::ldexp(std::fabs(fraction), bits));
    for (int64_t divisor = 3; divisor * divisor <= whole; divisor += 2) {
      if (whole % divisor != 0) continue;
      const Factors odd{.a = std::copysign(std::ldexp(static_cast<double>(whole / divisor),
                                                      exponent - bits - (exponent - bits) / 2),
                                           value),
                        .b = std::ldexp(static_cast<double>(divisor), (exponent - bits) / 2)};
      if (Holds(odd.a) && Holds(odd.b) && Normal(odd.a) && Normal(odd.b)) return odd;
    }
    return std::nullopt;
  }

  /// One dot product of one product.
  void Single(const std::string& family, const std::string& name, double a, double b) {
    if (k_ < 1 || !Holds(a) || !Holds(b) || a == 0 || b == 0) return;
    groups.push_back({.family = family,
                      .name = name,
                      .members = {{.terms = {{.position = Slots(1)[0], .a = a, .b = b}}, .addend = 0}}});
  }

  /// All permutations of two or three summands over the positions, at each set of positions that `spread`
  /// asks for.
  void Sum(const std::string& family, const std::string& name, const std::vector<double>& summands,
           bool spread) {
    std::vector<Factors> factors;
    for (const double summand : summands) {
      const auto split = Split(summand);
      if (!split) return;
      factors.push_back(*split);
    }
    Permute(family, name, factors, spread);
  }

  void Permute(const std::string& family, const std::string& name, const std::vector<Factors>& factors,
               bool spread) {
    const auto count = static_cast<int64_t>(factors.size());
    if (k_ < count) return;
    for (const auto& positions : spread ? Spreads(count) : std::vector<std::vector<int64_t>>{Slots(count)}) {
      PermuteAt(family, name, factors, positions);
    }
  }

  /// Positions that a split-K of contiguous, strided or block-cyclic chunks puts apart from position 0, in
  /// one or another.
  std::vector<int64_t> Partners() const {
    std::vector<int64_t> all;
    for (int64_t i = 1; i <= std::min<int64_t>(16, k_ - 1); ++i) all.push_back(i);
    for (int64_t i = 32; i < k_; i *= 2) all.push_back(i);
    for (const int64_t i : {k_ / 2, k_ / 3, k_ - 2, k_ - 1}) {
      if (i > 0 && !Contains(all, i)) all.push_back(i);
    }
    return all;
  }

  void Residual(double a, double b, double cut) {
    if (!Holds(a) || !Holds(b) || !Holds(cut)) return;
    Permute("residual", "{a b, -c}", {{.a = a, .b = b}, {.a = -cut, .b = 1}}, false);
    Permute("residual", "{b a, -c}", {{.a = b, .b = a}, {.a = -cut, .b = 1}}, false);
  }

  void PermuteAt(const std::string& family, const std::string& name, const std::vector<Factors>& factors,
                 const std::vector<int64_t>& positions) {
    TogetherAt(family, name, {factors}, positions);
  }

  /// Several sums over the same positions, in one group: one structure has to explain them all.
  void TogetherAt(const std::string& family, const std::string& name,
                  const std::vector<std::vector<Factors>>& sums, const std::vector<int64_t>& positions) {
    ProbeGroup group{.family = family, .name = name + At(positions)};
    for (const auto& factors : sums) AddPermutations(factors, positions, &group);
    groups.push_back(std::move(group));
  }

  static void AddPermutations(const std::vector<Factors>& factors, const std::vector<int64_t>& positions,
                              ProbeGroup* group) {
    std::vector<size_t> order(factors.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    do {
      ProbeDot dot;
      for (size_t i = 0; i < order.size(); ++i)
        dot.terms.push_back({.position = positions[i], .a = factors[order[i]].a, .b = factors[order[i]].b});
      group->members.push_back(std::move(dot));
    } while (std::next_permutation(order.begin(), order.end()));
  }

  const FloatFormat& format() const { return format_; }
  int64_t k() const { return k_; }

  std::vector<ProbeGroup> groups;

 private:
  std::vector<int64_t> Slots(int64_t count) const {
    std::vector<int64_t> slots;
    for (int64_t i = 0; i < count; ++i) slots.push_back(i);
    return slots;
  }

  /// Neighbours, ends and a few in between: partial sums of split-K meet far positions late and near ones
  /// early.
  std::vector<std::vector<int64_t>> Spreads(int64_t count) const {
    if (count < 2) return {Slots(count)};
    if (count == 2) {
      std::vector<std::vector<int64_t>> pairs{
          {0, 1}, {0, k_ - 1}, {0, k_ / 2}, {k_ / 2, k_ - 1}, {k_ - 2, k_ - 1}};
      std::vector<std::vector<int64_t>> kept;
      for (auto& pair : pairs) {
        if (pair[0] < pair[1] && !Contains(kept, pair)) kept.push_back(pair);
      }
      return kept;
    }
    std::vector<std::vector<int64_t>> all{{0, 1, 2},      {0, k_ / 2, k_ - 1}, {k_ - 3, k_ - 2, k_ - 1},
                                          {0, 1, k_ - 1}, {0, k_ - 2, k_ - 1}, {k_ / 3, k_ / 3 + 1, k_ - 1}};
    std::vector<std::vector<int64_t>> kept;
    for (auto& positions : all) {
      const bool apart = positions[0] < positions[1] && positions[1] < positions[2] && positions[2] < k_;
      if (apart && !Contains(kept, positions)) kept.push_back(positions);
    }
    return kept;
  }

  static std::string At(const std::vector<int64_t>& positions) { return " at " + Join(positions, ","); }

  const FloatFormat& format_;
  int64_t k_;
};

/// Significands without structure, from an integer hash: odd, `bits` long, in [1, 2).
double Significand(uint64_t index, int bits) {
  const uint64_t z = MixBits((index + 1) * kGoldenGamma);
  const uint64_t whole = (uint64_t{1} << (bits - 1)) | (z >> (65 - bits)) | 1;
  return std::ldexp(static_cast<double>(whole), 1 - bits);
}

void Single(Maker* make) {
  const int p = make->format().precision;
  for (const double sign : {1.0, -1.0}) {
    for (const int format : {8, 11, 24}) {
      if (format >= p) continue;
      const double tie = Pow2(-format), tiny = Pow2(1 - p);
      for (const double value : {1 + tie, 1 + 3 * tie, 1 + tie + tiny, 1 + tie - tiny, 1 + 3 * tie + tiny,
                                 1 + 3 * tie - tiny, 1 + 2 * tie - tiny}) {
        make->Single("single", "a*1", sign * value, 1);
        make->Single("single", "1*b", 1, sign * value);
      }
    }
    // Products that lie half-way between two values of a format, and next to it.
    for (const int format : {8, 11, 24}) {
      for (int u = 1; u < format; ++u) {
        for (const double m : {1.0, 3.0})
          make->Single("single", "tie at " + std::to_string(format), sign * (1 + Pow2(-u)),
                       1 + m * Pow2(u - format));
      }
    }
  }
  for (uint64_t i = 0; i < 24; ++i) {
    make->Single("single", "a*1", Significand(i, p), 1);
    make->Single("single", "1*b", 1, -Significand(100 + i, p));
    make->Single("single", "a*b", Significand(200 + i, p), (i % 2 == 0 ? 1 : -1) * Significand(300 + i, p));
    if (p > 12)
      make->Single("single", "a*b", Significand(400 + i, 12),
                   (i % 2 == 0 ? -1 : 1) * Significand(500 + i, 12));
  }
}

void Range(Maker* make) {
  const auto one = [&](double a, double b) {
    make->Single("range", "a*b", a, b);
    make->Single("range", "a*b", -b, a);
  };
  one(1.25 * Pow2(20), Pow2(-20));
  one(Pow2(-30), Pow2(30));
  one(Pow2(20), 1);
  one(1.25 * Pow2(-28), 1);
  one(Pow2(-126), 1.5);
  one(Pow2(-70), 1.5 * Pow2(-70));
  one(Pow2(-130), Pow2(40));
  one(Pow2(-130), 1);
  one(Pow2(-130), 1.5 * Pow2(127));
  one(Pow2(-20), Pow2(10));
  one(Pow2(-20), 1);
  one(Pow2(-14), 1.5 * Pow2(-8));
  one(Pow2(15), Pow2(15));
  one(Pow2(100), Pow2(100));
  // A tie between two subnormals of float16, but for a term that 11 bits drop.
  for (const double m : {1.0, 3.0}) {
    for (const double sign : {1.0, -1.0})
      make->Sum("range", "tie of float16 subnormals", {Pow2(-16) * (1 + m * Pow2(-9)), sign * Pow2(-28)},
                false);
  }
  // The same of float64, whose subnormals lie further down.
  const int least = make->format().emin;
  if (least < -126) {
    one(Pow2(least - 4), 1.5 * Pow2(40));
    one(Pow2(least / 2), 1.5 * Pow2(least - least / 2 - 2));
  }
  make->Permute("range", "{m, -1.5 m}",
                {{.a = Pow2(make->format().emin), .b = 1}, {.a = -1.5 * Pow2(make->format().emin), .b = 1}},
                false);
}

void DoubleRound(Maker* make) {
  for (const double sign : {1.0, -1.0}) {
    for (const double value : {1 + Pow2(-8) + Pow2(-12), 1 + 3 * Pow2(-8) - Pow2(-13),
                               1 + Pow2(-8) + Pow2(-13), 1 + Pow2(-11) + Pow2(-24)})
      make->Single("double_round", "a*1", sign * value, 1);
    make->Sum("double_round", "{1, 2^-8, 2^-12}", {sign, sign * Pow2(-8), sign * Pow2(-12)}, false);
    make->Sum("double_round", "{1, 3 2^-8, -2^-13}", {sign, sign * 3 * Pow2(-8), -sign * Pow2(-13)}, false);
    make->Sum("double_round", "{1, 2^-8, 2^-20}", {sign, sign * Pow2(-8), sign * Pow2(-20)}, false);
  }
}

void Pair(Maker* make) {
  for (const double sign : {1.0, -1.0}) {
    for (int k = 5; k <= 30; ++k) {
      make->Sum("pair", "{1, 2^-" + std::to_string(k) + "}", {sign, sign * Pow2(-k)}, true);
      make->Sum("pair", "{1, -2^-" + std::to_string(k) + "}", {sign, -sign * Pow2(-k)}, false);
      make->Sum("pair", "{1, 3 2^-" + std::to_string(k) + "}", {sign, sign * 3 * Pow2(-k)}, false);
    }
    // A sum that is a tie of a narrow format but for a term that float32 drops: accumulators that pass
    // through float32 round twice.
    for (const int p : {8, 11}) {
      for (const double m : {1.0, 3.0, 5.0, 7.0}) {
        for (const int k : {25, 26, 30}) {
          make->Sum("pair", "{tie, 2^-k}, p=" + std::to_string(p), {sign * (1 + m * Pow2(-p)), Pow2(-k)},
                    false);
          make->Sum("pair", "{1, tie}, p=" + std::to_string(p), {sign, sign * (m * Pow2(-p) + Pow2(-k))},
                    false);
        }
      }
    }
    for (const int p : {8, 11, 24}) {
      for (const double m : {0.5, 1.0, 1.5, 3.0})
        make->Sum("pair", "{1 + ulp, m ulp/2}, p=" + std::to_string(p),
                  {sign * (1 + Pow2(1 - p)), sign * m * Pow2(-p)}, false);
    }
  }
}

void Residual(Maker* make) {
  const int p = make->format().precision;
  // One value at many pairs of positions: whether two positions lie in one chunk of split-K.
  for (const uint64_t i : {uint64_t{0}, uint64_t{1}}) {
    const int width = std::min(p, 12);
    const double a = Significand(1000 + i, width), b = Significand(1100 + i, width);
    const double cut = std::ldexp(std::floor(std::ldexp(a * b, 6)), -6);
    const std::vector<std::vector<Factors>> sums{{{.a = a, .b = b}, {.a = -cut, .b = 1}},
                                                 {{.a = 1, .b = 1}, {.a = Pow2(-9), .b = 1}},
                                                 {{.a = 1, .b = 1}, {.a = Pow2(-12), .b = 1}},
                                                 {{.a = 1, .b = 1}, {.a = Pow2(-14), .b = 1}}};
    for (const int64_t other : make->Partners()) make->TogetherAt("residual", kChunkProbe, sums, {0, other});
  }
  for (uint64_t i = 0; i < 16; ++i) {
    for (const int width : {std::min(p, 12), p}) {
      const double a = Significand(600 + i, width),
                   b = width == 12 || p <= 12 ? Significand(700 + i, width) : 1;
      make->Residual(a, b, std::ldexp(std::floor(std::ldexp(a * b, 6)), -6));
    }
    // What is left of a full product: the passes that a split operand leaves out are as large.
    if (p == 24)
      make->Residual(Significand(640 + i, p), Significand(740 + i, p),
                     RoundTo(Significand(640 + i, p) * Significand(740 + i, p), Binary32()));
  }
}

/// The largest summand: products of float16, which a kernel may make, reach from 2^-24 to 2^15; sums of
/// float16 products from 2^-24, the least that float16 stores, to 2^30.
int TopFor(int gap) { return gap <= 38 ? 14 : 30; }

void Swamp(Maker* make) {
  for (int e = 6; e <= 54; ++e) {
    const double top = Pow2(e <= 14 ? e : TopFor(e));
    make->Sum("swamp", "e=" + std::to_string(e), {top, top * Pow2(-e), -top}, true);
  }
}

void Mode(Maker* make) {
  for (const int p : {8, 11, 24, 25, 26}) {
    const double scale = Pow2(13 - p);
    for (const double sign : {1.0, -1.0}) {
      for (const double odd : {0.0, 2.0}) {
        for (const double m : {0.5, 0.75, 1.0, 1.5, 1.75}) {
          const std::string name = "p=" + std::to_string(p) + (odd > 0 ? " odd" : "");
          make->Sum("mode", name, {sign * scale * (Pow2(p) + odd), sign * scale * m, -sign * scale * Pow2(p)},
                    false);
          make->Sum("mode", name,
                    {sign * scale * (Pow2(p) + odd), -sign * scale * m, -sign * scale * Pow2(p)}, false);
        }
      }
    }
  }
}

void Wide(Maker* make) {
  for (int k = 26; k <= 56; ++k) {
    const double top = Pow2(TopFor(k));
    for (const double sign : {1.0, -1.0}) {
      for (const int p : {8, 11, 24})
        make->Sum("wide", "p=" + std::to_string(p) + " k=" + std::to_string(k),
                  {top, top * Pow2(-p), sign * top * Pow2(-k)}, false);
      // A tie of a narrow store, kept open by a tie of float32, kept open by the last term.
      for (const int p : {8, 11}) {
        for (const double m : {1.0, 3.0, 5.0})
          make->Sum("wide", "tie at " + std::to_string(p) + " k=" + std::to_string(k),
                    {top * (1 + m * Pow2(-p)), top * Pow2(-24), sign * top * Pow2(-k)}, false);
      }
    }
  }
  // The same two roundings, brought up by a cancellation for stores that are narrower still.
  for (const int p : {8, 11}) {
    for (const double m : {1.0, 3.0, 5.0}) {
      for (const double sign : {1.0, -1.0})
        make->Sum("wide", "{tie, 2^-25, -1}, p=" + std::to_string(p),
                  {1 + m * Pow2(-p), sign * Pow2(-25), -1}, false);
    }
  }
  for (const double m : {0.5, 1.0, 1.5})
    make->Sum("wide", "{1, 2^-23, m 2^-24}", {1, Pow2(-23), m * Pow2(-24)}, false);
  for (const double m : {0.5, 1.0, 1.5})
    make->Sum("wide", "{-1, -2^-23, -m 2^-24}", {-1, -Pow2(-23), -m * Pow2(-24)}, false);
}

void Mask(Maker* make) {
  const int64_t window = std::min(make->k(), kMaskWindow);
  const Factors unit{.a = Pow2(kMaskUnitExponent), .b = 1},
      mask{.a = Pow2(kMaskExponent / 2), .b = Pow2(kMaskExponent - kMaskExponent / 2)};
  for (const auto& [i, j] : MaskPairs(make->k())) {
    ProbeDot dot;
    for (int64_t position = 0; position < window; ++position) {
      const double sign = position == i ? 1 : position == j ? -1 : 0;
      dot.terms.push_back(sign == 0 ? ProbeTerm{.position = position, .a = unit.a, .b = unit.b}
                                    : ProbeTerm{.position = position, .a = sign * mask.a, .b = mask.b});
    }
    make->groups.push_back({.family = "mask",
                            .name = "mask at " + std::to_string(i) + "," + std::to_string(j),
                            .members = {std::move(dot)}});
  }
}

void Fuse(Maker* make) {
  const int p = make->format().precision;
  for (uint64_t i = 0; i < 8 && make->k() >= 2; ++i) {
    const double x = Significand(800 + i, std::min(p, 8)),
                 y = Significand(900 + i, std::min(p, 8)) * Pow2(-9);
    ProbeDot dot{.terms = {{.position = 0, .a = x, .b = 1}, {.position = 1, .a = y, .b = 1}},
                 .addend = -RoundTo(x + y, Bfloat16())};
    make->groups.push_back(
        {.family = "fuse", .name = "{x, y} - bfloat16(x + y)", .members = {std::move(dot)}});
  }
}

struct Family {
  const char* name;
  void (*fill)(Maker*);
};
constexpr Family kFamilies[] = {{"single", Single}, {"range", Range},       {"double_round", DoubleRound},
                                {"pair", Pair},     {"residual", Residual}, {"swamp", Swamp},
                                {"mode", Mode},     {"wide", Wide},         {"mask", Mask},
                                {"fuse", Fuse}};

}  // namespace

const std::vector<std::string>& ProbeFamilies() {
  static const std::vector<std::string> names = [] {
    return Mapped<std::string>(kFamilies, &Family::name);
  }();
  return names;
}

std::vector<std::pair<int64_t, int64_t>> MaskPairs(int64_t k) {
  const int64_t window = std::min(k, kMaskWindow);
  std::vector<std::pair<int64_t, int64_t>> pairs;
  for (int64_t i = 0; i < window && window >= 3; ++i) {
    for (int64_t j = i + 1; j < window; ++j) pairs.emplace_back(i, j);
  }
  return pairs;
}

std::vector<ProbeGroup> ProbeGroups(std::string_view family, DType dtype, int64_t k) {
  for (const Family& row : kFamilies) {
    if (row.name != family || FormatOf(dtype) == nullptr) continue;
    Maker make(dtype, k);
    row.fill(&make);
    return std::move(make.groups);
  }
  return {};
}

}  // namespace ulpscope
