// The adapter's main loop: messages in, Run, answers out; the floating-point canary around every run.
#include "backends/sdk/adapter.h"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <new>
#include <set>
#include <typeinfo>
#include <utility>

#include "backends/sdk/trace_json.h"
#include "backends/sdk/vocabulary.h"
#include "harness/base/find.h"

namespace ulpscope::sdk {
namespace {

using TextMap = std::map<std::string, std::string>;

Result<TextMap> ParseTextMap(const Json& value, const char* what) {
  if (value.is_null()) return TextMap{};
  if (!value.is_object()) return Fail(std::string(what) + " is no object");
  TextMap texts;
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) return Fail(std::string(what) + " holds a value that is no text: " + key);
    texts[key] = text.get<std::string>();
  }
  return texts;
}

Json ToJson(const FpState& state) {
  return {{"mxcsr", state.mxcsr}, {"subnormals_kept", state.subnormals_kept}, {"threads", state.threads}};
}

Json ToJson(const Capabilities& can) {
  return {{"protocol", kProtocolVersion},
          {"name", can.name},
          {"backends", can.backends},
          {"versions", can.versions},
          {"devices", can.devices},
          {"knobs", can.knobs},
          {"ops", can.ops},
          {"dtypes", can.dtypes},
          {"scopes", can.scopes},
          {"capabilities", can.capabilities},
          {"error", can.error}};
}

/// Nodes that an answer carries. A reference to a node that was cut off becomes a reference to none.
using Kept = std::set<int64_t>;
int64_t IfKept(int64_t id, const Kept& kept) { return kept.contains(id) ? id : -1; }

Json ToJson(const Cast& cast, const Kept& kept) {
  Json json = sdk::ToJson(cast);
  json["node"] = IfKept(cast.node, kept);
  return json;
}

Json ToJson(const TraceNode& node, const Kept& kept) {
  Json json = sdk::ToJson(node);
  std::erase_if(json["from"].get_ref<Json::array_t&>(),
                [&](const Json& id) { return !kept.contains(id.get<int64_t>()); });
  json["parent"] = IfKept(node.parent, kept);
  return json;
}

Json ToJson(int64_t id, const RunReply& reply, const FpState& before, const FpState& after) {
  Json casts = Json::array();
  std::vector<std::string> notes = reply.notes;
  // A trace that would not fit a message is cut, with a note: an answer without its end is none.
  const size_t count = std::min(reply.nodes.size(), kMaxTraceNodes);
  if (count < reply.nodes.size()) {
    notes.push_back("the trace is cut after " + std::to_string(count) + " of " +
                    std::to_string(reply.nodes.size()) + " nodes");
  }
  Kept kept;
  for (size_t i = 0; i < count; ++i) kept.insert(reply.nodes[i].id);
  Json::array_t nodes;
  nodes.reserve(count);
  for (size_t i = 0; i < count; ++i) nodes.push_back(ToJson(reply.nodes[i], kept));
  for (const Cast& cast : reply.casts) casts.push_back(ToJson(cast, kept));
  Json durations = Json::object();
  for (const auto& [name, ms] : reply.durations_ms) durations[name] = FloatToJson(ms);
  return {{"id", id},
          {"outcome",
           {{"kind", std::string(Name(reply.outcome))}, {"class", reply.error_class}, {"text", reply.text}}},
          {"observations", reply.observations},
          {"parts", reply.parts},
          {"knobs", reply.knobs},
          {"casts", std::move(casts)},
          {"nodes", std::move(nodes)},
          {"notes", notes},
          {"untraced", reply.untraced},
          {"fp", {{"before", ToJson(before)}, {"after", ToJson(after)}}},
          {"durations_ms", durations}};
}

/// The text of `key`; "" when it is absent.
Result<std::string> TextField(const Json& message, const char* key) {
  const auto found = message.find(key);
  if (found == message.end()) return std::string();
  if (!found->is_string()) return Fail(std::string("'") + key + "' is no text");
  return found->get<std::string>();
}

