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
  kFloat8E4m3fnuz,
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kUint8,
  kBool
};

/// From the lowest to the highest, as promotion takes them.
enum class DTypeKind { kBool, kInteger, kFloating };

/// "float64", "bfloat16", "float8_e4m3fn", "int64", "bool" ...
std::string_view Name(DType dtype);
std::optional<DType> ParseDType(std::string_view name);
const std::vector<DType>& AllDTypes();
const std::vector<std::string>& AllDTypeNames();

/// A few characters for a long name: "f64", "bf16", "e4m3", "tf32", "i64"; a name that is no dtype's comes
/// back as it is.
std::string Brief(std::string_view name);

/// The name in a safetensors header: "F64", "BF16", "F8_E4M3", "I64", "BOOL" ...
std::string_view SafetensorsName(DType dtype);
std::optional<DType> ParseSafetensorsName(std::string_view name);

size_t SizeOf(DType dtype);
DTypeKind KindOf(DType dtype);
inline bool IsFloating(DType dtype) { return KindOf(dtype) == DTypeKind::kFloating; }

}  // namespace ulpscope
