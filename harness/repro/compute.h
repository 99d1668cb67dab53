// The part of a script that computes: the definition of compute(given), which takes the case's inputs by their names and
// returns what is observed by its name, with the definitions that it uses before it.
#pragma once

#include <string>

#include "harness/base/result.h"
#include "harness/model/case.h"

namespace ulpscope {

/// For PyTorch. `compiler`: the backend of torch.compile; empty without it.
std::string TorchCompute(const Case& test_case, const std::string& compiler);

/// For JAX. `jit`: "jax.jit", or empty where nothing is compiled as a whole. An error where a step has no such form.
Result<std::string> JaxCompute(const Case& test_case, const std::string& jit);

}  // namespace ulpscope
