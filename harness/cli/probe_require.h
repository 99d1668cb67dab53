// `ulpscope probe --require`: a demand in the words of a contract, compared with a datasheet's models.
#pragma once

#include <string>

#include "harness/base/result.h"
#include "harness/model/case.h"
#include "harness/model/datasheet.h"
#include "harness/model/run_report.h"

namespace ulpscope {

/// "acc=at_least_float32,in=as_is|bfloat16_rne": read by the reader of contracts, which knows the words. Empty demands
/// nothing.
Result<ValueDemand> ParseRequire(const std::string& text);

struct RequireAnswer {
  ContractVerdict verdict = ContractVerdict::kUndetermined;
  std::string
      sentence;  ///< "proved: ...", "violated: ..., with the probe that excludes what is required", "cannot tell: ..."
};

RequireAnswer AnswerRequire(const Datasheet& sheet, const ValueDemand& demand);

}  // namespace ulpscope