Result<TextMap> KnobsOf(const Json& message) { return ParseTextMap(message.value("knobs", Json()), "knobs"); }

bool Flag(const Json& message, const char* key) {
  const auto found = message.find(key);
  return found != message.end() && found->is_boolean() && found->get<bool>();
}

int64_t Number(const Json& message, const char* key) {
  const auto found = message.find(key);
  return found != message.end() && found->is_number_integer() ? found->get<int64_t>() : 0;
}

/// wait, warm-up and active runs; empty if none are requested.
Result<std::vector<int64_t>> ScheduleOf(const Json& message) {
  const auto found = message.find("schedule");
  std::vector<int64_t> schedule;
  if (found == message.end()) return schedule;
  if (!found->is_array() || found->size() != 3) return Fail("'schedule' is no list of three counts");
  for (const Json& count : *found) {
    if (!count.is_number_integer() || count.get<int64_t>() < 0 || count.get<int64_t>() > 1000)
      return Fail("'schedule' holds what is no count up to 1000");
    schedule.push_back(count.get<int64_t>());
  }
  if (schedule[2] == 0) return Fail("'schedule' has no active run");
  return schedule;
}

/// The inputs file must hold the program's tensors, no more and no less.
Result<void> CheckInputs(const Program& program, const TensorMap& inputs) {
  for (const ProgramTensor& tensor : program.tensors) {
    const TensorData* found = Lookup(inputs, tensor.name);
    if (found == nullptr) return Fail("the inputs file lacks tensor '" + tensor.name + "'");
    if (found->dtype != tensor.dtype || found->shape != tensor.shape) {
      return Fail("tensor '" + tensor.name + "' is " + Describe(tensor.dtype, tensor.shape) +
                  " in the program, " + Describe(found->dtype, found->shape) + " in the inputs file");
    }
  }
  if (inputs.size() != program.tensors.size())
    return Fail("the inputs file holds tensors that the program lacks");
  return {};
}

/// The class of an outcome whose tensors found no room in their file: the harness sends the request again
/// with another place (PROTOCOL.md).
constexpr const char* kNoRoom = "outputs";

std::string TypeName(const std::type_info& type) {
  int status = 0;
  char* text = abi::__cxa_demangle(type.name(), nullptr, nullptr, &status);
  std::string name = status == 0 && text != nullptr ? text : type.name();
  std::free(text);
  return name;
}

/// Run with every exception turned into data; what no adapter may ignore is refused before.
RunReply RunSafely(Adapter& adapter, const RunRequest& request) {
  if (std::string unknown = UnknownAttribute(request.program.steps); !unknown.empty())
    return RunReply::Unsupported(std::move(unknown));
  try {
    return adapter.Run(request);
  } catch (const std::bad_alloc& error) {
    RunReply reply;
    reply.outcome = Outcome::kOutOfMemory;
    reply.error_class = TypeName(typeid(error));
    reply.text = error.what();
    return reply;
  } catch (const std::exception& error) {
    return RunReply::Raised(TypeName(typeid(error)), error.what());
  } catch (...) {
    return RunReply::Raised("unknown", "an exception that is no std::exception");
  }
}

/// A completed run answers every observed name exactly once; anything else is the adapter's own fault and is
/// reported as such.
void CheckAnswered(const Program& program, RunReply& reply) {
  std::set<std::string> observed(program.observe.begin(), program.observe.end());
  std::string problem;
  for (const std::string& name : observed) {
    const bool tensor = reply.tensors.contains(name);
    if (tensor == reply.observations.contains(name)) {
      problem = "observed '" + name + (tensor ? "' is answered twice" : "' is not answered by this adapter");
    }
  }
  for (const auto& [name, ignored] : reply.tensors) {
    if (!observed.contains(name)) problem = "tensor '" + name + "' is answered and was not observed";
  }
  if (!problem.empty()) reply = RunReply::Unsupported(problem);
}

