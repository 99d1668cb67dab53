// Spelling of precision models.
#include "harness/model/classification.h"

#include <algorithm>
#include <array>

#include "harness/base/find.h"

namespace ulpscope {
namespace {

using Roundings = std::map<std::string, RoundSpec>;
using WordOf = std::string (*)(const RoundSpec&);

std::string Spell(const Roundings& entries, WordOf word, std::string_view nothing) {
  if (entries.empty()) return std::string(nothing);
  std::string text;
  for (const auto& [name, spec] : entries) {
    if (!text.empty()) text += ",";
    text += name + ":" + word(spec);
  }
  return text;
}

std::strong_ordering Compare(const RoundSpec& a, const RoundSpec& b, WordOf word) {
  return a == b ? std::strong_ordering::equal : word(a) <=> word(b);
}

std::strong_ordering Compare(const Roundings& a, const Roundings& b, WordOf word) {
  return std::lexicographical_compare_three_way(
      a.begin(), a.end(), b.begin(), b.end(), [&](const auto& left, const auto& right) {
        const std::strong_ordering names = left.first <=> right.first;
        return names != 0 ? names : Compare(left.second, right.second, word);
      });
}

}  // namespace

std::string PrecisionModel::Name() const {
  std::string name = "in=" + Spell(in, InWord, "as_is") + ";prod=" + ProdWord(prod) + ";acc=" + AccWord(acc) +
                     ";mid=" + MidWord(mid) + ";out=" + OutWord(out);
  if (!cuts.empty()) name += ";cuts=" + Spell(cuts, MidWord, "none");
  return name;
}

std::strong_ordering operator<=>(const PrecisionModel& a, const PrecisionModel& b) {
  if (const auto in = Compare(a.in, b.in, InWord); in != 0) return in;
  if (const auto prod = Compare(a.prod, b.prod, ProdWord); prod != 0) return prod;
  if (const auto acc = a.acc <=> b.acc; acc != 0) return acc;
  if (const auto mid = Compare(a.mid, b.mid, MidWord); mid != 0) return mid;
  if (const auto out = Compare(a.out, b.out, OutWord); out != 0) return out;
  return Compare(a.cuts, b.cuts, MidWord);
}

std::vector<std::string> WordsOf(const std::vector<RoundSpec>& roundings, WordOf word) {
  return Mapped<std::string>(roundings, word);
}

std::vector<std::string> WordsOf(const std::vector<AccSpec>& accumulators) {
  return Mapped<std::string>(accumulators, AccWord);
}

std::map<std::string, std::vector<std::string>> WordsOf(const RoundingSets& sets, WordOf word) {
  std::map<std::string, std::vector<std::string>> words;
  for (const auto& [name, roundings] : sets) words[name] = WordsOf(roundings, word);
  return words;
}

std::map<std::string, std::vector<std::string>> WordsOf(const SurvivingFacets& facets) {
  return {{"prod", WordsOf(facets.prod, ProdWord)},
          {"acc", WordsOf(facets.acc)},
          {"mid", WordsOf(facets.mid, MidWord)},
          {"out", WordsOf(facets.out, OutWord)}};
}

std::map<std::string, std::vector<std::string>> WordsOf(const AsExact& as_exact) {
  std::map<std::string, std::vector<std::string>> words;
  const auto add = [&](const char* facet, std::vector<std::string> own, bool any) {
    if (any) own = {"any"};
    if (!own.empty()) words[facet] = std::move(own);
  };
  add("acc", WordsOf(as_exact.acc), as_exact.any_acc);
  add("acc_once", WordsOf(as_exact.acc_once), false);
  add("prod", WordsOf(as_exact.prod, ProdWord), as_exact.any_prod);
  return words;
}

std::string_view Name(ExcludedBy by) {
  static constexpr std::array<std::string_view, 4> kNames{"bounds", "store", "orders", "other"};
  return kNames[static_cast<size_t>(by)];
}

std::string_view Name(FormatOfWhat what) {
  static constexpr std::array<std::string_view, 3> kNames{"nothing", "sums", "steps"};
  return kNames[static_cast<size_t>(what)];
}

}  // namespace ulpscope
