// Names of outcome kinds, and what a worker left behind.
#include "harness/model/observation.h"

#include <fmt/format.h>

#include <array>

#include "harness/base/text.h"

namespace ulpscope {
namespace {
constexpr std::array<std::string_view, 7> kNames{"completed", "raised",        "unsupported",    "crashed",
                                                 "timed_out", "out_of_memory", "protocol_broken"};
}

std::string_view Name(OutcomeKind kind) { return kNames[static_cast<size_t>(kind)]; }

std::optional<OutcomeKind> ParseOutcomeKind(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<OutcomeKind>(i);
  }
  return std::nullopt;
}

std::string Describe(const Outcome& outcome) {
  return std::string(Name(outcome.kind)) + (outcome.error_class.empty() ? "" : " " + outcome.error_class);
}

std::string DescribeWhole(const Outcome& outcome) {
  return Describe(outcome) + (outcome.text.empty() ? "" : ": " + outcome.text);
}

namespace {

constexpr uint32_t kMxcsrControl = 0xffc0;  // all but the six sticky exception flags

std::string ShapeOfMxcsr(uint32_t mxcsr) {
  return fmt::format("{:#06x}{}{}", mxcsr, (mxcsr & 0x8000) != 0 ? " FTZ" : "",
                     (mxcsr & 0x40) != 0 ? " DAZ" : "");
}

}  // namespace

std::string FindTaint(const Observation& observation) {
  std::vector<std::string> taints;
  if (!observation.unwritten.empty())
    taints.push_back("elements never written: " + Join(observation.unwritten, ", "));
  const auto flush = observation.knobs_asked.find("flush_denormal");
  const bool flush_asked = flush != observation.knobs_asked.end() && flush->second == "on";
  // The runner knows the clean state, which `before` may already lack; it says what differs from that.
  if (!observation.tainted.empty()) {
    taints.push_back(observation.tainted);
  } else if (observation.fp_before && observation.fp_after && !flush_asked) {
    const FpEnvironment& before = *observation.fp_before;
    const FpEnvironment& after = *observation.fp_after;
    if ((before.mxcsr & kMxcsrControl) != (after.mxcsr & kMxcsrControl)) {
      taints.push_back(
          fmt::format("MXCSR changed from {} to {}", ShapeOfMxcsr(before.mxcsr), ShapeOfMxcsr(after.mxcsr)));
    }
    if (before.subnormals_kept != after.subnormals_kept) {
      taints.push_back(after.subnormals_kept ? "subnormals are kept now, and were not before"
                                             : "subnormals are flushed now");
    }
    if (before.threads != after.threads) {
      taints.push_back(fmt::format("the thread count changed from {} to {}", before.threads, after.threads));
    }
  }
  return Join(taints, "; ");
}

}  // namespace ulpscope
