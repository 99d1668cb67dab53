// Observation: what an adapter saw when it ran a case. Facts only; no pass or fail.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/model/tensor.h"
#include "harness/model/trace.h"

namespace ulpscope {

enum class OutcomeKind {
  kCompleted,
  kRaised,
  kUnsupported,
  kCrashed,
  kTimedOut,
  kOutOfMemory,
  kProtocolBroken
};
/// completed raised unsupported crashed timed_out out_of_memory protocol_broken
std::string_view Name(OutcomeKind kind);
std::optional<OutcomeKind> ParseOutcomeKind(std::string_view name);

struct Outcome {
  OutcomeKind kind = OutcomeKind::kCompleted;
  std::string
      error_class;   ///< raised: the framework's class ("RuntimeError"); crashed: the signal ("SIGSEGV")
  std::string text;  ///< raised: the message; unsupported: the reason; otherwise what happened
};

/// "raised RuntimeError", "completed"
std::string Describe(const Outcome& outcome);
/// The same and, where there is some, its text: "raised RuntimeError: ..."
std::string DescribeWhole(const Outcome& outcome);

/// MXCSR and friends, read before and after a case in the worker.
struct FpEnvironment {
  uint32_t mxcsr = 0;  ///< 0x1f80 is the default; bits 15 and 6 are FTZ and DAZ, 13-14 the rounding mode
  bool subnormals_kept = true;
  int64_t threads = 0;
  bool operator==(const FpEnvironment&) const = default;
};

struct Observation {
  Outcome outcome;
  std::map<std::string, TensorData> values;
  std::map<std::string, std::string> observations;  ///< "w.grad_metadata_dtype" -> "bfloat16"
  std::map<std::string, std::string> parts;  ///< value -> part that made it: eager, compiled, backward, glue
  std::map<std::string, std::string> knobs_asked;
  std::map<std::string, std::string> knobs_effective;
  std::vector<Cast> casts;
  std::vector<TraceNode> trace;       ///< empty when none was asked for or none is served
  std::vector<std::string> notes;     ///< e.g. "2 compiled regions"
  std::vector<std::string> untraced;  ///< steps that ran outside of what the trace shows, and where
  std::optional<FpEnvironment> fp_before, fp_after;
  std::string tainted;                 ///< empty, or how the FP environment was left changed
  std::vector<std::string> unwritten;  ///< values with elements that still hold the poison pattern
  /// Values whose bytes differ between repeated runs, with the largest difference in ulps of the value's
  /// dtype.
  std::map<std::string, double> nondeterministic;
  std::map<std::string, double> durations_ms;  ///< volatile
  std::string worker_log;  ///< volatile: the end of stderr and stdout when the worker broke
};

/// The state that the worker left changed (control bits of MXCSR, subnormals, threads, unwritten elements), or "". The
/// sticky exception flags of MXCSR are set by ordinary arithmetic and do not count.
std::string FindTaint(const Observation& observation);

}  // namespace ulpscope
