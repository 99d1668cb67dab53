// The derivation of one result: what was observed against what is exact, which models survived, which element
// killed each rival, the casts on the way, asked and effective knobs, and the command that repeats it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/model/reference.h"
#include "harness/model/run_report.h"
#include "reports/console.h"

namespace ulpscope {

/// An element beside its exact value.
struct ReferenceSample {
  std::vector<int64_t> element;
  double observed = 0;
  Reference reference;
};

struct Explanation {
  std::string about, source;                                       ///< of the case
  std::map<std::string, std::vector<ReferenceSample>> references;  ///< value -> a few elements
  std::vector<TraceNode> trace;                                    ///< of the result; may be empty
};

/// Verbose shows every excluded model; otherwise the first dozen, and how many more there are.
std::string WriteExplanation(const RunReport& report, const CaseResult& result,
                             const Explanation& explanation, const ConsoleOptions& options);

}  // namespace ulpscope
