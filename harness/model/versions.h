// Version conditions of expectations and deviations: "torch>=2.9,<2.16", against what a backend said in its
// hello.
//
// The ordering is that of PEP 440 for what frameworks print: release numbers, a/b/rc pre-releases, .post and
// .dev, and a local suffix (+cpu, +cu130) that plays no part. A pre-release of 2.16 is not below 2.16 for
// "<2.16", as PEP 440 has it.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "harness/base/result.h"

namespace ulpscope {

/// Package name -> version, from the hello of one backend.
using Versions = std::map<std::string, std::string>;

/// True when every clause of `condition` holds; an empty condition always does, a package that the backend
/// does not name never does. Clauses stand between commas; a clause without a package name belongs to the
/// package before it. Errors: no package name, an unknown comparison (known: == != >= <= > < ~=), text that is
/// no version.
Result<bool> VersionsMatch(std::string_view condition, const Versions& installed);

/// -1, 0 or 1 by PEP 440 without the local suffix. Error: text that is no version.
Result<int> CompareVersions(std::string_view left, std::string_view right);

}  // namespace ulpscope
