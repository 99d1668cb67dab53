// Sums over a ledger.
#include "harness/model/ledger.h"

#include <algorithm>
#include <cmath>

namespace ulpscope {

bool LedgerEntry::IsExplained() const {
  return !causes.empty() &&
         std::ranges::all_of(causes, [](const LedgerCause& cause) { return cause.is_explained; });
}

bool LedgerEntry::IsOrderOnly() const {
  return IsExplained() && std::ranges::all_of(causes, [](const LedgerCause& cause) {
           return RowOf(cause.kind).is_order_only;
         });
}

int64_t Ledger::StepsBooked() const {
  return std::ranges::count_if(entries, [](const LedgerEntry& entry) { return !entry.step.empty(); });
}

double Ledger::Explained() const { return entries.empty() ? 0 : 1 - std::min(1.0, Unexplained()); }

double Ledger::Unexplained() const {
  double share = 0;
  for (const LedgerEntry& entry : entries) {
    if (!entry.IsExplained()) share += std::fabs(entry.share);
  }
  return share;
}

double Ledger::OrderOnly() const {
  double share = 0;
  for (const LedgerEntry& entry : entries) {
    if (entry.IsOrderOnly()) share += entry.share;
  }
  return std::clamp(share, 0.0, Explained());
}

}  // namespace ulpscope
