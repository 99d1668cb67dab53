// A sweep of knobs: each backend once as it is, and once for every value of every knob that its adapter
// offers.
//
// Not every case for every knob: a case whose tags hold a knob's name is a probe of that knob. A base runs
// all probes of its backend's knobs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/base/result.h"
#include "harness/model/run_report.h"
#include "harness/run/backend.h"

namespace ulpscope {

struct KnobSweep {
  std::vector<BackendSpec> backends;                      ///< bases, each followed by its variants
  std::map<std::string, std::vector<std::string>> swept;  ///< backend string -> knobs (RunHeader)
  struct Asked {
    std::string base, knob, value;
  };
  std::vector<Asked> asked;           ///< every value that the run has to probe
  std::vector<std::string> left_out;  ///< "BACKEND: why": no device, or a knob that another device has
  std::vector<std::string> problems;  ///< knobs of the registry that an adapter does not offer
};

/// Asks each adapter which knobs it offers. A backend that cannot be started or refuses keeps its base alone
/// and is named in `left_out`.
Result<KnobSweep> SweepKnobs(const Registry& registry, const std::vector<BackendSpec>& backends);

/// The problems of the sweep, and one line for each value that no case of the run probed. A refused value was
/// probed: the refusal is the answer.
std::vector<std::string> UnprobedKnobs(const KnobSweep& sweep, const RunReport& report);

}  // namespace ulpscope
