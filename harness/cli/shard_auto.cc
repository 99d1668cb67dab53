// The variables of schedulers.
#include "harness/cli/shard_auto.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "harness/base/text.h"

namespace ulpscope {
namespace {

struct Scheduler {
  const char* name;
  const char* index;
  const char* count;
  int64_t first;               ///< the index of the first part, where `first_variable` does not say
  const char* first_variable;  ///< null without one
  const char* step_variable;   ///< null: indices follow each other
  const char* status_file;     ///< null without one
};

constexpr std::array<Scheduler, 6> kSchedulers{{
    {"Slurm", "SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", 0, "SLURM_ARRAY_TASK_MIN",
     "SLURM_ARRAY_TASK_STEP", nullptr},
    {"GitLab", "CI_NODE_INDEX", "CI_NODE_TOTAL", 1, nullptr, nullptr, nullptr},
    {"Kubernetes", "JOB_COMPLETION_INDEX", "JOB_COMPLETIONS", 0, nullptr, nullptr, nullptr},
    {"GitHub", "STRATEGY_JOB_INDEX", "STRATEGY_JOB_TOTAL", 0, nullptr, nullptr, nullptr},
    {"Bazel", "TEST_SHARD_INDEX", "TEST_TOTAL_SHARDS", 0, nullptr, nullptr, "TEST_SHARD_STATUS_FILE"},
    {"GoogleTest", "GTEST_SHARD_INDEX", "GTEST_TOTAL_SHARDS", 0, nullptr, nullptr, "GTEST_SHARD_STATUS_FILE"},
}};

Result<int64_t> ReadNumber(const EnvironmentReader& read, const char* name) {
  const std::string text = read(name).value_or("");
  if (const auto number = WholeNumber<int64_t>(text); number && *number >= 0) return *number;
  return Fail(Problem(fmt::format("--shard auto cannot read {}", name),
                      text.empty() ? "nothing" : "'" + text + "'", "a number of 0 or more"));
}

Result<Shard> Read(const Scheduler& scheduler, const EnvironmentReader& read) {
  const auto index = ULPSCOPE_TRY(ReadNumber(read, scheduler.index));
  const auto count = ULPSCOPE_TRY(ReadNumber(read, scheduler.count));
  int64_t first = scheduler.first, step = 1;
  for (const auto& [variable, target] :
       {std::pair{scheduler.first_variable, &first}, {scheduler.step_variable, &step}}) {
    if (variable == nullptr || !read(variable)) continue;
    *target = ULPSCOPE_TRY(ReadNumber(read, variable));
  }
  const int64_t place = step > 0 && (index - first) % step == 0 ? (index - first) / step : -1;
  if (place < 0 || place >= count) {
    return Fail(Problem(fmt::format("--shard auto: {} is no part of {}", scheduler.index, scheduler.name),
                        fmt::format("{} of {}={}", index, scheduler.count, count),
                        fmt::format("an index of {} to {}", first, first + (count - 1) * step)));
  }
  return Shard{.index = static_cast<size_t>(place + 1), .count = static_cast<size_t>(count)};
}

}  // namespace

Result<AutoShard> ShardOfEnvironment(const EnvironmentReader& read) {
  const Scheduler* told_by = nullptr;
  AutoShard found;
  for (const Scheduler& scheduler : kSchedulers) {
    if (!read(scheduler.index)) continue;
    const auto shard = ULPSCOPE_TRY(Read(scheduler, read));
    if (told_by != nullptr && (shard.index != found.shard.index || shard.count != found.shard.count)) {
      return Fail(Problem("--shard auto: two schedulers say different things",
                          fmt::format("{}: {}/{}, {}: {}/{}", told_by->name, found.shard.index,
                                      found.shard.count, scheduler.name, shard.index, shard.count),
                          "one of them, or --shard i/n"));
    }
    told_by = &scheduler;
    found.shard = shard;
    if (scheduler.status_file != nullptr) found.status_file = read(scheduler.status_file).value_or("");
  }
  if (told_by != nullptr) return found;
  std::vector<std::string> known;
  for (const Scheduler& scheduler : kSchedulers)
    known.push_back(fmt::format("{} and {} ({})", scheduler.index, scheduler.count, scheduler.name));
  return Fail(Problem("--shard auto: no scheduler's variables are set", {}, Join(known, ", "),
                      "--shard i/n says it by hand"));
}

}  // namespace ulpscope
