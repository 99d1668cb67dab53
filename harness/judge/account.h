// The account: for every observed value and two groups of backends whose bits differ, the divergences that report it.
// Divergences are found kind by kind, so a difference that no kind covers would be lost without a trace. The account
// starts from the stored bits instead. It knows nothing of labels, models or relations.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/judge/participant.h"
#include "harness/model/run_report.h"

namespace ulpscope {

/// One entry for each observed value and each two groups of completed participants whose stored bits of it differ, in
/// the order of the participants. `by` is empty if no divergence reports the entry.
std::vector<AccountEntry> TakeAccount(std::span<const Participant> participants,
                                      std::span<const Divergence> divergences);

/// True if the divergence is about `value` and has the two backends on different sides.
bool SetsApart(const Divergence& divergence, const std::string& value, const std::string& one,
               const std::string& other);

/// The finding for an entry that no divergence reports: the difference, its backends, elements and size.
Divergence TellBySize(const AccountEntry& entry);

}  // namespace ulpscope
