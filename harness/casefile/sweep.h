// Sweeps: one written case becomes one case per combination of named choices.
//
//   sweep: {k: [8, 4096], dtype: [bfloat16, float16]}
//   tensors: {x: {dtype: $dtype, shape: [4, $k], fill: normal}, ...}
//
// gives name[k=8,dtype=bfloat16], name[k=8,dtype=float16], ... keys in declared order, the last one fastest. A plain scalar
// `$name` stands for the choice, whole scalars only; a choice may be a list (a shape), shown in the id as 4x8. The names of
// tensors and values are never touched, nor are name, about, source and quoted text.
#pragma once

#include <functional>
#include <string>

#include "harness/casefile/structure.h"

namespace ulpscope {

inline constexpr size_t kMaxCombinations = 4096;

/// Calls `use` with each expanded case and its id suffix ("[k=8,dtype=bfloat16]"; "" without a sweep). Adds
/// errors for a malformed sweep, for names never used and for $names without a sweep; then `use` is not
/// called.
void ForEachCombination(const Node& case_node, ErrorSink& errors,
                        const std::function<void(const Node&, const std::string&)>& use);

}  // namespace ulpscope
