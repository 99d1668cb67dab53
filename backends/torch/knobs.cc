// Knobs of LibTorch, one row each: how it is set and how it is read back.
#include "backends/torch/knobs.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <charconv>
#include <functional>

#include "backends/sdk/adapter.h"

namespace ulpscope::torch_backend {
namespace {

struct Knob {
  std::string name;
  std::vector<std::string> values;              ///< default first; "N" stands for any count
  std::function<void(const std::string&)> set;  ///< null: set in the compiler's process, and read there
  std::function<std::string()> read;
  std::string only_device = "", only_backend = "";  ///< where it acts; everywhere without
  std::string elsewhere = "";                       ///< why it is refused anywhere else
};

std::string OnOff(bool on) { return on ? "on" : "off"; }

std::string ReadMatmulPrecision() {
  switch (at::globalContext().float32MatmulPrecision()) {
    case at::Float32MatmulPrecision::HIGHEST:
      return "highest";
    case at::Float32MatmulPrecision::HIGH:
      return "high";
    case at::Float32MatmulPrecision::MEDIUM:
      return "medium";
  }
  return "unknown";
}

void SetSdpaBackend(const std::string& value) {
  at::Context& context = at::globalContext();
  const bool any = value == "default";
  context.setSDPUseMath(any || value == "math");
  context.setSDPUseFlash(any || value == "flash");
  context.setSDPUseMemEfficient(any || value == "efficient");
  context.setSDPUseCuDNN(any);
}

std::string ReadSdpaBackend() {
  const at::Context& context = at::globalContext();
  const bool math = context.userEnabledMathSDP();
  const bool flash = context.userEnabledFlashSDP();
  const bool efficient = context.userEnabledMemEfficientSDP();
  if (math && flash && efficient) return "default";
  return math ? "math" : flash ? "flash" : efficient ? "efficient" : "none";
}

/// The two flags of matrix products on CUDA, which the knob sets together. Split-K is a third answer of the
/// library's.
std::string ReadReducedPrecision() {
  const auto word = [](at::CuBLASReductionOption option) {
    switch (option) {
      case at::CuBLASReductionOption::AllowReducedPrecisionWithSplitK:
        return "on";
      case at::CuBLASReductionOption::DisallowReducedPrecisionAllowSplitK:
        return "off";
      case at::CuBLASReductionOption::DisallowReducedPrecisionDisallowSplitK:
        return "off_without_split_k";
    }
    return "unknown";
  };
  const at::Context& context = at::globalContext();
  const std::string bfloat16 = word(context.allowBF16ReductionCuBLAS()),
                    float16 = word(context.allowFP16ReductionCuBLAS());
  return bfloat16 == float16 ? bfloat16 : "bfloat16 " + bfloat16 + ", float16 " + float16;
}

void SetReducedPrecision(const std::string& value) {
  if (value == "default") return;
  at::globalContext().setAllowBF16ReductionCuBLAS(value == "on");
  at::globalContext().setAllowFP16ReductionCuBLAS(value == "on");
}

/// A knob that inductor's configuration holds.
Knob OfInductor(const std::string& name) {
  return {.name = name,
          .values = {"false", "true"},
          .set = nullptr,
          .read = nullptr,
          .only_backend = "torch-aoti",
          .elsewhere = "it configures inductor (torch-inductor, torch-aoti)"};
}

const std::vector<Knob>& Knobs() {
  static const std::vector<Knob> knobs = {
      {"threads",
       {"1", "N"},
       [](const std::string& value) { at::set_num_threads(std::stoi(value)); },
       [] { return std::to_string(at::get_num_threads()); }},
      {"float32_matmul_precision",
       {"highest", "high", "medium"},
       [](const std::string& value) { at::globalContext().setFloat32MatmulPrecision(value); },
       ReadMatmulPrecision},
      {"mkldnn",
       {"on", "off"},
       [](const std::string& value) { at::globalContext().setUserEnabledMkldnn(value == "on"); },
       [] { return OnOff(at::globalContext().userEnabledMkldnn()); }},
      {"deterministic",
       {"off", "on"},
       [](const std::string& value) { at::globalContext().setDeterministicAlgorithms(value == "on", false); },
       [] { return OnOff(at::globalContext().deterministicAlgorithms()); }},
      // Of the calling thread and of those born later: with one thread, or set before the first parallel
      // region, all.
      {"flush_denormal",
       {"off", "on"},
       [](const std::string& value) { at::globalContext().setFlushDenormal(value == "on"); },
       [] { return OnOff(!sdk::ReadFpState(1).subnormals_kept); }},
      {"sdpa_backend", {"default", "math", "flash", "efficient"}, SetSdpaBackend, ReadSdpaBackend},
      {"reduced_precision_reduction",
       {"default", "on", "off"},
       SetReducedPrecision,
       ReadReducedPrecision,
       "cuda",
       "",
       "it acts on matrix products on CUDA only"},
      OfInductor("emulate_precision_casts"),
      {.name = "freezing",
       .values = {"false", "true"},
       .set = nullptr,
       .read = nullptr,
       .only_backend = "torch-inductor",
       .elsewhere =
           "it folds the parameters of a module (torch-inductor); a package takes its weights as inputs"},
      OfInductor("max_autotune"),
  };
  return knobs;
}

bool IsThreadCount(const std::string& value) {
  int count = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), count);
  return error == std::errc() && end == value.data() + value.size() && count >= 1 && count <= 1024;
}

