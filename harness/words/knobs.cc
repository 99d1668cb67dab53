// The table of knobs.
#include "harness/words/knobs.h"

#include <algorithm>
#include <iterator>

#include "harness/base/find.h"
#include "harness/base/text.h"

namespace ulpscope {
namespace {

using Names = std::vector<std::string>;

Names With(Names names, const Names& more) {
  names.insert(names.end(), more.begin(), more.end());
  return names;
}

/// One that leads to a folder beside the registry and nowhere else: no slash, no leading dot.
bool IsEnvironmentName(std::string_view text) {
  const auto inner = [](char c) { return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !text.empty() && text.size() <= 64 && inner(text.front()) && inner(text.back()) &&
         std::ranges::all_of(text, [&](char c) { return inner(c) || c == '.' || c == '_' || c == '-'; });
}

using enum KnobRow::Form;
using enum KnobRow::Use;

std::vector<KnobRow> FrameworkKnobs() {
  const Names on_off{"on", "off"}, off_on{"off", "on"}, false_true{"false", "true"};
  const Names torch{"torch-eager",    "torch-traced", "torch-aot-eager",
                    "torch-inductor", "torch-aoti",   "torch-custom"};
  const Names inductor{"torch-inductor", "torch-aoti"}, faulty{"faulty"};
  Names torch_on_cuda;
  for (const std::string& name : torch) torch_on_cuda.push_back(name + "@cuda");
  return {
      {"threads", kCount, {"1", "N"}, {"*"}, "results change with it, so it is one per worker whatever -j"},
      {"float32_matmul_precision",
       kListed,
       {"highest", "high", "medium"},
       torch,
       "of float32 matrix products"},
      {"reduced_precision_reduction",
       kListed,
       {"default", "on", "off"},
       With(torch_on_cuda, {"cublas", "cublaslt"}),
       "partial sums of 16-bit matrix products on CUDA, kept in 16 bits"},
      {"mkldnn", kListed, on_off, torch, "oneDNN's kernels"},
      {"deterministic", kListed, off_on, torch, "ops that would differ from run to run raise"},
      {"flush_denormal", kListed, off_on, With(torch, faulty), "subnormals are zero"},
      {"sdpa_backend", kListed, {"default", "math", "flash", "efficient"}, torch, "the kernel of attention"},
      {"emulate_precision_casts", kListed, false_true, inductor, "inductor keeps the roundings of its graph"},
      {"freezing",
       kListed,
       false_true,
       {"torch-inductor"},
       "inductor folds the parameters of a module; a package takes its weights as inputs"},
      {"max_autotune", kListed, false_true, inductor, "inductor tries kernels and takes the fastest"},
  };
}

std::vector<KnobRow> XlaKnobs() {
  const Names jax{"jax", "jax-eager"}, true_false{"true", "false"};
  return {
      {"jax_matmul_precision",
       kListed,
       {"default", "highest", "high", "bfloat16", "tensorfloat32", "float32", "F16_F16_F16", "F16_F16_F32",
        "BF16_BF16_BF16", "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "BF16_BF16_F32_X9",
        "TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64"},
       jax,
       "default, highest or a dot-algorithm preset"},
      {"jax_numpy_dtype_promotion",
       kListed,
       {"standard", "strict"},
       jax,
       "strict: two dtypes in one op raise"},
      {"jax_enable_x64", kListed, true_false, jax, "without, what is wider than 32 bits is cut"},
      {"xla_allow_excess_precision", kListed, true_false, With(jax, {"torch-xla", "torch-xla-dynamo"}),
       "XLA may keep more precision than its graph says"},
  };
}

std::vector<KnobRow> LibraryKnobs() {
  const Names off_on{"off", "on"};
  return {
      {"openblas_coretype",
       kOpen,
       {"detected", "Haswell", "SkylakeX", "Cooperlake", "Zen"},
       {"openblas"},
       "kernels for this processor, set before the library is loaded"},
      {"onednn_max_cpu_isa",
       kOpen,
       {"default", "SSE41", "AVX", "AVX2", "AVX512_CORE", "AVX512_CORE_VNNI", "AVX512_CORE_BF16"},
       {"onednn"},
       "the most that oneDNN may use of the processor"},
      {"cublas_compute_type",
       kOpen,
       {},
       {"cublas", "cublaslt"},
       "default 32F 32F_FAST_TF32 16F ..., as CUBLAS_COMPUTE_ names them"},
      {"cublaslt_split_k", kOpen, {}, {"cublaslt"}, "default, or into how many parts"},
      {"cublaslt_reduction_scheme",
       kListed,
       {"default", "none", "inplace", "compute_type", "output_type"},
       {"cublaslt"},
       "how parts are added"},
      {"cublaslt_workspace", kOpen, {}, {"cublaslt"}, "default, or bytes"},
      {"cublaslt_fast_accum", kListed, off_on, {"cublaslt"}, "float8 sums with fewer bits"},
      {"blis_arch_type",
       kOpen,
       {"detected", "generic", "haswell", "skx", "zen", "zen2", "zen3"},
       {"blis"},
       "kernels for this processor, set before the library's first use"},
  };
}

/// Knobs that choose the program to run, and those that only tests set.
std::vector<KnobRow> ChoicesAndPlanted() {
  const Names off_on{"off", "on"}, faulty{"faulty"};
  const auto planted = [&](std::string_view name) {
    return KnobRow{name, kListed, off_on, faulty, "planted", kPlanted};
  };
  return {
      {"backend_name",
       kOpen,
       {},
       {"torch-custom"},
       "the torch.compile backend, by its registered name",
       kChoice},
      {kEnvKnob,
       kName,
       {},
       {"torch-aot-eager", "torch-inductor", "torch-custom", "jax", "jax-eager"},
       "the environment .venv-NAME that it runs in, as ci/setup --with made it",
       kChoice},
      {"fault", kOpen, {}, faulty, "the fault", kChoice},
      {"case", kOpen, {}, faulty, "the case that it happens in", kChoice},
      {"record", kOpen, {}, {"recorded"}, "the record that is replayed", kChoice},
      {"model", kOpen, {}, {"emulated"}, "the precision model", kChoice},
      {"order", kOpen, {}, {"emulated"}, "the order of summation", kPlanted},
      planted("planted_idle"),
      planted("planted_lie"),
      planted("planted_act"),
      planted("planted_refusal"),
  };
}

std::vector<KnobRow> MakeKnobRows() {
  std::vector<KnobRow> rows;
  for (const auto& make : {FrameworkKnobs, XlaKnobs, LibraryKnobs, ChoicesAndPlanted})
    std::ranges::move(make(), std::back_inserter(rows));
  return rows;
}

}  // namespace

std::span<const KnobRow> KnobRows() {
  static const std::vector<KnobRow> rows = MakeKnobRows();
  return rows;
}

const KnobRow* FindKnob(std::string_view name) {
  for (const KnobRow& row : KnobRows()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::vector<std::string> DevicesOf(const KnobRow& knob, std::string_view backend) {
  std::vector<std::string> devices;
  for (const std::string& taker : knob.takers) {
    const size_t at = std::min(taker.find('@'), taker.size());
    if (taker == "*" || std::string_view(taker).substr(0, at) == backend)
      devices.push_back(taker.substr(std::min(at + 1, taker.size())));
  }
  return devices;
}

bool ChoosesWhatRuns(std::string_view knob) {
  const KnobRow* row = FindKnob(knob);
  return row != nullptr && row->use == KnobRow::Use::kChoice;
}

Result<void> CheckKnobValue(std::string_view knob, std::string_view value) {
  const KnobRow* row = FindKnob(knob);
  if (row == nullptr || row->form == KnobRow::Form::kOpen) return {};
  if (row->form == KnobRow::Form::kName) {
    if (IsEnvironmentName(value)) return {};
    return Fail(Problem("wrong value for knob " + std::string(knob), "'" + std::string(value) + "'",
                        "a name of letters, digits and . _ - inside, as in .venv-NAME"));
  }
  const bool count = row->form == KnobRow::Form::kCount;
  const bool is_count = !value.empty() && value.size() <= 3 && value[0] != '0' &&
                        value.find_first_not_of("0123456789") == value.npos;
  if (count ? is_count : Contains(row->values, value)) return {};
  return Fail(Problem("wrong value for knob " + std::string(knob), "'" + std::string(value) + "'",
                      count ? "a count from 1 to 999" : "one of " + Join(row->values, ", "),
                      count ? "" : DidYouMean(value, row->values)));
}

std::map<std::string, std::vector<std::string>> KnobsTakenBy(std::string_view backend,
                                                             std::string_view device) {
  std::map<std::string, std::vector<std::string>> offered;
  for (const KnobRow& row : KnobRows()) {
    for (const std::string& on : DevicesOf(row, backend)) {
      if (on.empty() || on == device.substr(0, device.find(':'))) offered[std::string(row.name)] = row.values;
    }
  }
  return offered;
}

std::string WhyNotTaken(std::string_view knob, std::string_view backend, std::string_view device) {
  const KnobRow* row = FindKnob(knob);
  if (row == nullptr) return "unknown knob '" + std::string(knob) + "'";
  return "knob " + std::string(knob) + ": " + std::string(backend) + " on " + std::string(device) +
         " does not take it (" + std::string(row->about) + "; of " + Join(row->takers, ", ") + ")";
}

}  // namespace ulpscope
