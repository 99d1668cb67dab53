// Parting: in what two classifications of one value have no word in common, as what each side does.
//
// Asked in the order of what tells most: operands read otherwise, a rounding on the way (inside the op, of a value that is
// stored, of the sum), operands and numbers rounded, products, the store; where no facet parts them by itself, that one side
// rounds something to 16 bits.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/judge/deed.h"
#include "harness/model/run_report.h"

namespace ulpscope {

/// In what the two classifications have no word in common. Where one of them reads an operand otherwise, other facets are those of
/// other steps, but for the numbers of the program.
std::optional<Parting> FindParting(const Case& test_case, const std::string& value, const ValueResult& a,
                                   const ValueResult& b);

/// In what the two classifications of a value have no word in common; nothing where one is unmodelled, or where no facet by itself
/// parts them.
std::optional<Parting> FindDeeds(const Case& test_case, const std::string& value, const ValueResult& a,
                                 const ValueResult& b);

/// The first operand that both steps tell how they read, and read otherwise; nothing without one.
std::optional<std::string> FindOtherRead(const Classification& a, const Classification& b);

/// A cut point inside the op that gives `value`.
bool IsInside(const std::string& value, const std::string& cut);
/// Its op has steps inside that were told apart.
bool HasStepsInside(const std::string& value, const Classification& classification);
/// The steps inside the op that gives `value` as each model computes them: what is computed in 16 bits is rounded to them, also where
/// the model has no rounding of that step alone.
RoundingSets StepsAsComputed(const std::string& value, const Classification& classification);
/// What was computed in a format is sums, whatever else its op does.
bool SumsInside(const Classification& classification);

/// The format of at most 16 bits that a rounding before a value's own store is to, in every model; "16 bits" where they have none in
/// common, empty where a model has no such rounding.
std::string NarrowInEach(const std::string& value, const Classification& classification);

// What FindParting asks.
/// Every operand that the one reads otherwise than the other.
std::vector<Parting> FindReads(const std::string& value, const Classification& a, const Classification& b);
/// Elementary steps of the op that gives `value`, rounded on one side alone, or others on either. A side whose op was explained
/// without such a step did not round it; one in another form of the op, where steps have other names, may have.
std::optional<Parting> FindStepInside(const std::string& value, const Classification& a,
                                      const Classification& b);
/// No facet parts them by itself, and yet each model of the one side rounds something to a format of 16 bits, and none of the other.
std::optional<Parting> FindNarrowAnywhere(const std::string& value, const Classification& a,
                                          const Classification& b);

}  // namespace ulpscope
