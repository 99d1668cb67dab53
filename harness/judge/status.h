// The status of one case on one backend: a table, read from the top, first match wins.
//
// | when                                                                                    | status                              |
// |-----------------------------------------------------------------------------------------|-------------------------------------|
// | our own invariant broke                                                                 | HARNESS                             |
// | the worker broke: protocol, crash, time, memory, FP environment changed, unwritten output | PROTOCOL CRASH TIMEOUT OOM TAINTED |
// | not reached (interrupted, missing shard)                                                | NOT_RUN                             |
// | unsupported, not installed, requirement absent                                          | SKIP                                |
// | repeated runs differ                                                                    | NONDET                              |
// | the contract is violated                                                                | FAIL; XFAIL if live deviations cover it |
// | a live deviation and no violation                                                       | XPASS                               |
// | an expectation is not met                                                               | FAIL                                |
// | the contract names classes and the value is UNMODELLED                                  | UNMODELLED                          |
// | the same, UNDETERMINED                                                                  | INCONCLUSIVE                        |
// | else                                                                                    | PASS                                |
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/model/deviation.h"
#include "harness/model/run_report.h"

namespace ulpscope {

/// A contract finding about a value ("" is the outcome itself), with one sentence.
struct Finding {
  std::string value;
  std::string sentence;
  std::optional<Exclusion> by = {};  ///< of a violation: the exclusion that the sentence cites
};

/// Everything that the table reads.
struct StatusFacts {
  std::string harness_fault;  ///< the failure of ulpscope itself; empty = none
  enum class Reach { kReached, kNotReached } reach = Reach::kReached;
  Outcome outcome;
  std::string taint;                               ///< traces that the worker left behind; empty = none
  std::map<std::string, double> nondeterministic;  ///< value -> spread in ulps
  std::vector<Finding> violations;
  std::vector<Deviation> live_deviations;  ///< those of this case, backend, version and date
  std::string unmet_expectation;           ///< "changed: expected X, observed Y"; empty = met or none
  std::string unmet_value;                 ///< of this value; empty = of none
  std::vector<Finding> unmodelled;
  std::vector<Finding> undetermined;
};

struct StatusReason {
  Status status = Status::kPass;
  std::string reason;                    ///< empty for PASS
  std::vector<std::string> values = {};  ///< those that the reason is about; empty: the result as a whole
};

StatusReason DecideStatus(const StatusFacts& facts);

}  // namespace ulpscope
