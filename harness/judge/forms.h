// The forms in which libraries compute an op where its own elementary steps are others.
#pragma once

#include <string>
#include <vector>

#include "harness/num/float_format.h"
#include "harness/num/tensor_data.h"
#include "harness/words/program.h"

namespace ulpscope {

/// Programs that give what `step` gives, each by other steps; none for most ops. The last one's value is the step's, the others
/// are named after it ("y.reciprocal") and stored as any value is, or not; IsContracted tells which are never stored. Shapes and dtypes
/// are those that the step allows. `format`: of the result, which a Python number may be converted to; null where it is none.
std::vector<std::vector<Step>> OtherForms(const Step& step, const FloatFormat* format = nullptr);

/// Forms that differ from the step in the last bits of some elements only, which tell them apart where those elements are known: the
/// order of a product and a quotient, a product that is added without being rounded.
std::vector<std::vector<Step>> FormsOfLastBits(const Step& step);

/// `name` is a product inside a form that is added without being rounded.
bool IsContracted(const std::string& name);

/// The form as a formula, "x * (1 / s)"; "" where it is too long to be read.
std::string DescribeForm(const Step& step, const std::vector<Step>& form);

/// What is to be told besides where the form gives the results; "" for most.
std::string SaidOfForm(const std::vector<Step>& form);

/// The step as it is, and the forms in which what lies around its sums is steps of their own: a bias is added, a mean divided, a
/// norm or a softmax made of its sums. `shape`: of the first operand.
std::vector<std::vector<Step>> FormsAroundSums(const Step& step, const Shape& shape);

}  // namespace ulpscope
