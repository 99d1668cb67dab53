// The dtype table.
#include "harness/num/dtype.h"

#include <array>

namespace ulpscope {
namespace {

struct Row {
  DType dtype;
  std::string_view name, brief, safetensors;
  size_t size;
  DTypeKind kind;
};

using enum DTypeKind;
/// In the order of DType. The row of its name in float_format.cc describes a floating type.
constexpr std::array kRows{
    Row{DType::kFloat64, "float64", "f64", "F64", 8, kFloating},
    Row{DType::kFloat32, "float32", "f32", "F32", 4, kFloating},
    Row{DType::kBfloat16, "bfloat16", "bf16", "BF16", 2, kFloating},
    Row{DType::kFloat16, "float16", "f16", "F16", 2, kFloating},
    Row{DType::kFloat8E4m3fn, "float8_e4m3fn", "e4m3", "F8_E4M3", 1, kFloating},
    Row{DType::kFloat8E5m2, "float8_e5m2", "e5m2", "F8_E5M2", 1, kFloating},
    Row{DType::kFloat8E4m3fnuz, "float8_e4m3fnuz", "e4m3uz", "F8_E4M3FNUZ", 1, kFloating},
    Row{DType::kInt64, "int64", "i64", "I64", 8, kInteger},
    Row{DType::kInt32, "int32", "i32", "I32", 4, kInteger},
    Row{DType::kInt16, "int16", "i16", "I16", 2, kInteger},
    Row{DType::kInt8, "int8", "i8", "I8", 1, kInteger},
    Row{DType::kUint8, "uint8", "u8", "U8", 1, kInteger},
    Row{DType::kBool, "bool", "bool", "BOOL", 1, kBool}};

constexpr bool InOrder() {
  for (size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].dtype != static_cast<DType>(i)) return false;
  }
  return true;
}
static_assert(InOrder());

const Row& RowOf(DType dtype) { return kRows[static_cast<size_t>(dtype)]; }

template <class T, class Get>
std::vector<T> All(Get get) {
  std::vector<T> all;
  for (const Row& row : kRows) all.emplace_back(get(row));
  return all;
}

}  // namespace

std::string_view Name(DType dtype) { return RowOf(dtype).name; }
std::string_view SafetensorsName(DType dtype) { return RowOf(dtype).safetensors; }
size_t SizeOf(DType dtype) { return RowOf(dtype).size; }
DTypeKind KindOf(DType dtype) { return RowOf(dtype).kind; }

std::string Brief(std::string_view name) {
  const auto dtype = ParseDType(name);
  return std::string(dtype ? RowOf(*dtype).brief : name);
}

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

const std::vector<DType>& AllDTypes() {
  static const auto all = All<DType>([](const Row& row) { return row.dtype; });
  return all;
}

const std::vector<std::string>& AllDTypeNames() {
  static const auto all = All<std::string>([](const Row& row) { return row.name; });
  return all;
}

}  // namespace ulpscope
