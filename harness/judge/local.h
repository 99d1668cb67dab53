// Local evidence: each step of a program judged by itself, from the operands that this backend computed for it.
//
// The unknown is a rounding on a use, never on a value: a compiler may store the rounded product and hand the sum on
// unrounded, fuse a producer into one consumer and not into the other. So each step is asked: do its results follow from its
// operands as they are stored; or from what some of them were before they were rounded to their dtypes, which makes the
// step and its producer one piece to be judged; or from operands in another format? What explains the results stays in
// Classification::reads, operand by operand. The piece grows only along uses that were found unrounded, so that the cost
// is the program's own.
#pragma once

#include <map>
#include <set>
#include <string>

#include "harness/judge/open_piece.h"
#include "harness/model/oracle.h"

namespace ulpscope {

/// `opened`: a program each of whose steps gives one new value (harness/casefile/open.h). `values`: what one backend computed
/// for them; steps whose results or operands are not among them are left out. One classification for each step. What
/// the oracles of the pieces did is added to `counts`.
std::map<std::string, Classification> JudgeSteps(const Case& opened,
                                                 const std::map<std::string, TensorData>& inputs,
                                                 const std::map<std::string, TensorData>& values,
                                                 const OpenPiece& open, OracleCounts* counts,
                                                 const LookedAt& looked_at = {});

/// Names the form of each elementwise step whose results of `looked_at` (elements in which backends differ) the step itself does not
/// give, and one of its other forms does, all of them: Classification::form of `judged`.
void TellForms(const Case& opened, const std::map<std::string, TensorData>& inputs,
               const std::map<std::string, TensorData>& values, const LookedAt& looked_at,
               const OpenPiece& open, OracleCounts* counts, std::map<std::string, Classification>* judged);

/// The values that both runs gave, and gave other bits: opening changed what the program computes.
std::set<std::string> ChangedByOpening(const std::map<std::string, TensorData>& plain,
                                       const std::map<std::string, TensorData>& opened);

}  // namespace ulpscope
