// The annotations that GitHub shows next to a job's log: at most ten lines, failures before findings.
//
//   ::error file=cases/seeds/matmul_out.yaml,line=12,title=FAIL seeds/matmul_out/as_posted::torch-aot-eager: changed: expected ...
//   ::warning file=cases/seeds/matmul_out.yaml,line=19,title=precision seeds/matmul_out/as_posted  product::torch-aot-eager rounds product ...
//   ::notice title=ulpscope::and 0 more failures, 3 more findings
#pragma once

#include <string>

#include "harness/model/run_report.h"

namespace ulpscope {

/// GitHub silently drops a step's annotations after the tenth, so the last line states how many there are.
std::string WriteAnnotations(const RunReport& report);

}  // namespace ulpscope
