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
  std::vector<std::string> values;  ///< default first; "N" stands for any count
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
}

std::string ReadSdpaBackend() {
  const at::Context& context = at::globalContext();
  const bool math = context.userEnabledMathSDP();
  const bool flash = context.userEnabledFlashSDP();
  const bool efficient = context.userEnabledMemEfficientSDP();
  if (math && flash && efficient) return "default";
  return math ? "math" : flash ? "flash" : efficient ? "efficient" : "none";
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

}  // namespace

const std::map<std::string, std::vector<std::string>>& KnobValues() {
  static const std::map<std::string, std::vector<std::string>> values = [] {
    std::map<std::string, std::vector<std::string>> rows;
    for (const Knob& knob : Knobs()) rows[knob.name] = knob.values;
    return rows;
  }();
  return values;
}

std::string ApplyKnobs(const std::map<std::string, std::string>& knobs) {
  for (const auto& [name, ignored] : knobs) {
    if (!KnobValues().contains(name)) return "unknown knob '" + name + "'";
  }
  const std::map<std::string, std::string> now = ReadKnobs();
  for (const Knob& knob : Knobs()) {
    const auto asked = knobs.find(knob.name);
    const std::string& value = asked != knobs.end() ? asked->second : knob.values.front();
    if (const std::string problem = CheckValue(knob, value); !problem.empty()) return problem;
    // Setting a value that stands already may still change state elsewhere (precision has two interfaces).
    if (now.at(knob.name) != value) knob.set(value);
    if (knob.read() != value) return "knob " + knob.name + "=" + value + ": read back as " + knob.read();
  }
  return {};
}

std::map<std::string, std::string> ReadKnobs() {
  std::map<std::string, std::string> values;
  for (const Knob& knob : Knobs()) values[knob.name] = knob.read();
  return values;
}

}  // namespace ulpscope::torch_backend
