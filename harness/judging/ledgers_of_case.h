// The differences of one case, booked step by step, with what its divergences say of each step.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/judge/participant.h"
#include "harness/judging/opened_record.h"
#include "harness/judging/run_to_judge.h"
#include "harness/model/ledger.h"

namespace ulpscope {

struct CaseToBook {
  const Case& test_case;
  const std::optional<Case>& opened_case;
  std::span<const Participant> participants;
  std::span<const std::optional<OpenedRecord>> opened;  ///< one for each participant
  std::span<const Divergence> divergences;
};

/// Of the program as it was asked, and of the opened one.
struct CaseClassifiers {
  CaseClassifier &asked, &opened;
};

/// One for each entry of `account` whose sides have one dtype and shape, in its order. The opened program is asked
/// of a carrier that is no participant. An error where what is recorded cannot be read.
Result<std::vector<Ledger>> LedgersOf(const RunToJudge& run, const CaseToBook& what,
                                      std::span<const AccountEntry> account,
                                      const CaseClassifiers& classifiers);

}  // namespace ulpscope
