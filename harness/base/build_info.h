// What the build knows and no source file says: the version, and the tree that it was compiled in.
//
// Kept to one translation unit: a definition on every compiler's command line would make each of them depend
// on where the tree lies, and no compiler cache could serve two checkouts.
#pragma once

#include <string>
#include <string_view>

namespace ulpscope {

/// "0.1.0"
std::string_view Version();

/// The root of the source tree, absolute.
const std::string& SourceDir();

}  // namespace ulpscope
