// Structure first: which products one unit adds at once, how wide, and how it rounds.
//
// Masks +M at i and -M at j over a field of units: every unit that meets the mask before it is cancelled is
// lost, so the lost units count the products between i and j in the summation tree (FPRev). In a fused group
// all of them are lost at once: the least count over all pairs is the group's size, and the pairs that reach
// it lie in one group.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "harness/base/find.h"
#include "oracles/dot/bank.h"

namespace ulpscope {
namespace {

/// Operands stay inside float16's normal range, whatever the dtype: a kernel may convert them.
ProbeTerm TermAt(int64_t position, double value) {
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);
  if (std::fabs(value) <= 0x1p15 && std::fabs(value) >= 0x1p-14)
    return {.position = position, .a = value, .b = 1};
  return {.position = position,
          .a = std::ldexp(fraction, exponent / 2),
          .b = std::ldexp(1.0, exponent - exponent / 2)};
}

/// 2^e u, u, -2^e u with u small enough that 2^e u stays in reach of two float16 operands.
double UnitFor(int e) { return std::ldexp(1.0, std::min(0, 28 - e)); }

constexpr int kLeastFraction = 8, kMostFraction = 40;

/// The fused groups that the masks show: sets of positions that lose each other's units all at once. In a
/// binary tree only siblings do; an unpaired leaf beside a pair loses both, but they do not lose as many.
std::vector<std::vector<int64_t>> GroupsOf(const std::vector<std::pair<int64_t, int64_t>>& pairs,
                                           const std::vector<int64_t>& lost, int64_t window) {
  std::vector<int64_t> least(static_cast<size_t>(window), window + 1);
  for (size_t p = 0; p < pairs.size(); ++p) {
    for (const int64_t i : {pairs[p].first, pairs[p].second})
      least[static_cast<size_t>(i)] = std::min(least[static_cast<size_t>(i)], lost[p]);
  }
  std::vector<std::set<int64_t>> partners(static_cast<size_t>(window));
  for (size_t p = 0; p < pairs.size(); ++p) {
    const auto i = static_cast<size_t>(pairs[p].first), j = static_cast<size_t>(pairs[p].second);
    if (lost[p] != least[i] || lost[p] != least[j]) continue;
    partners[i].insert(pairs[p].second);
    partners[j].insert(pairs[p].first);
  }
  std::vector<std::vector<int64_t>> groups;
  std::set<int64_t> taken;
  for (int64_t i = 0; i < window; ++i) {
    std::set<int64_t> group = partners[static_cast<size_t>(i)];
    if (taken.contains(i) || group.empty()) continue;
    group.insert(i);
    if (static_cast<int64_t>(group.size()) != least[static_cast<size_t>(i)]) continue;
    taken.insert(group.begin(), group.end());
    groups.emplace_back(group.begin(), group.end());
  }
  // The last group may be cut short by the end of the sum.
  std::ranges::stable_sort(groups, [](const auto& x, const auto& y) { return x.size() > y.size(); });
  return groups;
}

/// Rounding of a block's result to p bits: 1 + 1 + 3 2^(1-p) = 2 + 1.5 ulp. If the output format is too
/// narrow to show it, -2 outside the group brings it up; a position that the kernel visits before the group
/// leaves 3 2^(1-p), or the part of it that F bits keep.
std::optional<Rounding> ReadMode(int p, int fraction, const std::vector<std::vector<int64_t>>& groups,
                                 int64_t window, const RunDots& run, int64_t* dots) {
  std::optional<Rounding> mode;
  if (fraction < p - 1) return mode;
  const double ulp = std::ldexp(1.0, 2 - p);
  for (const auto& group : groups) {
    std::vector<ProbeDot> probes;
    for (const double sign : {1.0, -1.0}) {
      // A store of 11 bits would round a result that is read as it is.
      for (int64_t outside = p == 24 ? -1 : 0; outside < window; ++outside) {
        if (Contains(group, outside)) continue;
        ProbeDot dot{
            .terms = {TermAt(group[0], sign), TermAt(group[1], sign), TermAt(group[2], sign * 1.5 * ulp)},
            .addend = 0};
        if (outside >= 0) dot.terms.push_back(TermAt(outside, -2 * sign));
        probes.push_back(std::move(dot));
      }
    }
    const auto results = run(probes);
    *dots += static_cast<int64_t>(probes.size());
    for (size_t i = 0; i < results.size(); ++i) {
      double result = std::fabs(results[i]);
      // Nothing left after the cancellation: the block's result has fewer bits than p.
      if (result == 0 && probes[i].terms.size() == 4) return std::nullopt;
      if (result >= 1) result -= 2;
      if (result == 2 * ulp) return Rounding::kNearestEven;
      if (result == ulp) mode = Rounding::kTowardZero;
    }
  }
  return mode;
}

/// Units that each pair of masks loses; empty if an output is no sum of these terms.
std::vector<int64_t> LostUnits(const std::vector<double>& outputs, int64_t window) {
  std::vector<int64_t> lost;
  for (const double output : outputs) {
    const double units = std::ldexp(output, -kMaskUnitExponent);
    if (!(units >= 0 && units <= static_cast<double>(window - 2))) return {};  // or it overflows
    lost.push_back(window - static_cast<int64_t>(std::llround(units)));
  }
  return lost;
}

std::vector<int64_t> ReadLostUnits(DType in, int64_t k, int64_t window, const RunDots& run, int64_t* count) {
  std::vector<ProbeDot> dots;
  for (const ProbeGroup& group : ProbeGroups("mask", in, k)) dots.push_back(group.members.front());
  std::vector<int64_t> lost = LostUnits(run(dots), window);
  *count += static_cast<int64_t>(dots.size());
  if (!lost.empty()) return lost;
  // An accumulator of float16 overflows: the largest mask that it holds still absorbs the units.
  for (ProbeDot& dot : dots) {
    for (ProbeTerm& term : dot.terms) {
      if (std::fabs(term.a * term.b) > 1) term = TermAt(term.position, std::copysign(0x1p15, term.a));
    }
  }
  *count += static_cast<int64_t>(dots.size());
  return LostUnits(run(dots), window);
}

/// 2^e u + u - 2^e u at these three positions in every order, for e from kLeastFraction: the number of orders that keep
/// u. Nothing if a result is NaN.
std::optional<std::vector<int>> OrdersThatKeep(const std::vector<int64_t>& at, const RunDots& run,
                                               int64_t* count) {
  // In separate launches: members of one permutation meet the same coordinate.
  std::vector<std::vector<ProbeDot>> launches(6);
  for (int e = kLeastFraction; e <= kMostFraction; ++e) {
    const double u = UnitFor(e);
    std::vector<double> summands{std::ldexp(u, e), u, -std::ldexp(u, e)};
    std::vector<size_t> order{0, 1, 2};
    for (auto& launch : launches) {
      ProbeDot dot;
      for (size_t i = 0; i < 3; ++i) dot.terms.push_back(TermAt(at[i], summands[order[i]]));
      launch.push_back(std::move(dot));
      std::next_permutation(order.begin(), order.end());
    }
  }
  std::vector<int> kept(static_cast<size_t>(kMostFraction - kLeastFraction + 1), 0);
  for (const auto& launch : launches) {
    const auto results = run(launch);
    *count += static_cast<int64_t>(launch.size());
    for (size_t i = 0; i < results.size(); ++i) {
      if (std::isnan(results[i])) return std::nullopt;
      if (results[i] != 0) ++kept[i];
    }
  }
  return kept;
}

}  // namespace

