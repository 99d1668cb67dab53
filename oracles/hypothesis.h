// The candidate models: every precision model that a value's path through the program can show, in canonical
// form.
#pragma once

#include <vector>

#include "oracles/canonical.h"

namespace ulpscope {

/// Number of choices that EnumerateChoices goes through, before it drops equal ones.
int64_t CountChoices(const Plan& plan, const ValuePath& path, DType observed);
/// Number of choices that NaturalBank goes through.
int64_t CountNaturals(const Plan& plan, const ValuePath& path);
/// All canonical choices for a value stored as `observed`.
std::vector<Choice> EnumerateChoices(const Plan& plan, const ValuePath& path, DType observed);

/// Sums in float32 and no other choice that the program does not request, with every way to round the
/// intermediates.
std::vector<Choice> NaturalChoices(const Plan& plan, const ValuePath& path, DType observed);

/// The same, with every way in which Python scalars are converted.
std::vector<Choice> NaturalBank(const Plan& plan, const ValuePath& path, DType observed);

/// Sums in float32, and each intermediate rounded to its dtype but those that are handed on as they are: one choice.
/// ValueShape::as_exact.
AsExact FindAsExact(const Plan& plan, const ValuePath& path, DType observed);
std::vector<Choice> AsWritten(const Plan& plan, const ValuePath& path, DType observed);

/// Sums in float32 and sets of the steps inside the op rounded to its 16-bit format, at most `most` of them: all of the
/// steps and single ones first. `path` has all named steps as cut points.
std::vector<Choice> EnumerateSteps(const Plan& plan, const ValuePath& path, DType observed, size_t most);

/// One step inside the op rounded to `format`, and nothing else: a choice for each step. `path` as for EnumerateSteps.
std::vector<Choice> EnumerateKept(const Plan& plan, const ValuePath& path, DType observed,
                                  const FloatFormat& format);

/// All choices with subnormals dropped, as operands (`+daz`), as sums (`+ftz`) or as both: for values of
/// products that no plain choice explains. Apart, because on data without subnormals they are copies of the
/// plain ones.
std::vector<Choice> EnumerateFlushing(const Plan& plan, const ValuePath& path, DType observed);

}  // namespace ulpscope
