// The contract findings for the values of one result, in sentences.
#include "harness/judge/contract_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/judge/contract.h"
#include "harness/model/conforming.h"
#include "harness/model/exclusion.h"
#include "harness/model/tensor_diff.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

std::string Labelled(const Classification& classification) {
  if (!classification.label.empty()) return classification.label;
  std::vector<std::string> names;
  for (const auto& model : classification.models_proved) names.push_back(model.Name());
  return names.empty() ? std::string(Name(classification.kind)) : Join(names, " or ");
}

/// The same in brief, for a complete sentence.
std::string BrieflyLabelled(const Classification& classification) {
  constexpr size_t kReadable = 160;  // chosen: a line and a half
  const std::string label = Labelled(classification);
  if (label.size() <= kReadable) return label;
  return fmt::format("what any of {} models gives, some of them outside the contract (explain -v lists them)",
                     classification.models_proved.size());
}

/// "; sums in 19 bits or more would look the same", appended to a label that is only likely.
std::string LooksTheSame(const Classification& classification) {
  const auto sums = classification.floors.find("acc");
  if (!classification.rests_on_likelihood || sums == classification.floors.end() ||
      sums->second >= Binary32().precision)
    return "";
  return fmt::format("; sums in {} bits or more would look the same", sums->second);
}

/// The number of roundings of a model that a plain float32 sum does not have.
int Besides(const PrecisionModel& model) {
  int besides = static_cast<int>(model.in.size() + model.cuts.size());
  for (const RoundSpec* rounding : {&model.prod, &model.mid}) besides += rounding->none() ? 0 : 1;
  if (model.acc != SumsIn(Binary32()) && !model.acc.exact()) ++besides;
  return besides + (model.out.to_nearest() ? 0 : 1);
}

/// Describes a model that the contract allows by its additional roundings, if it has any.
std::string WhatItIs(const PrecisionModel& model) {
  return IsConforming(model, Binary32(), kFloat32Throughout)
             ? "what the contract asks for"
             : "the nearest of what the contract allows (" + model.Name() + ")";
}

Finding Violation(const std::string& name, const ValueDemand& demand, const ValueResult& value) {
  if (demand.dtype && *demand.dtype != Name(value.dtype)) {
    return {
        .value = name,
        .sentence = fmt::format("{} is {}, the contract says {}", name, Name(value.dtype), *demand.dtype)};
  }
  std::string text = fmt::format("{} violates its contract ({}): {}", name, Describe(demand),
                                 Labelled(value.classification));
  // The plainest model that the contract allows.
  const Exclusion* plainest = nullptr;
  for (const Exclusion& exclusion : value.classification.excluded) {
    if (!IsInside(exclusion.model, demand, value.classification)) continue;
    if (plainest == nullptr || Besides(exclusion.model) < Besides(plainest->model)) plainest = &exclusion;
  }
  if (plainest == nullptr) return {.value = name, .sentence = text};
  const std::string why =
      plainest->by == ExcludedBy::kBounds
          ? OnFurtherInput(plainest->further_input, BoundsSentence(*plainest, WhatItIs(plainest->model)))
          : plainest->why;
  return {.value = name, .sentence = text + "; e.g. " + why, .by = *plainest};
}

/// The probes that distinguish the models of a value (the table of probes names the facet that each one tests).
std::string SettlingProbes(const Classification& classification) {
  static const std::pair<std::string_view, std::string_view> kProbes[] = {
      {"prod", "pair"}, {"acc", "swamp"}, {"mid", "fuse"}, {"out", "single"}};
  std::vector<std::string> fills;
  for (const auto& [facet, probe] : kProbes) {
    std::vector<std::string> words;
    for (const PrecisionModel& model : classification.models_proved) {
      const std::string word = facet == "prod"  ? ProdWord(model.prod)
                               : facet == "acc" ? AccWord(model.acc)
                               : facet == "mid" ? MidWord(model.mid)
                                                : OutWord(model.out);
      if (!Contains(words, word)) words.push_back(word);
    }
    if (words.size() > 1) fills.push_back(fmt::format("{{probe: {}}}", probe));
  }
  const bool inputs_differ = std::ranges::any_of(classification.models_proved, [&](const auto& model) {
    return model.in != classification.models_proved[0].in;
  });
  if (inputs_differ) fills.push_back("{probe: residual}");
  return fills.empty() ? "inputs with more significant bits would settle it"
                       : "inputs that would settle it: fill " + Join(fills, ", ");
}

