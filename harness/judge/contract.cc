// Contracts on the joint set of proved models.
#include "harness/judge/contract.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/base/find.h"
#include "harness/base/pattern.h"
#include "harness/base/text.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

constexpr std::string_view kInPrefix = "in.";
constexpr std::string_view kCutsPrefix = "cuts.";

bool InsideFacet(const PrecisionModel& model, const std::string& facet, const std::vector<std::string>& words,
                 const Classification& classification) {
  // What gives the same bits whatever the operands is what was asked for.
  const auto as_exact = [&](const std::string& word) {
    const auto same = classification.as_exact.find(facet);
    return word == "exact" && same != classification.as_exact.end() &&
           std::ranges::any_of(same->second, [&](const auto& each) { return Contains(words, each); });
  };
  if (facet == "prod") return Contains(words, model.prod) || as_exact(model.prod);
  if (facet == "acc") return ContainsAccumulator(words, model.acc) || as_exact(model.acc);
  if (facet == "mid") return Contains(words, model.mid);
  if (facet == "out") return Contains(words, model.out);
  if (facet.starts_with(kInPrefix)) {
    return Contains(words, LookupOr(model.in, facet.substr(kInPrefix.size()), "as_is"));
  }
  if (facet.starts_with(kCutsPrefix)) {
    return Contains(words, LookupOr(model.cuts, facet.substr(kCutsPrefix.size()), "none"));
  }
  if (facet != "in") return false;
  std::set<std::string> operands;
  for (const auto& [operand, survivors] : classification.facets_in) operands.insert(operand);
  for (const auto& [operand, word] : model.in) operands.insert(operand);
  if (operands.empty()) return Contains(words, "as_is");
  return std::ranges::all_of(operands, [&](const std::string& operand) {
    return Contains(words, LookupOr(model.in, operand, "as_is"));
  });
}

/// A wider sum that is rounded to float32 before a narrower store errs less than a float32 sum before that store does.
bool IsWideThroughFloat32(const PrecisionModel& model) {
  const auto acc = ParseAcc(model.acc);
  const auto out = ParseOut(model.out);
  return model.mid == "float32" && acc && out && (acc->exact() || acc->bits() > Binary32().precision) &&
         out->format->precision < Binary32().precision;
}

/// The quotient of a float32 mean is a float32 number: that is what float32 throughout asks for.
PrecisionModel WithoutItsOwnFormat(PrecisionModel model) {
  const auto acc = ParseAcc(model.acc);
  if (acc && acc->binary() && acc->format->name == model.mid) model.mid = "none";
  return model;
}

/// tf32 has float16's bits: a rounding to it before that store shows among float16's subnormals alone.
PrecisionModel WithoutTf32BeforeFloat16(PrecisionModel model) {
  if (model.mid != "tf32" || !model.out.starts_with("float16_")) return model;
  model.mid = "none";
  model.out = "float16_rne";
  return model;
}

/// Some sum in float32 or wider is what it asks for, or as good to it as any.
bool AllowsWideSum(const ValueDemand& demand) {
  const auto words = demand.facets.find("acc");
  if (words == demand.facets.end() || ContainsAccumulator(words->second, "float32")) return true;
  return std::ranges::any_of(words->second, [](const std::string& word) {
    const auto acc = ParseAcc(word);
    return acc && acc->wide();
  });
}

/// Its sum has one addition, whose rounding is the store's wherever `exact` gives the same bits.
bool IsAddedByTheStore(const PrecisionModel& model, const PrecisionModel& exact,
                       const Classification& classification) {
  const auto once = classification.as_exact.find(std::string(kAccOnce));
  return once != classification.as_exact.end() && Contains(once->second, model.acc) && model.mid == "none" &&
         exact.acc == "exact" && (exact.mid == "none" || exact.mid == "float32") && exact.in == model.in &&
         exact.prod == model.prod && exact.out == model.out && exact.cuts == model.cuts;
}

PrecisionModel AsFloat32(PrecisionModel model) {
  model.acc = "float32";
  model.mid = "none";
  return model;
}

}  // namespace

bool ContainsAccumulator(const std::vector<std::string>& words, const std::string& acc) {
  if (Contains(words, acc)) return true;
  const auto spec = ParseAcc(acc);
  return spec && std::any_of(AccClasses().begin(), AccClasses().end(), [&](const AccClass& each) {
           return each.holds(*spec) && Contains(words, std::string(each.name));
         });
}

bool IsInside(const PrecisionModel& model, const ValueDemand& demand, const Classification& classification) {
  const auto inside = [&](const PrecisionModel& each) {
    return std::ranges::all_of(demand.facets, [&](const auto& facet) {
      return InsideFacet(each, facet.first, facet.second, classification);
    });
  };
  return inside(model) || inside(WithoutItsOwnFormat(model)) ||
         (IsWideThroughFloat32(model) && inside(AsFloat32(model)));
}

