// Messages and answers.
#include "harness/run/protocol.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "harness/base/find.h"
#include "harness/model/redundant_casts.h"
#include "harness/record/json_fields.h"
#include "harness/record/observation_json.h"

namespace ulpscope {
namespace {

using nlohmann::json;

constexpr size_t kMaxCasts = 100000;
constexpr size_t kMaxNodes = 20000;  // backends/PROTOCOL.md

std::string Line(const json& message) { return message.dump(-1, ' ', false, json::error_handler_t::replace); }

/// True for an observation about a value instead of the value: it is answered as text.
bool IsTextObservation(std::string_view name) {
  return name.ends_with("_dtype") || name == "peak_bytes" || name == kStoredWord;
}

Result<json> ParseObject(std::string_view line) {
  auto object = sdk::ParseMessage(line);
  if (!object) return Fail("the answer is no message: " + object.error().message);
  return object;
}

/// The two parts of the FP canary.
void ReadFp(const json* fp, Observation& observation, std::string& error) {
  if (fp == nullptr || fp->is_null()) return;
  JsonFields fields(*fp, error);
  if (!error.empty()) return;
  observation.fp_before = FpFromJson(fields.Find("before"), error);
  observation.fp_after = FpFromJson(fields.Find("after"), error);
}

}  // namespace

KnobSet WireKnobs(KnobSet asked) {
  asked.emplace("threads", "1");
  return asked;
}

std::string HelloMessage(const BackendSpec& backend, const KnobSet& knobs) {
  return Line({{"verb", "hello"},
               {"protocol", kProtocolVersion},
               {"backend", backend.name},
               {"device", backend.device},
               {"knobs", knobs}});
}

Result<BackendInfo> ParseHello(std::string_view line) {
  const auto object = ULPSCOPE_TRY(ParseObject(line));
  std::string error;
  JsonFields fields(object, error);
  fields.Require("protocol");
  fields.Require("name");
  fields.Require("backends");
  const int64_t protocol = fields.Integer("protocol");
  if (error.empty() && protocol != kProtocolVersion) {
    return Fail("the adapter speaks protocol " + std::to_string(protocol) + ", not " +
                std::to_string(kProtocolVersion));
  }
  BackendInfo info{.adapter = fields.Text("name", 256),
                   .backends = fields.Texts("backends", 256),
                   .devices = fields.Texts("devices", 256),
                   .ops = fields.Texts("ops", 256),
                   .dtypes = fields.Texts("dtypes", 64),
                   .scopes = fields.Texts("scopes", 256),
                   .capabilities = fields.Texts("capabilities", 256),
                   .versions = fields.TextMap("versions", 1024),
                   .knobs = fields.TextLists("knobs", 256),
                   .error = fields.Text("error", 4096)};
  if (!error.empty()) return Fail("hello: " + error);
  return info;
}

std::string RunMessage(const RunRequest& request) {
  json message = {{"verb", "run"},
                  {"id", request.id},
                  {"case", request.test_case->id},
                  {"seed", request.seed},
                  {"trace", request.trace},
                  {"program", ProgramToJson(*request.test_case, request.device)},
                  {"inputs", request.inputs},
                  {"outputs", request.outputs},
                  {"knobs", request.knobs},
                  {"poison", true}};
  if (!request.schedule.empty()) message["schedule"] = request.schedule;
  return Line(message);
}

Result<Observation> ParseRunAnswer(std::string_view line, const RunRequest& request) {
  const auto object = ULPSCOPE_TRY(ParseObject(line));
  std::string error;
  JsonFields fields(object, error);
  fields.Require("id");
  fields.Require("outcome");
  const int64_t id = fields.Integer("id");
  if (error.empty() && id != request.id)
    return Fail("the answer is to another message than the one that was sent");
  Observation observation;
  observation.outcome = OutcomeFromJson(fields.Find("outcome"), error);
  const auto kind = observation.outcome.kind;
  if (kind == OutcomeKind::kCrashed || kind == OutcomeKind::kTimedOut ||
      kind == OutcomeKind::kProtocolBroken) {
    return Fail("an adapter cannot answer '" + std::string(Name(kind)) + "'");
  }
  observation.observations = fields.TextMap("observations");
  observation.parts = fields.TextMap("parts", 256);
  observation.knobs_effective = fields.TextMap("knobs", 1024);
  observation.casts = CastsFromJson(fields.Find("casts"), error);
  observation.trace = TraceFromJson(fields.Find("nodes"), error);
  observation.notes = fields.Texts("notes", 4096);
  observation.untraced = fields.Texts("untraced", 4096);
  observation.durations_ms = fields.NumberMap("durations_ms");
  ReadFp(fields.Find("fp"), observation, error);
  if (!error.empty()) return Fail("the answer to run: " + error);
  if (observation.trace.size() > kMaxNodes)
    return Fail("the answer to run holds " + std::to_string(observation.trace.size()) +
                " trace nodes, more than " + std::to_string(kMaxNodes));
  std::erase_if(observation.durations_ms,
                [](const auto& one) { return !std::isfinite(one.second) || one.second < 0; });
  if (observation.casts.size() > kMaxCasts) observation.casts.resize(kMaxCasts);
  if (const std::string problem = TraceProblem(observation.trace, observation.casts); !problem.empty()) {
    return Fail("the answer to run holds " + problem);
  }
  MarkRedundantCasts(observation.trace, &observation.casts);
  for (const auto& [name, text] : observation.observations) {
    const auto& observed = request.test_case->observe;
    if (!Contains(observed, name)) {
      return Fail("the answer observes '" + name + "', which was not requested");
    }
  }
  return observation;
}

std::set<std::string> ExpectedTensors(const Case& test_case, const Observation& observation) {
  std::set<std::string> names;
  for (const auto& name : test_case.observe) {
    if (!IsTextObservation(name) && name != "trace" && !observation.observations.contains(name))
      names.insert(name);
  }
  return names;
}

}  // namespace ulpscope
