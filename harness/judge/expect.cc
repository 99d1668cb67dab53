// Expectations against results.
#include "harness/judge/expect.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "harness/base/find.h"
#include "harness/base/pattern.h"
#include "harness/base/text.h"
#include "harness/judge/contract.h"
#include "harness/words/backend_name.h"
#include "harness/words/environment_name.h"

namespace ulpscope {
namespace {

std::string Changed(std::string_view expected, std::string_view observed) {
  return fmt::format("changed: expected {}, observed {}", expected, observed);
}

std::string Quote(std::string_view text) {
  constexpr size_t kShown = 160;  // chosen: a line and a half
  const std::string_view line = FirstLineOf(text);
  return fmt::format("\"{}{}\"", line.substr(0, kShown), line.size() > kShown ? "..." : "");
}

std::string DescribeRaised(const RaisedMatch& raised) {
  std::string text = "to raise";
  if (!raised.error_class.empty()) text += " " + raised.error_class;
  if (!raised.match.empty()) text += fmt::format(" matching /{}/", raised.match);
  return text;
}

std::string DescribeOutcome(const Outcome& outcome) {
  std::string text(Name(outcome.kind));
  if (!outcome.error_class.empty()) text += " " + outcome.error_class;
  if (!outcome.text.empty()) text += " " + Quote(outcome.text);
  return text;
}

/// The words that survive for `facet`, a ValueDemand key; for plain `in` those of every operand.
std::vector<std::string> ObservedWords(const Classification& classification, const std::string& facet) {
  const SurvivingFacets& facets = classification.facets;
  if (facet.starts_with("in.")) return WordsOf(LookupOr(classification.facets_in, facet.substr(3)), InWord);
  if (facet.starts_with("cuts.")) return WordsOf(LookupOr(classification.cuts, facet.substr(5)), MidWord);
  if (facet == "prod") return WordsOf(facets.prod, ProdWord);
  if (facet == "acc") return WordsOf(facets.acc);
  if (facet == "mid") return WordsOf(facets.mid, MidWord);
  if (facet == "out") return WordsOf(facets.out, OutWord);
  std::vector<std::string> words;
  for (const auto& [operand, survivors] : classification.facets_in) {
    for (const std::string& word : WordsOf(survivors, InWord)) {
      if (!Contains(words, word)) words.push_back(word);
    }
  }
  return words;
}

std::string ExplainValue(const std::string& name, const ValueDemand& demand, const CaseResult& result) {
  const auto value = result.values.find(name);
  if (value == result.values.end()) return Changed(name + " to exist", "no such value");
  if (demand.dtype && *demand.dtype != Name(value->second.dtype)) {
    return Changed(fmt::format("{} {}", name, *demand.dtype), Name(value->second.dtype));
  }
  const Classification& classification = value->second.classification;
  for (const auto& [facet, demanded] : demand.facets) {
    const auto& allowed = demanded;  // Clang up to 15 lets no lambda capture a structured binding
    const auto words = ObservedWords(classification, facet);
    const auto& accumulators = classification.facets.acc;
    const bool inside =
        facet == "acc"
            ? std::ranges::all_of(accumulators,
                                  [&](const AccSpec& acc) { return ContainsAccumulator(allowed, acc); })
            : std::ranges::all_of(words, [&](const std::string& word) { return Contains(allowed, word); });
    if (inside && !words.empty()) continue;
    const std::string observed = words.empty() ? std::string(Name(classification.kind)) : Join(words, " or ");
    return Changed(fmt::format("{} {} {}", name, facet, Join(TextsOf(allowed), " or ")), observed);
  }
  return "";
}

/// A stage that the trace does not have is not counted: its zero would prove nothing.
std::string ExplainCasts(const CastCount& wanted, const CaseResult& result) {
  const auto any = [](const std::string& dtype) { return dtype.empty() ? std::string("any dtype") : dtype; };
  const std::string what =
      fmt::format("casts from {} to {} in {}", any(wanted.from), any(wanted.to), wanted.stage);
  const std::string expected = fmt::format("{} {}", wanted.count, what);
  if (!Contains(result.stages, wanted.stage)) return Changed(expected, "no such stage in its trace");
  const auto counted = std::ranges::count_if(result.casts, [&](const Cast& cast) {
    return cast.stage == wanted.stage && (wanted.from.empty() || cast.from == wanted.from) &&
           (wanted.to.empty() || cast.to == wanted.to);
  });
  return counted == wanted.count ? "" : Changed(expected, std::to_string(counted));
}

}  // namespace

Result<const Expectation*> FindExpectation(const Case& test_case, std::string_view backend,
                                           const Versions& versions) {
  // An environment is a choice of versions, and an entry states the versions that it covers. An entry that names the
  // backend alone applies in every environment, unless another entry names that environment.
  for (const std::string& wanted : {CanonicalBackend(backend), SplitEnvironment(backend).backend}) {
    for (const auto& [name, expectations] : test_case.expect) {
      if (CanonicalBackend(name) != wanted) continue;
      for (const Expectation& expectation : expectations) {
        const auto matches = VersionsMatch(expectation.versions, versions);
        if (!matches) return Fail(matches.error());
        if (*matches) return &expectation;
      }
    }
  }
  return nullptr;
}

Unmet ExplainUnmet(const Expectation& expectation, const CaseResult& result) {
  const Outcome& outcome = result.outcome;
  if (expectation.raised) {
    if (MatchesRaised(*expectation.raised, outcome)) return {};
    return {.value = "", .sentence = Changed(DescribeRaised(*expectation.raised), DescribeOutcome(outcome))};
  }
  if (expectation.unsupported) {
    const bool met =
        outcome.kind == OutcomeKind::kUnsupported &&
        (expectation.unsupported->empty() || SearchPattern(*expectation.unsupported, outcome.text));
    if (met) return {};
    return {.value = "",
            .sentence =
                Changed(fmt::format("unsupported /{}/", *expectation.unsupported), DescribeOutcome(outcome))};
  }
  if (expectation.values.empty() && expectation.observations.empty() && expectation.casts.empty()) return {};
  if (outcome.kind != OutcomeKind::kCompleted)
    return {.value = "", .sentence = Changed("completed", DescribeOutcome(outcome))};
  for (const auto& [name, demand] : expectation.values) {
    if (auto unmet = ExplainValue(name, demand, result); !unmet.empty())
      return {.value = name, .sentence = std::move(unmet)};
  }
  for (const auto& [name, wanted] : expectation.observations) {
    const auto observed = result.observations.find(name);
    const std::string text = observed == result.observations.end() ? "nothing" : observed->second;
    if (text != wanted) return {.value = name, .sentence = Changed(name + " " + wanted, text)};
  }
  for (const CastCount& wanted : expectation.casts) {
    if (auto unmet = ExplainCasts(wanted, result); !unmet.empty())
      return {.value = "", .sentence = std::move(unmet)};
  }
  return {};
}

}  // namespace ulpscope
