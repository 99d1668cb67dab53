// The context that judging one case of a run needs. Cases are judged by several threads at a time.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "harness/judge/judge.h"
#include "harness/judging/case_classifier.h"
#include "harness/record/classified.h"
#include "harness/record/journal.h"
#include "harness/workspace/workspace.h"

namespace ulpscope {

/// The classifications of the results of a run.
class Classifications {
 public:
  /// Whether new classifications are kept in `run` or dropped with their case.
  enum class Found { kKept, kDropped };
  /// `writer` takes each new classification of the run of `header` too, unless it is null.
  Classifications(ClassifiedRun* run, Found found, const RunHeader& header, const ClassifiedWriter* writer)
      : run_(*run), found_(found), header_(header), writer_(writer) {}

  /// The recorded classification if `classifier` looks at no other elements, else a new one.
  Result<Classified> Take(const std::string& id, const std::string& backend, CaseClassifier* classifier,
                          const Observation& observation);
  /// Adds a value to the kept result; no-op if it is recorded or dropped.
  void Complete(const std::string& id, const std::string& backend, const std::string& value,
                const Classification& classification);
  void Count(const OracleCounts& counts);

 private:
  std::mutex mutex_;
  ClassifiedRun& run_;
  Found found_;
  const RunHeader& header_;
  const ClassifiedWriter* writer_;
};

class RunToJudge {
 public:
  /// Arguments must outlive it. `limit`: the limit that ended the run or its judgement ("the limit of 2 minutes").
  RunToJudge(const RecordedRun& run, const Workspace& workspace, Classifications* classifications,
             OracleEngine engine, const RecordedRun* hybrids, std::string limit = {})
      : run_(run),
        hybrids_(hybrids),
        hybrid_results_(hybrids != nullptr ? std::optional<ResultIndex>(*hybrids) : std::nullopt),
        results_(run),
        workspace_(workspace),
        classifications_(*classifications),
        engine_(engine),
        limit_(std::move(limit)) {}

  const RecordedRun& run() const { return run_; }
  /// The run's hybrids under these names (harness/hybrid/hybrid_runs.h), with their tensors; nothing if there are none.
  Result<std::optional<RecordedResult>> FindHybrids(const std::string& id, const std::string& backend) const;
  Classifications& classifications() const { return classifications_; }
  CaseClassifier ClassifierOf(const Case& test_case) const { return {test_case, run_.header.seed, engine_}; }

  /// Null if it was not reached.
  const RecordedResult* Find(const std::string& id, const std::string& backend) const {
    return results_.Find(id, backend);
  }
  /// The result of a case that belongs to another one, with its tensors; nothing if the run had another version of it.
  Result<std::optional<RecordedResult>> FindRelated(const Case& test_case, const std::string& backend) const;
  std::string WhyNotReached(const std::string& id, const std::string& backend) const;
  /// The reason why a recorded result was not judged.
  std::string WhyNotJudged() const;
  const std::string& limit() const { return limit_; }
  JudgeContext ContextFor(const Case& test_case, const std::string& backend) const;

 private:
  const RecordedRun& run_;
  const RecordedRun* hybrids_;  ///< null if the run has none
  std::optional<ResultIndex> hybrid_results_;
  ResultIndex results_;
  const Workspace& workspace_;
  Classifications& classifications_;
  OracleEngine engine_;
  std::string limit_;
};

}  // namespace ulpscope
