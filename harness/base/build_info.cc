// The build's own definitions, set for this file alone.
#include "harness/base/build_info.h"

#if !defined(ULPSCOPE_SOURCE_DIR) || !defined(ULPSCOPE_VERSION)
#error "the build names the version and the source tree"
#endif

namespace ulpscope {

std::string_view Version() { return ULPSCOPE_VERSION; }

const std::string& SourceDir() {
  static const std::string folder = ULPSCOPE_SOURCE_DIR;
  return folder;
}

}  // namespace ulpscope
