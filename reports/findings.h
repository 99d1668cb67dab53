// The beginning of every report, in the same words in all formats (console, JUnit, Markdown, HTML): what differs, on
// which backends, why; and the failures. Nothing here is escaped: each format does that itself.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/model/run_report.h"

namespace ulpscope {

/// True for differences of class. Differences of order and of casts are none: they are counted, and listed only on
/// request.
bool PartsClasses(const Divergence& divergence);

/// "product and result  (likely, not proved)", "product and 2 more values"; empty if the programs as a whole end
/// differently.
std::string FindingValues(const Divergence& divergence);
/// The same behind the case.
std::string FindingSubject(const Divergence& divergence);

/// Its sentence, with long lists of backends shortened: the letters of the matrix identify the others.
std::string BriefSentence(const Divergence& divergence);

/// "3 divergences, and 2 of order only": those that PartsClasses, and how many of the others. `hint` follows the latter.
std::string FindingsTitle(const std::vector<Divergence>& divergences, const std::string& hint);

/// "the limit of 2 minutes left out: 3 of 8 results not run".
std::string LimitSentence(const TimeLimit& limit);

/// "seeds/matmul_out/as_posted  torch-aot-eager  changed: expected ...": a failing line after its status.
std::string FailureText(const CaseResult& result);

/// "3 PASS", "1 FAIL": the number of results with each status, from the best one; "nothing ran" if there are none.
std::vector<std::string> StatusCounts(const RunReport& report);

/// "torch 2.13.0": the versions of its backends, each once as `shown` writes it.
std::vector<std::string> VersionsOf(const RunReport& report, std::string (*shown)(std::string_view));

/// The divergences that each cell takes part in, in the order of the report.
class FindingsOfCells {
 public:
  /// `report` must outlive this.
  explicit FindingsOfCells(const RunReport& report);
  const std::vector<const Divergence*>& Of(const CaseResult& result) const;

 private:
  std::map<std::pair<std::string, std::string>, std::vector<const Divergence*>> by_cell_;
  std::vector<const Divergence*> none_;
};

}  // namespace ulpscope
