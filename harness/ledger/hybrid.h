// Hybrids: a program some of whose values are given, so that only the rest of it is computed.
//
// Views are never given: they compute nothing, and a contiguous tensor in the place of a transposed one may
// send a product to another kernel. If a backend stored the value of a view, the view of its base has the
// same elements.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/model/case.h"
#include "harness/model/tensor.h"

namespace ulpscope {

using NamedTensors = std::map<std::string, TensorData>;

/// The values of an instrumented program (harness/casefile/open.h) that steps compute, in program order, without views.
std::vector<std::string> ComputedValues(const Case& opened);

/// The values that matrix products and attention read, views looked through: libraries compute those from memory.
std::set<std::string> ReadByLibraries(const Case& opened);

struct GivenProgram {
  Case program;
  NamedTensors inputs;
};

/// `opened` with the tensors `given` in place of the steps that compute those values. It observes `observe`, none of
/// which may be given, and holds only the steps that they need. `inputs`: the tensors of `opened`.
GivenProgram WithGiven(const Case& opened, const NamedTensors& inputs, const NamedTensors& given,
                       const std::set<std::string>& observe);

/// Each of `values` computed once more, from operands that are `values` themselves: the program observes Again(v) for each v of them.
GivenProgram StepByStep(const Case& opened, const NamedTensors& inputs, const NamedTensors& values);
std::string Again(const std::string& value);

}  // namespace ulpscope
