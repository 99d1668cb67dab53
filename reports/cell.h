// A precision class in a few characters: where a value was rounded, with the output rounding last.
//
//   f32               float32 throughout
//   f32>bf16          accumulated in float32, stored as bfloat16
//   f32>bf16>f32      rounded through bfloat16 before a float32 output
//   (bf16)>f32        operands rounded to bfloat16 first
//   *bf16>f32         each product rounded to bfloat16
//   bf16?>f32         the inputs cannot distinguish classes of different precision; at worst bfloat16 somewhere
//   f32>bf16~         rests on likelihood, not on proof
//   =f32              every model gives these bits: the inputs prove nothing
//   [f32]             no reference
//   i64               not a floating type
//   unmodelled        no candidate model explains it
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/model/run_report.h"

namespace ulpscope {

/// The cell of one value.
std::string CellText(const ValueResult& value);

/// The reference of a classification's errors: "value", or "result of its operands" for a step that was judged by
/// itself, on the operands that its backend computed.
std::string_view ReferenceOf(const Classification& classification);
/// A step judged by itself has two errors: its own (step_ulp), and that of the whole program (max_ulp).
bool HasOwnError(const Classification& classification);
/// "at most 0.5 ulp from the exact result of its operands, 592.2 from that of the program".
std::string ErrorText(const Classification& classification);

/// The number of significant bits that the coarsest intermediate rounding of a value keeps, in the coarsest of its
/// models: 24 for float32's class or wider. 0 if no model explains the bits; 24 if there is nothing to report (no
/// reference, no rounding, integers).
int KeptBits(const ValueResult& value);

/// The meaning of every mark of a cell, one entry each, for below the matrix: the usual marks, and the rare ones in
/// `cells`.
std::vector<std::string> CellLegend(const std::set<std::string>& cells = {});

}  // namespace ulpscope
