// Version conditions: PEP 440 ordering, clauses, malformed text.
#include "harness/model/versions.h"

#include <gtest/gtest.h>

namespace ulpscope {
namespace {

TEST(Versions, OrderIsThatOfPep440) {
  // Each is below the next.
  const char* ascending[] = {
      "1.9",           "1.10.dev3", "1.10a1.dev2",     "1.10a1",     "1.10b2", "1.10rc1",
      "1.10rc2.post1", "1.10",      "1.10.post1.dev1", "1.10.post1", "1.10.1", "2.0"};
  const size_t count = std::size(ascending);
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 0; j < count; ++j) {
      const int wanted = i < j ? -1 : i == j ? 0 : 1;
      EXPECT_EQ(CompareVersions(ascending[i], ascending[j]).value(), wanted)
          << ascending[i] << " " << ascending[j];
    }
  }
}

TEST(Versions, LocalSuffixAndTrailingZerosPlayNoPart) {
  EXPECT_EQ(CompareVersions("2.13.0+cpu", "2.13").value(), 0);
  EXPECT_EQ(CompareVersions("2.13.0+cu130", "2.13.0+cpu").value(), 0);
  EXPECT_EQ(CompareVersions("2.15.0a0+gitabc", "2.15").value(), -1);
}

struct VersionsRow {
  const char* condition;
  const char* installed;
  bool holds;
};

TEST(Versions, Conditions) {
  const VersionsRow rows[] = {
      {"", "2.13.0+cpu", true},
      {"torch>=2.9,<2.16", "2.13.0+cpu", true},
      {"torch>=2.9,<2.16", "2.16.0", false},
      {"torch>=2.9,<2.16", "2.8.1", false},
      {"torch>=2.9,<2.16", "2.9", true},
      {"torch<2.16", "2.16.0rc1", false},  // a pre-release of 2.16 is not below 2.16
      {"torch<2.16", "2.15.0rc1", true},
      {"torch>2.9", "2.9.post1", false},
      {"torch>2.9", "2.9.1", true},
      {"torch==2.13.*", "2.13.5", true},
      {"torch==2.13.*", "2.14.0", false},
      {"torch!=2.13.*", "2.13.5", false},
      {"torch!=2.13.0", "2.13.0+cpu", false},
      {"torch~=2.13.1", "2.13.4", true},
      {"torch~=2.13.1", "2.14", false},
      {"torch >= 2.9 , < 2.16", "2.13.0", true},
      {"torch>=2.9,jax>=0.10", "2.13.0", false},  // jax is not there
  };
  for (const VersionsRow& row : rows) {
    EXPECT_EQ(VersionsMatch(row.condition, {{"torch", row.installed}}).value(), row.holds)
        << row.condition << " " << row.installed;
  }
  EXPECT_FALSE(VersionsMatch("jax>=0.1", {{"torch", "2.13.0"}}).value());
  EXPECT_TRUE(VersionsMatch("jax>=0.10,<0.11,torch>=2", {{"torch", "2.13.0"}, {"jax", "0.10.2"}}).value());
}

TEST(Versions, MalformedIsAnErrorNeverAnAnswer) {
  for (const char* condition :
       {">=2.9", "torch", "torch>=", "torch>=two", "torch=2.9", "torch>=2.9.*", "torch~=2", "torch>=2.9,"}) {
    EXPECT_FALSE(VersionsMatch(condition, {{"torch", "2.13.0"}}).has_value()) << condition;
  }
  EXPECT_FALSE(VersionsMatch("torch>=2.9", {{"torch", "unknown"}}).has_value());
  EXPECT_FALSE(VersionsMatch("torch>=oops", {{"jax", "0.10"}}).has_value())
      << "also where the package is absent";
}

}  // namespace
}  // namespace ulpscope
