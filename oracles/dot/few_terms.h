// Sums of few terms under one model: those of split operands, and which terms a split of the sum left together.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "oracles/binding.h"

namespace ulpscope {

/// The sums that split operands (bf16x3, ...) can give, before any output rounding: each pass is a product of its own,
/// all are summed in one structure and then added to one another. Empty if more than SumTrees::kMostSlots terms are not
/// zero, or none is.
std::vector<double> SumsOfPasses(const AccSpec& acc, const std::array<RoundSpec, 2>& in,
                                 const RawOperands& raw);

/// The sums that `terms` can give, before any output rounding; empty if more than SumTrees::kMostSlots are not zero, or
/// none is.
std::vector<double> SumsOfTerms(const AccSpec& acc, std::span<const double> terms);

/// The sums of two parts of `terms` that each begin as half of `addend` (a bias in both halves of a split product),
/// joined; before any output rounding. At most SumTrees::kMostSlots - 1 terms.
std::vector<double> SumsFromHalves(const AccSpec& acc, std::span<const SumTerm> terms, SumTerm addend);

/// The positions of the terms of a split sum if `stored` can come from one chunk that holds all of them and from no
/// split that separates some of them; else empty. `store`: the roundings after the sum.
std::vector<int64_t> PositionsTogether(const AccSpec& acc, const std::array<RoundSpec, 2>& in,
                                       const RoundSpec& prod, const RawOperands& raw,
                                       const std::function<double(double)>& store, double stored);

}  // namespace ulpscope
