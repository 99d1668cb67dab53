// Facts about the build that no source file holds: the version, and the tree that the running program belongs
// to.
//
// The tree is found from where the program lies, never from where it was compiled: an installation is moved, and packed
// into wheels. Above the executable is either a checkout, or a prefix whose share/ulpscope has the same folders.
#pragma once

#include <string>
#include <string_view>

namespace ulpscope {

/// "0.1.0"
std::string_view Version();

/// The folder that holds backends/, cases/ and, in a checkout, all else; absolute. If there is none above the
/// executable, it is the folder that the file ulpscope.root beside it names (a build folder outside the
/// checkout has one), else "/".
const std::string& SourceDir();

}  // namespace ulpscope
