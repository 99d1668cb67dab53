// What Python reads of the dtypes is what the table says. ULPSCOPE_REGENERATE_GOLDEN=1 writes the file anew.
#include "harness/words/dtypes.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "harness/base/build_info.h"

namespace ulpscope {
namespace {

TEST(DTypes, TheFileThatPythonReadsIsCurrent) {
  const std::string path = std::string(SourceDir()) + "/backends/python/ulpscope_adapter/dtypes.json";
  if (std::getenv("ULPSCOPE_REGENERATE_GOLDEN") != nullptr) std::ofstream(path) << DTypesJson();
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), DTypesJson());
}

}  // namespace
}  // namespace ulpscope
