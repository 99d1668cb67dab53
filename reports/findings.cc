// Findings as text.
#include "reports/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <span>

#include "harness/base/distinct.h"
#include "harness/base/find.h"
#include "harness/base/text.h"

namespace ulpscope {
namespace {

/// Its clauses: divided by semicolons outside of parentheses and quotes.
std::vector<std::string> Clauses(const std::string& sentence) {
  std::vector<std::string> clauses(1);
  int depth = 0;
  bool quoted = false;
  for (const char c : sentence) {
    quoted ^= c == '"';
    if (!quoted) depth += (c == '(') - (c == ')');
    if (c == ';' && depth <= 0 && !quoted) {
      clauses.emplace_back();
    } else {
      clauses.back() += c;
    }
  }
  return clauses;
}

/// Without "(element [0,3] = ...)", whose parentheses nest, and ": product[0,3] is 1 against 2".
std::string WithoutElement(std::string clause, const std::string& value) {
  for (const std::string_view head : {" (element [", " (element "}) {
    if (const size_t begin = clause.find(head); begin != std::string::npos) {
      size_t end = begin + 2;
      for (int depth = 1; end < clause.size() && depth > 0; ++end)
        depth += (clause[end] == '(') - (clause[end] == ')');
      clause.erase(begin, end - begin);
    }
  }
  if (const size_t begin = clause.find(": " + value + "["); begin != std::string::npos) clause.erase(begin);
  if (const size_t begin = clause.find(" (");
      begin != std::string::npos && clause.find(" elements", begin) != std::string::npos)
    clause.erase(begin);
  return clause;
}

/// The first time that it stands there: "rounds result to bfloat16 before the float32 result".
void ReplaceWord(std::string* text, const std::string& word, const std::string& by) {
  if (word.empty()) return;
  const auto part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  };
  for (size_t at = text->find(word); at != std::string::npos; at = text->find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at > 0 && part((*text)[at - 1])) || (end < text->size() && part((*text)[end]))) continue;
    text->replace(at, word.size(), by);
    return;
  }
}

bool Remove(std::string* text, const std::string& words) {
  const size_t at = text->find(words + " ");
  if (at == std::string::npos) return false;
  text->erase(at, words.size());
  return true;
}

/// "a, b and c"
std::string Listed(const std::vector<std::string>& names) {
  if (names.size() < 2) return Join(names, "");
  return Join(std::span(names).first(names.size() - 1), ", ") + " and " + names.back();
}

}  // namespace

std::string FindingCause(const Divergence& divergence) {
  const std::vector<std::string> clauses = Clauses(divergence.sentence);
  // Of two clauses the one that nothing explains is the news.
  size_t told = 0;
  for (size_t i = 0; i < clauses.size(); ++i) {
    if (clauses[i].find("is not explained") != std::string::npos) told = i;
  }
  std::string cause = WithoutElement(clauses[told], divergence.value);
  cause.erase(0, cause.find_first_not_of(' '));
  std::vector<std::string> groups;
  for (const auto& group : divergence.backends) groups.push_back(Listed(group));
  std::ranges::sort(groups, [](const auto& a, const auto& b) { return a.size() > b.size(); });
  bool several = false;
  for (const auto& group : groups) {
    if (!cause.starts_with(group + " ")) continue;
    cause.erase(0, group.size() + 1);
    several = group.find(" and ") != std::string::npos;
    break;
  }
  // "differs from B in y", "computes y in the class of B with other bits": whom from is no part of the cause.
  for (const auto& group : groups) {
    if (Remove(&cause, " from " + group) || Remove(&cause, " in the class of " + group)) break;
  }
  if (cause.starts_with("likely ")) cause.erase(0, 7);
  ReplaceWord(&cause, divergence.value, "a value");
  if (cause.ends_with('.')) cause.pop_back();
  // One backend rounds, two round: one heading for both.
  if (several) cause.insert(std::min(cause.find(' '), cause.size()), "s");
  return cause;
}

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
