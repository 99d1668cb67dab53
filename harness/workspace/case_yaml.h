// A case written back as YAML, for repro bundles. Sweeps are expanded and file-level defaults filled in.
#pragma once

#include <string>
#include <string_view>

#include "harness/base/result.h"
#include "harness/model/case.h"

namespace ulpscope {

/// Keeps the expectations for every backend.
inline constexpr std::string_view kEveryBackend;

/// A case file with just this case (`expect` reduced to `backend`). It is loaded again before it is returned: an error
/// if it is not the same computation.
Result<std::string> WriteCaseYaml(const Case& test_case, std::string_view backend);

/// A step in the form of a case file, without its origin: {op: matmul, of: [x, w], as: y}.
std::string StepYaml(const Step& step);

}  // namespace ulpscope
