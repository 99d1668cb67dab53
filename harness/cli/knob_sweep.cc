// Expanding backends by their knobs.
#include "harness/cli/knob_sweep.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/find.h"
#include "harness/run/hello.h"
#include "harness/words/knobs.h"

namespace ulpscope {
namespace {

/// A value to request: words in capitals that stand for any number become one. Two is the least count that
/// differs from one.
std::string Askable(const std::string& offered) {
  return offered == "N" ? "2" : offered == "BYTES" ? "1048576" : offered;
}

/// Everything but the default; the default itself where there is nothing else, so that each knob is seen.
std::vector<std::string> ValuesToAsk(const std::vector<std::string>& offered) {
  std::vector<std::string> values;
  for (size_t i = offered.size() == 1 ? 0 : 1; i < offered.size(); ++i) {
    std::string value = Askable(offered[i]);
    if (!Contains(values, value)) values.push_back(std::move(value));
  }
  return values;
}

void Expand(const BackendSpec& base, const BackendInfo& info, KnobSweep* sweep) {
  std::vector<std::string>& probed = sweep->swept[base.Text()];
  for (const auto& [knob, offered] : info.knobs) {
    if (ChoosesWhatRuns(knob) || base.knobs.contains(knob)) continue;
    probed.push_back(knob);
    for (const auto& value : ValuesToAsk(offered)) {
      BackendSpec variant = base;
      variant.knobs[knob] = value;
      sweep->swept[variant.Text()] = {knob};
      sweep->asked.push_back({.base = base.Text(), .knob = knob, .value = value});
      sweep->backends.push_back(std::move(variant));
    }
  }
}

}  // namespace

Result<KnobSweep> SweepKnobs(const Registry& registry, const std::vector<BackendSpec>& backends) {
  KnobSweep sweep;
  for (const BackendSpec& base : backends) {
    sweep.backends.push_back(base);
    const auto info = DescribeBackend(base, registry);
    if (!info || !info->error.empty()) {
      sweep.left_out.push_back(base.Text() + ": " + (info ? info->error : info.error().Text()));
      sweep.swept[base.Text()] = {};
      continue;
    }
    const RegistryRow& row = *registry.Find(base.name);
    for (const auto& knob : row.knobs) {
      if (info->knobs.contains(knob) || ChoosesWhatRuns(knob)) continue;
      if (const auto device = row.knob_devices.find(knob);
          device != row.knob_devices.end() && !base.device.starts_with(device->second)) {
        sweep.left_out.push_back(fmt::format("{}: {} acts on @{} alone", base.Text(), knob, device->second));
      } else {
        sweep.problems.push_back(
            fmt::format("{}: its adapter does not offer the knob {} of the registry", base.Text(), knob));
      }
    }
    Expand(base, *info, &sweep);
  }
  if (sweep.asked.empty()) {
    return Fail(Problem("no backend of this run offers a knob",
                        sweep.left_out.empty() ? "" : sweep.left_out.front(), {}, {}));
  }
  return sweep;
}

std::vector<std::string> UnprobedKnobs(const KnobSweep& sweep, const RunReport& report) {
  std::vector<std::string> lines = sweep.problems;
  for (const auto& asked : sweep.asked) {  // Clang 15 captures no structured binding
    const auto row = std::ranges::find_if(report.knobs, [&](const KnobEffect& effect) {
      return effect.backend == asked.base && effect.knob == asked.knob && effect.asked == asked.value;
    });
    const bool probed = row != report.knobs.end() && row->effect != KnobEffect::Effect::kNotCompared;
    if (!probed)
      lines.push_back(fmt::format("no case probes knob {}={} of {}", asked.knob, asked.value, asked.base));
  }
  return lines;
}

}  // namespace ulpscope
