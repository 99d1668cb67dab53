// Cases beside the journal: what is written is what is read, however long their values make them.
#include "harness/record/cases.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/program.h"

namespace ulpscope {
namespace {

TEST(RecordedCases, LongOnesAreReadAsTheyWereWritten) {
  const testing::TestFolder folder;
  RecordedCases cases;
  for (const size_t length : {size_t{10}, size_t{1} << 16, (size_t{1} << 16) + 1, size_t{3} << 20})
    cases[{"case_" + std::to_string(length), "0123abcd"}] = {.yaml = std::string(length, 'y') + "]",
                                                             .selector = "file.yaml -k 'x'"};
  ASSERT_TRUE(WriteRecordedCases(folder.path(), "run", cases));
  const auto read = ReadRecordedCases(folder.path(), "run");
  ASSERT_TRUE(read) << read.error().Text();
  ASSERT_EQ(read->size(), cases.size());
  for (const auto& [key, one] : cases) {
    EXPECT_EQ(read->at(key).yaml.size(), one.yaml.size()) << key.first;
    EXPECT_EQ(read->at(key).yaml.back(), ']') << key.first;
    EXPECT_EQ(read->at(key).selector, one.selector);
  }
}

}  // namespace
}  // namespace ulpscope
