// The account: of every observed value and every two groups of backends whose stored bits differ, what the report says of it.
//
// Divergences are found kind by kind; a difference of which no kind speaks would be lost without a trace. The account starts from the
// other end: from the stored bits. It knows nothing of labels, models or relations.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/judge/participant.h"
#include "harness/model/run_report.h"

namespace ulpscope {

/// One entry for each observed value and each two groups of participants that completed and stored other bits of it, in the order of the
/// participants. An entry of which no divergence speaks has an empty `by`.
std::vector<AccountEntry> TakeAccount(std::span<const Participant> participants,
                                      std::span<const Divergence> divergences);

/// Whether the divergence speaks of `value` and has the two backends on different sides.
bool SetsApart(const Divergence& divergence, const std::string& value, const std::string& one,
               const std::string& other);

/// The finding of an entry of which no divergence speaks: what differs, between whom, in how many elements and by how much.
Divergence TellBySize(const AccountEntry& entry);

}  // namespace ulpscope
