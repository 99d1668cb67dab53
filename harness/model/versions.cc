// PEP 440 comparison.
#include "harness/model/versions.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include "harness/base/text.h"

namespace ulpscope {
namespace {

constexpr int64_t kNone = -1;
constexpr int64_t kLast = std::numeric_limits<int64_t>::max();

struct Version {
  std::vector<int64_t> release;
  int64_t pre_rank = kLast;  ///< a 0, b 1, rc 2; kLast for a final release; kNone for a .dev of a final one
  int64_t pre_number = 0;
  int64_t post = kNone;
  int64_t dev = kLast;

  bool IsPrerelease() const { return pre_rank != kLast || dev != kLast; }
};

std::string_view Trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// Takes leading digits off `text`; nullopt when there are none or too many.
std::optional<int64_t> TakeNumber(std::string_view* text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  if (error != std::errc() || text->empty() || !IsDigit(text->front())) return std::nullopt;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return number;
}

bool TakeWord(std::string_view* text, std::string_view word) {
  std::string_view rest = *text;
  if (!rest.empty() && (rest.front() == '.' || rest.front() == '-' || rest.front() == '_'))
    rest.remove_prefix(1);
  if (!rest.starts_with(word)) return false;
  *text = rest.substr(word.size());
  return true;
}

void TakePrerelease(std::string_view* text, Version* version) {
  static constexpr std::pair<std::string_view, int64_t> kWords[] = {
      {"alpha", 0}, {"beta", 1}, {"preview", 2}, {"pre", 2}, {"rc", 2}, {"a", 0}, {"b", 1}, {"c", 2}};
  for (const auto& [word, rank] : kWords) {
    if (!TakeWord(text, word)) continue;
    version->pre_rank = rank;
    version->pre_number = TakeNumber(text).value_or(0);
    return;
  }
}

std::optional<Version> Parse(std::string_view spelling) {
  spelling = Trim(spelling.substr(0, spelling.find('+')));
  if (spelling.starts_with('v')) spelling.remove_prefix(1);
  Version version;
  while (true) {
    const auto number = TakeNumber(&spelling);
    if (!number) return std::nullopt;
    version.release.push_back(*number);
    if (spelling.size() < 2 || spelling.front() != '.' || !IsDigit(spelling[1])) break;
    spelling.remove_prefix(1);
  }
  TakePrerelease(&spelling, &version);
  if (TakeWord(&spelling, "post")) version.post = TakeNumber(&spelling).value_or(0);
  if (TakeWord(&spelling, "dev")) version.dev = TakeNumber(&spelling).value_or(0);
  if (!spelling.empty()) return std::nullopt;
  if (version.dev != kLast && version.pre_rank == kLast && version.post == kNone) version.pre_rank = kNone;
  return version;
}

int CompareReleases(const std::vector<int64_t>& left, const std::vector<int64_t>& right) {
  for (size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    const int64_t a = i < left.size() ? left[i] : 0;
    const int64_t b = i < right.size() ? right[i] : 0;
    if (a != b) return a < b ? -1 : 1;
  }
  return 0;
}

int Compare(const Version& left, const Version& right) {
  if (const int releases = CompareReleases(left.release, right.release); releases != 0) return releases;
  const auto key = [](const Version& v) { return std::tuple(v.pre_rank, v.pre_number, v.post, v.dev); };
  if (key(left) == key(right)) return 0;
  return key(left) < key(right) ? -1 : 1;
}

struct Clause {
  std::string package;
  std::string comparison;
  std::string version;
};

Result<std::vector<Clause>> ParseClauses(std::string_view condition) {
  static constexpr std::string_view kComparisons[] = {"==", "!=", ">=", "<=", "~=", ">", "<"};
  std::vector<Clause> clauses;
  std::string package;
  for (const std::string& part : SplitOutsideParentheses(condition, ',')) {
    const size_t at = part.find_first_of("=!<>~");
    if (at == std::string::npos)
      return Fail(fmt::format("'{}' is no version condition such as torch>=2.9,<2.16", part));
    if (const auto name = Trim(std::string_view(part).substr(0, at)); !name.empty()) package = name;
    if (package.empty()) return Fail(fmt::format("'{}' names no package", part));
    const std::string_view rest = std::string_view(part).substr(at);
    const auto comparison = std::find_if(std::begin(kComparisons), std::end(kComparisons),
                                         [&](std::string_view c) { return rest.starts_with(c); });
    if (comparison == std::end(kComparisons))
      return Fail(fmt::format("'{}' compares in an unknown way", part));
    clauses.push_back({.package = package,
                       .comparison = std::string(*comparison),
                       .version = std::string(Trim(rest.substr(comparison->size())))});
  }
  return clauses;
}

/// "==2.13.*": the release of `installed` begins with that of `prefix`.
bool HasPrefix(const Version& installed, const Version& prefix) {
  for (size_t i = 0; i < prefix.release.size(); ++i) {
    if ((i < installed.release.size() ? installed.release[i] : 0) != prefix.release[i]) return false;
  }
  return true;
}

Result<bool> ClauseHolds(const Clause& clause, std::string_view installed_text) {
  const bool wildcard = clause.version.ends_with(".*");
  const auto wanted = Parse(wildcard ? clause.version.substr(0, clause.version.size() - 2) : clause.version);
  if (!wanted || (wildcard && clause.comparison != "==" && clause.comparison != "!=")) {
    return Fail(fmt::format("'{}{}' is no version", clause.comparison, clause.version));
  }
  const auto installed = Parse(installed_text);
  if (!installed)
    return Fail(
        fmt::format("{} has the version '{}', which does not compare", clause.package, installed_text));
  if (wildcard) return HasPrefix(*installed, *wanted) == (clause.comparison == "==");
  const int order = Compare(*installed, *wanted);
  const bool same_release = CompareReleases(installed->release, wanted->release) == 0;
  if (clause.comparison == "==") return order == 0;
  if (clause.comparison == "!=") return order != 0;
  if (clause.comparison == ">=") return order >= 0;
  if (clause.comparison == "<=") return order <= 0;
  if (clause.comparison == "<") {
    return order < 0 && !(same_release && installed->IsPrerelease() && !wanted->IsPrerelease());
  }
  if (clause.comparison == ">")
    return order > 0 && !(same_release && installed->post != kNone && wanted->post == kNone);
  Version prefix = *wanted;  // ~=2.9.1 is >=2.9.1, ==2.9.*
  if (prefix.release.size() < 2) return Fail(fmt::format("~={} needs two numbers at least", clause.version));
  prefix.release.pop_back();
  return order >= 0 && HasPrefix(*installed, prefix);
}

}  // namespace

Result<bool> VersionsMatch(std::string_view condition, const Versions& installed) {
  const auto clauses = ParseClauses(condition);
  if (!clauses) return Fail(clauses.error());
  bool all = true;
  for (const Clause& clause : *clauses) {
    const auto version = installed.find(clause.package);
    const auto holds =
        version == installed.end() ? ClauseHolds(clause, "0") : ClauseHolds(clause, version->second);
    if (!holds) return holds;  // a malformed clause is an error whether or not the package is there
    all = all && *holds && version != installed.end();
  }
  return all;
}

Result<int> CompareVersions(std::string_view left, std::string_view right) {
  const auto a = Parse(left);
  const auto b = Parse(right);
  if (!a || !b) return Fail(fmt::format("'{}' is no version", a ? right : left));
  return Compare(*a, *b);
}

}  // namespace ulpscope
