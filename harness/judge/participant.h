// Participant: one backend's run of a case, as it is set against those of others.
#pragma once

#include "harness/model/observation.h"
#include "harness/model/run_report.h"

namespace ulpscope {

/// One backend's run of the case. Runs that completed, raised or crashed take part; skipped, tainted, broken and not
/// reached ones do not. The caller leaves out emulated and faulty unless they were named.
struct Participant {
  const CaseResult* result = nullptr;
  const Observation* observation = nullptr;
};

/// kStepByStep: the values of the participants are single steps, each judged on its own operands. A value whose
/// operands differ has then inherited the difference, and differs only in precision.
enum class JudgedAs { kWholeProgram, kStepByStep };

/// True if a backend ran to an answer, untainted: its result, even an error, is a fact about it.
inline bool RanToAnAnswer(const CaseResult& result) {
  switch (result.status) {
    case Status::kHarness:
    case Status::kProtocol:
    case Status::kTimeout:
    case Status::kOom:
    case Status::kTainted:
    case Status::kNotRun:
    case Status::kSkip:
      return false;
    default:
      return true;
  }
}

}  // namespace ulpscope
