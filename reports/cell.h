// A precision class in a few characters: where a value was rounded, the last store last.
//
//   f32               float32 throughout
//   f32>bf16          accumulated in float32, stored as bfloat16
//   f32>bf16>f32      rounded through bfloat16 on the way to a float32 store
//   (bf16)>f32        operands rounded to bfloat16 first
//   *bf16>f32         each product rounded to bfloat16
//   bf16?>f32         the inputs cannot tell classes apart that differ in precision; at worst bfloat16 somewhere
//   f32>bf16~         rests on likelihood, not on proof
//   =f32              every model gives these bits: the inputs prove nothing
//   [f32]             no reference
//   i64               not a floating type
//   unmodelled        no model in the bank explains it
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/model/run_report.h"

namespace ulpscope {

/// The cell of one value.
std::string CellText(const ValueResult& value);

/// What the errors of a classification are measured against: "value", or "result of its operands" where a step was judged by
/// itself, from what its backend computed before it.
std::string_view ReferenceOf(const Classification& classification);
/// A step judged by itself has two errors: its own (step_ulp), and that of the whole program (max_ulp).
bool HasOwnError(const Classification& classification);
/// "at most 0.5 ulp from the exact result of its operands, 592.2 from that of the program".
std::string ErrorText(const Classification& classification);

/// How many significant bits the coarsest rounding on the way to a value keeps, in the coarsest of its models: 24 of float32's class
/// or wider. 0 where no model explains the bits; 24 where there is nothing to tell (no reference, no rounding, integers).
int KeptBits(const ValueResult& value);

/// What every mark of a cell means, one entry each, for below the matrix: the usual ones, and the rare ones that `cells` hold.
std::vector<std::string> CellLegend(const std::set<std::string>& cells = {});

}  // namespace ulpscope
