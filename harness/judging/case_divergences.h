// Where the backends of one case part: at single steps where those are known, else at the values that were asked.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "harness/judge/participant.h"
#include "harness/judging/opened_record.h"
#include "harness/model/ledger.h"

namespace ulpscope {

/// `opened` has an entry for each of `participants`; `opened_case`: whether the case has an opened program.
std::vector<Divergence> FindCaseDivergences(const Case& test_case,
                                            const std::vector<Participant>& participants,
                                            const std::vector<std::optional<OpenedRecord>>& opened,
                                            const std::optional<Case>& opened_case);

/// Adds to what differs for no cause that was found. Where a ledger of it is booked: how many steps do otherwise. Else, on a backend
/// that computes otherwise where its steps are observed: what those steps show there, said as that.
void TellObservedSteps(const Case& test_case, const std::vector<Participant>& participants,
                       const std::vector<std::optional<OpenedRecord>>& opened,
                       std::span<const Ledger> ledgers, std::vector<Divergence>* divergences);

}  // namespace ulpscope
