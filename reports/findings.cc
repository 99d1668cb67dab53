// Findings as text.
#include "reports/findings.h"

#include <fmt/format.h>

#include <set>

#include "harness/base/text.h"

namespace ulpscope {
namespace {

std::string Count(size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace

bool PartsClasses(const Divergence& divergence) {
  return divergence.kind != DivergenceKind::kOrder && divergence.kind != DivergenceKind::kCasts;
}

std::string FindingValues(const Divergence& divergence) {
  std::string what = divergence.value;
  if (!divergence.also.empty())
    what += (what.empty() ? "" : " and ") + Count(divergence.also.size(), "more value");
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
  std::string title = Count(parting, "divergence");
  if (!rest.empty()) title += ", and " + Join(rest, ", ") + hint;
  return title;
}

std::string FailureText(const CaseResult& result) {
  return fmt::format("{}  {}  {}", result.id, result.backend, result.reason);
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
