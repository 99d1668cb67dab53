// The program of a run, as an adapter receives it: decoded from the wire, names and shapes checked.
//
// These are plain structs that mirror backends/PROTOCOL.md. The adapter may rely on what is checked here:
// every operand names a tensor or an earlier value, every name is made once in a scope's reach, tensors have
// their dtype and shape, strides reach no negative offset. It must not rely on an op being known: that is the
// adapter's to check.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/sdk/wire.h"
#include "harness/num/tensor_data.h"
#include "harness/words/ops.h"
#include "harness/words/program.h"

namespace ulpscope::sdk {

using ulpscope::Attr;
using ulpscope::Operand;
using ulpscope::Step;

struct ProgramTensor {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  std::vector<int64_t> strides;  ///< in elements; empty = contiguous
  bool requires_grad = false;
};

struct Program {
  std::vector<ProgramTensor> tensors;
  std::vector<Step> steps;
  std::vector<std::string> observe;
};

Result<Program> ParseProgram(const Json& program);

/// As the wire has them: floats that JSON has no numbers for are words ("inf").
Json ToJson(const Attr& attr);
Json ToJson(const Step& step);

/// An observed name split at its last dot: "w.grad" -> {"w", "grad"}, "w" -> {"w", ""}.
struct ObservedName {
  std::string value;
  std::string property = {};
};
ObservedName SplitObserved(std::string_view name);

}  // namespace ulpscope::sdk
