// Samples of large results: what is looked at is spread over all of them, and not in step with their columns.
#include "harness/judge/sample.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace ulpscope {
namespace {

TEST(Sample, TakesTheEndsAndOneOfEachStratum) {
  int64_t strata = 0;
  for (const auto& [count, parts] :
       std::map<int64_t, int64_t>{{1, 1}, {7, 7}, {100, 7}, {4096, 128}, {4099, 64}}) {
    const std::set<int64_t> chosen = Spread(count, parts);
    ASSERT_EQ(std::ssize(chosen), parts) << count;
    EXPECT_EQ(*chosen.begin(), 0);
    EXPECT_EQ(*chosen.rbegin(), count - 1);
    int64_t i = 0;
    for (const int64_t at : chosen) {
      EXPECT_GE(at, i * count / parts);
      EXPECT_LT(at, (i + 1) * count / parts);
      ++i;
    }
    strata += i;
    EXPECT_EQ(chosen, Spread(count, parts)) << "another one every time";
  }
  EXPECT_EQ(strata, 1 + 7 + 7 + 128 + 64);
}

// Rows of 16 columns, 128 elements of 4096: every 32nd is of column 0 alone.
TEST(Sample, MeetsEveryColumn) {
  for (const int64_t columns : {2, 3, 4, 8, 16}) {
    std::map<int64_t, int64_t> met;
    for (const int64_t at : Spread(4096, 128)) ++met[at % columns];
    EXPECT_EQ(std::ssize(met), columns);
    for (const auto& [column, times] : met)
      EXPECT_LT(times * columns, 128 * 4) << "column " << column << " of " << columns;
  }
}

}  // namespace
}  // namespace ulpscope
