// Opened programs: a case run once more with every intermediate observed, so that each step can be judged by itself.
//
// A value at the end of nine steps has thousands of joint models and bounds that hold everything; one step, judged from the
// operands that the same backend computed for it, has a dozen. The opened case is a companion of its case: run, journalled
// and classified under the case's id, a tilde and "opened"; no row of a report. Whether opening changed what the program
// computes is seen by the values that both observe (harness/judge/local.h).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "harness/model/case.h"
#include "harness/num/tensor_data.h"

namespace ulpscope {

/// `c` with every intermediate observed, without contract and expectations. None if the program is a single
/// step, or writes into existing tensors (out=, in-place ops): the value under a name at the end is then not
/// a step's result. The data of a tensor of the case may be replaced (set_data, module_to): WithDataSet makes
/// each version of it an operand. If the program differentiates, the steps of its forward pass are observed;
/// its gradients are no values of steps. An op of the dispatcher that has no word gives a value like any
/// other: it has no reference, and the steps behind it are judged from its observed result.
std::optional<Case> Opened(const Case& c);
/// An instrumented program as its steps are judged: the contents that set_data and module_to leave in a tensor are an
/// operand of their own, and the steps that replace them are removed. `inputs` holds the data of every version.
struct SettledProgram {
  Case program;
  std::map<std::string, TensorData> inputs;
};
SettledProgram WithDataSet(const Case& opened, std::map<std::string, TensorData> inputs);

/// Whether Opened gives one.
bool CanBeOpened(const Case& c);

/// True if the program is one step that gives one new value, and nothing else.
bool IsOneStep(const Case& c);

/// True if the program holds a `backward`.
bool Differentiates(const Case& c);

/// True for results of Opened.
bool IsOpened(const Case& c);

/// The values of `c` that its contract or an expectation names. They are judged as one joint model of the whole
/// program; all others step by step, if the instrumented program computes the same bits.
std::set<std::string> DemandedValues(const Case& c);

/// True if its contract or an expectation has words for more than dtypes: for accumulators, operands,
/// roundings.
bool SpeaksOfFacets(const Case& c);

}  // namespace ulpscope
