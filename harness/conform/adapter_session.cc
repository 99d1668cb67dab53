// Starting an adapter and talking to it.
#include "harness/conform/adapter_session.h"

#include <algorithm>
#include <atomic>

#include "harness/run/compare.h"
#include "harness/run/environment.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;

/// Folders and tokens of each session are its own.
int NextNumber() {
  static std::atomic<int> next{0};
  return next++;
}

}  // namespace

AdapterSession::AdapterSession(const AdapterSubject& subject, const Registry& registry,
                               const Scratch& scratch)
    : subject_(subject), registry_(registry), scratch_(scratch) {
  const std::string name = "d" + std::to_string(NextNumber());
  shm_ = scratch.shm() / name;
  tmp_ = scratch.tmp() / name;
  std::error_code ignored;
  fs::create_directories(shm_, ignored);
  fs::create_directories(tmp_, ignored);
}

AdapterSession::~AdapterSession() {
  if (worker_ != nullptr) worker_->Kill();
  worker_.reset();
  std::error_code ignored;
  fs::remove_all(shm_, ignored);
  fs::remove_all(tmp_, ignored);
}

std::string AdapterSession::Start(const BackendSpec& spec) {
  const SessionAnswer answer = StartWith(spec, HelloMessage(spec, WireKnobs(spec.knobs)));
  if (!answer.line) return answer.otherwise;
  hello_line_ = *answer.line;
  auto info = ParseHello(*answer.line);
  if (!info) return info.error().message;
  info_ = std::move(*info);
  return "";
}

SessionAnswer AdapterSession::StartWith(const BackendSpec& spec, std::string_view hello) {
  spec_ = spec;
  const std::string token = scratch_.token() + ".d" + std::to_string(NextNumber());
  auto worker =
      Worker::Start({.argv = registry_.Command(subject_.row),
                     .environment = WorkerEnvironment(WireKnobs(spec.knobs), registry_.places(), tmp_, token),
                     .cwd = tmp_,
                     .token = token});
  if (!worker) return {.line = std::nullopt, .otherwise = worker.error().message, .outcome = std::nullopt};
  worker_ = std::move(*worker);
  constexpr double kStartup = 2;  // loading a framework takes longer than any one answer
  return Send(hello, subject_.timeout_s * kStartup);
}

SessionAnswer AdapterSession::Send(std::string_view line, double seconds) {
  SessionAnswer sent;
  if (worker_ == nullptr) return {.line = std::nullopt, .otherwise = "no process", .outcome = std::nullopt};
  Answer answer = worker_->Exchange(
      line, {.seconds = seconds < 0 ? subject_.timeout_s : seconds, .memory_bytes = subject_.memory_bytes});
  if (auto* text = std::get_if<std::string>(&answer)) {
    sent.line = std::move(*text);
  } else if (auto* outcome = std::get_if<Outcome>(&answer)) {
    sent.otherwise = outcome->text;
    sent.outcome = std::move(*outcome);
  } else {
    sent.otherwise = "interrupted";
  }
  return sent;
}

SessionRun AdapterSession::Run(const Case& test_case, const sdk::TensorMap& inputs, Trace trace) {
  const std::string file = File(std::to_string(next_id_) + ".in.safetensors");
  if (auto written = sdk::WriteSafetensors(file, inputs); !written)
    return {.broken = "the inputs could not be written: " + written.error().Text()};
  return RunOn(test_case, file, trace);
}

SessionRun AdapterSession::RunOn(const Case& test_case, const std::string& inputs_file, Trace trace) {
  SessionRun run;
  if (!IsAlive()) {
    run.broken = "the adapter is gone, or spoke without being asked";
    return run;
  }
  const RunRequest request{.id = next_id_++,
                           .test_case = &test_case,
                           .device = spec_.device,
                           .seed = 0,
                           .trace = trace == Trace::kOn,
                           .inputs = inputs_file,
                           .outputs = File(std::to_string(next_id_) + ".out.safetensors"),
                           .knobs = WireKnobs(spec_.knobs)};
  const SessionAnswer answer = Send(RunMessage(request));
  if (!answer.line) {
    run.broken = answer.otherwise;
    return run;
  }
  auto parsed = ParseRunAnswer(*answer.line, request);
  if (!parsed) {
    run.broken = parsed.error().message;
    return run;
  }
  run.observation = std::move(*parsed);
  if (run.observation.outcome.kind == OutcomeKind::kCompleted)
    run.broken = ReadOutputs(test_case, request.outputs, &run.observation);
  run.observation.tainted = DescribeTaint(run.observation, request.knobs);
  return run;
}

std::string AdapterSession::ReadOutputs(const Case& test_case, const std::string& file,
                                        Observation* observation) const {
  auto missing = ExpectedTensors(test_case, *observation);
  std::error_code error;
  if (missing.empty() && !fs::exists(fs::symlink_status(file, error))) return "";
  auto tensors = sdk::ReadSafetensors(file, {});
  if (!tensors) return "outputs: " + tensors.error().message;
  for (const auto& [name, tensor] : *tensors) {
    if (missing.erase(name) == 0) return "outputs: tensor '" + name + "' was not observed";
  }
  if (!missing.empty()) return "outputs: observed '" + *missing.begin() + "' is not there";
  observation->values = std::move(*tensors);
  return "";
}

bool AdapterSession::IsAlive() { return worker_ != nullptr && worker_->IsIdle(); }

Ending AdapterSession::Bye() {
  constexpr double kSeconds = 20;  // frameworks take their time to unload
  const int milliseconds = static_cast<int>(std::min(kSeconds, subject_.timeout_s) * 1000);
  return worker_ == nullptr ? Ending() : worker_->Bye(milliseconds);
}

}  // namespace ulpscope
