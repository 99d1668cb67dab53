// What the oracle knows about a case before it is run: whether its steps go together at all, and which of its
// values it can say nothing about.
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
