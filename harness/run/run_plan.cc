// Planning a run.
#include "harness/run/run_plan.h"

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/record/observation_json.h"

namespace ulpscope {
namespace {

/// The backend's own knobs win over the command line, which wins over the case.
KnobSet MergeKnobs(const Case& test_case, const BackendSpec& backend, const RunOptions& options) {
  KnobSet knobs = backend.knobs;
  knobs.insert(options.knobs.begin(), options.knobs.end());
  knobs.insert(test_case.knobs.begin(), test_case.knobs.end());
  return knobs;
}

std::string Refusal(const BackendSpec& backend, const KnobSet& knobs, const RegistryRow* row,
                    const Registry& registry) {
  if (row == nullptr) return "unknown backend " + backend.name;
  const Availability availability = registry.Check(*row);
  if (!availability.installed) {
    const std::string how = availability.install.empty() ? "" : "; install it: " + availability.install;
    return (row->absent.empty() ? "not installed: " : "") + availability.reason + how;
  }
  for (const auto& [knob, value] : knobs) {
    if (!row->knobs.empty() && !Contains(row->knobs, knob)) {
      const std::string nearest = DidYouMean(knob, row->knobs);
      return "backend " + backend.name + " has no knob " + knob + (nearest.empty() ? "" : ": " + nearest);
    }
  }
  return "";
}

/// A backend and its knobs as text: the key of one worker.
std::string KeyText(const BackendSpec& backend, const KnobSet& knobs) {
  std::string text = backend.Text();
  for (const auto& [knob, value] : knobs) text += "\n" + knob + "=" + value;
  return text;
}

class Planner {
 public:
  Planner(const Registry& registry, const RunOptions& options, const RecordedRun* recorded)
      : registry_(registry), options_(options) {
    if (recorded == nullptr) return;
    for (const auto& result : recorded->results) done_[{result.case_id, result.backend}] = &result;
  }

  void Add(const Case& test_case, const std::string& digest, const BackendSpec& backend) {
    Task task{.test_case = &test_case, .backend = &backend, .done = nullptr};
    const auto it = done_.find({test_case.id, backend.Text()});
    if (it != done_.end() && it->second->digest == digest) task.done = it->second;
    plan_.tasks.push_back(task);
    if (task.done == nullptr) GroupOf(test_case, backend).tasks.push_back(&plan_.tasks.back());
  }

  RunPlan Take() { return std::move(plan_); }

 private:
  TaskGroup& GroupOf(const Case& test_case, const BackendSpec& backend) {
    const KnobSet knobs = MergeKnobs(test_case, backend, options_);
    auto [it, fresh] = by_key_.emplace(KeyText(backend, knobs), nullptr);
    if (!fresh) return *it->second;
    auto group = std::make_unique<TaskGroup>();
    const RegistryRow* known = registry_.Find(backend.name);
    const RegistryRow row = known == nullptr ? RegistryRow() : InEnvironment(*known, knobs);
    group->key.backend = backend;
    group->key.knobs_asked = knobs;
    group->key.refusal = Refusal(backend, knobs, known == nullptr ? nullptr : &row, registry_);
    group->key.row = row;
    it->second = group.get();
    plan_.groups.push_back(std::move(group));
    return *it->second;
  }

  const Registry& registry_;
  const RunOptions& options_;
  std::map<std::pair<std::string, std::string>, const RecordedResult*> done_;
  std::map<std::string, TaskGroup*> by_key_;
  RunPlan plan_;
};

}  // namespace

RunPlan MakePlan(const std::vector<Case>& cases, const std::vector<BackendSpec>& backends,
                 const Registry& registry, const RunOptions& options, const RecordedRun* recorded) {
  Planner planner(registry, options, recorded);
  for (const auto& test_case : cases) {
    const std::string digest = CaseDigest(test_case);
    for (const auto& backend : backends) {
      if (IsSwept(options.swept, test_case, backend.Text())) planner.Add(test_case, digest, backend);
    }
  }
  return planner.Take();
}

}  // namespace ulpscope
