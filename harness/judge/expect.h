// Expectations: what is known today of one backend. They demand nothing of the backend; an unmet one says
// that it changed.
#pragma once

#include <optional>
#include <string>

#include "harness/judge/versions.h"
#include "harness/model/case.h"
#include "harness/model/run_report.h"

namespace ulpscope {

/// The first expectation of `test_case` for this backend string whose versions match; null when there is
/// none. Error: a version condition that cannot be read.
Result<const Expectation*> FindExpectation(const Case& test_case, std::string_view backend,
                                           const Versions& versions);

/// Empty when `expectation` is met by what `result` shows (outcome, values, observations; its status is not
/// read), else "changed: expected X, observed Y". A facet is met when the classification names at least one
/// word for it and every word that it names is in the list: an unmodelled value meets no facet.
std::string ExplainUnmet(const Expectation& expectation, const CaseResult& result);

}  // namespace ulpscope
