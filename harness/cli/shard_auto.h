// --shard auto: the part of the run that a scheduler gave to this process, read from its variables.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "harness/cli/select.h"

namespace ulpscope {

/// The value of a variable of the environment; nothing where it is not set.
using EnvironmentReader = std::function<std::optional<std::string>(const char* name)>;

struct AutoShard {
  Shard shard;
  std::string status_file;  ///< to be made, where a test runner wants to see that its shards were understood
};

/// Slurm's job arrays, GitLab's `parallel`, Kubernetes' indexed jobs, GitHub's matrix, Bazel and GoogleTest.
/// Kubernetes and GitHub do not hand everything to a process: a manifest sets JOB_COMPLETIONS to
/// spec.completions, a workflow STRATEGY_JOB_INDEX and STRATEGY_JOB_TOTAL to strategy.job-index and
/// strategy.job-total. Two schedulers whose variables differ are an error, and so is none.
Result<AutoShard> ShardOfEnvironment(const EnvironmentReader& read);

}  // namespace ulpscope