/// "; not excluded: out float32_rz or float32_rna". If every surviving model is allowed, no model fits.
std::string NotExcluded(const std::string& name, const ValueDemand& demand, const ValueResult& value) {
  const Classification& classification = value.classification;
  if (classification.models_proved.empty()) return "";
  if (const std::string hides = HidesSums(name, demand, classification); !hides.empty())
    return fmt::format("; its sums are seen only behind {}: sums in fewer bits may look the same", hides);
  const std::string open = LeftOpen(demand, classification);
  if (!open.empty()) return "; not excluded: " + open;
  if (!classification.fits) return "; all that is not excluded is allowed, and none of it fits";
  if (HidesReading(demand, value.dtype, classification))
    return "; no order tried gives all bits, and operands or products in 52 bits would err as much";
  return "";
}

/// "; ..." if it is an auxiliary input that no model explains.
std::string AmongFurtherInputs(const CaseResult& result, const ValueResult& value) {
  const auto& [notes, says] = std::tie(value.classification.notes, value.classification.says);
  return result.proved_on.empty() || notes.empty() || Contains(says, notes.back()) ? ""
                                                                                   : "; " + notes.back().text;
}

/// The sentence for a value without an allowed explanation: the models that explain it, else its errors.
std::string Unexplained(const std::string& name, const ValueDemand& demand, const ValueResult& value) {
  const Classification& classification = value.classification;
  const std::string wanted = Describe(demand);
  if (classification.models.empty()) {
    std::string text = fmt::format("no precision model explains {} (the contract says {})", name, wanted);
    if (!classification.says.empty()) text += ": " + JoinTexts(classification.says);
    return text;
  }
  const auto& proved = classification.models_proved;
  const auto left = std::ranges::count_if(
      proved, [&](const PrecisionModel& model) { return IsInside(model, demand, classification); });
  const std::string others =
      left == 1 ? "one model that it allows lies within its bounds, and fits worse"
                : fmt::format("{} models that it allows lie within their bounds, and fit worse", left);
  return fmt::format("{} is {}, which the contract ({}) does not allow; not proved: {}", name,
                     BrieflyLabelled(classification), wanted, others);
}

/// Advice about a contract that is undecided.
std::string Advice(const Case& test_case, const std::string& name, const CaseResult& result,
                   const std::set<std::string>& provable) {
  const Classification& classification = result.values.at(name).classification;
  if (classification.piece.starts_with("steps "))
    return "judge that step in a case of its own, with prove: true in its contract, to decide it";
  if (!provable.contains(name)) return SettlingProbes(classification);
  if (!test_case.contract.prove)
    return "add prove: true to the contract, and the harness adds inputs that distinguish the models";
  return result.proved_on.empty() ? "no auxiliary input was run" : "its auxiliary inputs leave that open";
}

}  // namespace

void AddValueFindings(const Case& test_case, const CaseResult& result, const std::set<std::string>& provable,
                      StatusFacts* facts) {
  for (const auto& name : result.value_order) {
    const ValueResult& value = result.values.at(name);
    if (IsWrong(value.classification.kind)) {
      facts->violations.push_back({.value = name, .sentence = name + " is " + value.classification.label});
      continue;
    }
    const auto demand = test_case.contract.values.find(name);
    if (test_case.contract.accept_any || demand == test_case.contract.values.end()) continue;
    const std::string wanted = Describe(demand->second);
    switch (value.contract) {
      case ContractVerdict::kViolates:
        facts->violations.push_back(Violation(name, demand->second, value));
        break;
      case ContractVerdict::kUnmodelled:
        facts->unmodelled.push_back(
            {.value = name,
             .sentence = Unexplained(name, demand->second, value) + AmongFurtherInputs(result, value)});
        break;
      case ContractVerdict::kUndetermined:
        if (value.classification.kind == ClassificationKind::kNotJudged) {
          facts->undetermined.push_back(
              {.value = name,
               .sentence =
                   fmt::format("{}: {}; whether the contract holds ({}) is open; its steps as cases of "
                               "their own would tell more",
                               name, value.classification.label, wanted)});
          break;
        }
        facts->undetermined.push_back(
            {.value = name,
             .sentence = fmt::format(
                 "{}: the inputs do not decide whether the contract holds ({}); observed {}{}{}; {}", name,
                 wanted, BrieflyLabelled(value.classification), LooksTheSame(value.classification),
                 NotExcluded(name, demand->second, value), Advice(test_case, name, result, provable))});
        break;
      default:
        break;
    }
  }
}

