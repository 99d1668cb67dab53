// Names of the dispatcher.
#include "harness/words/aten.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "harness/base/find.h"
#include "harness/base/text.h"

namespace ulpscope {
namespace {

constexpr std::string_view kDispatcher = "aten::";

// In order, without the in-place forms of those that are here.
constexpr auto kAtenNames = std::to_array<std::string_view>({
#include "harness/words/aten_names.inc"
});

struct Parts {
  std::string_view name, overload;
};

// Functions of torch.nn.functional behind which an op of another name stands.
constexpr auto kOtherwise =
    std::to_array<std::pair<std::string_view, std::string_view>>({{"cross_entropy", "cross_entropy_loss"},
                                                                  {"interpolate", "upsample_nearest2d"},
                                                                  {"normalize", "linalg_vector_norm"}});

bool IsLetterOfName(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// NAME of torch.NAME and of the modules below torch that are in reach; empty for anything else.
std::string_view FunctionName(std::string_view op) {
  constexpr std::string_view kRoot = "torch.";
  if (!op.starts_with(kRoot)) return {};
  op.remove_prefix(kRoot.size());
  for (const std::string_view module : {"nn.functional.", "special.", "linalg."}) {
    if (op.starts_with(module)) return op.substr(module.size());
  }
  return op;
}

Parts Split(std::string_view op) {
  op.remove_prefix(kDispatcher.size());
  const size_t dot = op.find('.');
  return {.name = op.substr(0, dot), .overload = dot == op.npos ? std::string_view() : op.substr(dot + 1)};
}

bool IsListed(std::string_view name) {
  return std::binary_search(kAtenNames.begin(), kAtenNames.end(), name);
}

}  // namespace

bool IsAten(std::string_view op) { return op.starts_with(kDispatcher); }

bool IsKnownAten(std::string_view op) {
  if (!IsAten(op)) return false;
  const std::string_view name = Split(op).name;
  return IsListed(name) || (name.ends_with('_') && IsListed(name.substr(0, name.size() - 1)));
}

bool IsTorchFunction(std::string_view op) {
  const std::string_view name = FunctionName(op);
  return !name.empty() && name.size() <= 64 && IsLetterOfName(name.front()) && name.back() != '_' &&
         std::ranges::all_of(name,
                             [](char c) { return IsLetterOfName(c) || (c >= '0' && c <= '9') || c == '_'; });
}

std::string WhyOutOfReach(std::string_view op) {
  if (IsAten(op)) return Split(op).name == "from_file" ? "it opens a file, and a case is data" : "";
  if (!IsTorchFunction(op)) return "";
  const std::string name(FunctionName(op));
  const auto other = std::ranges::find_if(kOtherwise, [&](const auto& row) { return row.first == name; });
  const std::string_view module = op.substr(0, op.size() - name.size());
  const bool known = other != kOtherwise.end() || IsListed(name) ||
                     (module == "torch.special." && IsListed("special_" + name)) ||
                     (module == "torch.linalg." && IsListed("linalg_" + name));
  if (known && name != "from_file") return "";
  return "the dispatcher has no op of this name, and a case reaches no other function of PyTorch";
}

std::string NearestAten(std::string_view op) {
  if (!IsAten(op)) return "";
  static const std::vector<std::string> names(kAtenNames.begin(), kAtenNames.end());
  const std::string nearest = NearestName(Split(op).name, names);
  return nearest.empty() ? "" : std::string(kDispatcher) + nearest;
}

bool GivesNewValue(std::string_view op) {
  if (IsTorchFunction(op)) return true;
  if (!IsAten(op)) return false;
  static constexpr auto kWriters = std::to_array<std::string_view>(
      {"batch_norm", "instance_norm", "native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm",
       "_batch_norm_with_update", "_native_batch_norm_legit", "rrelu_with_noise", "set_data",
       "fused_moving_avg_obs_fake_quant", "_fused_moving_avg_obs_fq_helper",
       "_flash_attention_forward_no_dropout_inplace"});
  const auto [name, overload] = Split(op);
  return !name.ends_with('_') && !overload.ends_with("out") && !Contains(kWriters, name);
}

}  // namespace ulpscope
