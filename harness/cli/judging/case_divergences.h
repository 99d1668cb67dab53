// Where the backends of one case part: at single steps where those are known, else at the values that were asked.
#pragma once

#include <optional>
#include <vector>

#include "harness/cli/judging/opened_record.h"
#include "harness/judge/participant.h"

namespace ulpscope {

/// `opened` has an entry for each of `participants`; `opened_case`: whether the case has an opened program.
std::vector<Divergence> FindCaseDivergences(const Case& test_case,
                                            const std::vector<Participant>& participants,
                                            const std::vector<std::optional<OpenedRecord>>& opened,
                                            const std::optional<Case>& opened_case);

}  // namespace ulpscope
