// Contracts on the joint set of proved models.
#include "harness/judge/contract.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/base/find.h"
#include "harness/base/pattern.h"
#include "harness/base/text.h"
#include "harness/judge/label.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

constexpr std::string_view kInPrefix = "in.";
constexpr std::string_view kCutsPrefix = "cuts.";

using Roundings = std::optional<RoundSpec> DemandWord::*;

/// True if one of `words`, as the facet `which` has them, is this rounding.
bool Allows(const DemandWords& words, Roundings which, const RoundSpec& rounding) {
  return std::ranges::any_of(words, [&](const DemandWord& word) { return word.*which == rounding; });
}

bool InsideFacet(const PrecisionModel& model, const std::string& facet, const DemandWords& words,
                 const Classification& classification) {
  // A model conforms if some requested word gives the same bits for every operand.
  const AsExact& same = classification.as_exact;
  if (facet == "prod") {
    const auto allowed = [&](const RoundSpec& prod) { return Allows(words, &DemandWord::prod, prod); };
    return allowed(model.prod) ||
           (model.prod.none() && (same.any_prod || std::ranges::any_of(same.prod, allowed)));
  }
  if (facet == "acc") {
    const auto allowed = [&](const AccSpec& acc) { return ContainsAccumulator(words, acc); };
    return allowed(model.acc) ||
           (model.acc.exact() && (same.any_acc || std::ranges::any_of(same.acc, allowed)));
  }
  if (facet == "mid") return Allows(words, &DemandWord::mid, model.mid);
  if (facet == "out") return Allows(words, &DemandWord::out, model.out);
  if (facet.starts_with(kInPrefix))
    return Allows(words, &DemandWord::in, LookupOr(model.in, facet.substr(kInPrefix.size())));
  if (facet.starts_with(kCutsPrefix))
    return Allows(words, &DemandWord::mid, LookupOr(model.cuts, facet.substr(kCutsPrefix.size())));
  if (facet != "in") return false;
  std::set<std::string> operands;
  for (const auto& [operand, roundings] : classification.facets_in) operands.insert(operand);
  for (const auto& [operand, in] : model.in) operands.insert(operand);
  if (operands.empty()) return Allows(words, &DemandWord::in, {});
  return std::ranges::all_of(operands, [&](const std::string& operand) {
    return Allows(words, &DemandWord::in, LookupOr(model.in, operand));
  });
}

/// A wider sum rounded to float32 before a narrower output is more accurate than a float32 sum.
bool IsWideThroughFloat32(const PrecisionModel& model) {
  return model.mid.rounds_to(Binary32()) && model.acc.bits() > Binary32().precision &&
         model.out.bits() < Binary32().precision;
}

/// The quotient of a float32 mean is a float32 number, which is what "float32 throughout" requests.
PrecisionModel WithoutItsOwnFormat(PrecisionModel model) {
  if (model.acc.binary() && model.mid.rounds_to(*model.acc.format)) model.mid = {};
  return model;
}

/// tf32 has float16's precision: a rounding to tf32 before one to float16 shows only among float16's subnormals.
PrecisionModel WithoutTf32BeforeFloat16(PrecisionModel model) {
  if (!model.mid.rounds_to(Tf32()) || !model.out.rounds_to(Binary16())) return model;
  model.mid = {};
  model.out = ToNearest(Binary16());
  return model;
}

/// True if the demand names no accumulator, or allows a sum in float32 or wider.
bool AllowsWideSum(const ValueDemand& demand) {
  const auto words = demand.facets.find("acc");
  if (words == demand.facets.end() || ContainsAccumulator(words->second, SumsIn(Binary32()))) return true;
  return std::ranges::any_of(words->second,
                             [](const DemandWord& word) { return word.acc && word.acc->wide(); });
}

/// True if the sum has one addition and `exact`, in which only the output rounding rounds it, gives the same bits.
bool IsAddedByTheStore(const PrecisionModel& model, const PrecisionModel& exact,
                       const Classification& classification) {
  return Contains(classification.as_exact.acc_once, model.acc) && model.mid.none() && exact.acc.exact() &&
         exact.mid.none_or(Binary32()) && exact.in == model.in && exact.prod == model.prod &&
         exact.out == model.out && exact.cuts == model.cuts;
}

