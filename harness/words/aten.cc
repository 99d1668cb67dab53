// Names of the dispatcher.
#include "harness/words/aten.h"

#include <algorithm>
#include <array>
#include <vector>

#include "harness/base/text.h"

namespace ulpscope {
namespace {

constexpr std::string_view kDispatcher = "aten::";

// In order, without the in-place forms of those that are here.
constexpr auto kNames = std::to_array<std::string_view>({
#include "harness/words/aten_names.inc"
});

struct Parts {
  std::string_view name, overload;
};

Parts Split(std::string_view op) {
  op.remove_prefix(kDispatcher.size());
  const size_t dot = op.find('.');
  return {.name = op.substr(0, dot), .overload = dot == op.npos ? std::string_view() : op.substr(dot + 1)};
}

bool IsListed(std::string_view name) { return std::binary_search(kNames.begin(), kNames.end(), name); }

}  // namespace

bool IsAten(std::string_view op) { return op.starts_with(kDispatcher); }

bool IsKnownAten(std::string_view op) {
  if (!IsAten(op)) return false;
  const std::string_view name = Split(op).name;
  return IsListed(name) || (name.ends_with('_') && IsListed(name.substr(0, name.size() - 1)));
}

std::string NearestAten(std::string_view op) {
  if (!IsAten(op)) return "";
  static const std::vector<std::string> names(kNames.begin(), kNames.end());
  const std::string nearest = NearestName(Split(op).name, names);
  return nearest.empty() ? "" : std::string(kDispatcher) + nearest;
}

bool GivesNewValue(std::string_view op) {
  if (!IsAten(op)) return false;
  static constexpr auto kWriters = std::to_array<std::string_view>(
      {"batch_norm", "instance_norm", "native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm",
       "_batch_norm_with_update", "_native_batch_norm_legit", "rrelu_with_noise", "set_data",
       "fused_moving_avg_obs_fake_quant", "_fused_moving_avg_obs_fq_helper",
       "_flash_attention_forward_no_dropout_inplace"});
  const auto [name, overload] = Split(op);
  return !name.ends_with('_') && !overload.ends_with("out") &&
         std::find(kWriters.begin(), kWriters.end(), name) == kWriters.end();
}

}  // namespace ulpscope
