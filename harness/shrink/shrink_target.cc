// The difference of two backends, in words that a smaller case can be compared with.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/casefile/program_edits.h"
#include "harness/shrink/shrink.h"

namespace ulpscope {
namespace {

using EdgeWords = std::map<std::string, std::set<std::string>>;

/// The result for a value: that of its step judged by itself if there is one, else that of the whole.
const ValueResult* Said(const CaseResult& result, const std::string& value) {
  if (result.opened) {
    for (const auto& step : result.opened->steps) {
      if (step.value == value) return &step.result;
    }
  }
  return Lookup(result.values, value);
}

/// Reads of operands and rounded inputs in one vocabulary: a step that stands alone has the latter.
std::string ReadAs(const std::string& word) {
  if (word == "stored") return "as_is";
  const bool format = word != "unrounded" && word != "flushed" && !word.ends_with("_rne");
  return format ? word + "_rne" : word;
}

/// Edge -> words that survive, the most informative ones first.
std::vector<std::pair<std::string, std::set<std::string>>> EdgesOf(const std::string& value,
                                                                   const Classification& one) {
  std::vector<std::pair<std::string, std::set<std::string>>> edges;
  const auto add = [&](const std::string& edge, const std::vector<std::string>& words) {
    edges.emplace_back(edge, std::set<std::string>(words.begin(), words.end()));
  };
  for (const auto& [operand, words] : one.reads) {
    std::vector<std::string> same;
    for (const auto& word : words) same.push_back(ReadAs(word));
    add("in." + operand, same);
  }
  for (const auto& [cut, roundings] : one.cuts) {
    if (cut.starts_with(value + ".")) add("cuts." + cut, WordsOf(roundings, MidWord));
  }
  add("mid", WordsOf(one.facets.mid, MidWord));
  for (const auto& [cut, roundings] : one.cuts) {
    if (!cut.starts_with(value + ".")) add("cuts." + cut, WordsOf(roundings, MidWord));
  }
  add("acc", WordsOf(one.facets.acc));
  for (const auto& [operand, reads] : one.facets_in) {
    if (!one.reads.contains(operand)) add("in." + operand, WordsOf(reads, InWord));
  }
  add("prod", WordsOf(one.facets.prod, ProdWord));
  add("out", WordsOf(one.facets.out, OutWord));
  return edges;
}

bool Share(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::ranges::any_of(a, [&](const std::string& word) { return b.contains(word); });
}

void FindEdge(const std::string& value, const Classification& a, const Classification& b,
              const std::string& wanted, ShrinkTarget* target) {
  using enum ClassificationKind;
  if (a.kind == kUnmodelled || b.kind == kUnmodelled) {
    target->edge = "unmodelled";
    target->first = {std::string(Name(a.kind))};
    target->second = {std::string(Name(b.kind))};
    for (auto* side : {&target->first, &target->second}) {
      if (*side != std::set<std::string>{"unmodelled"}) *side = {"modelled"};
    }
    return;
  }
  const auto left = EdgesOf(value, a), right = EdgesOf(value, b);
  EdgeWords first, second;
  for (const auto& [edge, words] : left) first.try_emplace(edge, words);
  for (const auto& [edge, words] : right) second.try_emplace(edge, words);
  std::vector<std::string> order;
  for (const auto& [edge, words] : left) order.push_back(edge);
  for (const auto& [edge, words] : right) {
    if (!Contains(order, edge)) order.push_back(edge);
  }
  for (const std::string& edge : order) {
    // An intermediate that one side does not know was not rounded there, an operand was read as it is.
    const std::string otherwise = edge.starts_with("cuts.") ? "none" : edge.starts_with("in.") ? "as_is" : "";
    if (!otherwise.empty()) {
      first.try_emplace(edge, std::set<std::string>{otherwise});
      second.try_emplace(edge, std::set<std::string>{otherwise});
    }
    if (!first.contains(edge) || !second.contains(edge) || Share(first[edge], second[edge])) continue;
    if (!wanted.empty() && edge != wanted) continue;
    target->edge = edge;
    target->first = first[edge];
    target->second = second[edge];
    return;
  }
}

std::string OpOf(const Case& c, const std::string& value) {
  for (const Step* step : FlatSteps(c.program)) {
    if (step->as == value) return step->op;
  }
  return "";
}

std::string SaidDtype(const CaseResult& result, const std::string& value) {
  if (const ValueResult* said = Said(result, value)) return std::string(Name(said->dtype));
  return LookupOr(result.observations, value, "none");
}

ShrinkTarget TargetOf(const Case& c, const ShrinkTrial& trial, const Divergence& divergence,
                      const std::string& edge) {
  ShrinkTarget target{.kind = divergence.kind,
                      .value = divergence.value,
                      .op = OpOf(c, divergence.value),
                      .basis = divergence.basis,
                      .sentence = divergence.sentence};
  const CaseResult& first = trial.report.results.at(0);
  const CaseResult& second = trial.report.results.at(1);
  if (divergence.kind == DivergenceKind::kOutcome) {
    target.first = {Describe(first.outcome)};
    target.second = {Describe(second.outcome)};
  } else if (divergence.kind == DivergenceKind::kDtype) {
    target.first = {SaidDtype(first, divergence.value)};
    target.second = {SaidDtype(second, divergence.value)};
  } else if (divergence.kind == DivergenceKind::kPrecision) {
    const ValueResult* a = Said(first, divergence.value);
    const ValueResult* b = Said(second, divergence.value);
    if (a != nullptr && b != nullptr)
      FindEdge(divergence.value, a->classification, b->classification, edge, &target);
  }
  return target;
}

}  // namespace

std::optional<ShrinkTarget> FindTarget(const Case& c, const ShrinkTrial& trial,
                                       std::optional<DivergenceKind> kind, const std::string& value) {
  if (trial.report.results.size() != 2) return std::nullopt;
  for (const Divergence& divergence : trial.report.divergences) {
    if (!RowOf(divergence.kind).has_two_groups || (kind && divergence.kind != *kind)) continue;
    const bool also = Contains(divergence.also, value);
    if (!value.empty() && divergence.value != value && !also) continue;
    Divergence here = divergence;
    if (!value.empty()) here.value = value;
    return TargetOf(c, trial, here, "");
  }
  return std::nullopt;
}

std::optional<ShrinkTarget> FindTargetAgain(const Case& c, const ShrinkTrial& trial,
                                            const ShrinkTarget& target) {
  if (trial.report.results.size() != 2) return std::nullopt;
  for (const Divergence& divergence : trial.report.divergences) {
    if (divergence.kind != target.kind || divergence.value != target.value) continue;
    return TargetOf(c, trial, divergence, target.edge);
  }
  return std::nullopt;
}

bool IsSameTarget(const ShrinkTarget& target, const ShrinkTarget& found) {
  if (found.kind != target.kind || found.value != target.value || found.op != target.op) return false;
  if (target.basis == "proved" && found.basis != "proved") return false;
  if (found.edge != target.edge) return false;
  const bool sides = !target.edge.empty() || RowOf(target.kind).compares_both_sides;
  return !sides || (Share(target.first, found.first) && Share(target.second, found.second));
}

std::string Describe(const ShrinkTarget& target) {
  std::string text(Name(target.kind));
  if (!target.value.empty()) {
    text += " at " + target.value;
    if (!target.op.empty()) text += " (" + target.op + ")";
  }
  if (!target.edge.empty()) text += ", " + target.edge;
  const auto words = [](const std::set<std::string>& side) {
    std::vector<std::string> listed(side.begin(), side.end());
    constexpr size_t kMost = 3;
    const size_t more = listed.size() > kMost ? listed.size() - kMost : 0;
    listed.resize(listed.size() - more);
    return Join(listed, " or ") + (more > 0 ? fmt::format(" or one of {} more", more) : "");
  };
  if (!target.first.empty()) text += ": " + words(target.first) + " | " + words(target.second);
  return text;
}

}  // namespace ulpscope
