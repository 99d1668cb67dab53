// DType: the element types of tensors, under the frameworks' long names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ulpscope {

enum class DType {
  kFloat64,
  kFloat32,
  kBfloat16,
  kFloat16,
  kFloat8E4m3fn,
  kFloat8E5m2,
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kUint8,
  kBool
};

/// "float64", "bfloat16", "float8_e4m3fn", "int64", "bool" ...
std::string_view Name(DType dtype);
std::optional<DType> ParseDType(std::string_view name);
const std::vector<std::string>& AllDTypeNames();

/// The name in a safetensors header: "F64", "BF16", "F8_E4M3", "I64", "BOOL" ...
std::string_view SafetensorsName(DType dtype);
std::optional<DType> ParseSafetensorsName(std::string_view name);

size_t SizeOf(DType dtype);
bool IsFloating(DType dtype);

}  // namespace ulpscope
