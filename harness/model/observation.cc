// Names of outcome kinds.
#include "harness/model/observation.h"

#include <array>

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

}  // namespace ulpscope
