// The dtype table.
#include "harness/num/dtype.h"

#include <array>

namespace ulpscope {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  std::string_view safetensors;
  size_t size;
  bool floating;
};

constexpr std::array<Row, 12> kRows{{
    {DType::kFloat64, "float64", "F64", 8, true},
    {DType::kFloat32, "float32", "F32", 4, true},
    {DType::kBfloat16, "bfloat16", "BF16", 2, true},
    {DType::kFloat16, "float16", "F16", 2, true},
    {DType::kFloat8E4m3fn, "float8_e4m3fn", "F8_E4M3", 1, true},
    {DType::kFloat8E5m2, "float8_e5m2", "F8_E5M2", 1, true},
    {DType::kInt64, "int64", "I64", 8, false},
    {DType::kInt32, "int32", "I32", 4, false},
    {DType::kInt16, "int16", "I16", 2, false},
    {DType::kInt8, "int8", "I8", 1, false},
    {DType::kUint8, "uint8", "U8", 1, false},
    {DType::kBool, "bool", "BOOL", 1, false},
}};

const Row& RowOf(DType dtype) { return kRows[static_cast<size_t>(dtype)]; }

}  // namespace

std::string_view Name(DType dtype) { return RowOf(dtype).name; }
std::string_view SafetensorsName(DType dtype) { return RowOf(dtype).safetensors; }
size_t SizeOf(DType dtype) { return RowOf(dtype).size; }
bool IsFloating(DType dtype) { return RowOf(dtype).floating; }

std::optional<DType> ParseDType(std::string_view name) {
  for (const auto& row : kRows) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

std::optional<DType> ParseSafetensorsName(std::string_view name) {
  for (const auto& row : kRows) {
    if (row.safetensors == name) return row.dtype;
  }
  return std::nullopt;
}

const std::vector<std::string>& AllDTypeNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& row : kRows) all.emplace_back(row.name);
    return all;
  }();
  return names;
}

}  // namespace ulpscope
