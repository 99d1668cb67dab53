// Participant: one backend's run of a case, as it is set against those of others.
#pragma once

#include "harness/model/observation.h"
#include "harness/model/run_report.h"

namespace ulpscope {

/// One backend's run of the case. Those that completed, raised or crashed take part; skipped, tainted and
/// broken ones and those not reached do not. The caller leaves out emulated and faulty unless they were
/// named.
struct Participant {
  const CaseResult* result = nullptr;
  const Observation* observation = nullptr;
};

}  // namespace ulpscope
