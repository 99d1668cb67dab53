// The table of dtypes as text. Every word is plain ASCII of our own, so that quoting is all there is to do.
#include "harness/words/dtypes.h"

#include <array>

#include "harness/num/dtype.h"

namespace ulpscope {
namespace {

std::string Quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::string_view Name(DTypeKind kind) {
  static constexpr std::array<std::string_view, 3> kNames{"bool", "integer", "floating"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace

std::string DTypesJson() {
  std::string rows;
  for (const DType dtype : AllDTypes()) {
    rows += (rows.empty() ? "  " : ",\n  ") + Quoted(Name(dtype)) +
            ": {\"safetensors\": " + Quoted(SafetensorsName(dtype)) +
            ", \"bytes\": " + std::to_string(SizeOf(dtype)) + ", \"kind\": " + Quoted(Name(KindOf(dtype))) +
            "}";
  }
  return "{\n" + rows + "\n}\n";
}

}  // namespace ulpscope
