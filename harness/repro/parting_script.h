// A script that shows where two backends differ, for their own frameworks, and without ulpscope.
#pragma once

#include <map>
#include <string>

#include "harness/base/result.h"
#include "harness/model/case.h"
#include "harness/num/tensor_data.h"
#include "harness/repro/script_side.h"

namespace ulpscope {

/// One of two sides that part.
struct PartingSide {
  ReproSubject subject;
  std::map<std::string, TensorData> values;  ///< observed
};

/// One Python script that holds its inputs, computes what both sides did, each in a process of its own
/// (settings of one framework are no business of the other), and reports where they differ: exit code 0 if
/// they do. A side that is no Python stack stands in it by the values that were recorded; an error if neither
/// is one, or if a step has no such form. `about`: the difference.
Result<std::string> WritePartingScript(const Case& test_case, const std::map<std::string, TensorData>& inputs,
                                       const PartingSide& first, const PartingSide& second,
                                       const std::string& about);

}  // namespace ulpscope