BlockDecode DecodeBlocks(DType in, int64_t k, const RunDots& run) {
  BlockDecode decode;
  const int64_t window = std::min(k, kMaskWindow);
  if (window < 3) return decode;
  const std::vector<int64_t> lost = ReadLostUnits(in, k, window, run, &decode.dots);
  if (lost.empty()) return decode;
  auto groups = GroupsOf(MaskPairs(k), lost, window);
  if (groups.empty()) return decode;
  decode.n = static_cast<int>(groups.front().size());
  if (decode.n <= 2) {
    decode.kind = BlockDecode::Kind::kNotFused;
    return decode;
  }
  std::erase_if(groups, [&](const auto& group) { return group.size() != groups.front().size(); });
  decode.group = groups.front();
  decode.may_be_tail = groups.size() == 1 && groups.front().back() == k - 1;
  decode.n_is_least = groups.size() == 1 && decode.n + 2 > window;

  std::vector<std::vector<int64_t>> inside{{groups.front()[0], groups.front()[1], groups.front()[2]}};
  if (groups.back() != groups.front())
    inside.push_back({groups.back()[0], groups.back()[1], groups.back()[2]});
  int fraction = kMostFraction + 1;
  bool fused = true;
  for (const auto& at : inside) {
    const auto kept = OrdersThatKeep(at, run, &decode.dots);
    if (!kept) return decode;
    int own = kLeastFraction - 1;
    for (size_t i = 0; i < kept->size(); ++i) {
      if ((*kept)[i] == 6) own = kLeastFraction + static_cast<int>(i);
      // A binary tree keeps the unit in two of six however wide the gap.
      if ((*kept)[i] != 0 && (*kept)[i] != 6) fused = false;
    }
    fraction = std::min(fraction, own);
  }
  if (!fused) return decode;
  decode.kind = BlockDecode::Kind::kFused;
  decode.fraction = fraction >= kLeastFraction && fraction <= kMostFraction ? fraction : 0;

  decode.mode = ReadMode(24, decode.fraction, groups, window, run, &decode.dots);
  if (!decode.mode) decode.mode = ReadMode(11, decode.fraction, groups, window, run, &decode.dots);
  return decode;
}

}  // namespace ulpscope
