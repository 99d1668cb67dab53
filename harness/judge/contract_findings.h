// A contract's findings in the values of one result: violations, and what it leaves open.
#pragma once

#include <set>
#include <string>

#include "harness/judge/status.h"
#include "harness/model/case.h"
#include "harness/model/observation.h"
#include "harness/model/run_report.h"

namespace ulpscope {

/// A sentence for each value that a contract demands something of, where that is violated or left open.
/// `provable`: those for which further inputs could prove something.
void AddValueFindings(const Case& test_case, const CaseResult& result, const std::set<std::string>& provable,
                      StatusFacts* facts);
/// Parts of `equal` and `same_class` that do not hold, or are left open, in this backend's own values.
void CompareValues(const Contract& contract, const Observation& observation, const CaseResult& result,
                   StatusFacts* facts);

}  // namespace ulpscope
