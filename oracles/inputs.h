// Whether the data that an oracle is given is that of its case.
#pragma once

#include <map>
#include <string>

#include "harness/base/result.h"
#include "harness/model/case.h"
#include "harness/num/tensor_data.h"

namespace ulpscope {

Result<void> CheckInputs(const Case& c, const std::map<std::string, TensorData>& inputs);

}  // namespace ulpscope
