// The table of remedies.
#include "harness/words/remedies.h"

#include <array>

#include "harness/base/find.h"
#include "harness/words/knobs.h"

namespace ulpscope {
namespace {

constexpr std::array kRemedies{
    RemedyRow{.knob = "emulate_precision_casts",
              .value = "true",
              .op = "",
              .source = "torch/_inductor/config.py, emulate_precision_casts"},
    RemedyRow{.knob = "xla_allow_excess_precision",
              .value = "false",
              .op = "",
              .source = "xla/xla.proto, xla_allow_excess_precision"},
    RemedyRow{.knob = "sdpa_backend",
              .value = "math",
              .op = "scaled_dot_product_attention",
              .source = "torch.nn.attention.sdpa_kernel, SDPBackend.MATH"},
};

}  // namespace

std::span<const RemedyRow> RemedyRows() { return kRemedies; }

std::vector<RemedyRow> RemediesFor(std::string_view backend, std::string_view device,
                                   const std::vector<std::string>& ops) {
  const auto taken = KnobsTakenBy(backend, device);
  std::vector<RemedyRow> rows;
  for (const RemedyRow& row : kRemedies) {
    if (taken.contains(std::string(row.knob)) && (row.op.empty() || Contains(ops, std::string(row.op))))
      rows.push_back(row);
  }
  return rows;
}

}  // namespace ulpscope
