// Where two backends part, as one script for their own frameworks, and nothing of ulpscope.
#pragma once

#include <map>
#include <string>

#include "harness/base/result.h"
#include "harness/cli/repro/script_side.h"
#include "harness/model/case.h"
#include "harness/num/tensor_data.h"

namespace ulpscope {

/// One of two sides that part.
struct PartingSide {
  ReproSubject subject;
  std::map<std::string, TensorData> values;  ///< observed
};

/// One Python script that holds its inputs, computes what both sides did, each in a process of its own (settings of one framework
/// are no business of the other), and says where they part: exit code 0 where they do. A side that is no Python stack stands in
/// it by the values that were recorded; an error where neither is one, or a step has no such form. `about`: what parts.
Result<std::string> WritePartingScript(const Case& test_case, const std::map<std::string, TensorData>& inputs,
                                       const PartingSide& first, const PartingSide& second,
                                       const std::string& about);

}  // namespace ulpscope
