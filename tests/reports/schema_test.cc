// What report.schema.json lists of the tables of kinds is what the tables have.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "harness/base/build_info.h"
#include "harness/base/text.h"
#include "harness/model/classification_kind.h"
#include "harness/model/divergence_kind.h"
#include "tests/golden_file.h"

namespace ulpscope {
namespace {

/// {"enum": [...], "description": "..."} of the rows that count.
template <class Rows, class Counts>
std::string ListOf(const Rows& rows, Counts counts) {
  std::vector<std::string> words, abouts;
  for (const auto& row : rows) {
    if (!counts(row)) continue;
    words.push_back("\"" + std::string(row.word) + "\"");
    if (!row.about.empty()) abouts.push_back(std::string(row.word) + ": " + std::string(row.about));
  }
  return "{\"enum\": [" + Join(words, ", ") + "], \"description\": \"" + Join(abouts, "; ") + "\"}";
}

/// The definition `name` stands on one line of the schema; ULPSCOPE_REGENERATE_GOLDEN=1 writes it anew.
void ExpectDefinition(const std::string& name, const std::string& list) {
  const std::string path = SourceDir() + "/reports/report.schema.json", schema = testing::ReadAll(path);
  const std::string key = "    \"" + name + "\": ";
  const size_t at = schema.find(key);
  ASSERT_NE(at, std::string::npos) << name;
  const size_t first = at + key.size(), last = schema.find('\n', first) - 1;
  if (std::getenv("ULPSCOPE_REGENERATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << schema.substr(0, first) << list << schema.substr(last);
    FAIL() << "rewrote " << path << "; read the difference before it is committed";
  }
  EXPECT_EQ(schema.substr(first, last - first), list)
      << "against " << path << " (ULPSCOPE_REGENERATE_GOLDEN=1 rewrites it)";
}

constexpr auto kEvery = [](const auto&) { return true; };

TEST(Schema, ListsTheKindsOfDivergences) {
  ExpectDefinition("divergence_kind", ListOf(kDivergenceRows, kEvery));
  ExpectDefinition("cause_kind",
                   ListOf(kDivergenceRows, [](const DivergenceRow& row) { return row.is_of_values; }));
}

TEST(Schema, ListsTheKindsOfClassifications) {
  ExpectDefinition("classification_kind", ListOf(kClassificationRows, kEvery));
}

}  // namespace
}  // namespace ulpscope
