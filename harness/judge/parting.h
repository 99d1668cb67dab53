// Parting: where two classifications of one value have no word in common, stated as the behaviour of each side. The
// most informative facets are compared first: operands that are read differently, an intermediate rounding (inside the
// op, of a stored value, of the sum), another form of the op, rounded operands and numbers, products, the output
// rounding. If no single facet differs, the last test is whether only one side rounds something to 16 bits.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/judge/deed.h"
#include "harness/model/run_report.h"

namespace ulpscope {

/// The facets in which the two classifications have no word in common. If one side reads an operand differently, its
/// other facets belong to other steps and are not compared, except the program's numbers.
std::optional<Parting> FindParting(const Case& test_case, const std::string& value, const ValueResult& a,
                                   const ValueResult& b);

/// As FindParting, but nothing if one classification is unmodelled, or if no single facet differs.
std::optional<Parting> FindDeeds(const Case& test_case, const std::string& value, const ValueResult& a,
                                 const ValueResult& b);

/// The first operand that both steps are known to read, but differently; nothing if there is none.
std::optional<std::string> FindOtherRead(const Classification& a, const Classification& b);

/// True if `cut` is an intermediate inside the op that gives `value`.
bool IsInside(const std::string& value, const std::string& cut);
/// True if the op of `value` has steps inside that can be distinguished.
bool HasStepsInside(const std::string& value, const Classification& classification);
/// The steps inside the op of `value` by model: one computed in 16 bits counts as rounded, even without its own
/// rounding.
RoundingSets StepsAsComputed(const std::string& value, const Classification& classification);
/// True if the format of computation is that of sums, whatever else the op does.
bool SumsInside(const Classification& classification);

/// The format of at most 16 bits to which every model rounds before the output; "16 bits" if several, else empty.
std::string NarrowInEach(const std::string& value, const Classification& classification);

// The comparisons that FindParting makes.
/// Every operand that the two read differently.
std::vector<Parting> FindReads(const std::string& value, const Classification& a, const Classification& b);
/// Elementary steps of the op that gives `value`, rounded on one side only, or differently on both. A side explained
/// without such a step did not round it; one in another form of the op, whose steps have other names, may have.
std::optional<Parting> FindStepInside(const std::string& value, const Classification& a,
                                      const Classification& b);
/// The last comparison: each model of one side rounds something to a format of 16 bits, and no model of the other does.
std::optional<Parting> FindNarrowAnywhere(const std::string& value, const Classification& a,
                                          const Classification& b);

}  // namespace ulpscope
