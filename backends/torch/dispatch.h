// Any op of PyTorch's dispatcher by name: overloads found in the registry, arguments bound against their
// schemas.
//
// The adapter knows no op. A step names one ("aten::mul", or a word that a small table turns into one); its
// operands are the positional arguments, its attributes the keyword arguments, `out=` the keyword argument of
// the out overload. Every registered overload is tried against the schema; exactly one must take the
// arguments. None, or two, is a plain refusal, never a guess.
#pragma once

#include <ATen/core/ivalue.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backends/sdk/program.h"

namespace ulpscope::torch_backend {

/// Positional and keyword arguments before they meet a schema. The meaning of a keyword's value depends on
/// the type that the schema gives it.
struct Arguments {
  std::vector<c10::IValue> positional;  ///< tensors and Python scalars (bool, int, float)
  std::map<std::string, Attr> keywords;
  at::Tensor out;                  ///< undefined without out=
  c10::Device device = c10::kCPU;  ///< for factories, whose schema has a `device`
  /// The tensor that a name in a keyword stands for; undefined when there is none.
  std::function<at::Tensor(const std::string&)> lookup;
};

/// Calls the one overload of `name` ("aten::matmul", "aten::to.dtype") that takes the arguments, through
/// every layer of the dispatcher. Throws Unsupported when no overload or more than one does, and whatever the
/// op raises.
std::vector<c10::IValue> CallOp(const std::string& name, const Arguments& arguments);

/// True when the dispatcher has an op of that name.
bool HasOp(const std::string& name);

}  // namespace ulpscope::torch_backend