/// True if no model is left, and reading an operand in a format that the demand does not name reproduces the results.
bool ReadsOtherwise(const ValueDemand& demand, const Classification& classification) {
  return std::ranges::any_of(classification.reads, [&](const auto& read) {
    const auto own = demand.facets.find(std::string(kInPrefix) + read.first), all = demand.facets.find("in");
    const auto& words = own != demand.facets.end() ? own : all;
    if (words == demand.facets.end()) return false;
    const auto allowed = [&](const std::string& word) {
      return word == "stored" || word == "unrounded" ||
             std::ranges::any_of(words->second, [&](const DemandWord& each) {
               return each.in && each.in->format != nullptr && each.in->pieces == 1 &&
                      each.in->format->name == word;
             });
    };
    return std::ranges::none_of(read.second, allowed);
  });
}

/// The words of `model` for a facet of a demand, each with its operand if there are several.
std::vector<std::string> WordsOf(const PrecisionModel& model, const std::string& facet,
                                 const DemandWords& allowed) {
  if (facet == "prod") return {ProdWord(model.prod)};
  if (facet == "acc") return {AccWord(model.acc)};
  if (facet == "mid") return {MidWord(model.mid)};
  if (facet == "out") return {OutWord(model.out)};
  if (facet.starts_with(kInPrefix)) return {InWord(LookupOr(model.in, facet.substr(kInPrefix.size())))};
  if (facet.starts_with(kCutsPrefix))
    return {MidWord(LookupOr(model.cuts, facet.substr(kCutsPrefix.size())))};
  std::vector<std::string> words;
  for (const auto& [operand, in] : model.in) {
    if (!Allows(allowed, &DemandWord::in, in)) words.push_back(InWord(in) + " of " + operand);
  }
  return words.empty() ? std::vector<std::string>{"as_is"} : words;
}

PrecisionModel AsFloat32(PrecisionModel model) {
  model.acc = SumsIn(Binary32());
  model.mid = {};
  return model;
}

}  // namespace

