// The lines of crossed probes.
#include "harness/model/cross.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "harness/base/find.h"
#include "harness/base/hash.h"
#include "harness/num/float_format.h"

namespace ulpscope {
namespace {

double Scale(double value, int exponent) { return std::ldexp(value, exponent); }

/// An odd significand of `bits` bits in [1, 1 + 2^-near), from an integer hash.
double CrossSignificand(uint64_t index, int bits, int near) {
  const uint64_t z = MixBits((index + 1) * kGoldenGamma);
  const uint64_t fraction = z >> (65 - bits + near);  // bits - 1 - near random bits
  return std::ldexp(static_cast<double>((uint64_t{1} << (bits - 1)) | fraction | 1), 1 - bits);
}

/// Three positions that belong together. The first half of a line holds neighbours, the second half positions that lie
/// as far apart as it allows: kernels add near terms early and far ones late.
std::array<int64_t, 3> Segment(int64_t k, int64_t line) {
  const int64_t all = k / 3, near = (all + 1) / 2, far = all - near, segment = line % all;
  if (segment % 2 == 0 || far == 0) {
    const int64_t first = 3 * (segment / 2 % near);
    return {first, first + 1, first + 2};
  }
  const int64_t first = 3 * near + segment / 2 % far;
  return {first, first + far, first + 2 * far};
}

/// Every segment of a line, each with the values that `fill` gives its three slots.
template <class Values>
std::vector<CrossTerm> AllSegments(int64_t k, const Values& values) {
  std::vector<CrossTerm> terms;
  for (int64_t segment = 0; segment < k / 3; ++segment) {
    const auto positions = Segment(k, segment);
    const std::array<double, 3> three = values(segment);
    for (size_t slot = 0; slot < 3; ++slot)
      terms.push_back({.position = positions[slot], .value = three[slot]});
  }
  return terms;
}

constexpr std::array<std::array<size_t, 3>, 6> kOrders{
    {{0, 1, 2}, {1, 2, 0}, {2, 0, 1}, {0, 2, 1}, {1, 0, 2}, {2, 1, 0}}};
/// How far the middle term of `swamp` lies below the others. Stores of 8 bits show what is lost from 18 on; 16 and
/// 17 tell for wider ones, 24 and 25 lose all of it in float32.
constexpr std::array<int, 7> kGaps{20, 22, 18, 21, 23, 16, 25};

/// A number of its own for each value that a line holds.
uint64_t Key(CrossSide side, int64_t line, int64_t place) {
  return (side == CrossSide::kA ? 0x10000000000u : 0x20000000000u) + static_cast<uint64_t>(line) * 0x100000u +
         static_cast<uint64_t>(place);
}

/// Exponent of numbers that are zero in float16; its negative: of numbers that are infinite there.
constexpr int kBeyondFloat16 = -27;

std::vector<CrossTerm> SingleLine(CrossSide side, int bits, int64_t k, int64_t line) {
  // Most products lie among the subnormals of float16, which keep fewer bits: a rounding to 11 bits shows there only.
  int scale = line % 4 == 0 ? 0 : side == CrossSide::kA ? -8 : -9;
  // Formats of a larger range have numbers that float16 has not: read in it, or flushed where it flushes, they are gone.
  if (bits != Binary16().precision && line % 8 == 5) scale = kBeyondFloat16;
  if (bits != Binary16().precision && line % 8 == 7) scale = -kBeyondFloat16;
  // Three times an odd significand lies half-way between two of as many bits, one time in two: how ties are rounded.
  if (side == CrossSide::kB && line % 4 == 2) {
    bits = 2;
    scale = 0;
  }
  const auto value = [&](int64_t place) {
    const uint64_t key = Key(side, line, place);
    const double sign = CrossSignificand(key ^ 0x5555, 8, 0) < 1.5 ? 1 : -1;
    return sign * Scale(CrossSignificand(key, bits, 0), scale);
  };
  // One operand holds values everywhere, the other one at a place that moves from line to line.
  std::vector<CrossTerm> terms;
  if (side == CrossSide::kB) return {{.position = line * 5 % k, .value = value(0)}};
  for (int64_t position = 0; position < k; ++position)
    terms.push_back({.position = position, .value = value(position)});
  return terms;
}

std::vector<CrossTerm> CancelLine(CrossSide side, int bits, int64_t k, int64_t line) {
  const int near = bits <= 8 ? 2 : 4;
  const auto value = [&](int64_t place) { return CrossSignificand(Key(side, line, place), bits, near); };
  if (side == CrossSide::kB) {
    std::vector<CrossTerm> terms;
    const auto positions = Segment(k, line);
    for (size_t slot = 0; slot < 3; ++slot)
      terms.push_back({.position = positions[slot], .value = value(static_cast<int64_t>(slot))});
    return terms;
  }
  return AllSegments(k, [&](int64_t segment) {
    std::array<double, 3> three{};
    const auto& order = kOrders[static_cast<size_t>((line + segment) % 6)];
    for (size_t slot = 0; slot < 3; ++slot)
      three[order[slot]] = (slot == 2 ? -2 : 1) * value(3 * segment + static_cast<int64_t>(slot));
    return three;
  });
}

std::vector<CrossTerm> SwampLine(CrossSide side, int bits, int64_t k, int64_t line) {
  if (side == CrossSide::kB) {
    // One factor for all three: the large terms cancel exactly whatever it is.
    const double factor = CrossSignificand(Key(side, line, 0), bits, 0);
    std::vector<CrossTerm> terms;
    for (const int64_t position : Segment(k, line)) terms.push_back({.position = position, .value = factor});
    return terms;
  }
  return AllSegments(k, [&](int64_t segment) {
    const int gap = kGaps[static_cast<size_t>((line + segment) % 7)];
    // Half of the gap above one and half below keeps float16 operands normal.
    const double large = Scale(CrossSignificand(Key(side, line, 2 * segment), bits, 0), gap - gap / 2);
    const double small = Scale(CrossSignificand(Key(side, line, 2 * segment + 1), bits, 0), -(gap / 2));
    const std::array<double, 3> values{large, small, -large};
    std::array<double, 3> three{};
    const auto& order = kOrders[static_cast<size_t>((line + segment) % 6)];
    for (size_t slot = 0; slot < 3; ++slot) three[order[slot]] = values[slot];
    return three;
  });
}

/// A tie of a narrow store and a hair beside it, which lies `hair` bits below the leading one.
std::vector<CrossTerm> TieLine(CrossSide side, int bits, int64_t k, int64_t line, int store, int hair) {
  if (side == CrossSide::kB) {
    std::vector<CrossTerm> terms;
    for (const int64_t position : Segment(k, line)) terms.push_back({.position = position, .value = 1});
    return terms;
  }
  return AllSegments(k, [&](int64_t segment) {
    // A tie goes away from a significand that is odd in the store, and back to an even one: a hair to the other side
    // shows. Both, and both signs, or a store that cuts would look like the hair. All three terms stay normal in float16.
    constexpr int kScale = 12;
    const bool is_odd = bits >= store && (line / 2 + segment) % 2 == 0;
    const double sign = (line / 4 + segment) % 2 == 0 ? 1 : -1;
    const int kept = std::min(bits, store) - (bits >= store && !is_odd ? 1 : 0);
    const double value = sign * CrossSignificand(Key(side, line, segment), kept, 0);
    const std::array<double, 3> values{Scale(value, kScale), Scale(sign, kScale - store),
                                       Scale(is_odd ? -sign : sign, kScale - hair)};
    std::array<double, 3> three{};
    const auto& order = kOrders[static_cast<size_t>((line + segment) % 6)];
    for (size_t slot = 0; slot < 3; ++slot) three[order[slot]] = values[slot];
    return three;
  });
}

int NarrowStore(int64_t line) { return line % 2 == 0 ? Bfloat16().precision : Binary16().precision; }

std::vector<CrossTerm> WideLine(CrossSide side, int bits, int64_t k, int64_t line) {
  return TieLine(side, bits, k, line, NarrowStore(line), 26);  // below half a unit of float32
}

std::vector<CrossTerm> FineLine(CrossSide side, int bits, int64_t k, int64_t line) {
  // The last bit of float32, or nearly: more than 11 bits below the half unit, which no 16-bit sum keeps beside it.
  const int store = NarrowStore(line);
  return TieLine(side, bits, k, line, store, store == Bfloat16().precision ? 21 : 23);
}

std::vector<CrossTerm> HalfLine(CrossSide side, int bits, int64_t k, int64_t line) {
  const int64_t pairs = k / 2;
  if (side == CrossSide::kB) {
    const int64_t first = 2 * (line % pairs);
    return {{.position = first, .value = 1}, {.position = first + 1, .value = 1}};
  }
  std::vector<CrossTerm> terms;
  for (int64_t pair = 0; pair < pairs; ++pair) {
    constexpr std::array<int, 3> kStores{24, 8, 11};
    // Both terms stay normal in float16. Even significands go back to themselves, and away from zero where ties do; a store that
    // cuts is told by the odd ones.
    constexpr int kScale = 12;
    const int store = kStores[static_cast<size_t>(line + pair) % 3];
    const bool is_odd = bits >= store && (line / 3 + pair) % 2 == 0;
    const double sign = (line / 2 + pair) % 2 == 0 ? 1 : -1;
    const int kept = std::min(bits, store) - (bits >= store && !is_odd ? 1 : 0);
    // A value of fewer bits than the store has is even there: cutting shows beside more than a half.
    const double rest = bits < store && (line / 3 + pair) % 2 == 0 ? 1.5 : 1;
    const std::array<double, 2> values{Scale(sign * CrossSignificand(Key(side, line, pair), kept, 0), kScale),
                                       Scale(sign * rest, kScale - store)};
    const auto turned = static_cast<size_t>(line / 6 % 2);
    for (size_t slot = 0; slot < 2; ++slot)
      terms.push_back({.position = 2 * pair + static_cast<int64_t>(slot), .value = values[slot ^ turned]});
  }
  return terms;
}

std::vector<CrossTerm> ChunkLine(CrossSide side, int bits, int64_t k, int64_t line) {
  const int near = bits <= 8 ? 2 : 4;
  const auto value = [&](int64_t place) { return CrossSignificand(Key(side, line, place), bits, near); };
  const auto partners = ChunkPartners(k);
  if (side == CrossSide::kB) {
    const int64_t partner = partners[static_cast<size_t>(line) % partners.size()];
    return {{.position = 0, .value = value(0)}, {.position = partner, .value = value(1)}};
  }
  std::vector<CrossTerm> terms{{.position = 0, .value = value(0)}};
  for (const int64_t partner : partners) terms.push_back({.position = partner, .value = -value(partner)});
  return terms;
}

/// Two places of a line, near and far apart.
std::array<int64_t, 2> Places(int64_t k, int64_t line) {
  const int64_t first = line % k;
  return {first, (first + 1 + line / k * 7 % (k - 1)) % k};
}

std::vector<CrossTerm> SquaresLine(CrossSide side, int bits, int64_t k, int64_t line) {
  if (side == CrossSide::kB) return {};
  const auto [first, second] = Places(k, line);
  return {
      {.position = first, .value = CrossSignificand(Key(CrossSide::kA, line, 0), bits, 0)},
      {.position = second,
       .value = -Scale(CrossSignificand(Key(CrossSide::kA, line, 1), bits, 0), -static_cast<int>(line % 4))}};
}

std::vector<CrossTerm> OpposedLine(CrossSide side, int bits, int64_t k, int64_t line) {
  if (side == CrossSide::kB) return {};
  const auto [first, second] = Places(k, line);
  constexpr int64_t kSizes = 12;
  const double value =
      Scale(CrossSignificand(Key(CrossSide::kA, line, 0), bits, 0), -static_cast<int>(line % kSizes));
  return {{.position = first, .value = value}, {.position = second, .value = -value}};
}

std::vector<CrossTerm> ExponentsLine(CrossSide side, int bits, int64_t k, int64_t line) {
  if (side == CrossSide::kB) return {};
  constexpr double kNothing = -1024;  // whose exponential is below the least double
  std::vector<CrossTerm> terms;
  for (int64_t position = 0; position < k; ++position)
    terms.push_back({.position = position, .value = kNothing});
  const auto [first, second] = Places(k, line);
  auto &top = terms[static_cast<size_t>(first)].value, &next = terms[static_cast<size_t>(second)].value;
  constexpr int64_t kOneIsHigh = 8;
  if (line % kOneIsHigh == kOneIsHigh - 1) {
    // Whose exponential float32 does not hold: a form that does not take the maximum away first is none of softmax.
    top = 120;
    next = top - static_cast<double>(1 + line / kOneIsHigh % 7) / 2;
    return terms;
  }
  // Less than this, the others are no difference that a narrow format holds.
  top = Scale(CrossSignificand(Key(CrossSide::kA, line, 1), bits, 0), -2);
  next = -Scale(CrossSignificand(Key(CrossSide::kA, line, 0), bits, 0), static_cast<int>(line % 5) - 3);
  return terms;
}

struct CrossFamily {
  std::string_view name;
  int64_t least;
  std::vector<CrossTerm> (*line)(CrossSide side, int bits, int64_t k, int64_t line);
};
constexpr std::array<CrossFamily, 10> kCrossFamilies{{{"single", 1, SingleLine},
                                                      {"cancel", 3, CancelLine},
                                                      {"swamp", 3, SwampLine},
                                                      {"wide", 3, WideLine},
                                                      {"tie", 3, FineLine},
                                                      {"half", 2, HalfLine},
                                                      {"chunk", 2, ChunkLine},
                                                      {"squares", 2, SquaresLine},
                                                      {"opposed", 2, OpposedLine},
                                                      {"exponents", 2, ExponentsLine}}};

/// Lines of one operand alone have no partner that picks terms.
bool IsOfOneOperand(std::string_view name) {
  return name == "squares" || name == "opposed" || name == "exponents";
}

}  // namespace

const std::vector<std::string>& CrossNames() {
  static const std::vector<std::string> names = [] {
    return Mapped<std::string>(kCrossFamilies, &CrossFamily::name);
  }();
  return names;
}

int64_t LeastCrossLength(std::string_view name) {
  for (const CrossFamily& family : kCrossFamilies) {
    if (family.name == name) return family.least;
  }
  return INT64_MAX;
}

std::vector<CrossTerm> CrossLine(std::string_view name, CrossSide side, DType dtype, int64_t k,
                                 int64_t line) {
  for (const CrossFamily& family : kCrossFamilies) {
    if (family.name != name || k < family.least) continue;
    const int bits = FormatOf(dtype)->precision;
    if (side != CrossSide::kSum) return family.line(side, bits, k, line);
    if (IsOfOneOperand(name)) return family.line(CrossSide::kA, bits, k, line);
    // Line and picked terms follow one another otherwise, and with them what a term is like: of 192 lines of 1000 terms none had a tie
    // between float32 numbers whose lower one is even.
    constexpr int64_t kLines = 46656;  // any multiple of the periods of all families
    const auto mixed =
        static_cast<int64_t>(MixBits((static_cast<uint64_t>(line) + 1) * kGoldenGamma) % kLines);
    std::vector<CrossTerm> terms = family.line(CrossSide::kA, bits, k, mixed);
    const auto picked = family.line(CrossSide::kB, bits, k, line);
    std::erase_if(terms, [&](const CrossTerm& term) {
      return std::ranges::none_of(picked,
                                  [&](const CrossTerm& one) { return one.position == term.position; });
    });
    return terms;
  }
  return {};
}

std::vector<int64_t> ChunkPartners(int64_t k) {
  std::vector<int64_t> partners;
  for (int64_t position = 1; position < k; position *= 2) partners.push_back(position);
  if (k > 1 && partners.back() != k - 1) partners.push_back(k - 1);
  return partners;
}

}  // namespace ulpscope
