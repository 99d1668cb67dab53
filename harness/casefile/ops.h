// The vocabulary of steps: one row per op. To add an op: one row here, one in the oracle, a line in
// backends/PROTOCOL.md.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/casefile/fields.h"

namespace ulpscope {

struct OpRow {
  enum class Result {
    kValue,   ///< gives a value: needs `as`, or `out` where the op takes one
    kEffect,  ///< acts on what exists: takes no `as`
    kScope,   ///< holds `steps`
  };
  enum class Out { kNo, kYes };
  std::string_view name;
  size_t min_operands = 0, max_operands = 0;
  Result result = Result::kValue;
  Out out = Out::kNo;
  std::vector<Field> attributes = {};
};

std::span<const OpRow> Ops();
/// Null for aten:: ops, which take any operands and attributes, and for unknown words.
const OpRow* FindOp(std::string_view name);
bool IsAtenOp(std::string_view name);

}  // namespace ulpscope
