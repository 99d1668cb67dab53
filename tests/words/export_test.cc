// The words that adapters in Python read, and those of the protocol's document, are the words of the tables.
#include "harness/words/export.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "harness/base/build_info.h"
#include "tests/golden_file.h"

namespace ulpscope {
namespace {

void ExpectFile(const std::string& path, const std::string& text) {
  if (std::getenv("ULPSCOPE_REGENERATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
    FAIL() << "rewrote " << path << "; read the difference before it is committed";
  }
  EXPECT_EQ(text, testing::ReadAll(path))
      << "against " << path << " (ULPSCOPE_REGENERATE_GOLDEN=1 rewrites it)";
}

TEST(Export, PythonReadsTheWordsOfTheTables) {
  ExpectFile(SourceDir() + "/backends/python/ulpscope_adapter/words.json", WordsJson());
}

TEST(Export, TheProtocolPrintsTheOpTable) {
  const std::string path = SourceDir() + "/backends/PROTOCOL.md", document = testing::ReadAll(path);
  const std::string end = "<!-- /ops -->";
  const size_t open = document.find("<!-- ops"), first = document.find('\n', open) + 1,
               last = document.find(end);
  ASSERT_NE(open, std::string::npos);
  ASSERT_NE(last, std::string::npos);
  ExpectFile(path, document.substr(0, first) + OpTable() + document.substr(last));
}

}  // namespace
}  // namespace ulpscope
