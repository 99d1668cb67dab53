// Knobs of LibTorch, one row each: how it is set and how it is read back. harness/words lists which backend
// takes which.
#include "backends/torch/knobs.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <functional>

#include "backends/sdk/adapter.h"
#include "harness/base/find.h"
#include "harness/words/knobs.h"

namespace ulpscope::torch_backend {
namespace {

/// Effect of a knob of harness/words in this process. A knob without a row here belongs to the compiler
/// process.
struct Effect {
  std::string name;
  std::function<void(const std::string&)> set;
  std::function<std::string()> read;
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

const std::vector<Effect>& Effects() {
  static const std::vector<Effect> effects = {
      {"threads", [](const std::string& value) { at::set_num_threads(std::stoi(value)); },
       [] { return std::to_string(at::get_num_threads()); }},
      {"float32_matmul_precision",
       [](const std::string& value) { at::globalContext().setFloat32MatmulPrecision(value); },
       ReadMatmulPrecision},
      {"mkldnn", [](const std::string& value) { at::globalContext().setUserEnabledMkldnn(value == "on"); },
       [] { return OnOff(at::globalContext().userEnabledMkldnn()); }},
      {"deterministic",
       [](const std::string& value) { at::globalContext().setDeterministicAlgorithms(value == "on", false); },
       [] { return OnOff(at::globalContext().deterministicAlgorithms()); }},
      // Affects the calling thread and threads created later: all threads if there is one, or if it is set
      // before the first parallel region.
      {"flush_denormal",
       [](const std::string& value) { at::globalContext().setFlushDenormal(value == "on"); },
       [] { return OnOff(!sdk::ReadFpState(1).subnormals_kept); }},
      {"sdpa_backend", SetSdpaBackend, ReadSdpaBackend},
      {"reduced_precision_reduction", SetReducedPrecision, ReadReducedPrecision},
  };
  return effects;
}

}  // namespace

std::string ApplyKnobs(const KnobScope& scope, const std::map<std::string, std::string>& knobs) {
  const auto offered = KnobsTakenBy(scope.backend, scope.device);
  for (const auto& [name, value] : knobs) {
    if (!offered.contains(name)) return WhyNotTaken(name, scope.backend, scope.device);
    if (const auto checked = CheckKnobValue(name, value); !checked) return checked.error().Text();
  }
  for (const Effect& effect : Effects()) {
    const auto values = offered.find(effect.name);
    if (values == offered.end()) continue;
    const std::string& value = LookupOr(knobs, effect.name, values->second.front());
    // Setting a value that stands already may still change state elsewhere (precision has two interfaces).
    if (effect.read() != value) effect.set(value);
    if (value != "default" && effect.read() != value)
      return "knob " + effect.name + "=" + value + ": read back as " + effect.read();
  }
  return {};
}

std::map<std::string, std::string> ReadKnobs(const KnobScope& scope) {
  const auto offered = KnobsTakenBy(scope.backend, scope.device);
  std::map<std::string, std::string> values;
  for (const Effect& effect : Effects()) {
    if (offered.contains(effect.name)) values[effect.name] = effect.read();
  }
  return values;
}

}  // namespace ulpscope::torch_backend
