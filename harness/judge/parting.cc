// Finds the facet in which two classifications differ.
#include "harness/judge/parting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/judge/label.h"
#include "harness/judge/side.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"
#include "harness/words/gradient_name.h"

namespace ulpscope {
namespace {

bool WritesIntoBuffer(const std::vector<Step>& steps, const std::string& value) {
  return std::ranges::any_of(steps, [&](const Step& step) {
    return (step.as == value && !step.out.empty()) || WritesIntoBuffer(step.steps, value);
  });
}

/// The value is given by an op that sums, as far as one can see from its name.
bool Sums(const std::vector<Step>& steps, const std::string& value) {
  return std::ranges::none_of(steps, [&](const Step& step) {
    return (step.as == value && (step.op == "add" || step.op == "sub")) || !Sums(step.steps, value);
  });
}

/// The formats of operands, with the short name for a number of the value's own op: a subprogram of one step has
/// "scalar.add", one of several steps with numbers has "scalar.add@value".
RoundingSets OwnNames(const RoundingSets& operands, const std::string& value) {
  RoundingSets named = operands;
  const std::string own = "@" + value;
  for (const auto& [operand, reads] : operands) {
    if (operand.ends_with(own)) named[operand.substr(0, operand.size() - own.size())] = reads;
  }
  return named;
}

/// Every operand of a product or sum, and every Python number, that the one rounds and the other does not.
std::vector<Parting> FindOperands(const Case& test_case, const std::string& value, const Classification& a,
                                  const Classification& b) {
  std::vector<Parting> found;
  auto left = OwnNames(a.facets_in, value), right = OwnNames(b.facets_in, value);
  // A side that was explained without such a step inside did not round it.
  const std::vector<RoundSpec> as_is{RoundSpec{}};
  for (const auto& [operand, reads] : a.facets_in) {
    if (IsInside(value, operand)) right.try_emplace(operand, as_is);
  }
  for (const auto& [operand, reads] : b.facets_in) {
    if (IsInside(value, operand)) left.try_emplace(operand, as_is);
  }
  for (const auto& [operand, reads] : left) {
    if (operand.ends_with("@" + value)) continue;
    const std::string what = IsInside(value, operand) ? "the " + Braced(StepInside(operand, value)) +
                                                            " inside " + Braced(Code(value))
                                                      : Braced(NumberPhrase(test_case, operand, value));
    const bool is_number =
        std::isdigit(static_cast<unsigned char>(what.back())) != 0 && !what.starts_with("operand ");
    const size_t at = operand.find('@');
    // If another step gave the operand, the text names the use.
    const bool is_step = !IsInside(value, operand) && test_case.FindTensor(operand) == nullptr;
    const std::string when =
        is_number || is_step
            ? " when computing " + Braced(Code(at == std::string::npos ? value : operand.substr(at + 1)))
            : "";
    const Phrase phrase = is_step && !is_number
                              ? Phrase{"reads", "read", Braced(Code(operand)) + " as {}" + when}
                              : Phrase{"rounds", "round", what + " to {}" + when};
    auto in = Compare(reads, LookupOr(right, operand), kOfOperands, phrase);
    if (!in) continue;
    const auto flushes = [](const std::vector<RoundSpec>& each) {
      return each.size() == 1 && DropsSubnormalsAlone(each.front());
    };
    const Deed flush = Say("takes subnormal numbers of", "take subnormal numbers of", what + " as zero");
    if (flushes(reads)) in->a = flush;
    if (flushes(right.at(operand))) in->b = flush;
    found.push_back(std::move(*in));
  }
  return found;
}

/// Drops tf32 as an alternative to float16 inside a float16 result: it has as many bits, and no kernel stores it there.
Classification WithoutTwins(const ValueResult& value) {
  Classification told = value.classification;
  if (value.dtype != DType::kFloat16) return told;
  for (auto& [cut, roundings] : told.cuts) {
    if (Contains(roundings, ToNearest(Binary16()))) std::erase(roundings, ToNearest(Tf32()));
  }
  return told;
}

/// A gradient that one side rounds as it is added up, and the other does not.
std::optional<Parting> FindPartialGradient(const std::string& value, const Classification& a,
                                           const Classification& b) {
  // A gradient that is rounded as it is added up differs wherever that shows; a mask that rounding changes does in few elements.
  for (const auto& [cut, roundings] : a.cuts) {
    if (!cut.starts_with(kPartialGradient)) continue;
    auto found = Compare(
        roundings, LookupOr(b.cuts, cut), kOfIntermediates,
        {"rounds", "round", Braced(Code(value)) + " to {} after each contribution that is added to it"});
    if (found) return found;
  }
  return std::nullopt;
}

/// The intermediate steps of the program before `value` that one side rounds to one format and the other does not.
std::optional<Parting> FindStepsOnTheWay(const Case& test_case, const std::string& value,
                                         const Classification& a, const Classification& b) {
  std::vector<std::string> told;
  std::vector<const std::vector<Step>*> open{&test_case.program};
  while (!open.empty()) {
    const std::vector<Step>& steps = *open.back();
    open.pop_back();
    for (const Step& step : steps) {
      if (!step.steps.empty()) open.push_back(&step.steps);
      const auto left = a.cuts.find(step.as), right = b.cuts.find(step.as);
      if (step.as == value || left == a.cuts.end() || right == b.cuts.end() ||
          !Disjoint(left->second, right->second))
        continue;
      const bool alike = told.empty() || (left->second == a.cuts.at(told.front()) &&
                                          right->second == b.cuts.at(told.front()));
      if (alike) told.push_back(step.as);
    }
  }
  if (auto partial = FindPartialGradient(value, a, b)) return partial;
  if (told.empty()) return std::nullopt;
  return Compare(a.cuts.at(told.front()), b.cuts.at(told.front()), kOfIntermediates,
                 {"rounds", "round",
                  fmt::format("{} to {{}} when computing {}", Braced(JoinCode(told)), Braced(Code(value)))});
}

/// By at least one model, a step before `value` is rounded, and not its result.
bool RoundsOnTheWay(const std::string& value, const Classification& classification) {
  return std::ranges::any_of(classification.cuts, [&](const auto& cut) {
    return cut.first != value && !IsInside(value, cut.first) &&
           std::ranges::any_of(cut.second, [&](const RoundSpec& each) {
             return !each.none() && Contains(classification.facets.mid, each);
           });
  });
}

/// The most informative facet of the computation, apart from operands, in which the two have no word in common.
std::optional<Parting> FindRounding(const Case& test_case, const std::string& value, const ValueResult& a,
                                    const ValueResult& b) {
  Classification left = WithoutTwins(a), right = WithoutTwins(b);
  const std::string where = fmt::format("before the {} {}", Name(a.dtype),
                                        WritesIntoBuffer(test_case.program, value) ? "buffer" : "result");
  const std::string own(Name(a.dtype));
  if (auto step = FindStepInside(value, left, right)) return step;
  left.cuts = StepsAsComputed(value, left);
  right.cuts = StepsAsComputed(value, right);
  // If all steps are computed in a narrow format, the lack of additional roundings is no difference.
  const auto computes_narrowly = [&](const Classification& each) {
    return SumsNarrow(each) && HasStepsInside(value, each);
  };
  const bool narrowly = computes_narrowly(left) || computes_narrowly(right);
  const auto only_own = [&](const Classification& classification) {
    const FloatFormat* format = FormatOf(a.dtype);
    return format != nullptr && classification.facets.mid == std::vector{ToNearest(*format)};
  };
  const bool twice = only_own(left) || only_own(right);
  const bool inside =
      (only_own(left) && HasStepsInside(value, left)) || (only_own(right) && HasStepsInside(value, right));
  const std::string through =
      twice && inside ? fmt::format("at least one step of {} to {{}}", Braced(Code(value)))
      : twice ? fmt::format("an intermediate of {} to {{}}, before its {} output", Braced(Code(value)), own)
      : RoundsOnTheWay(value, left) || RoundsOnTheWay(value, right)
          ? fmt::format("at least one intermediate of {} to {{}}", Braced(Code(value)))
          : fmt::format("{} to {{}} {}", Braced(Code(value)), where);
  auto mid = narrowly
                 ? std::nullopt
                 : Compare(left.facets.mid, right.facets.mid, kOfIntermediates, {"rounds", "round", through});
  if (mid) {
    // The rounded value may be an operand that the program names; for a 16-bit result, a value stored before it.
    if (auto steps = FindStepsOnTheWay(test_case, value, left, right)) return steps;
    if (!twice) return mid;
    // An intermediate rounding to float32 has no visible effect.
    const auto wide = [](const Classification& each) {
      return each.facets.mid == std::vector{ToNearest(Binary32())};
    };
    if (wide(left)) mid->a = {};
    if (wide(right)) mid->b = {};
    return mid;
  }
  if (auto partial = FindPartialGradient(value, left, right)) return partial;
  for (const auto& [name, roundings] : left.cuts) {
    auto cut =
        Compare(roundings, LookupOr(right.cuts, name), kOfIntermediates,
                {"rounds", "round",
                 fmt::format("{} to {{}} when computing {}", Braced(Code(name)), Braced(Code(value)))});
    if (cut) return cut;
  }
  const bool steps =
      HasStepsInside(value, left) || HasStepsInside(value, right) || !Sums(test_case.program, value);
  // If every step is rounded, none shows the format in which it was computed.
  if (DescribeInside(value, left).all || DescribeInside(value, right).all) return std::nullopt;
  // For an op that sums and does more, the known format is that of its sums.
  const bool sums = SumsInside(left) || SumsInside(right);
  const std::string what = !steps ? "" : sums ? "the sums of " : "the steps of ";
  auto acc = Compare(left.facets.acc, right.facets.acc,
                     {sums || !steps ? "accumulates" : "computes", sums || !steps ? "accumulate" : "compute",
                      what + Braced(Code(value)) + " in {}"});
  if (!acc) return acc;
  // If one side's format is known, an unknown one is only known to differ from it.
  const auto told = [](const Classification& each) { return Accumulators(each.facets.acc) != OpenFormat(); };
  if (told(left) && !told(right)) acc->b = {};
  if (!told(left) && told(right)) acc->a = {};
  // Compared with a narrow sum, one in float32 or wider is the expected one.
  const auto count_wide = [](const Classification& each) {
    return static_cast<size_t>(
        std::ranges::count_if(each.facets.acc, [](const AccSpec& one) { return one.wide(); }));
  };
  const size_t wide_left = count_wide(left), wide_right = count_wide(right);
  if (wide_left == 0 && wide_right == right.facets.acc.size()) acc->b = {};
  if (wide_right == 0 && wide_left == left.facets.acc.size()) acc->a = {};
  return acc;
}

/// For each side, the behaviour that the other does not have, joined if one result has several.
Parting Together(const std::vector<Parting>& partings) {
  constexpr size_t kMost = 3;  // chosen: verbs in one sentence
  const auto join = [&](Deed Parting::*side) {
    Deed all;
    for (size_t i = 0; i < std::min(kMost, partings.size()); ++i) {
      const Deed& deed = partings[i].*side;
      if (deed.Nothing()) continue;
      all.singular += (all.Nothing() ? "" : " and ") + deed.singular;
      all.plural += (all.plural.empty() ? "" : " and ") + deed.plural;
    }
    return all;
  };
  return {.a = join(&Parting::a), .b = join(&Parting::b)};
}

/// Adds to a side's reads that its sums are narrow, if they are in each of its models.
void AddNarrowSums(const Classification& classification, Deed* deed) {
  const auto& accs = classification.facets.acc;
  if (deed->Nothing() || accs.empty()) return;
  const bool narrow =
      std::ranges::all_of(accs, [](const AccSpec& acc) { return acc.bits() <= Binary16().precision; });
  if (!narrow) return;
  const std::string with = ", with sums in " + Accumulators(accs);
  deed->singular += with;
  deed->plural += with;
}

}  // namespace

std::optional<Parting> FindParting(const Case& test_case, const std::string& value, const ValueResult& a,
                                   const ValueResult& b) {
  const Classification& left = a.classification;
  const Classification& right = b.classification;
  std::vector<Parting> found = FindReads(value, left, right);
  for (Parting& reads : found) {
    AddNarrowSums(left, &reads.a);
    AddNarrowSums(right, &reads.b);
  }
  if (found.empty()) {
    if (auto rounding = FindRounding(test_case, value, a, b)) found.push_back(std::move(*rounding));
  }
  if (found.empty() && left.form != right.form) {
    const auto deed = [&](const Classification& side) {
      return side.form.empty() ? Deed{} : Say("computes", "compute", Code(value) + " as " + Code(side.form));
    };
    return Parting{.a = deed(left), .b = deed(right)};
  }
  for (Parting& operand : FindOperands(test_case, value, left, right)) found.push_back(std::move(operand));
  if (!found.empty()) return Together(found);
  if (auto prod = Compare(left.facets.prod, right.facets.prod, kOfProducts,
                          {"rounds", "round", "each product in " + Braced(Code(value)) + " to {}"}))
    return prod;
  if (auto out = Compare(left.facets.out, right.facets.out, kOfStores,
                         {"stores", "store", Braced(Code(value)) + " as {}"}))
    return out;
  return FindNarrowAnywhere(value, left, right);
}

std::optional<Parting> FindDeeds(const Case& test_case, const std::string& value, const ValueResult& a,
                                 const ValueResult& b) {
  const auto unknown = [](const ValueResult& each) {
    return each.classification.kind == ClassificationKind::kUnmodelled;
  };
  if (unknown(a) || unknown(b)) return std::nullopt;
  auto parting = FindParting(test_case, value, a, b);
  if (!parting || (parting->a.Nothing() && parting->b.Nothing())) return std::nullopt;
  return parting;
}

}  // namespace ulpscope
