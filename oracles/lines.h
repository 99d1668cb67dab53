// Sums that elements of a value share, and how a step among these sums moves the elements.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/model/oracle.h"
#include "oracles/shared.h"

namespace ulpscope {

/// A number for each element of `value`: equal if both depend on the same elements of the sums that have fewer elements
/// than `value`.
std::vector<int64_t> LinesOf(const Shared& shared, int value, std::span<const int64_t> elements);

/// The exact change of each element, to first order, when the step `node` changes by its own size: d value / d log step.
std::vector<double> MovesOf(Shared* shared, int value, int node, std::span<const int64_t> elements);

}  // namespace ulpscope
