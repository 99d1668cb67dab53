// The contract findings for the values of one result: violations and undecided demands.
#pragma once

#include <set>
#include <string>

#include "harness/judge/status.h"
#include "harness/model/case.h"
#include "harness/model/observation.h"
#include "harness/model/run_report.h"

namespace ulpscope {

/// Adds a sentence for each value with a violated or undecided contract. `provable`: auxiliary inputs may decide it.
void AddValueFindings(const Case& test_case, const CaseResult& result, const std::set<std::string>& provable,
                      StatusFacts* facts);
/// Adds the parts of `equal` and `same_class` that are violated or undecided in this backend's own values.
void CompareValues(const Contract& contract, const Observation& observation, const CaseResult& result,
                   StatusFacts* facts);

}  // namespace ulpscope
