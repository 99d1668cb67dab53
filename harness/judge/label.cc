// Facet projections and the lattice's join, in words.
#include "harness/judge/label.h"

#include <algorithm>
#include <charconv>

#include "harness/base/text.h"

namespace ulpscope {
namespace {

void Insert(std::vector<std::string>* words, const std::string& word) {
  if (std::find(words->begin(), words->end(), word) == words->end()) words->push_back(word);
}

bool Wide(const std::string& acc) {
  return acc.starts_with("float32") || acc.starts_with("float64") || acc == "exact" || acc == "compensated" ||
         acc.starts_with("blockfma");
}

/// Block units that differ in n alone: what n they leave; empty when `words` holds anything else.
std::string JoinBlocks(const std::vector<std::string>& words) {
  int least = 0;
  std::string rest;
  for (const auto& word : words) {
    const size_t comma = word.find(',');
    if (!word.starts_with("blockfma(") || comma == std::string::npos) return "";
    if (rest.empty()) rest = word.substr(comma);
    if (word.substr(comma) != rest) return "";
    int n = 0;
    std::from_chars(word.data() + std::string_view("blockfma(").size(), word.data() + comma, n);
    least = least == 0 ? n : std::min(least, n);
  }
  return "blockfma(n>=" + std::to_string(least) + rest;
}

std::string Or(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return text;
}

}  // namespace

void ProjectFacets(const ValueShape& shape, Classification* classification) {
  auto& facets = classification->facets;
  for (const char* facet : {"prod", "acc", "mid", "out"}) facets[facet] = {};
  for (const auto& operand : shape.operands) classification->facets_in[operand] = {};
  for (const auto& cut : shape.cut_points) classification->cuts[cut] = {};
  for (const PrecisionModel& model : classification->models) {
    if (shape.has_products) Insert(&facets["prod"], model.prod);
    if (shape.reduction_length > 0) Insert(&facets["acc"], model.acc);
    Insert(&facets["mid"], model.mid);
    Insert(&facets["out"], model.out);
    for (auto& [operand, words] : classification->facets_in) {
      const auto in = model.in.find(operand);
      Insert(&words, in == model.in.end() ? "as_is" : in->second);
    }
    for (auto& [cut, words] : classification->cuts) {
      const auto format = model.cuts.find(cut);
      Insert(&words, format == model.cuts.end() ? "none" : format->second);
    }
  }
}

std::string JoinAccumulators(const std::vector<std::string>& words) {
  if (words.empty()) return "";
  if (words.size() == 1) return words[0];
  if (const std::string units = JoinBlocks(words); !units.empty()) return units;
  if (std::all_of(words.begin(), words.end(), Wide)) return "float32 or wider";
  const auto all_start = [&](std::string_view prefix) {
    return std::all_of(words.begin(), words.end(),
                       [&](const std::string& word) { return word.starts_with(prefix); });
  };
  if (all_start("bfloat16")) return "bfloat16";
  if (all_start("float16")) return "float16";
  if (std::none_of(words.begin(), words.end(), Wide)) return "16 bits";
  return "a format that these inputs do not tell";
}

std::string LabelOf(const ValueShape& shape, DType observed, const Classification& classification) {
  switch (classification.kind) {
    case ClassificationKind::kUnmodelled:
      return "no model of the bank gives these bits";
    case ClassificationKind::kExactOnly:
      return "exact: every model gives these bits";
    case ClassificationKind::kNotFloating:
      return "not a floating-point value";
    case ClassificationKind::kNoReference:
      return "no reference";
    default:
      break;
  }
  std::vector<std::string> parts;
  for (const auto& [operand, words] : classification.facets_in) {
    if (words == std::vector<std::string>{"as_is+daz"})
      parts.push_back("subnormals of operand " + operand + " taken as zero");
    else if (words != std::vector<std::string>{"as_is"})
      parts.push_back("operand " + operand + (words.size() == 1 ? " rounded to " : " one of ") + Or(words));
  }
  const auto& prod = classification.facets.at("prod");
  if (!prod.empty() && prod != std::vector<std::string>{"exact"}) parts.push_back("products " + Or(prod));
  const auto& acc = classification.facets.at("acc");
  if (!acc.empty()) parts.push_back("accumulated in " + JoinAccumulators(acc));
  const auto& mid = classification.facets.at("mid");
  if (mid != std::vector<std::string>{"none"})
    parts.push_back((mid.size() == 1 ? "rounded through " : "rounded through one of ") + Or(mid));
  const auto& out = classification.facets.at("out");
  const bool nearest = std::any_of(
      out.begin(), out.end(), [](const std::string& word) { return word.find("_rne") != std::string::npos; });
  const std::string store = "stored " + std::string(Name(observed)) + (nearest ? "" : " (" + Or(out) + ")");
  if (parts.empty() && shape.operands.empty()) return store + ", rounded once";
  parts.push_back(store);
  return (classification.rests_on_likelihood ? "likely " : "") + Join(parts, ", ");
}

}  // namespace ulpscope