std::string CheckValue(const Knob& knob, const std::string& value) {
  const bool listed =
      std::find(knob.values.begin(), knob.values.end(), value) != knob.values.end() && value != "N";
  if (listed || (knob.name == "threads" && IsThreadCount(value))) return {};
  std::string text = "knob " + knob.name + "=" + value + ": expected one of";
  for (const std::string& known : knob.values) text += " " + known;
  return text;
}

bool Acts(const Knob& knob, const KnobScope& scope) {
  return (knob.only_device.empty() || knob.only_device == scope.device) &&
         (knob.only_backend.empty() || knob.only_backend == scope.backend);
}

/// Why `name` is no knob here.
std::string Refusal(const KnobScope& scope, const std::string& name) {
  for (const Knob& knob : Knobs()) {
    if (knob.name == name)
      return "knob " + name + " of " + scope.backend + " on " + scope.device + ": " + knob.elsewhere;
  }
  return "unknown knob '" + name + "'";
}

}  // namespace

std::map<std::string, std::vector<std::string>> KnobValues(const KnobScope& scope) {
  std::map<std::string, std::vector<std::string>> rows;
  for (const Knob& knob : Knobs()) {
    if (Acts(knob, scope)) rows[knob.name] = knob.values;
  }
  return rows;
}

std::string ApplyKnobs(const KnobScope& scope, const std::map<std::string, std::string>& knobs) {
  const auto served = KnobValues(scope);
  for (const auto& [name, ignored] : knobs) {
    if (!served.contains(name)) return Refusal(scope, name);
  }
  const std::map<std::string, std::string> now = ReadKnobs(scope);
  for (const Knob& knob : Knobs()) {
    if (!Acts(knob, scope)) continue;
    const auto asked = knobs.find(knob.name);
    const std::string& value = asked != knobs.end() ? asked->second : knob.values.front();
    if (const std::string problem = CheckValue(knob, value); !problem.empty()) return problem;
    if (!knob.set) continue;
    // Setting a value that stands already may still change state elsewhere (precision has two interfaces).
    if (now.at(knob.name) != value) knob.set(value);
    if (value != "default" && knob.read() != value)
      return "knob " + knob.name + "=" + value + ": read back as " + knob.read();
  }
  return {};
}

std::map<std::string, std::string> ReadKnobs(const KnobScope& scope) {
  std::map<std::string, std::string> values;
  for (const Knob& knob : Knobs()) {
    if (knob.read && Acts(knob, scope)) values[knob.name] = knob.read();
  }
  return values;
}

}  // namespace ulpscope::torch_backend
