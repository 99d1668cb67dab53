// The program: steps over named values, one type from the case file to the adapter.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "harness/base/result.h"
#include "harness/num/dtype.h"

namespace ulpscope {

/// An attribute of a step: a closed sum of what YAML and JSON can express. A dtype is a string ("bfloat16").
struct Attr {
  using List = std::vector<Attr>;
  using Map = std::map<std::string, Attr>;
  std::variant<std::monostate, bool, int64_t, double, std::string, List, Map> value;

  template <typename T>
  const T* If() const {
    return std::get_if<T>(&value);
  }
  bool IsNull() const { return If<std::monostate>() != nullptr; }
  /// An integer, a float, or one of the words "inf" "-inf" "nan", which JSON has no numbers for.
  std::optional<double> Number() const;

  bool operator==(const Attr&) const = default;
};

/// One operand of a step: the name of a tensor or an earlier value, or a Python scalar (not a 0-dim tensor).
struct Operand {
  std::string name = {};            ///< empty for a scalar
  std::optional<Attr> scalar = {};  ///< bool, int64 or double

  bool IsScalar() const { return name.empty(); }
  bool operator==(const Operand&) const = default;
};

/// The origin of a step in the program that a case was captured from; empty if it is not known.
struct StepOrigin {
  std::string module = {};  ///< "model.layers.0.self_attn": the path of an nn.Module
  std::string file =
      {};  ///< "modeling_llama.py", or its path from the folder in which the program was captured
  int64_t line = 0;

  bool IsEmpty() const { return module.empty() && file.empty(); }
  /// "model.layers.0.self_attn, modeling_llama.py:150", the file without its folders; "" where nothing is known.
  std::string Text() const;
  /// Each number of the module path is "*": steps of repeated layers have one.
  StepOrigin OfAnyLayer() const;
  auto operator<=>(const StepOrigin&) const = default;
};

/// One step, or a scope (autocast, no_grad, enable_grad) that holds steps.
struct Step {
  std::string op;  ///< vocabulary word ("matmul") or "aten::NAME"
  std::vector<Operand> of = {};
  std::string out = {};  ///< the buffer that out= names; empty without
  std::string as = {};   ///< the name of the result; empty when nothing is named
  std::map<std::string, Attr> attrs = {};
  std::vector<Step> steps = {};  ///< body of a scope
  SourcePos pos = {};
  std::string reference = {};  ///< "none": no exact reference is sought for what an aten:: op gives
  StepOrigin at = {};

  /// The attribute; null if it is absent, and if its value is null.
  const Attr* Find(const std::string& key) const;
};

/// The origin of a step, and how many modules that differ in numbers of layers alone run the same line.
struct SourceStep {
  StepOrigin at;
  int64_t layers = 1;
};
/// The steps whose origin is known, by value. If several steps give one value, the first counts.
std::map<std::string, SourceStep> SourceSteps(const std::vector<Step>& steps);

/// Whether two steps name results of one call: they differ in `as` and in which result that is, and in nothing else.
bool AreOfOneCall(const Step& a, const Step& b);

// Attributes, each with the error that names the step and the attribute. A dtype is its long name.
Result<DType> ReadDType(const Step& step, const std::string& key);
/// A list of integers, or a single one.
Result<std::vector<int64_t>> ReadInts(const Step& step, const std::string& key);
Result<int64_t> ReadInt(const Step& step, const std::string& key, std::optional<int64_t> otherwise = {});
Result<double> ReadNumber(const Step& step, const std::string& key, std::optional<double> otherwise = {});
Result<bool> ReadBool(const Step& step, const std::string& key, std::optional<bool> otherwise = {});
Result<std::string> ReadText(const Step& step, const std::string& key,
                             std::optional<std::string> otherwise = {});

/// The argument of set_data (`to`): its own data in another dtype, or the data of the value of this name.
using SetDataTo = std::variant<DType, std::string>;
Result<SetDataTo> ReadSetDataTo(const Step& step);

/// Names that steps read before they make them (operands, buffers, tensors that attributes name) and names
/// that they make. The result of `empty` is not made yet: a value comes into it later.
struct StepNames {
  std::set<std::string> read, made;
};
StepNames NamesOf(const std::vector<Step>& steps);

}  // namespace ulpscope
