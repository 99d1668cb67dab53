// Variables that were set, and were not passed on.
#include "harness/run/preset.h"

#include <unistd.h>

#include <string_view>
#include <vector>

#include "harness/base/find.h"
#include "harness/base/secrets.h"

extern char** environ;

namespace ulpscope {
namespace {

/// Variables that change what is computed, grouped by their reader. For every other variable only its presence is
/// recorded: a name alone does not show whether a value is a secret (TORCHINDUCTOR_REDIS_URL holds a password).
constexpr std::string_view kChangesNumbers[] = {
    // OpenMP, MKL
    "OMP_NUM_THREADS",
    "OMP_DYNAMIC",
    "OMP_SCHEDULE",
    "OMP_THREAD_LIMIT",
    "KMP_DETERMINISTIC_REDUCTION",
    "KMP_FORCE_REDUCTION",
    "MKL_NUM_THREADS",
    "MKL_DYNAMIC",
    "MKL_CBWR",
    "MKL_ENABLE_INSTRUCTIONS",
    "MKL_DEBUG_CPU_TYPE",
    // PyTorch (torch/_inductor/config.py, torch/_dynamo/config.py, ATen)
    "ATEN_CPU_CAPABILITY",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_BLAS_PREFER_CUBLASLT",
    "TORCH_COMPILE_DISABLE",
    "TORCHDYNAMO_DISABLE",
    "TORCHINDUCTOR_COOPERATIVE_REDUCTIONS",
    "TORCHINDUCTOR_CPP_ENABLE_FLOATING_POINT_CONTRACT_FLAG",
    "TORCHINDUCTOR_CPP_ENABLE_UNSAFE_MATH_OPT_FLAG",
    "TORCHINDUCTOR_CPP_FALLBACK_SCATTER_REDUCE_SUM",
    "TORCHINDUCTOR_CPP_GEMM_CACHE_BLOCKING",
    "TORCHINDUCTOR_CPP_GEMM_MAX_K_SLICES",
    "TORCHINDUCTOR_CPP_GEMM_THREAD_FACTORS",
    "TORCHINDUCTOR_CPP_USE_DECOMPOSE_TANH",
    "TORCHINDUCTOR_CPP_WEIGHT_PREPACK",
    "TORCHINDUCTOR_DISABLED_PASSES",
    "TORCHINDUCTOR_EMULATE_PRECISION_CASTS",
    "TORCHINDUCTOR_EMULATE_PRECISION_CASTS_ON_SAVED_TENSORS",
    "TORCHINDUCTOR_FREEZING",
    "TORCHINDUCTOR_LAYOUT_OPTIMIZATION",
    "TORCHINDUCTOR_MAX_AUTOTUNE",
    "TORCHINDUCTOR_MAX_AUTOTUNE_GEMM",
    "TORCHINDUCTOR_MAX_AUTOTUNE_GEMM_BACKENDS",
    "TORCHINDUCTOR_MAX_AUTOTUNE_POINTWISE",
    "TORCHINDUCTOR_MIX_ORDER_REDUCTION",
    "TORCHINDUCTOR_NATIVE_MATMUL",
    "TORCHINDUCTOR_NESTED_REDUCTION",
    "TORCHINDUCTOR_PERSISTENT_REDUCTIONS",
    "TORCHINDUCTOR_SPLIT_REDUCTIONS",
    "TORCHINDUCTOR_USE_FAST_MATH",
    // JAX, XLA (jax/_src/config.py)
    "JAX_DEFAULT_DTYPE_BITS",
    "JAX_DEFAULT_MATMUL_PRECISION",
    "JAX_DEFAULT_PRNG_IMPL",
    "JAX_DISABLE_JIT",
    "JAX_DISABLE_MOST_OPTIMIZATIONS",
    "JAX_ENABLE_X64",
    "JAX_NUMPY_DTYPE_PROMOTION",
    "JAX_PLATFORMS",
    "JAX_PLATFORM_NAME",
    "JAX_THREEFRY_PARTITIONABLE",
    "XLA_DOWNCAST_BF16",
    "XLA_DOWNCAST_FP16",
    "XLA_FLAGS",
    "XLA_USE_BF16",
    "XLA_USE_FP16",
    // OpenBLAS, BLIS, oneDNN
    "OPENBLAS_CORETYPE",
    "OPENBLAS_DEFAULT_NUM_THREADS",
    "OPENBLAS_L2_SIZE",
    "OPENBLAS_NUM_THREADS",
    "GOTO_NUM_THREADS",
    "BLIS_ARCH_TYPE",
    "BLIS_IC_NT",
    "BLIS_IR_NT",
    "BLIS_JC_NT",
    "BLIS_JR_NT",
    "BLIS_NUM_THREADS",
    "BLIS_PC_NT",
    "DNNL_CPU_ISA_HINTS",
    "DNNL_DEFAULT_FPMATH_MODE",
    "DNNL_MAX_CPU_ISA",
    "ONEDNN_CPU_ISA_HINTS",
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "ONEDNN_MAX_CPU_ISA",
    // cuBLAS
    "CUBLASLT_WORKSPACE_SIZE",
    "CUBLAS_WORKSPACE_CONFIG",
    "NVIDIA_TF32_OVERRIDE",
};

}  // namespace

std::map<std::string, std::optional<std::string>> PresetEnvironment(const Registry& registry) {
  std::map<std::string, std::optional<std::string>> preset;
  std::vector<std::string_view> prefixes;
  for (const RegistryRow& row : registry.rows()) {
    for (const std::string& variable : row.variables) {
      if (variable.ends_with('*')) {
        prefixes.push_back(std::string_view(variable).substr(0, variable.size() - 1));
      } else {
        preset[variable] = std::nullopt;
      }
    }
  }
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    for (const auto prefix : prefixes) {
      if (name.starts_with(prefix) && name.size() < text.size())
        preset[std::string(name)] = Contains(kChangesNumbers, name)
                                        ? WithoutSecrets(text.substr(name.size() + 1))
                                        : std::string("(set, not recorded)");
    }
  }
  return preset;
}

}  // namespace ulpscope
