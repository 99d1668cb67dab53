// Choice: one candidate model in canonical form, as a precision model and as an arithmetic's binding.
//
// A choice names, for one value, the rounding of each wide operand, the product, the accumulator, MID and OUT of the
// last operation, and a format (or none) for each cut point, that is each intermediate which a backend may or may not
// round. Roundings that are the identity for their choice are dropped, so that one behaviour has one name: bfloat16
// products in float32 are exact, a float32 accumulator stored in float32 is not rounded again.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "oracles/binding.h"
#include "oracles/cuts.h"
#include "oracles/path.h"

namespace ulpscope {

/// One candidate model, before canonical form.
struct Choice {
  std::map<std::string, RoundSpec> in = {};  ///< of operands
  RoundSpec prod = {};
  AccSpec acc = {};
  RoundSpec mid = {}, out = {};
  CutChoice cuts = {};
  Rounding mode = Rounding::kNearestEven;  ///< of roundings that the program does not request, OUT apart

  bool operator==(const Choice&) const = default;
};

/// Removes identities from `choice`; the result is equal for two choices that by construction give the same
/// on every input.
Choice Canonical(const Plan& plan, const ValuePath& path, Choice choice);
PrecisionModel ModelOf(const Plan& plan, const ValuePath& path, const Choice& choice);
Binding BindingOf(const Plan& plan, const ValuePath& path, const Choice& choice);

/// Key of what distinguishes two choices of one model: the rounding mode and the formats of intermediate
/// roundings.
std::string KeyOf(const Choice& choice);
/// True for a format of more than 11 significant bits; `in=WORD` for every operand applies to these formats.
bool IsWide(const FloatFormat* format);
/// An operand that is taken as it is loses the subnormals of its own format.
RoundSpec InOf(RoundSpec in, const FloatFormat* held);

}  // namespace ulpscope
