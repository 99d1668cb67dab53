// Plans as JSON.
#include "harness/cli/frozen_plan.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "backends/sdk/wire.h"
#include "harness/base/build_info.h"
#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/record/crc.h"
#include "harness/record/file_bytes.h"
#include "harness/record/journal_format.h"
#include "harness/record/json_fields.h"

namespace ulpscope {
namespace {

using nlohmann::json;

constexpr const char* kPlanSchema = "ulpscope.plan/1";
constexpr size_t kMostPlanBytes = size_t{256} << 20;

json PlanJson(const FrozenPlan& plan) {
  const Selection& asked = plan.selection;
  json cases = json::array();
  for (const PlannedCase& planned : plan.cases) {
    cases.push_back(ToJson(planned));
    if (const double* took = Lookup(plan.milliseconds, planned.id)) cases.back()["ms"] = *took;
  }
  return {{"schema", kPlanSchema},
          {"version", plan.version},
          {"selection",
           {{"cases", asked.cases},
            {"backends", asked.backends},
            {"expression", asked.expression},
            {"tags", asked.tags},
            {"knobs", asked.knobs},
            {"adapters", asked.adapters},
            {"repeat", asked.repeat},
            {"seed", asked.seed},
            {"no_trace", asked.no_trace},
            {"no_steps", asked.no_steps},
            {"knob_sweep", asked.knob_sweep}}},
          {"backends", plan.backends},
          {"cases", cases}};
}

std::string DigestOfJson(const json& plan) {
  return Crc32Text(plan.dump(-1, ' ', false, json::error_handler_t::replace));
}

void ReadPlannedCases(JsonFields& fields, FrozenPlan* plan) {
  const json* cases = fields.Find("cases");
  if (cases == nullptr || !cases->is_array()) return fields.Complain("cases", "array");
  for (const auto& entry : *cases) {
    plan->cases.push_back(PlannedCaseFromJson(entry, fields.error()));
    JsonFields one(entry, fields.error());
    if (one.Find("ms") != nullptr) plan->milliseconds[plan->cases.back().id] = one.Number("ms");
  }
}

}  // namespace

std::string DigestOf(const FrozenPlan& plan) { return DigestOfJson(PlanJson(plan)); }

std::string WriteFrozenPlan(const FrozenPlan& plan) {
  json object = PlanJson(plan);
  object["digest"] = DigestOfJson(object);
  return object.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<FrozenPlan> ReadFrozenPlan(const std::string& file) {
  const auto text = ULPSCOPE_TRY(ReadFileBytes(file, kMostPlanBytes));
  auto object = sdk::ParseMessage(text, {.max_bytes = kMostPlanBytes, .max_depth = 8});
  if (!object) return Fail(file + " is no plan: " + object.error().message);
  std::string error;
  JsonFields fields(*object, error);
  if (fields.Text("schema") != kPlanSchema)
    return Fail(Problem(file + " is no plan", "'" + fields.Text("schema") + "'", kPlanSchema));
  const std::string digest = fields.Text("digest");
  FrozenPlan plan;
  plan.version = fields.Text("version");
  plan.backends = fields.Texts("backends");
  fields.Require("selection");
  if (!error.empty()) return Fail(file + ": " + error);
  JsonFields asked(*fields.Find("selection"), error);
  plan.selection.cases = asked.Texts("cases");
  plan.selection.backends = asked.Text("backends");
  plan.selection.expression = asked.Text("expression");
  plan.selection.tags = asked.Text("tags");
  plan.selection.knobs = asked.Texts("knobs");
  plan.selection.adapters = asked.Texts("adapters");
  plan.selection.repeat = static_cast<int>(std::clamp<int64_t>(asked.Integer("repeat", 2), 1, 1000));
  plan.selection.seed = asked.Integer("seed");
  plan.selection.no_trace = asked.Flag("no_trace");
  plan.selection.no_steps = asked.Flag("no_steps");
  plan.selection.knob_sweep = asked.Flag("knob_sweep");
  ReadPlannedCases(fields, &plan);
  if (!error.empty()) return Fail(file + ": " + error);
  json whole = *object;
  whole.erase("digest");
  if (DigestOfJson(whole) != digest)
    return Fail(Problem(file + " was edited: its digest is of something else", digest, DigestOfJson(whole),
                        "ulpscope plan writes it anew"));
  if (plan.version != Version())
    return Fail(
        Problem(file + " was made by another version of ulpscope", std::string(Version()), plan.version));
  return plan;
}

Result<void> CheckAgainst(const FrozenPlan& frozen, const Preparation& prepared) {
  const auto backends = Mapped(prepared.backends, &BackendSpec::Text);
  if (backends != frozen.backends)
    return Fail(
        Problem("the backends are not those of the plan", Join(backends, ", "), Join(frozen.backends, ", ")));
  const auto find = [](const std::vector<PlannedCase>& cases, const std::string& id) {
    return FindIf(cases, [&](const PlannedCase& one) { return one.id == id; });
  };
  for (const PlannedCase& planned : frozen.cases) {
    const PlannedCase* here = find(prepared.plan, planned.id);
    if (here == nullptr) return Fail(Problem("case " + planned.id + " of the plan is not here", {}, {}));
    if (*here != planned)
      return Fail(Problem("case " + planned.id + " is not what it was when the plan was made", here->digest,
                          planned.digest));
  }
  for (const PlannedCase& here : prepared.plan) {
    if (find(frozen.cases, here.id) == nullptr)
      return Fail(Problem("case " + here.id + " is not in the plan", {}, {}));
  }
  if (prepared.plan != frozen.cases) return Fail("the cases stand in another order than in the plan");
  return {};
}

}  // namespace ulpscope
