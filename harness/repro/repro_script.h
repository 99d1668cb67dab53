// A case as a script for its own framework: PyTorch or JAX, and nothing of ulpscope.
#pragma once

#include <string>

#include "harness/base/result.h"
#include "harness/model/case.h"
#include "harness/repro/script_side.h"

namespace ulpscope {

/// A Python script that reads inputs.safetensors beside it, does what the backend did, and reports for each
/// value whether it has the bits of observed.safetensors (or whether the recorded error is raised). An error
/// with the reason, if the backend is no Python stack or a step has no such form.
Result<std::string> WriteReproScript(const Case& test_case, const ReproSubject& subject);

}  // namespace ulpscope
