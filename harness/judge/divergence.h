// Where backends part: which groups of them, in what kind of thing, at which value first.
//
// Outcome, dtype, precision, order, value, special values and casts are different things and are never mixed:
//   outcome    one raised (or crashed), the other did not
//   dtype      a value (or an observed dtype) came back in another type
//   precision  the sets of surviving models are disjoint: `proved` on models_proved, `likely` where only `models` are
//   order      same class, other bits: the order of accumulation
//   value      integers, booleans and indices; also floating values that no model explains on either side
//   special    NaN, infinities and saturation, the sign of zero
//   casts      the same bits everywhere, yet other dtype conversions on the way, in a stage that both traces have
// For each kind, backends that do not part form a group, and every pair of groups that parts is one divergence, at the
// first value in program order. Two overlapping sets of models do not part, and overlap is not transitive: a backend that
// parts from nobody on the other side is left out of that pair. For outcome, the groups are those of outcome, dtype and
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

/// kStepByStep: the values of the participants are single steps, each judged from its own operands. Then a value whose
/// operands differ has inherited that, and parts in precision alone.
enum class JudgedAs { kWholeProgram, kStepByStep };

/// In the order of the kinds above, then of the backends as given. `known`: names of backends that are not compared with each other,
/// since their steps are.
std::vector<Divergence> FindDivergences(const Case& test_case, std::span<const Participant> participants,
                                        JudgedAs judged = JudgedAs::kWholeProgram,
                                        const std::set<std::string>& known = {});

}  // namespace ulpscope
