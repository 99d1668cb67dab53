// RunReport: everything a report shows. A pure function of the run's journal; every writer in reports/ reads only this.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/model/case.h"
#include "harness/model/classification.h"
#include "harness/model/observation.h"
#include "harness/model/reference.h"

namespace ulpscope {

enum class Status { kHarness, kProtocol, kCrash, kTimeout, kOom, kTainted, kNotRun, kSkip, kNondet, kFail, kXfail, kXpass, kUnmodelled, kInconclusive, kPass };
/// HARNESS PROTOCOL CRASH TIMEOUT OOM TAINTED NOT_RUN SKIP NONDET FAIL XFAIL XPASS UNMODELLED INCONCLUSIVE PASS
std::string_view Name(Status status);

enum class ContractVerdict { kConforms, kViolates, kUndetermined, kUnmodelled, kNotJudged };
/// CONFORMS VIOLATES UNDETERMINED UNMODELLED NOT_JUDGED
std::string_view Name(ContractVerdict verdict);

struct ValueResult {
  DType dtype = DType::kFloat32;
  Shape shape;
  std::string part;                    ///< eager, compiled, backward, glue; empty when the backend has one part
  Classification classification;
  ContractVerdict contract = ContractVerdict::kNotJudged;
};

struct CaseResult {
  std::string id;
  std::string backend;                 ///< NAME[@DEVICE][:knob=value,...]
  Status status = Status::kNotRun;
  std::string reason;                  ///< one sentence for everything but PASS
  Outcome outcome;
  std::map<std::string, std::string> knobs_asked, knobs_effective;
  std::vector<std::string> value_order;        ///< observed values in program order
  std::map<std::string, ValueResult> values;
  std::map<std::string, std::string> observations;
  std::vector<Cast> casts;
  std::vector<CastCost> cast_costs;            ///< their `shares` are volatile
  std::vector<std::string> notes;
  std::string repro;
  std::map<std::string, double> durations_ms;  ///< volatile
};

enum class DivergenceKind { kOutcome, kDtype, kPrecision, kOrder, kValue, kSpecial, kCasts, kGraphVsExecution };
/// outcome dtype precision order value special casts graph_vs_execution
std::string_view Name(DivergenceKind kind);

struct Divergence {
  std::string case_id;
  DivergenceKind kind = DivergenceKind::kPrecision;
  std::vector<std::vector<std::string>> backends;  ///< two groups, or one for graph_vs_execution
  std::string value;                               ///< the first value in program order where they part; empty for outcome
  std::vector<std::string> also;
  std::string basis;                               ///< "proved" or "likely"
  std::vector<std::string> stages;
  std::string sentence;
};

struct RunReport {
  int64_t seed = 0;
  bool complete = true;
  std::map<std::string, std::map<std::string, std::string>> versions;     ///< backend -> package -> version
  std::map<std::string, std::string> not_installed;                       ///< backend -> the line that installs it
  std::map<std::string, std::optional<std::string>> environment;          ///< variables that change numerics, as preset
  std::vector<CaseResult> results;
  std::vector<Divergence> divergences;
  // Volatile: not part of byte-for-byte promises.
  std::string id, started;
  std::map<std::string, double> durations_s;
  std::string oracle_engine;                                              ///< "fast" or "boost"; empty when nothing was judged
  OracleCounts oracle_counts;
};

/// 3 if any HARNESS; else 6 if any CRASH TIMEOUT OOM PROTOCOL TAINTED NOT_RUN; else 1 if any FAIL XPASS NONDET UNMODELLED
/// INCONCLUSIVE; else 5 if nothing ran; else 0. `interrupted` gives 2 before 6.
enum class Interruption { kNone, kInterrupted };
int ExitCode(const RunReport& report, Interruption interruption);

}  // namespace ulpscope
