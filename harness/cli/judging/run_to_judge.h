// What judging one case of a run needs to know of that run. Cases are judged by several threads at a time.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "harness/cli/judging/case_classifier.h"
#include "harness/cli/workspace.h"
#include "harness/judge/judge.h"
#include "harness/record/classified.h"
#include "harness/record/journal.h"

namespace ulpscope {

/// What the results of a run are classified as.
class Classifications {
 public:
  /// What is found goes into `run`, or is gone with its case.
  enum class Found { kKept, kDropped };
  Classifications(ClassifiedRun* run, Found found) : run_(*run), found_(found) {}

  /// What is recorded, or else found now.
  Result<Classified> Take(const std::string& id, const std::string& backend, CaseClassifier* classifier,
                          const Observation& observation);
  /// Adds a value to what is kept of a result; no-op where it is recorded or dropped.
  void Complete(const std::string& id, const std::string& backend, const std::string& value,
                const Classification& classification);
  void Count(const OracleCounts& counts);

 private:
  std::mutex mutex_;
  ClassifiedRun& run_;
  Found found_;
};

class RunToJudge {
 public:
  /// Everything outlives it.
  RunToJudge(const RecordedRun& run, const Workspace& workspace, Classifications* classifications,
             OracleEngine engine)
      : run_(run),
        results_(run),
        workspace_(workspace),
        classifications_(*classifications),
        engine_(engine) {}

  const RecordedRun& run() const { return run_; }
  Classifications& classifications() const { return classifications_; }
  CaseClassifier ClassifierOf(const Case& test_case) const { return {test_case, run_.header.seed, engine_}; }

  /// Null where it was not reached.
  const RecordedResult* Find(const std::string& id, const std::string& backend) const {
    return results_.Find(id, backend);
  }
  /// That of a case which belongs to another one, with its tensors; nothing where this run did not run the case as it is.
  Result<std::optional<RecordedResult>> FindRelated(const Case& test_case, const std::string& backend) const;
  std::string WhyNotReached(const std::string& id, const std::string& backend) const;
  JudgeContext ContextFor(const Case& test_case, const std::string& backend) const;

 private:
  const RecordedRun& run_;
  ResultIndex results_;
  const Workspace& workspace_;
  Classifications& classifications_;
  OracleEngine engine_;
};

}  // namespace ulpscope
