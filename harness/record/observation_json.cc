// JSON forms of observations and programs.
#include "harness/record/observation_json.h"

#include <algorithm>

#include "backends/sdk/program.h"
#include "backends/sdk/trace_json.h"
#include "harness/record/crc.h"
#include "harness/record/json_fields.h"

namespace ulpscope {
namespace {

using nlohmann::json;

json FpToJson(const FpEnvironment& fp) {
  return {{"mxcsr", fp.mxcsr}, {"subnormals_kept", fp.subnormals_kept}, {"threads", fp.threads}};
}

json CastToJson(const Cast& cast) {
  json object = sdk::ToJson(cast);
  object["redundant"] = cast.redundant;
  return object;
}

/// Nothing for a missing or null field.
std::optional<double> Microseconds(JsonFields& fields) {
  const auto* value = fields.Find("us");
  if (value == nullptr || value->is_null()) return std::nullopt;
  if (!value->is_number()) fields.Complain("us", "number of microseconds");
  return value->is_number() ? std::optional(value->get<double>()) : std::nullopt;
}

std::vector<TraceTensor> TraceTensors(JsonFields& fields, const char* key) {
  std::vector<TraceTensor> tensors;
  const auto* list = fields.Find(key);
  if (list == nullptr || list->is_null()) return tensors;
  const auto wrong = [&] {
    fields.Complain(key, "list of [dtype, shape]");
    return std::vector<TraceTensor>{};
  };
  if (!list->is_array()) return wrong();
  for (const auto& entry : *list) {
    if (!entry.is_array() || entry.size() != 2 || !entry[0].is_string() || !entry[1].is_array())
      return wrong();
    TraceTensor tensor{.dtype = CleanText(entry[0].get<std::string>(), 64)};
    for (const auto& extent : entry[1]) {
      if (!extent.is_number_integer()) return wrong();
      tensor.shape.push_back(extent.get<int64_t>());
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

json NumbersToJson(const std::map<std::string, double>& numbers) {
  json object = json::object();
  for (const auto& [name, number] : numbers) object[name] = sdk::FloatToJson(number);
  return object;
}

/// Sets the device of each autocast that names none, or "auto", for the adapter.
void PlaceAutocasts(std::vector<Step>* steps, const std::string& device) {
  for (Step& step : *steps) {
    const auto* asked = step.op == "autocast" ? step.attrs["device"].If<std::string>() : nullptr;
    if (step.op == "autocast" && (asked == nullptr || *asked == "auto")) step.attrs["device"].value = device;
    PlaceAutocasts(&step.steps, device);
  }
}

json TensorToJson(const TensorSpec& tensor) {
  return {{"name", tensor.name},
          {"dtype", Name(tensor.dtype)},
          {"shape", tensor.shape},
          {"strides", tensor.strides},
          {"requires_grad", tensor.requires_grad}};
}

/// Sums of bytes over all casts stay far below the limit of an int64.
bool IsPlausible(const Cast& cast) {
  constexpr int64_t kMost = int64_t{1} << 42;
  int64_t elements = 1;
  for (const int64_t extent : cast.shape) {
    if (extent < 0 || __builtin_mul_overflow(elements, std::max<int64_t>(extent, 1), &elements)) return false;
  }
  return elements <= kMost && cast.bytes >= 0 && cast.bytes <= kMost;
}

}  // namespace

json ProgramToJson(const Case& test_case, const std::string& device) {
  json tensors = json::array(), steps = json::array();
  for (const auto& tensor : test_case.tensors) tensors.push_back(TensorToJson(tensor));
  std::vector<Step> program = test_case.program;
  if (!device.empty()) PlaceAutocasts(&program, device);
  for (const auto& step : program) steps.push_back(sdk::ToJson(step));
  return {{"tensors", tensors}, {"steps", steps}, {"observe", test_case.observe}};
}

std::string CaseDigest(const Case& test_case) {
  json all{{"program", ProgramToJson(test_case, "")},
           {"knobs", test_case.knobs},
           {"requires", test_case.requires_},
           {"fills", json::array()}};
  for (const auto& tensor : test_case.tensors) all["fills"].push_back(sdk::ToJson(tensor.fill));
  const std::string text = all.dump(-1, ' ', false, json::error_handler_t::replace);
  return Crc32Text(text);
}

json ToJson(const Observation& observation) {
  json casts = json::array();
  for (const auto& cast : observation.casts) casts.push_back(CastToJson(cast));
  json result{{"outcome",
               {{"kind", Name(observation.outcome.kind)},
                {"class", observation.outcome.error_class},
                {"text", observation.outcome.text}}},
              {"observations", observation.observations},
              {"parts", observation.parts},
              {"knobs_asked", observation.knobs_asked},
              {"knobs_effective", observation.knobs_effective},
              {"casts", casts},
              {"notes", observation.notes},
              {"untraced", observation.untraced},
              {"tainted", observation.tainted},
              {"unwritten", observation.unwritten},
              {"nondeterministic", NumbersToJson(observation.nondeterministic)},
              {"durations_ms", NumbersToJson(observation.durations_ms)},
              {"worker_log", observation.worker_log}};
  if (observation.fp_before) result["fp_before"] = FpToJson(*observation.fp_before);
  if (observation.fp_after) result["fp_after"] = FpToJson(*observation.fp_after);
  return result;
}

std::optional<FpEnvironment> FpFromJson(const json* value, std::string& error) {
  if (value == nullptr || value->is_null()) return std::nullopt;
  JsonFields fields(*value, error);
  const int64_t mxcsr = fields.Integer("mxcsr");
  if (mxcsr < 0 || mxcsr > 0xFFFFFFFF) fields.Complain("mxcsr", "32-bit number");
  const auto* kept = fields.Find("subnormals_kept");
  return FpEnvironment{.mxcsr = static_cast<uint32_t>(mxcsr),
                       .subnormals_kept = kept == nullptr || fields.Flag("subnormals_kept"),
                       .threads = fields.Integer("threads")};
}

std::vector<Cast> CastsFromJson(const json* value, std::string& error) {
  std::vector<Cast> casts;
  if (value == nullptr || value->is_null()) return casts;
  if (!value->is_array() && error.empty()) error = "'casts' is no array";
  for (const auto& entry : *value) {
    JsonFields fields(entry, error);
    Cast cast{.from = fields.Text("from", 64),
              .to = fields.Text("to", 64),
              .shape = fields.Integers("shape"),
              .bytes = fields.Integer("bytes"),
              .under = fields.Text("under", 1024),
              .stage = fields.Text("stage", 64),
              .redundant = fields.Flag("redundant"),
              .node = fields.Integer("node", -1),
              .us = Microseconds(fields)};
    if (error.empty() && !IsPlausible(cast))
      error = "a cast of " + std::to_string(cast.bytes) + " bytes or of a shape that no memory holds";
    if (!error.empty()) return {};
    casts.push_back(std::move(cast));
  }
  return casts;
}

json TraceToJson(const std::vector<TraceNode>& trace) {
  json nodes = json::array();
  for (const auto& node : trace) nodes.push_back(sdk::ToJson(node));
  return nodes;
}

/// A node without a kind (an adapter gave none, or an older record has none) is one that computes.
TraceKind KindFromJson(JsonFields& fields) {
  if (fields.Find("kind") == nullptr) return TraceKind::kCompute;
  const auto kind = ParseTraceKind(fields.Text("kind", 64));
  if (!kind) fields.Complain("kind", "kind of trace node");
  return kind.value_or(TraceKind::kCompute);
}

std::vector<TraceNode> TraceFromJson(const json* value, std::string& error) {
  std::vector<TraceNode> trace;
  if (value == nullptr || value->is_null()) return trace;
  if (!value->is_array()) {
    if (error.empty()) error = "'nodes' is no array";
    return trace;
  }
  for (const auto& entry : *value) {
    JsonFields fields(entry, error);
    fields.Require("id");
    TraceNode node{.id = fields.Integer("id"),
                   .parent = fields.Integer("parent", -1),
                   .stage = fields.Text("stage", 64),
                   .kind = KindFromJson(fields),
                   .op = fields.Text("op", 1024),
                   .from = fields.Integers("from"),
                   .inputs = TraceTensors(fields, "inputs"),
                   .outputs = TraceTensors(fields, "outputs"),
                   .us = Microseconds(fields)};
    if (!error.empty()) return {};
    trace.push_back(std::move(node));
  }
  return trace;
}

Outcome OutcomeFromJson(const json* value, std::string& error) {
  static const json kNone = json::object();
  JsonFields fields(value == nullptr ? kNone : *value, error);
  fields.Require("kind");
  Outcome outcome{.error_class = fields.Text("class", 1024), .text = fields.Text("text")};
  if (const auto kind = ParseOutcomeKind(fields.Text("kind", 64)))
    outcome.kind = *kind;
  else
    fields.Complain("kind", "known outcome");
  return outcome;
}

namespace {

/// Earlier records have them in notes.
std::vector<std::string> UntracedFrom(JsonFields& fields, const std::vector<std::string>& notes) {
  if (fields.Find("untraced") != nullptr) return fields.Texts("untraced");
  constexpr std::string_view kNote = "cut: ran eagerly ";
  std::vector<std::string> untraced;
  for (const std::string& note : notes) {
    if (note.starts_with(kNote)) untraced.push_back(note.substr(kNote.size()));
  }
  return untraced;
}

}  // namespace

Result<Observation> ObservationFromJson(const json& object) {
  std::string error;
  JsonFields fields(object, error);
  fields.Require("outcome");
  Observation observation;
  observation.outcome = OutcomeFromJson(fields.Find("outcome"), error);
  observation.observations = fields.TextMap("observations");
  observation.parts = fields.TextMap("parts");
  observation.knobs_asked = fields.TextMap("knobs_asked");
  observation.knobs_effective = fields.TextMap("knobs_effective");
  observation.casts = CastsFromJson(fields.Find("casts"), error);
  observation.notes = fields.Texts("notes");
  observation.untraced = UntracedFrom(fields, observation.notes);
  observation.tainted = fields.Text("tainted");
  observation.unwritten = fields.Texts("unwritten");
  observation.nondeterministic = fields.NumberMap("nondeterministic");
  observation.durations_ms = fields.NumberMap("durations_ms");
  observation.worker_log = fields.Text("worker_log");
  observation.fp_before = FpFromJson(fields.Find("fp_before"), error);
  observation.fp_after = FpFromJson(fields.Find("fp_after"), error);
  if (!error.empty()) return Fail(error);
  return observation;
}

std::string CleanText(std::string_view text, size_t limit) {
  // A dump and parse with replacement is the UTF-8 repair that agrees with JSON's later checks.
  const std::string cut(text.substr(0, limit));
  return json::parse(json(cut).dump(-1, ' ', false, json::error_handler_t::replace)).get<std::string>();
}

}  // namespace ulpscope
