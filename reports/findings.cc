// Findings as text.
#include "reports/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <span>

#include "harness/base/distinct.h"
#include "harness/base/find.h"
#include "harness/base/text.h"

namespace ulpscope {

bool PartsClasses(const Divergence& divergence) { return RowOf(divergence.kind).separates_classes; }

std::string FindingValues(const Divergence& divergence) {
  std::string what = divergence.value;
  if (!divergence.also.empty())
    what +=
        (what.empty() ? "" : " and ") +
        (divergence.also.size() == 1 ? divergence.also[0] : Counted(divergence.also.size(), "more value"));
  if (divergence.basis == "likely") what += "  (likely, not proved)";
  return what;
}

std::string FindingSubject(const Divergence& divergence) {
  const std::string values = FindingValues(divergence);
  return values.empty() ? divergence.case_id : divergence.case_id + "  " + values;
}

std::string BriefSentence(const Divergence& divergence) {
  constexpr size_t kMostBackends = 3;
  std::string sentence = divergence.sentence;
  for (const auto& group : divergence.backends) {
    if (group.size() <= kMostBackends) continue;
    const std::vector<std::string> head(group.begin(), group.end() - 1);
    const std::string whole = Join(head, ", ") + " and " + group.back();
    const std::string brief = fmt::format("{}, {} and {} more", group[0], group[1], group.size() - 2);
    if (const size_t at = sentence.find(whole); at != std::string::npos)
      sentence.replace(at, whole.size(), brief);
  }
  return sentence;
}

std::string FindingsTitle(const std::vector<Divergence>& divergences, const std::string& hint) {
  size_t parting = 0;
  std::map<std::string_view, size_t> others;
  for (const auto& divergence : divergences) {
    if (PartsClasses(divergence)) {
      ++parting;
    } else {
      ++others[Name(divergence.kind)];
    }
  }
  std::vector<std::string> rest;
  for (const auto& [kind, count] : others) rest.push_back(fmt::format("{} of {} only", count, kind));
  std::string title = Counted(parting, "divergence");
  if (!rest.empty()) title += ", and " + Join(rest, ", ") + hint;
  return title;
}

std::string LimitSentence(const TimeLimit& limit) {
  return fmt::format("the limit of {:g} {} left out: {}", limit.minutes,
                     limit.minutes == 1 ? "minute" : "minutes", Join(limit.left_out, ", "));
}

std::string FailureText(const CaseResult& result) {
  return fmt::format("{}  {}  {}", result.id, result.backend, result.reason);
}

std::vector<std::string> StatusCounts(const RunReport& report) {
  std::map<Status, size_t> counts;
  for (const auto& result : report.results) ++counts[result.status];
  std::vector<std::string> parts;
  for (auto count = counts.rbegin(); count != counts.rend(); ++count)
    parts.push_back(fmt::format("{} {}", count->second, Name(count->first)));
  if (parts.empty()) parts.emplace_back("nothing ran");
  return parts;
}

std::vector<std::string> VersionsOf(const RunReport& report, std::string (*shown)(std::string_view)) {
  Distinct versions;
  for (const auto& [backend, packages] : report.versions) {
    for (const auto& [package, version] : packages) versions.Add(shown(package + " " + version));
  }
  return versions.texts();
}

FindingsOfCells::FindingsOfCells(const RunReport& report) {
  for (const Divergence& divergence : report.divergences) {
    std::set<std::string> members;
    for (const auto& group : divergence.backends) members.insert(group.begin(), group.end());
    for (const auto& backend : members) by_cell_[{divergence.case_id, backend}].push_back(&divergence);
  }
}

const std::vector<const Divergence*>& FindingsOfCells::Of(const CaseResult& result) const {
  const auto found = by_cell_.find({result.id, result.backend});
  return found == by_cell_.end() ? none_ : found->second;
}

}  // namespace ulpscope
