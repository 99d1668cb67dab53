// Comparisons of enclosures, and whole parts and remainders of numbers that are too long for a double.
#include "oracles/choices.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "harness/base/check.h"
#include "harness/num/error_free.h"
#include "oracles/functions/enclose.h"
#include "oracles/functions/fixed.h"

namespace ulpscope {
namespace {

/// Truth of a comparison, as far as it is decided.
enum class Answer { kNo, kYes, kOpen };

Answer Not(Answer a) { return a == Answer::kOpen ? a : a == Answer::kYes ? Answer::kNo : Answer::kYes; }
Answer Of(bool value) { return value ? Answer::kYes : Answer::kNo; }

bool IsNoNumber(const Real& a) { return a.is_domain() && !a.is_undecided() && std::isnan(a.domain()); }

/// -1, 0, 1 by the ends of two enclosures; an infinity lies beyond every number.
int CompareEnds(const Real& a, const Dyadic& a_end, const Real& b, const Dyadic& b_end) {
  const double x = a.is_domain() ? a.domain() : 0, y = b.is_domain() ? b.domain() : 0;
  if (x != 0 || y != 0) return x < y ? -1 : x > y ? 1 : 0;
  return Compare(a_end, b_end);
}

Answer IsBelow(const Real& a, const Real& b) {
  if (IsNoNumber(a) || IsNoNumber(b)) return Answer::kNo;
  if (a.is_undecided() || b.is_undecided()) return Answer::kOpen;
  if (CompareEnds(a, a.hi(), b, b.lo()) < 0) return Answer::kYes;
  return CompareEnds(a, a.lo(), b, b.hi()) >= 0 ? Answer::kNo : Answer::kOpen;
}

Answer IsSame(const Real& a, const Real& b) {
  if (IsNoNumber(a) || IsNoNumber(b)) return Answer::kNo;
  const Answer below = IsBelow(a, b), above = IsBelow(b, a);
  if (below == Answer::kYes || above == Answer::kYes) return Answer::kNo;
  return below == Answer::kNo && above == Answer::kNo ? Answer::kYes : Answer::kOpen;
}

/// Anything but a zero is true.
Answer IsTrue(const Real& a) { return IsNoNumber(a) ? Answer::kYes : Not(IsSame(a, Real::From(0.0))); }

bool MayBeNan(Interval a) { return a.special || std::isnan(a.lo) || std::isnan(a.hi); }

Answer IsBelow(Interval a, Interval b) {
  if (MayBeNan(a) || MayBeNan(b)) return Answer::kOpen;
  return a.hi < b.lo ? Answer::kYes : a.lo >= b.hi ? Answer::kNo : Answer::kOpen;
}
Answer IsSame(Interval a, Interval b) {
  if (MayBeNan(a) || MayBeNan(b)) return Answer::kOpen;
  if (a.hi < b.lo || b.hi < a.lo) return Answer::kNo;
  return a.lo == a.hi && b.lo == b.hi ? Answer::kYes : Answer::kOpen;
}
Answer IsTrue(Interval a) { return Not(IsSame(a, Interval{.lo = 0, .hi = 0})); }

Answer IsBelow(TwoDoubles a, TwoDoubles b) { return Of(a.hi < b.hi || (a.hi == b.hi && a.lo < b.lo)); }
Answer IsSame(TwoDoubles a, TwoDoubles b) { return Of(a.hi == b.hi && a.lo == b.lo); }
Answer IsTrue(TwoDoubles a) { return Of(a.hi != 0); }

template <class Value>
Answer Condition(NodeKind kind, std::span<const Value> args) {
  switch (kind) {
    case NodeKind::kEqual:
      return IsSame(args[0], args[1]);
    case NodeKind::kLess:
      return IsBelow(args[0], args[1]);
    case NodeKind::kLessEqual: {
      const Answer less = IsBelow(args[0], args[1]), equal = IsSame(args[0], args[1]);
      if (less == Answer::kYes || equal == Answer::kYes) return Answer::kYes;
      if (less == Answer::kNo && equal == Answer::kNo) return Answer::kNo;
      // Two enclosures that touch: certainly less or equal if no point of the one lies above the other.
      return IsBelow(args[1], args[0]) == Answer::kNo ? Answer::kYes : Answer::kOpen;
    }
    case NodeKind::kNot:
      return Not(IsTrue(args[0]));
    case NodeKind::kAnd: {
      const Answer a = IsTrue(args[0]), b = IsTrue(args[1]);
      if (a == Answer::kNo || b == Answer::kNo) return Answer::kNo;
      return a == Answer::kYes && b == Answer::kYes ? Answer::kYes : Answer::kOpen;
    }
    case NodeKind::kOr: {
      const Answer a = IsTrue(args[0]), b = IsTrue(args[1]);
      if (a == Answer::kYes || b == Answer::kYes) return Answer::kYes;
      return a == Answer::kNo && b == Answer::kNo ? Answer::kNo : Answer::kOpen;
    }
    default:
      break;
  }
  ULPSCOPE_CHECK(false, "not a condition");
}

// ---- whole parts

Dyadic Floor(const Dyadic& x) {
  if (x.e >= 0) return x;
  const Dyadic cut{.m = fixed::ShiftRight(x.m, -x.e), .e = 0};  // towards zero
  return Compare(cut, x) > 0 ? cut - Dyadic{.m = 1, .e = 0} : cut;
}

Dyadic Whole(NodeKind kind, const Dyadic& x) {
  switch (kind) {
    case NodeKind::kFloor:
      return Floor(x);
    case NodeKind::kCeil:
      return Negate(Floor(Negate(x)));
    case NodeKind::kTrunc:
      return x.sign() < 0 ? Negate(Floor(Negate(x))) : Floor(x);
    default:
      break;
  }
  // To even: add half a unit and truncate; one less if that met an odd whole number exactly.
  const Dyadic raised = x + Dyadic{.m = 1, .e = -1}, whole = Floor(raised);
  const Dyadic half = Floor(Dyadic{.m = whole.m, .e = whole.e - 1});
  const bool odd = Compare(half + half, whole) != 0;
  return odd && Compare(raised, whole) == 0 ? whole - Dyadic{.m = 1, .e = 0} : whole;
}

double Whole(NodeKind kind, double x) {
  switch (kind) {
    case NodeKind::kFloor:
      return std::floor(x);
    case NodeKind::kCeil:
      return std::ceil(x);
    case NodeKind::kTrunc:
      return std::trunc(x);
    default:
      return std::nearbyint(x);
  }
}

/// The head decides wherever it is no whole number itself, a tie apart.
TwoDoubles Whole(NodeKind kind, TwoDoubles x) {
  if (kind == NodeKind::kTrunc) kind = x.hi < 0 ? NodeKind::kCeil : NodeKind::kFloor;
  const double whole = Whole(kind, x.hi);
  if (!std::isfinite(x.hi) || x.lo == 0) return {.hi = whole, .lo = 0};
  if (std::trunc(x.hi) != x.hi) {
    const bool tie = kind == NodeKind::kRound && std::fabs(x.hi - std::trunc(x.hi)) == 0.5;
    return {.hi = tie ? (x.lo > 0 ? std::ceil(x.hi) : std::floor(x.hi)) : whole, .lo = 0};
  }
  const bool tie = kind == NodeKind::kRound && std::fabs(x.lo) == 0.5;
  const double rest = tie ? (std::fmod(x.hi, 2) == 0 ? 0 : 2 * x.lo) : Whole(kind, x.lo);
  return Add(x, {.hi = rest - x.lo, .lo = 0});
}

/// A monotone step of one operand.
Real Stepwise(NodeKind kind, const Real& a) {
  if (a.is_undecided() || a.is_domain()) return a;
  return Real::Between(Whole(kind, a.lo()), Whole(kind, a.hi()));
}

bool IsWhole(NodeKind kind) {
  return kind == NodeKind::kFloor || kind == NodeKind::kCeil || kind == NodeKind::kRound ||
         kind == NodeKind::kTrunc;
}

double Sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

// ---- remainders

/// a - trunc(a / b) b of numbers, b not zero.
Dyadic Fmod(const Dyadic& a, const Dyadic& b) {
  const int64_t e = std::min(a.e, b.e);
  return {.m = fixed::ShiftRight(a.m, e - a.e) % fixed::ShiftRight(b.m, e - b.e), .e = e};
}

Real Fmod(const Real& a, const Real& b) {
  if (a.is_undecided() || b.is_undecided()) return UndecidedValue();
  if (a.is_domain() || (b.is_domain() && std::isnan(b.domain())) ||
      (b.is_point() && !b.is_domain() && b.lo().is_zero()))
    return DomainValue(std::nan(""));
  if (b.is_domain()) return a;
  if (!b.is_point()) return UndecidedValue();
  const Dyadic low = Fmod(a.lo(), b.lo()), high = Fmod(a.hi(), b.lo());
  if (a.is_point()) return Real::From(low);
  // On one tooth of the saw both ends have the same multiple below them.
  const bool one_tooth = Compare(a.lo() - low, a.hi() - high) == 0 && a.lo().sign() * a.hi().sign() >= 0;
  return one_tooth ? Real::Between(low, high) : UndecidedValue();
}

Interval Fmod(Interval a, Interval b) {
  if (MayBeNan(a) || MayBeNan(b) || std::isinf(a.lo) || std::isinf(a.hi) || (b.lo <= 0 && b.hi >= 0))
    return kEverything;
  const double most = std::max(std::fabs(b.lo), std::fabs(b.hi));
  if (b.lo == b.hi && (a.lo >= 0 || a.hi <= 0)) {
    const double low = std::fmod(a.lo, most), high = std::fmod(a.hi, most);
    if (a.hi - a.lo < most && low <= high) return {.lo = low, .hi = high};
  }
  const double reach = std::min(most, std::max(std::fabs(a.lo), std::fabs(a.hi)));
  return {.lo = a.lo < 0 ? -reach : 0, .hi = a.hi > 0 ? reach : 0};
}

/// Remainder of the heads, moved by a's tail if it has one.
TwoDoubles Fmod(TwoDoubles a, TwoDoubles b) {
  const TwoDoubles head{.hi = std::fmod(a.hi, b.hi), .lo = 0};
  if (a.lo == 0 || !std::isfinite(head.hi)) return head;
  const TwoDoubles moved = Add(head, {.hi = a.lo, .lo = 0});
  const double size = std::fabs(b.hi), sign = a.hi < 0 ? -1 : 1;
  if (sign * moved.hi < 0) return Add(moved, {.hi = sign * size, .lo = 0});
  return sign * moved.hi >= size ? Add(moved, {.hi = -sign * size, .lo = 0}) : moved;
}

// ---- order

bool IsNoNumber(Interval) { return false; }  // called only where none may be one
bool IsNoNumber(TwoDoubles a) { return std::isnan(a.hi); }

/// Orders by the lower or by the upper ends of enclosures.
struct ComparedBy {
  bool upper = false;
  bool operator()(const Real& a, const Real& b) const {
    return CompareEnds(a, upper ? a.hi() : a.lo(), b, upper ? b.hi() : b.lo()) < 0;
  }
  bool operator()(Interval a, Interval b) const { return upper ? a.hi < b.hi : a.lo < b.lo; }
  bool operator()(TwoDoubles a, TwoDoubles b) const { return IsBelow(a, b) == Answer::kYes; }
};

/// The element at the place; among equal elements the earlier one comes first.
template <class Value>
size_t At(const Ranking& ranking, std::span<const Value> line, ComparedBy below) {
  std::vector<size_t> order(line.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto before = [&](size_t i, size_t j) {
    const bool a = IsNoNumber(line[i]), b = IsNoNumber(line[j]);
    if (a != b) return ranking.nan_first == a;
    if (a || below(line[i], line[j]) == below(line[j], line[i])) return i < j;
    return below(line[i], line[j]) != ranking.descending;
  };
  const auto place = order.begin() + static_cast<std::ptrdiff_t>(ranking.place);
  std::nth_element(order.begin(), place, order.end(), before);
  return *place;
}

/// The first and the last element that may be at the place, by the numbers of elements that are certainly before and
/// after it.
template <class Value>
std::pair<int64_t, int64_t> PlacesOf(const Ranking& ranking, std::span<const Value> line) {
  const auto before = [&](size_t i, size_t j) {  // for certain
    const bool a = IsNoNumber(line[i]), b = IsNoNumber(line[j]);
    if (a != b) return ranking.nan_first == a;
    const bool same = a || IsSame(line[i], line[j]) == Answer::kYes;
    if (same) return ranking.stable && i < j;
    return (ranking.descending ? IsBelow(line[j], line[i]) : IsBelow(line[i], line[j])) == Answer::kYes;
  };
  int64_t first = -1, last = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    int64_t ahead = 0, behind = 0;
    for (size_t j = 0; j < line.size(); ++j) {
      ahead += before(j, i) ? 1 : 0;
      behind += before(i, j) ? 1 : 0;
    }
    if (ahead > ranking.place || behind > static_cast<int64_t>(line.size()) - 1 - ranking.place) continue;
    if (first < 0) first = static_cast<int64_t>(i);
    last = static_cast<int64_t>(i);
  }
  return {first, last};
}

Real Negated(const Real& a) { return Subtract(Real::From(0.0), a, 64); }

}  // namespace

Real ChoiceOf(NodeKind kind, std::span<const Real> args) {
  if (IsCondition(kind)) {
    const Answer answer = Condition(kind, args);
    return answer == Answer::kOpen ? Real::Between(Dyadic{}, Dyadic{.m = 1, .e = 0})
                                   : Real::From(answer == Answer::kYes ? 1.0 : 0.0);
  }
  if (IsWhole(kind)) return Stepwise(kind, args[0]);
  const Real& a = args[0];
  switch (kind) {
    case NodeKind::kSign:
      if (a.is_undecided()) return a;
      if (a.is_domain()) return Real::From(Sign(a.domain()));
      return Real::Between({.m = a.lo().sign(), .e = 0}, {.m = a.hi().sign(), .e = 0});
    case NodeKind::kLarger:
      return Maximum(a, args[1]);
    case NodeKind::kSmaller:
      return Negated(Maximum(Negated(a), Negated(args[1])));
    case NodeKind::kFmod:
      return Fmod(a, args[1]);
    default:
      break;
  }
  ULPSCOPE_CHECK(false, "not a choice");
}

Interval ChoiceOf(NodeKind kind, std::span<const Interval> args) {
  if (IsCondition(kind)) {
    const Answer answer = Condition(kind, args);
    return {.lo = answer == Answer::kYes ? 1.0 : 0.0, .hi = answer == Answer::kNo ? 0.0 : 1.0};
  }
  const Interval a = args[0];
  if (MayBeNan(a) || MayBeNan(args.back()))
    return kind == NodeKind::kSign ? Interval{.lo = -1, .hi = 1} : kEverything;
  if (IsWhole(kind)) return {.lo = Whole(kind, a.lo), .hi = Whole(kind, a.hi)};
  switch (kind) {
    case NodeKind::kSign:
      return {.lo = Sign(a.lo), .hi = Sign(a.hi)};
    case NodeKind::kLarger:
      return {.lo = std::max(a.lo, args[1].lo), .hi = std::max(a.hi, args[1].hi)};
    case NodeKind::kSmaller:
      return {.lo = std::min(a.lo, args[1].lo), .hi = std::min(a.hi, args[1].hi)};
    case NodeKind::kFmod:
      return Fmod(a, args[1]);
    default:
      break;
  }
  ULPSCOPE_CHECK(false, "not a choice");
}

TwoDoubles ChoiceOf(NodeKind kind, std::span<const TwoDoubles> args) {
  if (IsCondition(kind)) return {.hi = Condition(kind, args) == Answer::kYes ? 1.0 : 0.0, .lo = 0};
  if (IsWhole(kind)) return Whole(kind, args[0]);
  const TwoDoubles a = args[0];
  if (kind == NodeKind::kSign) return {.hi = Sign(a.hi), .lo = 0};
  if (kind == NodeKind::kFmod) return Fmod(a, args[1]);
  if (std::isnan(a.hi)) return a;
  const bool below = IsBelow(a, args[1]) == Answer::kYes;
  if (kind == NodeKind::kLarger) return below || std::isnan(args[1].hi) ? args[1] : a;
  if (kind == NodeKind::kSmaller) return below ? a : args[1];  // a NaN is not above anything
  ULPSCOPE_CHECK(false, "not a choice");
}

Real RankOf(const PlanNode& node, std::span<const Real> line) {
  if (std::ranges::any_of(line, [](const Real& each) { return each.is_undecided(); }))
    return UndecidedValue();
  const Ranking& ranking = node.Get<RankedAlong>().ranking;
  if (node.kind == NodeKind::kPlace) {
    const auto [first, last] = PlacesOf(ranking, line);
    return Real::Between({.m = first, .e = 0}, {.m = last, .e = 0});
  }
  // The value at a place lies between the one there in the order of the lower ends and the one there in the
  // order of the upper ends.
  const Real &low = line[At(ranking, line, ComparedBy{.upper = false})],
             &high = line[At(ranking, line, ComparedBy{.upper = true})];
  if (IsNoNumber(low)) return low;
  if (!low.is_domain() && !high.is_domain()) return Real::Between(low.lo(), high.hi());
  return low.is_domain() && high.is_domain() && low.domain() == high.domain() ? low : UndecidedValue();
}

Interval RankOf(const PlanNode& node, std::span<const Interval> line) {
  const auto last = static_cast<double>(line.size() - 1);
  const bool open = std::ranges::any_of(line, [](Interval each) { return MayBeNan(each); });
  const Ranking& ranking = node.Get<RankedAlong>().ranking;
  if (node.kind == NodeKind::kPlace) {
    if (open) return {.lo = 0, .hi = last};
    const auto [first_place, last_place] = PlacesOf(ranking, line);
    return {.lo = static_cast<double>(first_place), .hi = static_cast<double>(last_place)};
  }
  if (open) return kEverything;
  return {.lo = line[At(ranking, line, ComparedBy{.upper = false})].lo,
          .hi = line[At(ranking, line, ComparedBy{.upper = true})].hi};
}

TwoDoubles RankOf(const PlanNode& node, std::span<const TwoDoubles> line) {
  const size_t at = At(node.Get<RankedAlong>().ranking, line, ComparedBy{.upper = false});
  return node.kind == NodeKind::kPlace ? TwoDoubles{.hi = static_cast<double>(at), .lo = 0} : line[at];
}

std::optional<bool> TruthOf(const Real& condition) {
  const Answer answer = IsTrue(condition);
  return answer == Answer::kOpen ? std::nullopt : std::optional(answer == Answer::kYes);
}
std::optional<bool> TruthOf(Interval condition) {
  const Answer answer = IsTrue(condition);
  return answer == Answer::kOpen ? std::nullopt : std::optional(answer == Answer::kYes);
}
std::optional<bool> TruthOf(TwoDoubles condition) { return condition.hi != 0; }

Real Either(const Real& a, const Real& b) {
  if (a.is_domain() || b.is_domain()) {
    const bool same = a.is_domain() && b.is_domain() && !a.is_undecided() && a.domain() == b.domain();
    return same ? a : UndecidedValue();
  }
  return Real::Between(Compare(a.lo(), b.lo()) <= 0 ? a.lo() : b.lo(),
                       Compare(a.hi(), b.hi()) >= 0 ? a.hi() : b.hi());
}

Interval Either(Interval a, Interval b) {
  if (MayBeNan(a) || MayBeNan(b)) return kEverything;
  return {.lo = std::min(a.lo, b.lo), .hi = std::max(a.hi, b.hi)};
}

}  // namespace ulpscope
