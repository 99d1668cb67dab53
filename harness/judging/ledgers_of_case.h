// Books the differences of one case step by step, with the divergences found at each step.
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

/// Classifiers of the requested program and of the instrumented one.
struct CaseClassifiers {
  CaseClassifier &asked, &opened;
};

/// One ledger for each entry of `account` whose sides have one dtype and shape, in its order. A carrier that is no
/// participant is classified by the instrumented program. Error: the record cannot be read.
Result<std::vector<Ledger>> LedgersOf(const RunToJudge& run, const CaseToBook& what,
                                      std::span<const AccountEntry> account,
                                      const CaseClassifiers& classifiers);

}  // namespace ulpscope