/// "" or what of the hello the capabilities do not hold: the backend, the device, a knob's name, a count of
/// threads. Values of other knobs are the adapter's to check.
std::string CheckWorker(const Capabilities& can, const HelloRequest& request) {
  if (!Contains(can.backends, request.backend))
    return "this adapter does not serve the backend '" + request.backend + "'";
  const std::string kind = request.device.substr(0, request.device.find(':'));
  if (!Contains(can.devices, request.device) && !Contains(can.devices, kind))
    return "device " + request.device + " is not served";
  for (const auto& [knob, value] : request.knobs) {
    const auto* offered = Lookup(can.knobs, knob);
    if (offered == nullptr) return "unknown knob '" + knob + "'";
    const bool count =
        !value.empty() && value.find_first_not_of("0123456789") == std::string::npos && value != "0";
    if (knob == "threads" && !Contains(*offered, value) && !(count && Contains(*offered, "N")))
      return "knob threads=" + value + " is not offered";
  }
  return {};
}

class Session {
 public:
  Session(Adapter& adapter, int fd) : adapter_(adapter), fd_(fd), reader_(fd) {}

  int Serve() {
    while (true) {
      const Result<bool> goes_on = Answer();
      if (!goes_on) {
        std::fprintf(stderr, "adapter: the harness broke the protocol: %s\n",
                     goes_on.error().message.c_str());
        return 3;
      }
      if (!*goes_on) return 0;
    }
  }

 private:
  /// One message; false when it was the last.
  Result<bool> Answer() {
    const ReadOutcome read = ULPSCOPE_TRY(reader_.Read());
    if (read.state == ReadState::kClosed) return false;
    const Json message = ULPSCOPE_TRY(ParseMessage(read.line));
    const std::string verb = ULPSCOPE_TRY(TextField(message, "verb"));
    if (verb == "bye") return false;
    if (verb != "hello" && verb != "run") return Fail("unknown verb '" + verb + "'");
    ULPSCOPE_TRY(verb == "hello" ? Hello(message) : Run(message));
    return true;
  }

  Result<void> Hello(const Json& message) {
    HelloRequest request{
        .protocol = Number(message, "protocol"),
    };
    request.backend = ULPSCOPE_TRY(TextField(message, "backend"));
    request.device = ULPSCOPE_TRY(TextField(message, "device"));
    if (request.device.empty()) request.device = "cpu";
    request.knobs = ULPSCOPE_TRY(KnobsOf(message));
    Capabilities can;
    if (request.protocol == kProtocolVersion) {
      try {
        can = adapter_.Hello(request);
        if (can.error.empty()) can.error = CheckWorker(can, request);
      } catch (const std::exception& error) {
        can.error = TypeName(typeid(error)) + ": " + error.what();
      }
    } else {
      can.error = "this adapter speaks protocol " + std::to_string(kProtocolVersion) + ", not " +
                  std::to_string(request.protocol);
    }
    return WriteMessage(fd_, ToJson(can));
  }

  Result<void> Run(const Json& message) {
    RunRequest request;
    request.id = Number(message, "id");
    request.seed = Number(message, "seed");
    request.trace = Flag(message, "trace");
    request.poison = Flag(message, "poison");
    request.schedule = ULPSCOPE_TRY(ScheduleOf(message));
    const std::string inputs = ULPSCOPE_TRY(TextField(message, "inputs"));
    const std::string outputs = ULPSCOPE_TRY(TextField(message, "outputs"));
    request.case_id = ULPSCOPE_TRY(TextField(message, "case"));
    request.knobs = ULPSCOPE_TRY(KnobsOf(message));
    request.program = ULPSCOPE_TRY(ParseProgram(message.value("program", Json())));
    // `trace` may be requested as an observation; its result travels in `casts` and `nodes`, with durations
    // that leave out what a first call sets up.
    if (std::erase(request.program.observe, "trace") > 0) request.trace = request.timed = true;
    if (!inputs.empty()) {
      Result<TensorMap> tensors = ReadSafetensors(inputs);
      if (!tensors) return Refuse(request.id, "inputs: " + tensors.error().Text());
      request.inputs = std::move(*tensors);
    }
    if (const Result<void> ok = CheckInputs(request.program, request.inputs); !ok)
      return Refuse(request.id, "inputs: " + ok.error().message);
    return Execute(request, outputs);
  }

