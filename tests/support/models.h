// Precision models by hand, for the tests of the judge and of the reports.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "harness/base/find.h"
#include "harness/model/classification.h"
#include "harness/words/facets.h"

namespace ulpscope::testing {

// Meanings of facet words; an unknown one throws.
inline RoundSpec In(const std::string& word) { return ParseIn(word).value(); }
inline RoundSpec Prod(const std::string& word) { return ParseProd(word).value(); }
inline AccSpec Acc(const std::string& word) { return ParseAcc(word).value(); }
inline RoundSpec Mid(const std::string& word) { return ParseMid(word).value(); }
inline RoundSpec Out(const std::string& word) { return ParseOut(word).value(); }

/// Words by name, as PrecisionModel::in and PrecisionModel::cuts have them.
using Named = std::map<std::string, std::string>;
inline std::map<std::string, RoundSpec> Ins(const Named& words) {
  std::map<std::string, RoundSpec> in;
  for (const auto& [operand, word] : words) in[operand] = In(word);
  return in;
}
inline std::map<std::string, RoundSpec> Cuts(const Named& words) {
  std::map<std::string, RoundSpec> cuts;
  for (const auto& [cut, word] : words) cuts[cut] = Mid(word);
  return cuts;
}

inline PrecisionModel Model(const std::string& acc, const std::string& mid,
                            const std::string& out = "float32_rne") {
  return {.acc = Acc(acc), .mid = Mid(mid), .out = Out(out)};
}

using Texts = std::vector<std::string>;
inline std::vector<AccSpec> Accs(const Texts& words) { return Mapped(words, Acc); }
inline std::vector<RoundSpec> Mids(const Texts& words) { return Mapped(words, Mid); }
/// Of words by name, as Classification::facets_in and Classification::cuts have them.
inline RoundingSets InSets(const std::map<std::string, Texts>& words) {
  RoundingSets sets;
  for (const auto& [operand, each] : words) sets[operand] = Mapped(each, In);
  return sets;
}
inline RoundingSets CutSets(const std::map<std::string, Texts>& words) {
  RoundingSets sets;
  for (const auto& [cut, each] : words) sets[cut] = Mids(each);
  return sets;
}

template <class Spec>
void AddOnce(std::vector<Spec>* specs, const Spec& spec) {
  if (!Contains(*specs, spec)) specs->push_back(spec);
}

}  // namespace ulpscope::testing