bool ContainsAccumulator(const DemandWords& words, const AccSpec& acc) {
  return std::ranges::any_of(words, [&](const DemandWord& word) { return word.Holds(acc); });
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
  if (IsUnknown(classification.kind)) return kUndetermined;
  if (IsWrong(classification.kind)) return kViolates;
  const auto inside = [&](const PrecisionModel& model) { return IsInside(model, demand, classification); };
  const auto &proved = classification.models_proved, &models = classification.models;
  if (proved.empty()) return ReadsOtherwise(demand, classification) ? kViolates : kUnmodelled;
  // Exclusion is proof: if nothing that the contract allows is left, it is violated, whatever explains the value.
  if (std::ranges::none_of(proved, inside)) return kViolates;
  // Exclusion proves nothing about the surviving models: to conform, a value has to fit.
  if (std::ranges::none_of(models, inside)) return kUnmodelled;
  // A model conforms too if these values show no difference between it and a surviving model that is inside.
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
  // The program's shape and exact numbers are demanded even without a contract.
  if (IsWrong(result.classification.kind)) return ContractVerdict::kViolates;
  if (test_case.contract.accept_any) return ContractVerdict::kConforms;
  const auto demand = test_case.contract.values.find(value);
  if (demand == test_case.contract.values.end()) return ContractVerdict::kNotJudged;
  if (demand->second.dtype && *demand->second.dtype != Name(result.dtype)) return ContractVerdict::kViolates;
  if (demand->second.facets.empty()) return ContractVerdict::kConforms;
  ContractVerdict verdict = JudgeFacets(demand->second, result.classification);
  if (verdict == ContractVerdict::kConforms &&
      (!HidesSums(value, demand->second, result.classification).empty() ||
       HidesReading(demand->second, result.dtype, result.classification)))
    verdict = ContractVerdict::kUndetermined;
  // If errors are hardly larger than float32's, the listed sums are not all that a class allows, so the verdict stays
  // open. Behind a narrow output rounding the errors are that rounding's and do not weaken the exclusions.
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

std::string HidesSums(const std::string& value, const ValueDemand& demand,
                      const Classification& classification) {
  const auto speaks = [&](const auto& facet) {
    return facet.first == "mid" || facet.first.starts_with(kCutsPrefix);
  };
  if (!demand.facets.contains("acc") || std::ranges::any_of(demand.facets, speaks)) return "";
  const std::string inside = value + ".";
  std::string hides;
  for (const PrecisionModel& model : classification.models) {
    const auto narrower = [&](const auto& cut) {
      return cut.first.starts_with(inside) && cut.second.bits() < model.acc.bits();
    };
    const auto cut = std::ranges::find_if(model.cuts, narrower);
    if (cut == model.cuts.end()) return "";
    if (hides.empty())
      hides = fmt::format("the {} ({})", StepInside(cut->first, value), MidWord(cut->second));
  }
  return hides;
}

bool HidesReading(const ValueDemand& demand, DType observed, const Classification& classification) {
  const auto reads = [](const auto& facet) {
    return facet.first == "prod" || facet.first == "in" || facet.first.starts_with(kInPrefix);
  };
  return observed == DType::kFloat64 && classification.reproduced < 1 && !classification.facets.acc.empty() &&
         std::ranges::any_of(demand.facets, reads);
}

std::string LeftOpen(const ValueDemand& demand, const Classification& classification) {
  constexpr size_t kReadable = 4;  // chosen: words in one clause
  std::map<std::string, std::vector<std::string>> open;
  for (const PrecisionModel& model : classification.models_proved) {
    if (IsInside(model, demand, classification)) continue;
    for (const auto& [facet, words] : demand.facets) {
      if (InsideFacet(model, facet, words, classification)) continue;
      for (const std::string& word : WordsOf(model, facet, words)) {
        if (!Contains(open[facet], word)) open[facet].push_back(word);
      }
    }
  }
  std::vector<std::string> parts;
  for (auto& [facet, words] : open) {
    const size_t more = words.size() - std::min(words.size(), kReadable);
    words.resize(words.size() - more);
    if (more > 0) words.push_back(fmt::format("{} more", more));
    const std::string last = words.back();
    words.pop_back();
    parts.push_back(facet + " " + (words.empty() ? last : Join(words, ", ") + " or " + last));
  }
  return Join(parts, "; ");
}

std::string Describe(const ValueDemand& demand) {
  std::vector<std::string> parts;
  if (demand.dtype) parts.push_back("dtype " + *demand.dtype);
  for (const auto& [facet, words] : demand.facets) {
    parts.push_back(words.size() == 1 ? facet + " " + words[0].text
                                      : fmt::format("{} one of {}", facet, Join(TextsOf(words), " ")));
  }
  return Join(parts, ", ");
}

std::vector<Proposal> RoundingsNamed(const ValueDemand& demand, const std::vector<std::string>& operands) {
  constexpr size_t kMost = 36;  // chosen: two operands of six formats each
  std::vector<Proposal> named{Proposal{}};
  const auto each = [&](const DemandWords& words, const auto& apply) {
    std::vector<Proposal> next;
    for (const Proposal& before : named) {
      for (const DemandWord& word : words) {
        Proposal with = before;
        if (next.size() < kMost && apply(word, &with)) next.push_back(std::move(with));
      }
    }
    if (!next.empty()) named = std::move(next);
  };
  const auto read = [](const std::string& operand, const DemandWord& word, Proposal* with) {
    if (word.in && !word.in->none()) with->in[operand] = *word.in;
    return word.in.has_value();
  };
  for (const auto& [facet, words] : demand.facets) {
    if (facet == "in") {
      each(words, [&](const DemandWord& word, Proposal* with) {
        return std::ranges::all_of(operands, [&](const std::string& operand) {
          return operand.starts_with("scalar.") || read(operand, word, with);
        });
      });
    } else if (facet.starts_with(kInPrefix)) {
      const std::string operand = facet.substr(kInPrefix.size());
      each(words, [&](const DemandWord& word, Proposal* with) { return read(operand, word, with); });
    } else if (facet == "acc") {
      DemandWords all = words;
      // A class contains sums that the candidate models do not list.
      const auto is_joined = [](const DemandWord& word) { return word.acc == JoinedWider(); };
      if (ContainsAccumulator(words, JoinedWider()) && std::ranges::none_of(words, is_joined))
        all.emplace_back(AccWord(JoinedWider()));
      each(all, [](const DemandWord& word, Proposal* with) {
        if (word.acc) with->acc = *word.acc;
        return true;
      });
    } else if (facet == "mid") {
      each(words, [](const DemandWord& word, Proposal* with) {
        if (word.mid) with->mid = *word.mid;
        return word.mid.has_value();
      });
    }
  }
  return named;
}

}  // namespace ulpscope
