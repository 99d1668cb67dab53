// Local evidence: each step of a program judged by itself, from the operands that this backend computed for it.
//
// The unknown is a rounding on a use, never on a value: a compiler may store the rounded product and pass the sum on
// unrounded, or fuse a producer into one consumer and not into another. So the judge tests whether a step's results
// follow from its stored operands, or from some operands before their rounding (the step and its producer are then
// judged as one subprogram), or from operands in another format. Classification::reads keeps the explanation, operand
// by operand. The subprogram grows only along uses that were found unrounded, so the cost is the program's own.
#pragma once

#include <map>
#include <set>
#include <string>

#include "harness/judge/open_piece.h"
#include "harness/model/oracle.h"

namespace ulpscope {

/// `opened`: an instrumented program, each of whose steps gives one new value (harness/casefile/open.h). `values`:
/// those that one backend computed; steps whose results or operands are missing are left out. Returns one
/// classification for each step. The work of the subprograms' oracles is added to `counts`.
std::map<std::string, Classification> JudgeSteps(const Case& opened,
                                                 const std::map<std::string, TensorData>& inputs,
                                                 const std::map<std::string, TensorData>& values,
                                                 const OpenPiece& open, OracleCounts* counts,
                                                 const LookedAt& looked_at = {});

/// Names the form of an elementwise step (Classification::form of `judged`) if, of the elements in `looked_at` (in
/// which backends differ), the step itself misses some and one of its other forms reproduces all.
void TellForms(const Case& opened, const std::map<std::string, TensorData>& inputs,
               const std::map<std::string, TensorData>& values, const LookedAt& looked_at,
               const OpenPiece& open, OracleCounts* counts, std::map<std::string, Classification>* judged);

/// The values that both runs have with different bits: instrumentation changed what the program computes.
std::set<std::string> ChangedByOpening(const std::map<std::string, TensorData>& plain,
                                       const std::map<std::string, TensorData>& opened);

}  // namespace ulpscope
