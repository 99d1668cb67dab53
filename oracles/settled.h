// Whether the program settles a value of no floating dtype: none of its steps rounds, wraps or depends on how
// a backend converts, so that every backend has to give the same number.
#pragma once

#include <map>
#include <string>

#include "harness/num/tensor_data.h"
#include "oracles/path.h"

namespace ulpscope {

/// Conservative: false if it cannot be known in advance. Tensors that hold subnormals settle nothing, since
/// backends that take them as zero compare them so.
bool IsSettled(const Plan& plan, const ValuePath& path, const std::map<std::string, TensorData>& inputs);

}  // namespace ulpscope
