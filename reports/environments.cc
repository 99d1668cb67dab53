// Taking a report apart by environment.
#include "reports/environments.h"

#include <algorithm>
#include <set>
#include <utility>

#include "harness/words/environment_name.h"

namespace ulpscope {
namespace {

template <class Wanted>
RunReport Part(const RunReport& report, Wanted wanted) {
  RunReport part;
  part.seed = report.seed;
  part.complete = report.complete;
  for (const auto& [backend, packages] : report.versions) {
    if (const auto name = wanted(backend); !name.empty()) part.versions[name] = packages;
  }
  for (const CaseResult& result : report.results) {
    const std::string name = wanted(result.backend);
    if (name.empty()) continue;
    part.results.push_back(result);
    part.results.back().backend = name;
  }
  for (const Divergence& divergence : report.divergences) {
    Divergence kept = divergence;
    for (auto& group : kept.backends) {
      std::vector<std::string> names;
      for (const auto& backend : group) {
        if (std::string name = wanted(backend); !name.empty()) names.push_back(std::move(name));
      }
      group = std::move(names);
    }
    const bool whole = std::ranges::none_of(kept.backends, [](const auto& group) { return group.empty(); });
    if (whole) part.divergences.push_back(std::move(kept));
  }
  return part;
}

std::set<std::string> BackendsOf(const RunReport& report) {
  std::set<std::string> names;
  for (const CaseResult& result : report.results) names.insert(result.backend);
  return names;
}

}  // namespace

std::vector<std::string> EnvironmentsOf(const RunReport& report) {
  std::set<std::string> names;
  for (const std::string& backend : BackendsOf(report)) names.insert(SplitEnvironment(backend).environment);
  std::vector<std::string> ordered;
  if (names.erase(std::string(kNoEnvironment)) > 0) ordered.emplace_back(kNoEnvironment);
  ordered.insert(ordered.end(), names.begin(), names.end());
  return ordered;
}

RunReport OfEnvironment(const RunReport& report, std::string_view environment) {
  return Part(report, [&](const std::string& backend) {
    auto [where, name] = SplitEnvironment(backend);
    return where == environment ? name : std::string();
  });
}

RunReport WithBackendsOf(RunReport report, const RunReport& other) {
  const std::set<std::string> names = BackendsOf(other);
  return Part(report,
              [&](const std::string& backend) { return names.contains(backend) ? backend : std::string(); });
}

std::vector<EnvironmentDiff> CompareEnvironments(const RunReport& report) {
  std::vector<EnvironmentDiff> diffs;
  const std::vector<std::string> environments = EnvironmentsOf(report);
  for (size_t later = 1; later < environments.size(); ++later) {
    const RunReport after = OfEnvironment(report, environments[later]);
    for (size_t first = 0; first < later; ++first) {
      const RunReport before = OfEnvironment(report, environments[first]);
      RunDiff diff = CompareRuns(WithBackendsOf(before, after), WithBackendsOf(after, before), {});
      if (diff.compared == 0) continue;
      diffs.push_back({.before = environments[first], .after = environments[later], .diff = std::move(diff)});
      break;
    }
  }
  return diffs;
}

}  // namespace ulpscope
