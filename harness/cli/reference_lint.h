// Checks of a case by the oracle before it is run: whether its steps go together at all, and which of its
// values have no reference.
#pragma once

#include <string>
#include <vector>

#include "harness/base/result.h"
#include "harness/model/case.h"

namespace ulpscope {

struct ReferenceLint {
  std::vector<Error> warnings;  ///< steps that do not go together: no value of the case can be checked
  std::vector<Error> notes;     ///< values without a reference: they will be compared bit by bit alone
};

ReferenceLint LintReferences(const Case& test_case);

}  // namespace ulpscope