  /// An answer without a run: a tensor file is no message, and a bad one no reason to end.
  Result<void> Refuse(int64_t id, std::string reason) {
    const FpState state = ReadFpState(adapter_.Threads());
    return WriteMessage(fd_, ToJson(id, RunReply::Unsupported(std::move(reason)), state, state));
  }

  Result<void> Execute(const RunRequest& request, const std::string& outputs) {
    const FpState before = ReadFpState(adapter_.Threads());
    const Stopwatch stopwatch;
    RunReply reply = RunSafely(adapter_, request);
    reply.durations_ms.try_emplace("run", stopwatch.Milliseconds());
    const FpState after = ReadFpState(adapter_.Threads());
    if (reply.outcome == Outcome::kCompleted) CheckAnswered(request.program, reply);
    if (reply.outcome == Outcome::kCompleted && !outputs.empty()) {
      if (const Result<void> written = WriteSafetensors(outputs, reply.tensors); !written) {
        reply = RunReply();
        reply.outcome = Outcome::kOutOfMemory;
        reply.error_class = kNoRoom;
        reply.text = "the outputs could not be handed over: " + written.error().message;
      }
    }
    return WriteMessage(fd_, ToJson(request.id, reply, before, after));
  }

  Adapter& adapter_;
  int fd_;
  LineReader reader_;
};

}  // namespace

std::string_view Name(Outcome outcome) {
  static constexpr std::array<std::string_view, 4> kNames{"completed", "raised", "unsupported",
                                                          "out_of_memory"};
  return kNames[static_cast<size_t>(outcome)];
}

RunReply RunReply::Unsupported(std::string reason) {
  RunReply reply;
  reply.outcome = Outcome::kUnsupported;
  reply.text = std::move(reason);
  return reply;
}

RunReply RunReply::Raised(std::string error_class, std::string text) {
  RunReply reply;
  reply.outcome = Outcome::kRaised;
  reply.error_class = std::move(error_class);
  reply.text = std::move(text);
  return reply;
}

int ServeAdapter(Adapter& adapter) {
  const char* text = std::getenv("ULPSCOPE_FD");
  char* end = nullptr;
  const long fd = text != nullptr ? std::strtol(text, &end, 10) : -1;
  if (text == nullptr || end == text || *end != '\0' || fd < 0 || fd > std::numeric_limits<int>::max()) {
    std::fprintf(stderr,
                 "This is an adapter of ulpscope: the harness starts it, with a socket whose number stands "
                 "in ULPSCOPE_FD.\n"
                 "To see whether it keeps the protocol: ulpscope doctor --adapter PATH\n");
    return 4;
  }
  return ServeAdapter(adapter, static_cast<int>(fd));
}

int ServeAdapter(Adapter& adapter, int fd) { return Session(adapter, fd).Serve(); }

Stopwatch::Stopwatch()
    : start_ns_(std::chrono::duration_cast<std::chrono::nanoseconds>(
                    std::chrono::steady_clock::now().time_since_epoch())
                    .count()) {}

double Stopwatch::Milliseconds() const {
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                       std::chrono::steady_clock::now().time_since_epoch())
                       .count();
  return static_cast<double>(now - start_ns_) / 1e6;
}

}  // namespace ulpscope::sdk
