// Deviation: one line of cases/deviations.yaml, a violation of a contract that is known, with a reason and an
// end date.
//
// casefile/ reads the file, judge/ compares: an entry is live when its case, backend, value and versions fit
// the run and its end date is not before the date that the run recorded. Judging an old run again therefore
// gives the same verdict.
#pragma once

#include <string>

#include "harness/base/result.h"

namespace ulpscope {

struct Deviation {
  std::string case_id;
  std::string backend;  ///< NAME[@DEVICE][:knob=value,...]
  std::string
      value;  ///< the value that violates; empty where the outcome itself does (it raised, or did not)
  std::string versions;  ///< "torch>=2.9,<2.16"; empty = any
  std::string found;     ///< the class found, as text
  std::string reason;
  std::string link;
  std::string expires;  ///< "2026-12-31", the last day it holds; empty = never
  SourcePos pos = {};
};

}  // namespace ulpscope
