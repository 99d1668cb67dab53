// The errors of one case's values, booked step by step against the exact program (harness/model/budget.h).
#pragma once

#include <span>
#include <vector>

#include "harness/judging/ledgers_of_case.h"
#include "harness/model/budget.h"

namespace ulpscope {

/// One budget for each value and group of backends that stored the same bits, from recorded data: for the values of
/// `ledgers`, and for cheap others. `asked`: classifies the requested program. Error: the record cannot be read.
Result<std::vector<ErrorBudget>> BudgetsOf(const RunToJudge& run, const CaseToBook& what,
                                           std::span<const Ledger> ledgers, CaseClassifier* asked);

}  // namespace ulpscope
