// The forms in which libraries compute an op where its own elementary steps are others.
#pragma once

#include <vector>

#include "harness/words/program.h"

namespace ulpscope {

/// Programs that give what `step` gives, each by other steps; none for most ops. The last one's value is the step's, the others
/// are named after it ("y.reciprocal") and stored as any value is, or not. Shapes and dtypes are those that the step allows.
std::vector<std::vector<Step>> OtherForms(const Step& step);

}  // namespace ulpscope
