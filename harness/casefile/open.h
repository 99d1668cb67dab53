// Opened programs: a case run once more with every intermediate observed, so that each step can be judged by itself.
//
// A value at the end of nine steps has thousands of joint models and bounds that hold everything; one step, judged from the
// operands that the same backend computed for it, has a dozen. The opened case is a companion of its case: run, journalled
// and classified under the case's id, a tilde and "opened"; no row of a report. Whether opening changed what the program
// computes is seen by the values that both observe (harness/judge/local.h).
#pragma once

#include <optional>
#include <set>
#include <string>

#include "harness/model/case.h"

namespace ulpscope {

/// `c` with every intermediate observed, without contract and expectations. None where the program is a single step, or
/// writes into what exists already (out=, in-place ops, set_data): what stands under a name at the end is then not what a step
/// gave. Of a program that differentiates the steps on the way forward are observed; its gradients are no values of steps. An op of the dispatcher that no word is for gives a value like any other: it has no reference, and the
/// steps behind it are judged from what it gave.
std::optional<Case> Opened(const Case& c);
/// Whether Opened gives one.
bool CanBeOpened(const Case& c);

/// True where the program is one step that gives one new value, and nothing else.
bool IsOneStep(const Case& c);

/// True where the program holds a `backward`.
bool Differentiates(const Case& c);

/// True for what Opened gave.
bool IsOpened(const Case& c);

/// The values of `c` that its contract or an expectation speaks of. They are judged as one joint model of the whole
/// program; all others step by step, where the opened program computes the same bits.
std::set<std::string> DemandedValues(const Case& c);

/// True where its contract or an expectation speaks of more than dtypes: of accumulators, operands, roundings.
bool SpeaksOfFacets(const Case& c);

}  // namespace ulpscope
