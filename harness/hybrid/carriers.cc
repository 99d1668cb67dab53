// Runs programs some of whose values are given.
#include "harness/hybrid/carriers.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "harness/base/find.h"
#include "harness/run/backend.h"
#include "harness/run/case_runner.h"
#include "harness/run/run_plan.h"

namespace ulpscope {
namespace {

std::string TextOfKnobs(const std::map<std::string, std::string>& knobs) {
  std::string text;
  for (const auto& [knob, value] : knobs) text += knob + "=" + value + ",";
  return text;
}

void PutHybrid(int64_t number, const std::string& step, const NamedTensors& values, Observation* made) {
  for (const auto& [name, tensor] : values) made->values[fmt::format("{}/{}", number, name)] = tensor;
  if (!step.empty()) made->observations[fmt::format("step/{}", number)] = step;
}

}  // namespace

struct Carriers::Started {
  std::vector<BackendSpec> backends;
  std::vector<Case> cases;
  RunPlan plan;
  std::unique_ptr<CaseRunner> runner;
};

Carriers::Carriers(const Registry& registry, RunOptions options, int interrupt_fd)
    : registry_(registry), options_(std::move(options)), interrupt_fd_(interrupt_fd) {}
Carriers::~Carriers() = default;

Result<void> Carriers::Prepare() {
  if (scratch_ == nullptr) scratch_ = ULPSCOPE_TRY(Scratch::Create());
  return {};
}

Result<std::optional<Observation>> Carriers::Run(const std::string& carrier, const GivenProgram& given) {
  const std::string key = carrier + " " + TextOfKnobs(given.program.knobs);
  std::unique_ptr<Started>& started = started_[key];
  if (started == nullptr) {
    ULPSCOPE_TRY(Prepare());
    started = std::make_unique<Started>();
    started->backends = {ULPSCOPE_TRY(ParseBackend(carrier, registry_))};
    started->cases = {given.program};
    started->plan = MakePlan(started->cases, started->backends, registry_, options_, nullptr);
    started->runner = std::make_unique<CaseRunner>(started->plan.groups.at(0)->key, registry_, *scratch_,
                                                   options_, interrupt_fd_);
  }
  return started->runner->Run(given.program, given.inputs);
}

Result<std::optional<FoundCarrier>> FindCarrier(Carriers* carriers, const Registry& registry,
                                                const GivenProgram& program) {
  for (const RegistryRow& row : registry.rows()) {
    if (!row.op_by_op || !registry.Check(row).installed) continue;
    auto ran = ULPSCOPE_TRY(carriers->Run(row.backend, program));
    if (!ran || ran->outcome.kind != OutcomeKind::kCompleted) continue;
    return std::optional(FoundCarrier{.backend = row.backend, .run = *std::move(ran)});
  }
  return std::optional<FoundCarrier>();
}

Result<std::optional<Observation>> WalkHybrids(Carriers* carriers, const std::string& carrier,
                                               const GivenValues& given, const NamedTensors& start) {
  const auto& [opened, inputs, observed_values, values] = given;
  Observation made;
  const auto leave_out = [&](const std::string& why) {
    made = {};
    made.observations["left_out"] = why;
    return std::optional(made);
  };
  made.observations["carrier"] = carrier;
  PutHybrid(0, "", start, &made);
  const auto again = ULPSCOPE_TRY(carriers->Run(carrier, StepByStep(opened, inputs, values)));
  if (!again) return std::optional<Observation>();
  if (again->outcome.kind != OutcomeKind::kCompleted)
    return leave_out(carrier + " does not take the steps: " + DescribeWhole(again->outcome));
  NamedTensors known;
  int64_t number = 0;
  for (const std::string& name : ComputedValues(opened)) {
    const TensorData* value = Lookup(values, name);
    if (value == nullptr) continue;
    known.emplace(name, *value);
    const TensorData* recomputed = Lookup(again->values, Again(name));
    if (recomputed != nullptr && *recomputed == *value) continue;
    NamedTensors hybrid;
    std::set<std::string> open;
    for (const std::string& observed : observed_values) {
      if (const TensorData* tensor = Lookup(known, observed)) {
        hybrid.emplace(observed, *tensor);
      } else {
        open.insert(observed);
      }
    }
    if (!open.empty()) {
      const auto rest = ULPSCOPE_TRY(carriers->Run(carrier, WithGiven(opened, inputs, known, open)));
      if (!rest) return std::optional<Observation>();
      if (rest->outcome.kind != OutcomeKind::kCompleted)
        return leave_out(fmt::format("{} does not take the program behind {}: {}", carrier, name,
                                     DescribeWhole(rest->outcome)));
      hybrid.insert(rest->values.begin(), rest->values.end());
    }
    PutHybrid(++number, name, hybrid, &made);
    if (recomputed != nullptr) made.values[fmt::format("again/{}", number)] = *recomputed;
  }
  return std::optional(made);
}

}  // namespace ulpscope