namespace {

std::string NotEqual(const std::string& first, const std::string& other, const TensorData& left,
                     const TensorData& right) {
  std::string how = fmt::format("{} is {}, {} is {}", first, Describe(left.dtype, left.shape), other,
                                Describe(right.dtype, right.shape));
  if (left.dtype == right.dtype && left.shape == right.shape) {
    const TensorDifference difference = CompareTensors(left, right);
    const auto number = [&](double value) {
      const FloatFormat* format = FormatOf(left.dtype);
      // Enough decimals to distinguish adjacent numbers of the format.
      return fmt::format("{:.{}g}", value, format == nullptr ? 17 : 2 + format->precision * 301 / 1000);
    };
    int64_t index = difference.number > 0 ? difference.first_number : difference.first_special;
    for (int64_t k = index; difference.number > 0 && k < left.size(); ++k) {
      if (DiffersInNumber(left.At(k), right.At(k)) &&
          ElementDistance(left.At(k), right.At(k), left.dtype) >
              ElementDistance(left.At(index), right.At(index), left.dtype))
        index = k;
    }
    how = fmt::format(
        "{} of {} elements differ{}, {} at [{}]: {} against {}", difference.number + difference.special,
        left.size(),
        difference.number > 0 ? fmt::format(" by up to {} ulp", ShortestDecimal(difference.largest_ulp)) : "",
        difference.number > 0 ? "the worst" : "the first", Join(Coordinates(index, left.shape), ","),
        number(left.At(index)), number(right.At(index)));
  }
  return fmt::format("{} and {} are not equal: {}", first, other, how);
}

/// Whether two values have one class, except for the places of roundings; `facts` gets the differences.
void CompareClasses(const std::string& first, const std::string& other, const CaseResult& result,
                    StatusFacts* facts) {
  const Classification &left = result.values.at(first).classification,
                       &right = result.values.at(other).classification;
  const auto without_places = [](const Classification& one) {
    std::set<std::string> words;
    for (const PrecisionModel& model : one.models_proved)
      words.insert(fmt::format("{} {} {}", AccWord(model.acc), MidWord(model.mid), OutWord(model.out)));
    return words;
  };
  const auto a = without_places(left), b = without_places(right);
  const bool apart = std::ranges::none_of(a, [&](const std::string& one) { return b.contains(one); });
  const std::string both =
      fmt::format("{} is {}; {} is {}", first, BrieflyLabelled(left), other, BrieflyLabelled(right));
  if (a.empty() || b.empty())
    facts->unmodelled.push_back({.value = other, .sentence = "whether two classes are one: " + both});
  else if (apart)
    facts->violations.push_back(
        {.value = other, .sentence = fmt::format("{} and {} are not of one class: {}", first, other, both)});
  else if (a != b)
    facts->undetermined.push_back(
        {.value = other,
         .sentence = "the inputs do not decide whether two values are of one class: " + both});
}

}  // namespace

void CompareValues(const Contract& contract, const Observation& observation, const CaseResult& result,
                   StatusFacts* facts) {
  if (result.outcome.kind != OutcomeKind::kCompleted) return;
  const auto pairs = [&](const std::vector<std::string>& names, const auto& compare) {
    for (size_t i = 1; i < names.size(); ++i) {
      const std::string &first = names[0], &other = names[i];
      if (!result.values.contains(first) || !result.values.contains(other)) {
        const std::string& missing = result.values.contains(first) ? other : first;
        facts->violations.push_back(
            {.value = missing,
             .sentence = fmt::format("{} does not exist, and the contract compares {} with it", missing,
                                     missing == first ? other : first)});
        continue;
      }
      compare(first, other);
    }
  };
  pairs(contract.equal, [&](const std::string& first, const std::string& other) {
    if (result.values.at(first).bits == result.values.at(other).bits) return;
    facts->violations.push_back(
        {.value = other,
         .sentence = NotEqual(first, other, observation.values.at(first), observation.values.at(other))});
  });
  pairs(contract.same_class, [&](const std::string& first, const std::string& other) {
    CompareClasses(first, other, result, facts);
  });
}

}  // namespace ulpscope
