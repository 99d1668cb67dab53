// Compares text with a file of tests/golden. ULPSCOPE_REGENERATE_GOLDEN=1 rewrites the file, and the test
// fails all the same.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "harness/base/build_info.h"

namespace ulpscope::testing {

inline std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void ExpectGolden(const std::string& name, const std::string& text) {
  const std::string path = SourceDir() + "/tests/golden/" + name;
  if (std::getenv("ULPSCOPE_REGENERATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
    FAIL() << "rewrote " << path << "; read the difference before it is committed";
  }
  const std::string golden = ReadAll(path);
  ASSERT_FALSE(golden.empty()) << path << " is missing";
  EXPECT_EQ(text, golden) << "against " << path << " (ULPSCOPE_REGENERATE_GOLDEN=1 rewrites it)";
}

}  // namespace ulpscope::testing
