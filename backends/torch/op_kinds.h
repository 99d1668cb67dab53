// The kind of trace node that an operation of PyTorch is, read from its schema.
//
// backends/python/ulpscope_torch/op_kinds.py answers the same for the adapters in Python: one side has
// LibTorch and no Python, the other no library of ours. tests/adapters/test_torch_traced.py holds the two
// against each other.
#pragma once

#include <string>

#include "harness/words/trace.h"

namespace ulpscope::torch_backend {

/// Kind of an op by its name, with or without namespace ("aten::mm"). A conversion is one whether or not
/// dtypes differ.
TraceKind KindOf(const std::string& op);

/// Once operands and results are known: what "converts" to the dtype that there was already moves elements.
void SettleKind(TraceNode* node);

}  // namespace ulpscope::torch_backend
