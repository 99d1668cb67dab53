// The errors of one case's values, booked step by step against the exact program (harness/model/budget.h).
#pragma once

#include <span>
#include <vector>

#include "harness/judging/ledgers_of_case.h"
#include "harness/model/budget.h"

namespace ulpscope {

/// One for each value and backends that stored the same, from what the run recorded: of the values that `ledgers` are of, and of the others
/// where they cost next to nothing. `asked`: of the program as it was asked. An error where what is recorded cannot be read.
Result<std::vector<ErrorBudget>> BudgetsOf(const RunToJudge& run, const CaseToBook& what,
                                           std::span<const Ledger> ledgers, CaseClassifier* asked);

}  // namespace ulpscope
