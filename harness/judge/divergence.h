// Divergences: which groups of backends differ, in what kind of thing, at which value first.
//
// Outcome, dtype, precision, order, value, special values and casts are different things and are never mixed:
//   outcome    one raised (or crashed), the other did not
//   dtype      a value (or an observed dtype) came back in another type
//   precision  the sets of surviving models are disjoint: `proved` on models_proved, `likely` if only `models` are
//   order      one precision model explains the sums on both sides; they differ by no more than its orders may
//   bits       one precision model explains both sides; they differ by no more than two libraries' last bits may
//   value      every other difference: integers, and floating values whose cause is unknown
//   special    NaN, infinities and saturation, the sign of zero
//   carried    an observed value that differs because its operands do (judged step by step)
//   casts      the same bits everywhere, yet other intermediate dtype conversions, in a stage that both traces have
// For each kind, backends that do not differ form a group, and every pair of groups that differs is one divergence, at
// the first value in program order. Two overlapping sets of models do not differ, and overlap is not transitive: a
// backend that differs from no member of the other side is left out of that pair. Labels explain differences and remove
// none: for every two backends and every observed value whose bits differ there is a divergence of some kind
// (harness/judge/account.h counts that again). For outcome, the groups are those of outcome, dtype and precision
// together, so that a refusal is compared with each class that others compute.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "harness/judge/participant.h"
#include "harness/model/case.h"
#include "harness/model/run_report.h"

namespace ulpscope {

/// In the order of the kinds above, then of the backends. `known`: backends that are not compared with each other,
/// since their steps are. `observed`: the requested values; `carried` is reported for these, not for intermediate
/// steps.
std::vector<Divergence> FindDivergences(const Case& test_case, std::span<const Participant> participants,
                                        JudgedAs judged = JudgedAs::kWholeProgram,
                                        const std::set<std::string>& known = {},
                                        const std::set<std::string>& observed = {});

}  // namespace ulpscope
