// Setting up PyTorch and JAX as a backend does.
#include "harness/repro/script_side.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <vector>

#include "harness/base/text.h"
#include "harness/repro/compute.h"
#include "harness/repro/placed_step.h"
#include "harness/repro/python_text.h"

namespace ulpscope {
namespace {

constexpr std::string_view kTorchTensors = R"py(
DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "BOOL": torch.bool,
          "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2, "I64": torch.int64, "I32": torch.int32,
          "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8}


def tensor(data, dtype, shape):
    if not data:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(data), dtype=dtype).reshape(shape).clone()


def bits(value):
    value = value.detach().cpu().contiguous()
    size = value.element_size()
    patterns = value.reshape(-1).view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[size]).tolist()
    return [each % (1 << 8 * size) for each in patterns], value.reshape(-1).to(torch.float64).tolist(), str(value.dtype)
)py";

constexpr std::string_view kJaxTensors = R"py(
DTYPES = {"F64": numpy.float64, "F32": numpy.float32, "F16": numpy.float16, "BF16": ml_dtypes.bfloat16, "BOOL": numpy.bool_,
          "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2, "I64": numpy.int64, "I32": numpy.int32,
          "I16": numpy.int16, "I8": numpy.int8, "U8": numpy.uint8}


def tensor(data, dtype, shape):
    return numpy.frombuffer(data, dtype=dtype).reshape(shape)


def bits(value):
    value = numpy.ascontiguousarray(value).reshape(-1)
    return value.view(f"u{value.dtype.itemsize}").tolist(), value.astype(numpy.float64).tolist(), str(value.dtype)
)py";

/// The PyTorch stacks, each with the backend of torch.compile that it is.
const std::map<std::string, std::string>& TorchCompilers() {
  static const std::map<std::string, std::string> kCompilers{
      {"torch-eager", ""}, {"torch-aot-eager", "aot_eager"}, {"torch-inductor", "inductor"}};
  return kCompilers;
}

/// "True" and "False" for the values of a knob that is either; nothing for another value.
std::optional<std::string> Flag(const std::string& value) {
  if (value != "true" && value != "false") return std::nullopt;
  return value == "true" ? "True" : "False";
}

/// The lines that set a knob; nothing where this script cannot.
std::optional<std::string> TorchKnob(const std::string& knob, const std::string& value) {
  const auto flag = Flag(value);
  if (flag && (knob == "emulate_precision_casts" || knob == "max_autotune"))
    return fmt::format("import torch._inductor.config\ntorch._inductor.config.{} = {}\n", knob, *flag);
  if (knob == "float32_matmul_precision")
    return fmt::format("torch.set_float32_matmul_precision({})\n", PythonString(value));
  const std::string on = value == "on" ? "True" : "False";
  if (knob == "mkldnn") return "torch.backends.mkldnn.set_flags(" + on + ")\n";
  if (knob == "flush_denormal") return "torch.set_flush_denormal(" + on + ")\n";
  if (knob == "deterministic") return "torch.use_deterministic_algorithms(" + on + ")\n";
  return std::nullopt;
}

std::optional<std::string> JaxKnob(const std::string& knob, const std::string& value) {
  const auto update = [](std::string_view flag, const std::string& to) {
    return fmt::format("jax.config.update(\"{}\", {})\n", flag, to);
  };
  if (const auto flag = Flag(value); flag && knob == "jax_enable_x64") return update(knob, *flag);
  if (knob == "jax_matmul_precision")
    return update("jax_default_matmul_precision", value == "default" ? "None" : PythonString(value));
  if (knob == "jax_numpy_dtype_promotion") return update(knob, PythonString(value));
  return std::nullopt;
}

}  // namespace

ScriptSide::ScriptSide(const Case& test_case, const ReproSubject& subject)
    : case_(test_case),
      subject_(subject),
      name_(subject.backend.substr(0, subject.backend.find_first_of("@:"))) {}

bool ScriptSide::IsJax() const { return name_ == "jax" || name_ == "jax-eager"; }

bool ScriptSide::IsPython() const { return IsJax() || TorchCompilers().contains(name_); }

std::string ScriptSide::Framework() const { return IsJax() ? "jax" : "torch"; }

std::string ScriptSide::Versions() const { return subject_.versions.empty() ? "?" : Join(subject_.versions); }

std::string ScriptSide::Imports() const {
  if (!IsJax())
    return "os.environ[\"OMP_NUM_THREADS\"] = \"1\"  # one thread, as it was recorded\n\nimport torch\n"
           "import torch.nn.functional as F\n\ntorch.set_num_threads(1)\n" +
           Knobs();
  const auto excess = subject_.knobs.find("xla_allow_excess_precision");
  const bool off = excess != subject_.knobs.end() && excess->second == "false";
  return fmt::format(
             "os.environ[\"NPROC\"] = \"1\"  # one thread, as it was recorded\n"
             "os.environ[\"XLA_FLAGS\"] = \"--xla_cpu_multi_thread_eigen=false{}\"\n"
             "os.environ[\"JAX_PLATFORMS\"] = \"cpu\"\n\nimport jax\nimport jax.numpy as jnp\nimport "
             "ml_dtypes\n"
             "import numpy\n\n",
             off ? " --xla_allow_excess_precision=false" : "") +
         Knobs();
}

std::string ScriptSide::Knobs() const {
  std::string text;
  for (const auto& [knob, value] : subject_.knobs) {
    if (knob == "threads" || knob == "xla_allow_excess_precision") continue;
    const auto lines = IsJax() ? JaxKnob(knob, value) : TorchKnob(knob, value);
    text += lines ? *lines
                  : fmt::format("print({})\n",
                                PythonString("not set by this script: knob " + knob + "=" + value));
  }
  return text;
}

std::string_view ScriptSide::Tensors() const { return IsJax() ? kJaxTensors : kTorchTensors; }

Result<std::string> ScriptSide::Compute() const {
  if (!IsPython()) return Fail("there is no script for " + name_ + ": it is no Python stack");
  if (subject_.backend.find("@cuda") != std::string::npos) return Fail("there is no script for a GPU");
  for (const PlacedStep& placed : PlaceSteps(case_.program)) {
    const std::string& op = placed.step->op;
    if (op == "module_to" || op == "fsdp_linear") return Fail("there is no script for the step " + op);
  }
  if (IsJax()) return JaxCompute(case_, name_ == "jax" ? "jax.jit" : "");
  return TorchCompute(case_, TorchCompilers().at(name_));
}

}  // namespace ulpscope
