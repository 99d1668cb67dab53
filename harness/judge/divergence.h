// Where backends part: which groups of them, in what kind of thing, at which value first.
//
// Outcome, dtype, precision, order, value, special values and casts are different things and are never mixed:
//   outcome    one raised (or crashed), the other did not
//   dtype      a value (or an observed dtype) came back in another type
//   precision  the sets of surviving models are disjoint: `proved` on models_proved, `likely` where only `models` are
//   order      sums that one precision model holds on both sides, no further apart than its orders may be
//   bits       one precision model holds both sides, no further apart than two libraries' last bits may be
//   value      every other difference: integers, and floating values of which no cause is known
//   special    NaN, infinities and saturation, the sign of zero
//   carried    an observed value that differs because what it is computed from does (judged step by step)
//   casts      the same bits everywhere, yet other dtype conversions on the way, in a stage that both traces have
// For each kind, backends that do not part form a group, and every pair of groups that parts is one divergence, at the
// first value in program order. Two overlapping sets of models do not part, and overlap is not transitive: a backend that
// parts from nobody on the other side is left out of that pair. Labels explain differences and remove none: of every two backends and
// every observed value whose bits differ some kind speaks (harness/judge/account.h counts that again). For outcome, the groups are those of outcome, dtype and
// precision together, so that a refusal is set against each class that others compute.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "harness/judge/participant.h"
#include "harness/model/case.h"
#include "harness/model/run_report.h"

namespace ulpscope {

/// In the order of the kinds above, then of the backends as given. `known`: names of backends that are not compared with each other,
/// since their steps are. `observed`: the values that the case asks for, of which `carried` is told; the others are steps on the way.
std::vector<Divergence> FindDivergences(const Case& test_case, std::span<const Participant> participants,
                                        JudgedAs judged = JudgedAs::kWholeProgram,
                                        const std::set<std::string>& known = {},
                                        const std::set<std::string>& observed = {});

}  // namespace ulpscope
