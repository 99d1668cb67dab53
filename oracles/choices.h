// Steps that round nothing, in each arithmetic: the larger of two, whole parts, remainders, signs, comparisons and logic.
//
// A condition is a number, 0 or 1, so that it can be stored, cast and counted like any other value. It is
// either if an enclosure lies on both sides of an edge. A value chosen by an open condition may be either
// choice.
#pragma once

#include <optional>
#include <span>

#include "harness/model/oracle.h"
#include "oracles/exact/real.h"
#include "oracles/plan.h"

namespace ulpscope {

/// `kind` is one of RoundsNothing, kChoose apart. A comparison with a NaN is false, its negation true.
Real ChoiceOf(NodeKind kind, std::span<const Real> args);
Interval ChoiceOf(NodeKind kind, std::span<const Interval> args);
TwoDoubles ChoiceOf(NodeKind kind, std::span<const TwoDoubles> args);

/// The element at a place of a row's order, or its number: for enclosures that overlap, everything that it may be.
Real RankOf(const PlanNode& node, std::span<const Real> line);
Interval RankOf(const PlanNode& node, std::span<const Interval> line);
TwoDoubles RankOf(const PlanNode& node, std::span<const TwoDoubles> line);

/// Any step of RoundsNothing, kChoose apart.
template <class Value>
Value ChoiceOf(const PlanNode& node, std::span<const Value> args) {
  return IsRanked(node.kind) ? RankOf(node, args) : ChoiceOf(node.kind, args);
}

/// The value of a condition; nothing if it may be either.
std::optional<bool> TruthOf(const Real& condition);
std::optional<bool> TruthOf(Interval condition);
std::optional<bool> TruthOf(TwoDoubles condition);

/// Everything that either of two may be.
Real Either(const Real& a, const Real& b);
Interval Either(Interval a, Interval b);

}  // namespace ulpscope
