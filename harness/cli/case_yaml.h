// A case written back as YAML: what a repro bundle carries. Sweeps are expanded and file-level defaults
// filled in.
#pragma once

#include <string>

#include "harness/base/result.h"
#include "harness/model/case.h"

namespace ulpscope {

/// A case file with just this case (`expect` cut down to `backend`). It is loaded again before it is
/// returned: an error if what comes back is not the same computation.
Result<std::string> WriteCaseYaml(const Case& test_case, const std::string& backend);

}  // namespace ulpscope
