// Budgets as text.
#include "reports/budget.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/base/text.h"
#include "reports/ledger.h"

namespace ulpscope {
namespace {

std::string SourceOf(const ErrorBudget& budget, const BudgetEntry& entry) {
  if (entry.step.empty())
    return budget.together > 0
               ? fmt::format("{} with smaller errors", Counted(static_cast<size_t>(budget.together), "step"))
               : "what no stored value accounts for";
  const std::string origin = entry.at.Text();
  const std::string with = entry.with.empty() ? "" : Join(entry.with, ", ") + " and ";
  return with + entry.step + (origin.empty() ? "" : fmt::format(" ({})", origin));
}

}  // namespace

std::vector<const ErrorBudget*> ShownBudgets(const RunReport& report) {
  std::vector<const ErrorBudget*> shown;
  for (const ErrorBudget& budget : report.budgets) {
    const bool differs = std::ranges::any_of(report.ledgers, [&](const Ledger& ledger) {
      return ledger.case_id == budget.case_id && ledger.value == budget.value;
    });
    if (differs && budget.left_out.empty()) shown.push_back(&budget);
  }
  return shown;
}

std::string SharesText(const ErrorBudget& budget) {
  constexpr size_t kMostEntries = 3;
  std::vector<const BudgetEntry*> entries;
  for (const BudgetEntry& entry : budget.entries) entries.push_back(&entry);
  std::ranges::stable_sort(entries, [](const BudgetEntry* a, const BudgetEntry* b) {
    return std::fabs(a->share) > std::fabs(b->share);
  });
  std::vector<std::string> texts;
  for (const BudgetEntry* entry : entries) {
    if (texts.size() == kMostEntries) break;
    texts.push_back(
        fmt::format("{} {} {}", Percent(entry->share),
                    budget.at_stored_values && !entry->step.empty() ? "from the steps up to" : "from",
                    SourceOf(budget, *entry)));
  }
  std::string text = Join(texts, ", ");
  if (entries.size() > kMostEntries) text += fmt::format(", and {} more", entries.size() - kMostEntries);
  return text;
}

std::string BudgetText(const ErrorBudget& budget) {
  std::string text =
      fmt::format("error of {} on {}: rms {:.2g}", budget.value, Join(budget.backends, ", "), budget.rms);
  if (const std::string shares = SharesText(budget); !shares.empty()) text += "; " + shares;
  return text;
}

std::string InFloat32Text(const ErrorBudget& budget) {
  if (!budget.in_float32 || !budget.in_float32->lowers) return "";
  const StepInFloat32& found = *budget.in_float32;
  // Without the change, the rest must err as the backend does, to the digits shown: else it is computed in another way than there.
  if (fmt::format("{:.2g}", found.before) != fmt::format("{:.2g}", budget.rms)) return "";
  return fmt::format("{} in float32 lowers the error of {} from {:.2g} to {:.2g}", found.step, budget.value,
                     found.before, found.after);
}

}  // namespace ulpscope
