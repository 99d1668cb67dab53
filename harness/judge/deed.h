// Deed: the behaviour of one side in one facet of its arithmetic: "rounds product through bfloat16 before the float32
// buffer". Two sides differ in a facet if the words that the evidence leaves for each have none in common. The finding
// then states two behaviours, one of which may be nothing: "rounds each product to bfloat16" against "does not".
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/find.h"
#include "harness/model/case.h"
#include "harness/words/facets.h"

namespace ulpscope {

using Words = std::vector<std::string>;

/// In singular and plural; empty for the absence of a rounding.
struct Deed {
  std::string singular, plural;

  bool Nothing() const { return singular.empty(); }
  bool operator==(const Deed&) const = default;
};

/// For each of two sides, the behaviour that the other does not have.
struct Parting {
  Deed a, b;
};

Deed Say(std::string_view singular, std::string_view plural, const std::string& rest);

/// Neither is empty, and they have nothing in common.
template <class Each>
bool Disjoint(const std::vector<Each>& a, const std::vector<Each>& b) {
  return !a.empty() && !b.empty() &&
         std::ranges::none_of(a, [&](const Each& each) { return Contains(b, each); });
}

/// Which sets of roundings count as no difference.
enum class NoDeed {
  kUnrounded,  ///< one of them is none
  kWide,       ///< one of them is none, and the others are to float32: a wide step that no output shows
  kNever
};
bool IsNothing(const std::vector<RoundSpec>& roundings, NoDeed nothing);

/// How roundings are spelled, and which of them count as no behaviour.
struct Spelling {
  std::string (*word)(const RoundSpec&);
  NoDeed nothing;
};
inline constexpr Spelling kOfOperands{InWord, NoDeed::kUnrounded};
inline constexpr Spelling kOfProducts{ProdWord, NoDeed::kWide};
inline constexpr Spelling kOfIntermediates{MidWord, NoDeed::kWide};
inline constexpr Spelling kOfStores{OutWord, NoDeed::kNever};

/// "bfloat16", "bfloat16 or float16", "bfloat16, or not at all"; long sets by their common properties.
std::string Formats(const std::vector<RoundSpec>& roundings, const Spelling& spelling);
/// The set of accumulators by its class.
std::string Accumulators(const std::vector<AccSpec>& accs);
/// "0.125" for "scalar.mul@half", if "half" has one number; else "operand x", "the number in the mul that gives half".
std::string NumberPhrase(const Case& test_case, const std::string& operand, const std::string& value);
/// `text`, escaped for use in a format string.
std::string Braced(std::string_view text);

/// A verb in singular and plural and the rest of the phrase, with {} for the formats.
struct Phrase {
  std::string_view singular, plural;
  std::string form;

  Deed Of(const std::string& formats) const;
};

/// Compares one facet of both sides; nothing if either is unknown.
std::optional<Parting> Compare(const std::vector<RoundSpec>& a, const std::vector<RoundSpec>& b,
                               const Spelling& spelling, const Phrase& phrase);
std::optional<Parting> Compare(const std::vector<AccSpec>& a, const std::vector<AccSpec>& b,
                               const Phrase& phrase);

}  // namespace ulpscope
