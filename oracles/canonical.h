// Choice: one point of the bank, brought into canonical form, and what it is as a model and to an arithmetic.
//
// A choice names, for one value, the rounding of each wide operand, the product, the accumulator, MID and OUT
// of the last operation, and a format (or none) for each cut point, that is each intermediate which a backend
// may or may not round. Roundings that are the identity for their choice are dropped, so that one behaviour
// has one name: bfloat16 products in float32 are exact, a float32 accumulator stored in float32 is not
// rounded again.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "oracles/binding.h"
#include "oracles/path.h"

namespace ulpscope {

/// One point of the bank, before canonical form.
struct Choice {
  std::map<std::string, std::string> in;  ///< operand -> word
  std::string prod = "exact", acc = "exact", mid = "none", out;
  std::map<int, std::vector<std::string>> cuts;  ///< cut point -> formats applied in order; empty = unrounded
  std::string mode = "_rne";  ///< of the stores that the program does not ask for, OUT apart

  bool operator==(const Choice&) const = default;
};

/// Removes identities from `choice`; the result is equal for two choices that no input can tell apart by
/// construction.
Choice Canonical(const Plan& plan, const ValuePath& path, Choice choice);
PrecisionModel ModelOf(const Plan& plan, const ValuePath& path, const Choice& choice);
Binding BindingOf(const Plan& plan, const ValuePath& path, const Choice& choice);

/// The format of a word for the rounding of an intermediate or a product.
const FloatFormat* FormatOfWord(const std::string& word);
/// Of more than 16 bits: what `in=WORD` for every operand means.
bool IsWide(const FloatFormat* format);
/// An operand that is taken as it is loses the subnormals of its own format.
RoundSpec InOf(const std::string& word, const FloatFormat* held);

}  // namespace ulpscope
