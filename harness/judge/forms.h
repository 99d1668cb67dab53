// Forms of ops: other elementary steps by which libraries compute them.
#pragma once

#include <string>
#include <vector>

#include "harness/num/float_format.h"
#include "harness/num/tensor_data.h"
#include "harness/words/program.h"

namespace ulpscope {

/// Programs that compute the result of `step` by other steps; none for most ops. The last step's value is the step's.
/// The others are named after it ("y.reciprocal") and stored like any value, except those of IsContracted. Shapes and
/// dtypes are those that the step allows. `format`: the result's, for converting Python numbers; null if none.
std::vector<std::vector<Step>> OtherForms(const Step& step, const FloatFormat* format = nullptr);

/// Forms that differ from the step only in the last bits of some elements, so those elements are needed to distinguish
/// them: the order of a product and a quotient, a product that is added without being rounded.
std::vector<std::vector<Step>> FormsOfLastBits(const Step& step);

/// True if `name` is a product inside a form that is added without being rounded.
bool IsContracted(const std::string& name);

/// The form as a formula, "x * (1 / s)"; "" if it is too long to read.
std::string DescribeForm(const Step& step, const std::vector<Step>& form);

/// A remark to report if the form reproduces the results; "" for most.
std::string SaidOfForm(const std::vector<Step>& form);

/// The step itself, and forms in which the steps around its sums (bias, quotient of a mean, norm, softmax) are
/// separate. `shape`: of the first operand.
std::vector<std::vector<Step>> FormsAroundSums(const Step& step, const Shape& shape);

}  // namespace ulpscope