ContractVerdict JudgeFacets(const ValueDemand& demand, const Classification& classification) {
  using enum ContractVerdict;
  switch (classification.kind) {
    case ClassificationKind::kNoReference:
    case ClassificationKind::kNotFloating:
    case ClassificationKind::kNotJudged:
      return kUndetermined;
    case ClassificationKind::kWrongShape:
    case ClassificationKind::kWrongValue:
      return kViolates;
    case ClassificationKind::kUnmodelled:
    case ClassificationKind::kIdentified:
    case ClassificationKind::kIndistinguishable:
    case ClassificationKind::kExactOnly:
      break;
  }
  const auto inside = [&](const PrecisionModel& model) { return IsInside(model, demand, classification); };
  const auto &proved = classification.models_proved, &models = classification.models;
  if (proved.empty()) return kUnmodelled;
  // Exclusion is proof: where nothing that the contract allows is left, it is violated, whatever explains the value.
  if (std::ranges::none_of(proved, inside)) return kViolates;
  // It proves nothing about what is left: to conform, a value has to fit.
  if (std::ranges::none_of(models, inside)) return kUnmodelled;
  // What differs from a model that is left by nothing that these values show is as good as that one.
  const auto as_good = [&](const PrecisionModel& model) {
    const PrecisionModel plain = WithoutTf32BeforeFloat16(model);
    return inside(model) || (plain != model && Contains(proved, plain) && inside(plain)) ||
           std::ranges::any_of(proved, [&](const PrecisionModel& exact) {
             return inside(exact) && IsAddedByTheStore(model, exact, classification);
           });
  };
  return classification.fits && std::ranges::all_of(proved, as_good) ? kConforms : kUndetermined;
}

ContractVerdict JudgeContract(const Case& test_case, const std::string& value, const ValueResult& result) {
  // Nobody has to ask for the program's shape and numbers.
  if (IsWrong(result.classification.kind)) return ContractVerdict::kViolates;
  if (test_case.contract.accept_any) return ContractVerdict::kConforms;
  const auto demand = test_case.contract.values.find(value);
  if (demand == test_case.contract.values.end()) return ContractVerdict::kNotJudged;
  if (demand->second.dtype && *demand->second.dtype != Name(result.dtype)) return ContractVerdict::kViolates;
  if (demand->second.facets.empty()) return ContractVerdict::kConforms;
  const ContractVerdict verdict = JudgeFacets(demand->second, result.classification);
  // Of errors that are hardly larger than float32's the listed sums are not all that a class allows. Behind a narrow store they are the
  // store's, and say nothing of what was excluded.
  const bool as_float32 =
      result.classification.within > 0 && FormatOf(result.dtype)->precision >= Binary32().precision;
  return verdict == ContractVerdict::kViolates && as_float32 && AllowsWideSum(demand->second)
             ? ContractVerdict::kUnmodelled
             : verdict;
}

ContractVerdict JudgeOutcome(const Case& test_case, const Outcome& outcome,
                             const std::vector<std::string>& values) {
  using enum ContractVerdict;
  const Contract& contract = test_case.contract;
  const bool completed = outcome.kind == OutcomeKind::kCompleted;
  if (!completed && outcome.kind != OutcomeKind::kRaised) return kNotJudged;
  if (contract.accept_any) return kConforms;
  if (!completed) return contract.raised && MatchesRaised(*contract.raised, outcome) ? kConforms : kViolates;
  if (contract.values.empty()) return contract.raised ? kViolates : kConforms;
  const bool all_there = std::ranges::all_of(
      contract.values, [&](const auto& demand) { return Contains(values, demand.first); });
  return all_there ? kConforms : kViolates;
}

bool MatchesRaised(const RaisedMatch& match, const Outcome& outcome) {
  if (outcome.kind != OutcomeKind::kRaised) return false;
  if (!match.error_class.empty() && match.error_class != outcome.error_class) return false;
  return match.match.empty() || SearchPattern(match.match, outcome.text);
}

std::string Describe(const ValueDemand& demand) {
  std::vector<std::string> parts;
  if (demand.dtype) parts.push_back("dtype " + *demand.dtype);
  for (const auto& [facet, words] : demand.facets) {
    parts.push_back(words.size() == 1 ? facet + " " + words[0]
                                      : fmt::format("{} one of {}", facet, Join(words, " ")));
  }
  return Join(parts, ", ");
}

std::vector<Proposal> RoundingsNamed(const ValueDemand& demand, const std::vector<std::string>& operands) {
  constexpr size_t kMost = 36;
  std::vector<Proposal> named{Proposal{}};
  const auto each = [&](const std::vector<std::string>& words, const auto& apply) {
    std::vector<Proposal> next;
    for (const Proposal& before : named) {
      for (const std::string& word : words) {
        Proposal with = before;
        if (next.size() < kMost && apply(word, &with)) next.push_back(std::move(with));
      }
    }
    if (!next.empty()) named = std::move(next);
  };
  const auto read = [](const std::string& operand, const std::string& word, Proposal* with) {
    if (word == "as_is") return true;
    if (!ParseIn(word)) return false;
    with->in[operand] = word;
    return true;
  };
  for (const auto& [facet, words] : demand.facets) {
    if (facet == "in") {
      each(words, [&](const std::string& word, Proposal* with) {
        return std::ranges::all_of(operands, [&](const std::string& operand) {
          return operand.starts_with("scalar.") || read(operand, word, with);
        });
      });
    } else if (facet.starts_with(kInPrefix)) {
      const std::string operand = facet.substr(kInPrefix.size());
      each(words, [&](const std::string& word, Proposal* with) { return read(operand, word, with); });
    } else if (facet == "acc") {
      std::vector<std::string> all = words;
      // A class holds what the bank does not list.
      if (ContainsAccumulator(words, std::string(kJoinedWider)) &&
          !Contains(words, std::string(kJoinedWider)))
        all.emplace_back(kJoinedWider);
      each(all, [](const std::string& word, Proposal* with) {
        if (ParseAcc(word)) with->acc = word;
        return true;
      });
    } else if (facet == "mid") {
      each(words, [](const std::string& word, Proposal* with) {
        if (word != "none" && !ParseMid(word)) return false;
        with->mid = word;
        return true;
      });
    }
  }
  return named;
}

}  // namespace ulpscope
