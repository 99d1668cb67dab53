// The budgets of a run in words: which rounding costs how much accuracy.
#pragma once

#include <string>
#include <vector>

#include "harness/model/budget.h"
#include "harness/model/run_report.h"

namespace ulpscope {

/// The budgets of values that differ between backends, but those that are left out: these are shown, and the others are in report.json
/// alone.
std::vector<const ErrorBudget*> ShownBudgets(const RunReport& report);

/// "61 % from rms_norm (model.norm llama.py:67), 22 % from h": the largest entries, and the number of others. "on the
/// way to h" replaces "from h" if not every step was observed.
std::string SharesText(const ErrorBudget& budget);
/// "error of logits on torch-inductor: rms 0.0018; " and SharesText.
std::string BudgetText(const ErrorBudget& budget);
/// "rms_norm in float32 lowers the error of logits from 0.015 to 0.0031"; "" if it does not, or was not computed.
std::string InFloat32Text(const ErrorBudget& budget);

}  // namespace ulpscope
