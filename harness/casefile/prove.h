// Auxiliary inputs: the cases that the harness adds if a contract has `prove: true`.
//
// A case's own data is what its author wants looked at; whether it decides a contract is luck, and for long
// sums with a 16-bit output random data decides nothing. Its companions are the same program on tensors of
// the same shapes, dtypes and layouts, with the operands of its matrix products refilled by crossed probes
// (harness/model/cross.h) that read what is demanded. They are cases like any other: run, journalled and
// classified each on its own, under the case's id, a tilde and the probe's name. harness/judge/combine.h
// joins the evidence from them; they are no rows of a report.
//
// Sums and means along one dimension are products by one. A product or sum of anything but tensors of the
// case (or views and casts of such), and all other operations, have no probe: their case gets no companion,
// and lint reports it.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/model/case.h"

namespace ulpscope {

struct Companion {
  std::string name;  ///< swamp, swamp.2, w.grad.swamp: what follows the tilde
  std::string probe;
  Case test_case;  ///< without contract and expectations
};

/// None without `prove`. The same for the same case, in the order in which they are run.
std::vector<Companion> CompanionsOf(const Case& test_case);

/// The values of the contract that are such products and sums themselves, whether or not it has `prove`:
/// companions decide them. Values computed from them have companions too, but further steps blur the
/// evidence.
std::set<std::string> Provable(const Case& test_case);

/// `cases`, each followed by its companions; kOpened: and by its opened program (harness/casefile/open.h).
enum class Steps { kTogether, kOpened };
std::vector<Case> WithCompanions(const std::vector<Case>& cases, Steps steps);

/// A companion whose operands are random numbers: no order of summation is special to them.
bool IsOrdinary(const Case& companion);

/// The id of the case that `id` is a companion of; empty where it is none.
std::string_view BaseOf(std::string_view id);

}  // namespace ulpscope
