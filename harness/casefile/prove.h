// Auxiliary inputs: the cases that the harness adds if a contract has `prove: true`.
//
// A case's own data show what its author had in mind; whether they decide a contract is luck, and for long sums with a
// 16-bit output random data decide nothing. The auxiliary inputs are the same program on tensors of the same shapes,
// dtypes and layouts, with the operands of its matrix products refilled by crossed probes (harness/model/cross.h) that
// test the demands. They are cases like any other: run, journalled and classified each on its own, under the case's id,
// a tilde and the probe's name. harness/judge/combine.h joins the evidence from them; they are no rows of a report.
//
// Sums and means along one dimension are products by one. A product or sum of anything but tensors of the case (or
// views and casts of such), and all other operations, have no probe: their case gets no auxiliary input, and lint
// reports it.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/model/case.h"

namespace ulpscope {

struct Companion {
  std::string name;  ///< swamp, swamp.2, w.grad.swamp: the part after the tilde
  std::string probe;
  Case test_case;  ///< without contract and expectations
};

/// None without `prove`. The same for the same case, in the order in which they are run.
std::vector<Companion> CompanionsOf(const Case& test_case);

/// The values of the contract that are such products and sums themselves, whether or not it has `prove`: auxiliary
/// inputs decide them. Values computed from them have auxiliary inputs too, but later steps blur the evidence.
std::set<std::string> Provable(const Case& test_case);

/// `cases`, each followed by its auxiliary inputs; kOpened: and by its instrumented program (harness/casefile/open.h).
enum class Steps { kTogether, kOpened };
std::vector<Case> WithCompanions(const std::vector<Case>& cases, Steps steps);

/// An auxiliary input whose operands are random numbers: no order of summation is special to them.
bool IsOrdinary(const Case& companion);

/// The id of the case whose auxiliary input `id` is; empty if it is none.
std::string_view BaseOf(std::string_view id);

}  // namespace ulpscope
