// The forms in which libraries compute an op where its own elementary steps are others.
#pragma once

#include <string>
#include <vector>

#include "harness/num/tensor_data.h"
#include "harness/words/program.h"

namespace ulpscope {

/// Programs that give what `step` gives, each by other steps; none for most ops. The last one's value is the step's, the others
/// are named after it ("y.reciprocal") and stored as any value is, or not. Shapes and dtypes are those that the step allows.
std::vector<std::vector<Step>> OtherForms(const Step& step);

/// What is to be told besides where the form gives the results; "" for most.
std::string SaidOfForm(const std::vector<Step>& form);

/// The step as it is, and the forms in which what lies around its sums is steps of their own: a bias is added, a mean divided, a
/// norm or a softmax made of its sums. `shape`: of the first operand.
std::vector<std::vector<Step>> FormsAroundSums(const Step& step, const Shape& shape);

}  // namespace ulpscope
