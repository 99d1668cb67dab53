// The program of a run, as an adapter receives it: decoded from the wire, names and shapes checked.
//
// These are plain structs that mirror backends/PROTOCOL.md. The adapter may rely on what is checked here:
// every operand names a tensor or an earlier value, every name is made once in a scope's reach, tensors have
// their dtype and shape, strides reach no negative offset. It must not rely on an op being known: that is for
// the adapter to say.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/sdk/wire.h"
#include "harness/num/tensor_data.h"
#include "harness/words/ops.h"

namespace ulpscope::sdk {

/// One operand: the name of a value, or a Python scalar (bool, integer, float), which is no 0-dim tensor.
struct Operand {
  std::string name;  ///< empty for a scalar
  Json scalar;       ///< null for a name; floats are numbers, infinities and NaN are C++ doubles, never words

  bool IsScalar() const { return name.empty(); }
};

struct Step {
  std::string op;
  std::vector<Operand> of;
  std::string out;          ///< the buffer of out=; empty without
  std::string as;           ///< the name of the result; may be empty
  Json attrs;               ///< always an object
  std::vector<Step> steps;  ///< the body of a scope

  bool Has(std::string_view key) const { return attrs.contains(key); }
};

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

// Attributes, each with the error that names the step and the attribute. A dtype is its long name.
Result<DType> DTypeAttr(const Step& step, const std::string& key);
Result<Shape> ShapeAttr(const Step& step, const std::string& key);
Result<int64_t> IntAttr(const Step& step, const std::string& key, std::optional<int64_t> otherwise = {});
Result<double> FloatAttr(const Step& step, const std::string& key, std::optional<double> otherwise = {});
Result<bool> BoolAttr(const Step& step, const std::string& key, std::optional<bool> otherwise = {});

/// A JSON number, or one of the words "inf" "-inf" "nan", as a double; nothing for anything else.
std::optional<double> JsonToDouble(const Json& value);

/// An observed name split at its last dot: "w.grad" -> {"w", "grad"}, "w" -> {"w", ""}.
struct ObservedName {
  std::string value;
  std::string property;
};
ObservedName SplitObserved(std::string_view name);

}  // namespace ulpscope::sdk
