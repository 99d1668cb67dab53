// Cases and columns of a run that is continued.
#include "harness/cli/resumed_run.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "harness/base/find.h"
#include "harness/casefile/open.h"
#include "harness/casefile/prove.h"
#include "harness/cli/choose_backends.h"
#include "harness/workspace/recorded_cases.h"

namespace ulpscope {
bool HasOpenedPrograms(const RunHeader& header) {
  return std::ranges::any_of(header.cases, [](const std::string& id) {
    Case one;
    one.id = id;
    one.companion_of = BaseOf(id);
    return IsOpened(one);
  });
}

Result<void> LoadCasesToResume(const RecordedRun& run, Workspace* workspace) {
  ULPSCOPE_TRY(LoadCasesOf(run, {}, workspace));
  const std::set<std::string> ids(run.header.cases.begin(), run.header.cases.end());
  std::erase_if(workspace->cases, [&](const Case& test_case) { return !ids.contains(test_case.id); });
  const CaseIndex index(*workspace);
  for (const auto& id : run.header.cases) {
    if (index.Find(id) == nullptr && BaseOf(id).empty())
      return Fail(Problem("the run holds a case that is neither in its folder nor in the suite", id, {},
                          "name its file on the command line"));
  }
  std::map<std::string, size_t> order;
  for (const auto& id : run.header.cases) order.emplace(id, order.size());
  std::ranges::stable_sort(workspace->cases,
                           [&](const Case& a, const Case& b) { return order.at(a.id) < order.at(b.id); });
  return {};
}

Result<std::vector<BackendSpec>> BackendsToResume(const RecordedRun& run, const Registry& registry) {
  std::vector<BackendSpec> backends;
  for (const auto& text : run.header.backends) {
    auto backend = ParseBackend(text, registry);
    if (!backend) {
      Error error = backend.error();
      if (registry.Find(text.substr(0, text.find_first_of("@:"))) == nullptr)
        error.hint = "the run has a column " + text + ": --adapter PATH brings it back";
      return Fail(std::move(error));
    }
    const bool was_absent = std::ranges::any_of(run.results, [&](const RecordedResult& result) {
      return result.backend == text && result.observation.outcome.kind == OutcomeKind::kUnsupported;
    });
    if (!was_absent) ULPSCOPE_TRY(CheckInstalled(*backend, text, registry));
    backends.push_back(*std::move(backend));
  }
  return backends;
}

KnobSweep SweepToResume(const RunHeader& header, const std::vector<BackendSpec>& backends) {
  KnobSweep sweep;
  sweep.backends = backends;
  sweep.swept = header.swept;
  for (const BackendSpec& backend : backends) {
    for (const auto& knob : LookupOr(header.swept, backend.Text())) {
      BackendSpec base = backend;
      const auto value = base.knobs.find(knob);
      if (value == base.knobs.end()) continue;
      const std::string asked = value->second;
      base.knobs.erase(value);
      if (Contains(header.backends, base.Text()))
        sweep.asked.push_back({.base = base.Text(), .knob = knob, .value = asked});
    }
  }
  return sweep;
}

}  // namespace ulpscope
