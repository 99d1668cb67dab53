// Finds the divergences of one case: at single steps if those are known, else at the requested values.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "harness/judge/participant.h"
#include "harness/judging/opened_record.h"
#include "harness/model/ledger.h"

namespace ulpscope {

/// `opened` has an entry for each of `participants`; `opened_case`: whether the case has an instrumented program.
std::vector<Divergence> FindCaseDivergences(const Case& test_case,
                                            const std::vector<Participant>& participants,
                                            const std::vector<std::optional<OpenedRecord>>& opened,
                                            const std::optional<Case>& opened_case);

/// Adds to each difference without a known cause: the number of deviating steps if a ledger books it; else, on a
/// backend whose instrumented program computes something else, the findings about those steps, labelled as such.
void TellObservedSteps(const Case& test_case, const std::vector<Participant>& participants,
                       const std::vector<std::optional<OpenedRecord>>& opened,
                       std::span<const Ledger> ledgers, std::vector<Divergence>* divergences);

}  // namespace ulpscope
