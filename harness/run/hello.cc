// Starts adapters for their description of themselves.
#include "harness/run/hello.h"

#include <unistd.h>

#include "harness/base/find.h"
#include "harness/record/observation_json.h"
#include "harness/run/environment.h"
#include "harness/run/scratch.h"
#include "harness/words/knobs.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;

constexpr size_t kGreetingLogLimit = 16384;

Outcome Because(OutcomeKind kind, std::string text) {
  return {.kind = kind, .error_class = "", .text = std::move(text)};
}

/// Starts the adapter of `row`, sends hello and bye.
Result<BackendInfo> DescribeAdapter(const BackendSpec& backend, const RegistryRow& row,
                                    const Registry& registry, double timeout_s) {
  auto scratch = ULPSCOPE_TRY(Scratch::Create());
  const KnobSet knobs = WireKnobs(backend.knobs);
  const std::string token = scratch->token() + ".0";
  auto worker = ULPSCOPE_TRY(
      Worker::Start({.argv = registry.Command(row),
                     .environment = WorkerEnvironment(knobs, registry.places(), scratch->tmp(), token),
                     .cwd = scratch->tmp(),
                     .token = token}));
  Greeting greeting = Greet(*worker, backend, knobs, {.seconds = timeout_s});
  if (auto* info = std::get_if<BackendInfo>(&greeting)) {
    worker->Bye();
    return std::move(*info);
  }
  const auto* outcome = std::get_if<Outcome>(&greeting);
  return Fail((outcome == nullptr ? "interrupted" : outcome->text) + "\n" +
              CleanText(worker->Log(), kGreetingLogLimit));
}

}  // namespace

Greeting Greet(Worker& worker, const BackendSpec& backend, const KnobSet& knobs, const WorkerLimits& limits) {
  const Answer answer = worker.Exchange(HelloMessage(backend, knobs), limits);
  if (const auto* outcome = std::get_if<Outcome>(&answer)) return *outcome;
  if (std::holds_alternative<RunInterrupted>(answer)) return RunInterrupted();
  auto info = ParseHello(std::get<std::string>(answer));
  if (!info) return Because(OutcomeKind::kProtocolBroken, info.error().message);
  return std::move(*info);
}

std::optional<Outcome> WhyUnserved(const BackendInfo& info, const BackendSpec& backend) {
  if (!info.error.empty()) return Because(OutcomeKind::kUnsupported, info.error);
  if (!Contains(info.backends, backend.name)) {
    return Because(OutcomeKind::kProtocolBroken,
                   "the adapter '" + info.adapter + "' does not serve the backend " + backend.name);
  }
  const std::string kind(backend.DeviceKind());
  if (!info.devices.empty() && !Contains(info.devices, backend.device) && !Contains(info.devices, kind)) {
    return Because(OutcomeKind::kUnsupported, "device " + backend.device + " is not there");
  }
  return std::nullopt;
}

Result<BackendInfo> DescribeBackend(const BackendSpec& backend, const Registry& registry, double timeout_s) {
  const RegistryRow* known = registry.Find(backend.name);
  if (known == nullptr) return Fail("unknown backend " + backend.name);
  const RegistryRow row = InEnvironment(*known, backend.knobs);
  const Availability availability = registry.Check(row);
  if (!availability.installed) {
    return Fail(
        Problem(backend.name + " is not installed: " + availability.reason, {}, {}, availability.install));
  }
  return DescribeAdapter(backend, row, registry, timeout_s);
}

Result<std::vector<std::string>> AddAdapter(Registry& registry, const fs::path& adapter,
                                            const std::vector<std::string>& arguments) {
  std::error_code error;
  const fs::path path = fs::absolute(adapter, error);
  // A Python file without the executable bit runs on the interpreter that the Python backends have.
  const bool executable = ::access(path.c_str(), X_OK) == 0;
  const bool script = !executable && path.extension() == ".py" && ::access(path.c_str(), R_OK) == 0;
  if ((!executable && !script) || fs::is_directory(path, error)) {
    return Fail(path.string() + " is neither an executable nor a Python file");
  }
  auto command =
      script ? std::vector<std::string>{"{python}", path.string()} : std::vector<std::string>{path.string()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const RegistryRow probe{
      .backend = "", .title = "", .adapter = command, .requires_file = "", .install = "", .absent = ""};
  const auto info = DescribeAdapter(BackendSpec{.name = ""}, probe, registry, kStartupSeconds);
  if (!info) return Fail("adapter " + path.string() + ": " + info.error().message);
  if (info->backends.empty()) return Fail("adapter " + path.string() + " serves no backend");
  for (const auto& name : info->backends) {
    auto knobs = Keys(info->knobs);
    if (script) knobs.emplace_back(kEnvKnob);
    registry.AddRow({.backend = name,
                     .title = "adapter " + path.filename().string(),
                     .adapter = command,
                     .requires_file = path.string(),
                     .knobs = knobs,
                     .install = "",
                     .absent = "",
                     .is_default = true,
                     .of_caller = Contains(info->capabilities, "caller")});
  }
  return info->backends;
}

}  // namespace ulpscope
