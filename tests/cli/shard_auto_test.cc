// --shard auto: what the variables of schedulers mean.
#include "harness/cli/shard_auto.h"

#include <gtest/gtest.h>

#include <map>

namespace ulpscope {
namespace {

using Variables = std::map<std::string, std::string>;

Result<AutoShard> ShardOf(const Variables& variables) {
  return ShardOfEnvironment([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

struct ShardRow {
  Variables variables;
  size_t index, count;
  std::string status_file = {};
};

TEST(ShardAuto, ReadsEachScheduler) {
  const ShardRow rows[] = {
      {{{"SLURM_ARRAY_TASK_ID", "0"},
        {"SLURM_ARRAY_TASK_COUNT", "4"},
        {"SLURM_ARRAY_TASK_MIN", "0"},
        {"SLURM_ARRAY_TASK_STEP", "1"}},
       1,
       4},
      {{{"SLURM_ARRAY_TASK_ID", "4"}, {"SLURM_ARRAY_TASK_COUNT", "4"}, {"SLURM_ARRAY_TASK_MIN", "1"}}, 4, 4},
      {{{"SLURM_ARRAY_TASK_ID", "17"},
        {"SLURM_ARRAY_TASK_COUNT", "3"},
        {"SLURM_ARRAY_TASK_MIN", "10"},
        {"SLURM_ARRAY_TASK_STEP", "7"}},
       2,
       3},
      {{{"CI_NODE_INDEX", "1"}, {"CI_NODE_TOTAL", "5"}}, 1, 5},
      {{{"CI_NODE_INDEX", "5"}, {"CI_NODE_TOTAL", "5"}}, 5, 5},
      {{{"JOB_COMPLETION_INDEX", "2"}, {"JOB_COMPLETIONS", "3"}}, 3, 3},
      {{{"STRATEGY_JOB_INDEX", "0"}, {"STRATEGY_JOB_TOTAL", "2"}}, 1, 2},
      {{{"TEST_SHARD_INDEX", "1"}, {"TEST_TOTAL_SHARDS", "2"}, {"TEST_SHARD_STATUS_FILE", "/s"}}, 2, 2, "/s"},
      {{{"GTEST_SHARD_INDEX", "0"}, {"GTEST_TOTAL_SHARDS", "2"}, {"GTEST_SHARD_STATUS_FILE", "/g"}},
       1,
       2,
       "/g"},
      {{{"TEST_SHARD_INDEX", "1"},
        {"TEST_TOTAL_SHARDS", "2"},
        {"GTEST_SHARD_INDEX", "1"},
        {"GTEST_TOTAL_SHARDS", "2"}},
       2,
       2},
  };
  for (const ShardRow& row : rows) {
    const auto found = ShardOf(row.variables);
    ASSERT_TRUE(found) << row.variables.begin()->first << ": " << found.error().Text();
    EXPECT_EQ(found->shard.index, row.index) << row.variables.begin()->first;
    EXPECT_EQ(found->shard.count, row.count) << row.variables.begin()->first;
    EXPECT_EQ(found->status_file, row.status_file);
  }
}

TEST(ShardAuto, WhatCannotBeIsAnErrorThatNamesTheVariable) {
  const std::pair<Variables, const char*> rows[] = {
      {{}, "SLURM_ARRAY_TASK_ID and SLURM_ARRAY_TASK_COUNT (Slurm)"},
      {{{"CI_NODE_INDEX", "0"}, {"CI_NODE_TOTAL", "5"}}, "CI_NODE_INDEX"},
      {{{"CI_NODE_INDEX", "6"}, {"CI_NODE_TOTAL", "5"}}, "an index of 1 to 5"},
      {{{"JOB_COMPLETION_INDEX", "0"}}, "JOB_COMPLETIONS"},
      {{{"JOB_COMPLETION_INDEX", "0"}, {"JOB_COMPLETIONS", "0"}}, "JOB_COMPLETION_INDEX"},
      {{{"TEST_SHARD_INDEX", "-1"}, {"TEST_TOTAL_SHARDS", "2"}}, "'-1'"},
      {{{"TEST_SHARD_INDEX", "1x"}, {"TEST_TOTAL_SHARDS", "2"}}, "'1x'"},
      {{{"SLURM_ARRAY_TASK_ID", "18"},
        {"SLURM_ARRAY_TASK_COUNT", "3"},
        {"SLURM_ARRAY_TASK_MIN", "10"},
        {"SLURM_ARRAY_TASK_STEP", "7"}},
       "SLURM_ARRAY_TASK_ID"},
      {{{"CI_NODE_INDEX", "1"},
        {"CI_NODE_TOTAL", "5"},
        {"TEST_SHARD_INDEX", "1"},
        {"TEST_TOTAL_SHARDS", "2"}},
       "GitLab: 1/5, Bazel: 2/2"},
  };
  for (const auto& [variables, says] : rows) {
    const auto found = ShardOf(variables);
    ASSERT_FALSE(found) << says;
    EXPECT_NE(found.error().Text().find(says), std::string::npos) << found.error().Text();
  }
}

}  // namespace
}  // namespace ulpscope
