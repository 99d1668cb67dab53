// The words for cuBLAS's enumerations.
#include "backends/cublas/names.h"

#include <array>
#include <utility>

#include "backends/cublas/api.h"

namespace ulpscope::cublas {
namespace {

constexpr std::array<std::pair<const char*, uint32_t>, 4> kReductions{
    {{"none", kReductionNone},
     {"inplace", kReductionInPlace},
     {"compute_type", kReductionComputeType},
     {"output_type", kReductionOutputType}}};

}  // namespace

std::optional<int> DataTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return kR64F;
    case DType::kFloat32:
      return kR32F;
    case DType::kFloat16:
      return kR16F;
    case DType::kBfloat16:
      return kR16BF;
    case DType::kFloat8E4m3fn:
      return kR8FE4M3;
    case DType::kFloat8E5m2:
      return kR8FE5M2;
    default:
      return std::nullopt;
  }
}

const std::vector<ComputeType>& ComputeTypes() {
  static const std::vector<ComputeType> types = {
      {"32F", kCompute32F, DType::kFloat32},
      {"32F_PEDANTIC", kCompute32FPedantic, DType::kFloat32},
      {"32F_FAST_16F", kCompute32FFast16F, DType::kFloat32, "float16"},
      {"32F_FAST_16BF", kCompute32FFast16BF, DType::kFloat32, "bfloat16"},
      {"32F_FAST_TF32", kCompute32FFastTf32, DType::kFloat32, "tf32"},
      {"32F_EMULATED_16BFX9", kCompute32FEmulated16BFx9, DType::kFloat32},
      {"16F", kCompute16F, DType::kFloat16},
      {"16F_PEDANTIC", kCompute16FPedantic, DType::kFloat16},
      {"64F", kCompute64F, DType::kFloat64},
      {"64F_PEDANTIC", kCompute64FPedantic, DType::kFloat64},
      {"64F_EMULATED_FIXEDPOINT", kCompute64FEmulatedFixedPoint, DType::kFloat64}};
  return types;
}

const ComputeType* FindComputeType(const std::string& word, DType operands) {
  const std::string wanted = word != "default" ? word : operands == DType::kFloat64 ? "64F" : "32F";
  for (const ComputeType& type : ComputeTypes()) {
    if (type.word == wanted) return &type;
  }
  return nullptr;
}

std::string StatusText(int status) {
  static constexpr std::array<std::pair<int, const char*>, 10> kNames{{{kSuccess, "SUCCESS"},
                                                                       {kNotInitialized, "NOT_INITIALIZED"},
                                                                       {kAllocFailed, "ALLOC_FAILED"},
                                                                       {kInvalidValue, "INVALID_VALUE"},
                                                                       {kArchMismatch, "ARCH_MISMATCH"},
                                                                       {kMappingError, "MAPPING_ERROR"},
                                                                       {kExecutionFailed, "EXECUTION_FAILED"},
                                                                       {kInternalError, "INTERNAL_ERROR"},
                                                                       {kNotSupported, "NOT_SUPPORTED"},
                                                                       {kLicenseError, "LICENSE_ERROR"}}};
  for (const auto& [value, name] : kNames) {
    if (value == status) return std::string(name) + " (" + std::to_string(status) + ")";
  }
  return "status " + std::to_string(status);
}

std::optional<uint32_t> ReductionScheme(const std::string& word) {
  for (const auto& [name, value] : kReductions) {
    if (word == name) return value;
  }
  return std::nullopt;
}

std::string ReductionName(uint32_t scheme) {
  for (const auto& [name, value] : kReductions) {
    if (scheme == value) return name;
  }
  return "scheme " + std::to_string(scheme);
}

}  // namespace ulpscope::cublas
