// Deed: what a side does in one facet of its arithmetic, "rounds product through bfloat16 before the float32 buffer".
//
// Two sides part in a facet where the words that the evidence leaves to the one and to the other have none in common. What is
// said then are two deeds, of which one may be nothing: "rounds each product to bfloat16" against "does not".
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/model/case.h"

namespace ulpscope {

using Words = std::vector<std::string>;

/// In both numbers of its verb; empty for the absence of a rounding.
struct Deed {
  std::string singular, plural;

  bool Nothing() const { return singular.empty(); }
  bool operator==(const Deed&) const = default;
};

/// What each of two does that the other does not.
struct Parting {
  Deed a, b;
};

Deed Say(std::string_view singular, std::string_view plural, const std::string& rest);

/// Neither is empty, and they have no word in common.
bool Disjoint(const Words& a, const Words& b);
/// True if the words say that nothing was rounded: `none` itself, float32 beside it (a wide step that no
/// store shows).
bool IsNothing(const Words& words, std::string_view none);
/// "bfloat16", "bfloat16 or float16", "bfloat16, or not at all"; long sets by what they have in common.
std::string Formats(const Words& words, std::string_view none);
/// The set of accumulators by its class.
std::string Accumulators(const Words& words);
/// "0.125" of "scalar.mul@half", "half" being computed with one number; else "operand x", or "the number in the mul that gives half".
std::string NumberPhrase(const Case& test_case, const std::string& operand, const std::string& value);
/// `text` as it stands in a format string.
std::string Braced(std::string_view text);

/// Compares one facet of both sides; `form` has {} for the formats, `none` is the word for no rounding ("" where every word is a deed).
std::optional<Parting> Compare(const std::map<std::string, Words>& a, const std::map<std::string, Words>& b,
                               const std::string& key, std::string_view none, std::string_view singular,
                               std::string_view plural, std::string_view form,
                               std::string (*spell)(const Words&, std::string_view) = Formats);

}  // namespace ulpscope
