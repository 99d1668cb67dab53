// Expectations: the known behaviour of one backend today. They demand nothing; an unmet one means that it changed.
#pragma once

#include <optional>
#include <string>

#include "harness/model/case.h"
#include "harness/model/run_report.h"
#include "harness/model/versions.h"

namespace ulpscope {

/// The first expectation for this backend string whose versions match; null if none. Error: an unreadable condition.
Result<const Expectation*> FindExpectation(const Case& test_case, std::string_view backend,
                                           const Versions& versions);

/// A difference from an expectation.
struct Unmet {
  std::string value;     ///< of this value or observation; empty: of none
  std::string sentence;  ///< "changed: expected X, observed Y"; empty: all is
};

/// Nothing if `result` (outcome, values, observations; not its status) meets `expectation`. To meet a facet, the
/// classification names at least one word for it and only words in the list: an unmodelled value meets none.
Unmet ExplainUnmet(const Expectation& expectation, const CaseResult& result);

}  // namespace ulpscope
