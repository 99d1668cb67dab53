// Reductions of a case: each function gives the case without something, or nothing if it has no such thing.
//
// They are changes of text: the caller tests whether the resulting case can be run, and still shows the same effect.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/model/case.h"

namespace ulpscope {

/// Values of a program as one backend computed them.
using KnownValues = std::map<std::string, TensorData>;

/// How many steps there are, scopes not counted.
size_t CountSteps(const std::vector<Step>& steps);
/// The steps in program order, scopes not among them.
std::vector<const Step*> FlatSteps(const std::vector<Step>& steps);
/// Names that the program makes, in program order.
std::vector<std::string> NamesMadeBy(const Case& c);
/// Inside and outside of steps: values and tensors that the case names.
std::set<std::string> NamesReadBy(const Case& c);

/// The case with only the steps `kept` (numbers in program order), and only the tensors that they read. The
/// result of a step that is left out becomes a tensor with the elements that `values` has. Nothing if a value
/// is not among them.
std::optional<Case> WithSteps(const Case& c, const std::set<size_t>& kept, const KnownValues& values);
/// Numbers of the steps that the values `names` are computed from, directly or not, and of effects on them.
std::set<size_t> StepsFor(const Case& c, const std::set<std::string>& names);

/// Removes one scope: its steps take its place. Scopes are counted outside in, in program order.
std::optional<Case> WithoutScope(const Case& c, size_t scope);
/// One optional attribute less: number `index` of those that the program's steps have.
std::optional<Case> WithoutAttribute(const Case& c, size_t index);
/// backward() starts at `value`, with a gradient of ones.
std::optional<Case> WithBackwardAt(const Case& c, const std::string& value);

/// A dimension of a tensor of the case.
struct TensorAxis {
  size_t tensor = 0, axis = 0;
  auto operator<=>(const TensorAxis&) const = default;
};
enum class InAttributes { kLeave, kSame, kMultiples };
/// Divides the axes `axes`, and with kSame numbers in attributes that equal the first of them (kMultiples: that it
/// divides), by `divisor`, rounded up. `elements`: the current tensors, so that the first part of each stays; if null,
/// fills stay unchanged.
std::optional<Case> WithSmaller(const Case& c, const std::vector<TensorAxis>& axes, int64_t divisor,
                                InAttributes attributes, const KnownValues* elements);

/// `tensor` with these elements, or with a fill that is a word.
Case WithElements(const Case& c, size_t tensor, const TensorData& elements);
Case WithFill(const Case& c, size_t tensor, Attr fill);

/// Each element as the shortest text that reads back to its bits.
Attr FillOfElements(const TensorData& elements);

}  // namespace ulpscope
