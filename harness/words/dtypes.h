// The dtypes as JSON, for adapters in Python.
#pragma once

#include <string>

namespace ulpscope {

/// One object, a line for each dtype by its long name: its name in a safetensors file, its bytes, its kind.
/// backends/python/ulpscope_adapter/dtypes.json is this text.
std::string DTypesJson();

}  // namespace ulpscope
