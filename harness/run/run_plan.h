// RunPlan: cases times backends, sorted into groups that one warm worker can serve.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <vector>

#include "harness/record/journal.h"
#include "harness/run/case_runner.h"

namespace ulpscope {

struct Task {
  const Case* test_case = nullptr;
  const BackendSpec* backend = nullptr;  ///< as the caller named it
  const RecordedResult* done = nullptr;  ///< the journal already holds its result
};

/// Tasks of one worker key. Threads take them off the front, so that two may serve one long group.
struct TaskGroup {
  WorkerKey key;
  std::vector<const Task*> tasks;
  std::atomic<size_t> next{0};
  std::atomic<int> served_by{0};
  std::atomic<bool> versions_known{false};

  size_t Left() const { return tasks.size() - std::min(next.load(), tasks.size()); }
};

struct RunPlan {
  std::deque<Task> tasks;                          ///< every (case, backend) that is wanted, in report order
  std::vector<std::unique_ptr<TaskGroup>> groups;  ///< those that are still to run
};

/// `recorded` may be null. Results whose case has changed since (another digest) are run again.
RunPlan MakePlan(const std::vector<Case>& cases, const std::vector<BackendSpec>& backends,
                 const Registry& registry, const RunOptions& options, const RecordedRun* recorded);

}  // namespace ulpscope
