// The sentences of divergences.
#include "harness/judge/sentence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "harness/base/check.h"
#include "harness/base/text.h"
#include "harness/judge/asked.h"
#include "harness/judge/flat_program.h"
#include "harness/judge/label.h"
#include "harness/judge/tensor_diff.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

using Words = std::vector<std::string>;

/// "operand x"; of a Python number, which facets know by the op that takes it and, of two in one piece, by what that op gives:
/// "the number in the mul that gives half" of "scalar.mul@half".
std::string OperandPhrase(const std::string& operand, const std::string& value) {
  constexpr std::string_view kNumber = "scalar.";
  if (!operand.starts_with(kNumber)) return "operand " + operand;
  const size_t at = operand.find('@');
  return fmt::format("the number in the {} that gives {}",
                     operand.substr(kNumber.size(), at == std::string::npos ? at : at - kNumber.size()),
                     at == std::string::npos ? value : operand.substr(at + 1));
}

/// "0.125" of "scalar.mul@half", "half" being computed with one number; else OperandPhrase's words.
std::string NumberPhrase(const Case& test_case, const std::string& operand, const std::string& value) {
  const size_t at = operand.find('@');
  const Step* step = FindStep(test_case.program, at == std::string::npos ? value : operand.substr(at + 1));
  std::vector<double> numbers;
  for (size_t i = 0; step != nullptr && i < step->of.size(); ++i) {
    if (!step->of[i].IsScalar()) continue;
    if (const auto number = step->of[i].scalar->Number()) numbers.push_back(*number);
  }
  const bool own = step != nullptr && operand.starts_with("scalar." + step->op);
  if (!own || numbers.size() != 1 || step->attrs.contains("alpha") || step->attrs.contains("value"))
    return OperandPhrase(operand, value);
  return ShortestDecimal(numbers[0]);
}

/// Picks the verb that fits the number of names.
std::string_view Verb(const Side& side, std::string_view singular, std::string_view plural) {
  return side.names.size() == 1 ? singular : plural;
}

std::string Element(const std::vector<int64_t>& coordinates) { return "[" + Join(coordinates, ",") + "]"; }

bool Disjoint(const Words& a, const Words& b) {
  if (a.empty() || b.empty()) return false;
  return std::none_of(a.begin(), a.end(), [&](const std::string& word) {
    return std::find(b.begin(), b.end(), word) != b.end();
  });
}

Deed Say(std::string_view singular, std::string_view plural, const std::string& rest) {
  return {.singular = fmt::format("{} {}", singular, rest), .plural = fmt::format("{} {}", plural, rest)};
}

bool WritesIntoBuffer(const std::vector<Step>& steps, const std::string& value) {
  return std::any_of(steps.begin(), steps.end(), [&](const Step& step) {
    return (step.as == value && !step.out.empty()) || WritesIntoBuffer(step.steps, value);
  });
}

/// True if the words say that nothing was rounded: `none` itself, float32 beside it (a wide step that no
/// store shows).
bool IsNothing(const Words& words, std::string_view none) {
  if (none.empty() || std::find(words.begin(), words.end(), none) == words.end()) return false;
  // What may be none is no deed: a format that changes nothing here stands beside it.
  if (none == "as_is") return true;
  return std::all_of(words.begin(), words.end(),
                     [&](const std::string& word) { return word == none || word == "float32"; });
}

/// "bfloat16", "bfloat16 or float16", "bfloat16, or not at all"; long sets by what they have in common.
std::string Formats(const Words& words, std::string_view none) {
  constexpr size_t kMostNamed = 3;
  Words named;
  for (std::string word : words) {
    if (word == none) continue;
    if (word.ends_with("_rne")) word.resize(word.size() - 4);
    named.push_back(std::move(word));
  }
  const size_t left_out = words.size() - named.size();
  std::string text = named.size() > kMostNamed ? fmt::format("{}, {} or one of {} more formats", named[0],
                                                             named[1], named.size() - 2)
                                               : Join(named, " or ");
  return left_out > 0 && !named.empty() ? text + ", or not at all" : text;
}

/// The set of accumulators by its class.
std::string Accumulators(const Words& words) {
  constexpr size_t kMostNamed = 2;
  std::string joined = JoinAccumulators(words);
  return words.size() <= kMostNamed && FindFormat(joined) == nullptr ? Join(words, " or ") : joined;
}

/// Compares one facet of both sides; `none` is the word for no rounding ("" where every word is a deed).
std::optional<Parting> Compare(const std::map<std::string, Words>& a, const std::map<std::string, Words>& b,
                               const std::string& key, std::string_view none, std::string_view singular,
                               std::string_view plural, std::string_view form,
                               std::string (*spell)(const Words&, std::string_view) = Formats) {
  const auto left = a.find(key);
  const auto right = b.find(key);
  if (left == a.end() || right == b.end() || !Disjoint(left->second, right->second)) return std::nullopt;
  const auto deed = [&](const Words& words) {
    if (IsNothing(words, none)) return Deed{};
    return Say(singular, plural, fmt::format(fmt::runtime(form), spell(words, none)));
  };
  return Parting{.a = deed(left->second), .b = deed(right->second)};
}

std::string Braced(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    escaped += c;
    if (c == '{' || c == '}') escaped += c;
  }
  return escaped;
}

bool IsInside(const std::string& value, const std::string& cut) { return cut.starts_with(value + "."); }

/// The value is given by an op that sums, as far as one can see from its name.
bool Sums(const std::vector<Step>& steps, const std::string& value) {
  return std::none_of(steps.begin(), steps.end(), [&](const Step& step) {
    return (step.as == value && (step.op == "add" || step.op == "sub")) || !Sums(step.steps, value);
  });
}

bool HasStepsInside(const std::string& value, const Classification& classification) {
  if (classification.label.find("each step in") != std::string::npos) return true;
  return std::any_of(classification.cuts.begin(), classification.cuts.end(),
                     [&](const auto& cut) { return IsInside(value, cut.first); });
}

/// Whether every model of `classification` rounds steps inside the op to 16 bits beside those in `told`.
bool RoundsMoreInside(const std::string& value, const Classification& classification,
                      const std::vector<std::string>& told) {
  return !classification.models.empty() &&
         std::all_of(classification.models.begin(), classification.models.end(),
                     [&](const PrecisionModel& model) {
                       return std::any_of(model.cuts.begin(), model.cuts.end(), [&](const auto& cut) {
                         const auto spec = ParseMid(cut.second);
                         return IsInside(value, cut.first) && spec && spec->format != nullptr &&
                                spec->format->precision <= Binary16().precision &&
                                std::find(told.begin(), told.end(), cut.first) == told.end();
                       });
                     });
}

/// The steps inside the op that each model rounds, by the formats that they may be rounded to.
std::map<Words, std::vector<std::string>> RoundedInside(const std::string& value,
                                                        const Classification& classification) {
  std::map<Words, std::vector<std::string>> rounded;
  for (const auto& [cut, words] : classification.cuts) {
    if (IsInside(value, cut) && std::find(words.begin(), words.end(), "none") == words.end())
      rounded[words].push_back(cut);
  }
  return rounded;
}

/// "rounds the exp and total inside y to bfloat16": all that the classification says of steps inside.
Deed RoundsInside(const std::string& value, const Classification& classification) {
  constexpr size_t kMostNamed = 3;
  const auto rounded = RoundedInside(value, classification);
  std::vector<std::string> parts;
  for (const auto& [words, cuts] : rounded) {
    std::vector<std::string> names;
    for (const std::string& cut : cuts) names.push_back((names.empty() ? "the " : "") + StepInside(cut, value));
    if (rounded.size() == 1 && RoundsMoreInside(value, classification, cuts)) names.emplace_back("other steps");
    // Of many steps some round nothing that shows, and which these are the numbers do not tell.
    const std::string which = DescribeInside(value, classification).all ? "each step"
                              : names.size() > kMostNamed               ? "several steps"
                                                                        : JoinNames(names);
    parts.push_back(fmt::format("{} inside {} to {}", which, value, Formats(words, "none")));
  }
  return Say("rounds", "round", Join(parts, " and "));
}

/// Elementary steps of the op that gives `value`, rounded on one side alone, or others on either. A side whose op was explained
/// without such a step did not round it; one in another form of the op, where steps have other names, may have.
std::optional<Parting> FindStepInside(const std::string& value, const Classification& a,
                                      const Classification& b) {
  std::map<std::string, Words> left = a.cuts, right = b.cuts;
  for (const auto& [cut, words] : a.cuts) right.try_emplace(cut, Words{"none"});
  for (const auto& [cut, words] : b.cuts) left.try_emplace(cut, Words{"none"});
  const bool part = std::any_of(left.begin(), left.end(), [&](const auto& each) {
    return IsInside(value, each.first) && Disjoint(each.second, right.at(each.first));
  });
  if (!part) return std::nullopt;
  const bool a_rounds = !RoundedInside(value, a).empty(), b_rounds = !RoundedInside(value, b).empty();
  if (!a_rounds && !b_rounds) return std::nullopt;
  return Parting{.a = a_rounds ? RoundsInside(value, a) : Deed{}, .b = b_rounds ? RoundsInside(value, b) : Deed{}};
}

/// The formats of at most 16 bits that one of the roundings before a value's own store is to.
std::set<std::string> NarrowIn(const PrecisionModel& model, const std::string& value) {
  std::set<std::string> narrow;
  const auto add = [&](const FloatFormat* format) {
    if (format != nullptr && format->precision <= Binary16().precision)
      narrow.insert(std::string(format->name));
  };
  for (const auto& [operand, word] : model.in) {
    if (const auto in = ParseIn(word)) add(in->format);
  }
  if (const auto prod = ParseProd(model.prod)) add(prod->format);
  if (const auto acc = ParseAcc(model.acc)) add(acc->partial != nullptr ? acc->partial : acc->format);
  if (const auto mid = ParseMid(model.mid)) add(mid->format);
  for (const auto& [cut, word] : model.cuts) {
    if (const auto mid = ParseMid(word); mid && IsInside(value, cut)) add(mid->format);
  }
  return narrow;
}

/// No facet parts them by itself, and yet each model of the one side rounds something to 16 bits, and none of the other.
std::optional<Parting> FindNarrowAnywhere(const std::string& value, const Classification& a,
                                          const Classification& b) {
  if (a.models.empty() || b.models.empty()) return std::nullopt;
  const auto narrow = [&](const Classification& each) {
    return std::all_of(each.models.begin(), each.models.end(),
                       [&](const PrecisionModel& model) { return !NarrowIn(model, value).empty(); });
  };
  const auto wide = [&](const Classification& each) {
    return std::all_of(each.models.begin(), each.models.end(),
                       [&](const PrecisionModel& model) { return NarrowIn(model, value).empty(); });
  };
  const bool left = narrow(a) && wide(b);
  if (!left && !(narrow(b) && wide(a))) return std::nullopt;
  const Classification& rounds = left ? a : b;
  std::set<std::string> always = NarrowIn(rounds.models.front(), value);
  for (const PrecisionModel& model : rounds.models) {
    const std::set<std::string> mine = NarrowIn(model, value);
    std::erase_if(always, [&](const std::string& format) { return !mine.contains(format); });
  }
  const std::string format = always.empty() ? "16 bits" : *always.begin();
  const Deed deed =
      Say("rounds", "round",
          HasStepsInside(value, rounds) ? fmt::format("at least one step inside {} to {}", value, format)
                                        : fmt::format("something on the way to {} to {}", value, format));
  return left ? Parting{.a = deed, .b = {}} : Parting{.a = {}, .b = deed};
}

bool IsStored(const Words& words) { return std::find(words.begin(), words.end(), "stored") != words.end(); }

/// Nothing read unrounded is among what may have been.
bool IsWrittenAmong(const Words& together) {
  return std::find(together.begin(), together.end(), "") != together.end();
}

/// Sets of unrounded uses that exclude each other. Of a step without a sum it is enough that what is written explains the one and
/// not the other: where both read alike both would have the same bits.
bool ReadOtherwise(const Classification& a, const Classification& b) {
  if (a.together.empty() || b.together.empty()) return false;
  // Steps inside an op have a format as sums have one; only sums have an order, and so other bits in one precision.
  const auto sums = [](const Classification& one) {
    const auto acc = one.facets.find("acc");
    return acc != one.facets.end() && !acc->second.empty() &&
           one.label.find("each step in ") == std::string::npos;
  };
  if (!sums(a) && !sums(b) && a.piece.starts_with("step") && b.piece.starts_with("step"))
    return IsWrittenAmong(a.together) != IsWrittenAmong(b.together);
  return Disjoint(a.together, b.together);
}

/// "computes g from the unrounded s and t"; nothing without an operand.
Deed FromUnrounded(const std::string& value, const std::vector<std::string>& operands) {
  if (operands.empty()) return {};
  return Say("computes", "compute", fmt::format("{} from the unrounded {}", value, JoinNames(operands)));
}

/// Every operand that the one reads otherwise than the other.
std::vector<Parting> FindReads(const std::string& value, const Classification& a, const Classification& b) {
  std::vector<Parting> found;
  std::vector<std::string> unrounded_a, unrounded_b;
  for (const auto& [name, words] : a.reads) {
    const auto other = b.reads.find(name);
    if (other == b.reads.end() || !Disjoint(words, other->second)) continue;
    // Those of one kind are told together.
    if (words == Words{"unrounded"} && IsStored(other->second)) {
      unrounded_a.push_back(name);
      continue;
    }
    if (other->second == Words{"unrounded"} && IsStored(words)) {
      unrounded_b.push_back(name);
      continue;
    }
    const auto deed = [&, &operand = name](const Words& mine) {
      // What may be no deed is none: the value before its rounding gives these bits too.
      if (IsStored(mine)) return Deed{};
      if (mine == Words{"unrounded"}) return FromUnrounded(value, {operand});
      if (mine == Words{"flushed"})
        return Say("takes", "take",
                   operand == value
                       ? "subnormal results of " + value + " as zero"
                       : fmt::format("subnormals of {} as zero when computing {}", operand, value));
      if (mine.size() == 1)
        return Say("rounds", "round", fmt::format("{} to {} before computing {}", operand, mine[0], value));
      return Say("reads", "read",
                 fmt::format("{} as {} when computing {}", operand, Join(mine, " or "), value));
    };
    found.push_back({.a = deed(words), .b = deed(other->second)});
  }
  if (found.empty() && unrounded_a.empty() && unrounded_b.empty() && ReadOtherwise(a, b)) {
    // One by one each may be either, and not all at once.
    const auto operands = [](const Words& together) {
      return IsWrittenAmong(together) ? Words() : SplitOutsideParentheses(together.front(), '+');
    };
    unrounded_a = operands(a.together);
    unrounded_b = operands(b.together);
  }
  if (!unrounded_a.empty() || !unrounded_b.empty()) {
    found.insert(found.begin(),
                 {.a = FromUnrounded(value, unrounded_a), .b = FromUnrounded(value, unrounded_b)});
  }
  return found;
}

/// The formats of operands, a number of the value's own op by its short name: a piece of one step has "scalar.add" where one of
/// several, each with a number, has "scalar.add@value".
std::map<std::string, Words> OwnNames(const std::map<std::string, Words>& operands,
                                      const std::string& value) {
  std::map<std::string, Words> named = operands;
  const std::string own = "@" + value;
  for (const auto& [operand, words] : operands) {
    if (operand.ends_with(own)) named[operand.substr(0, operand.size() - own.size())] = words;
  }
  return named;
}

/// Every operand of a product or sum, and every Python number, that the one rounds and the other does not.
std::vector<Parting> FindOperands(const Case& test_case, const std::string& value, const Classification& a,
                                  const Classification& b) {
  std::vector<Parting> found;
  auto left = OwnNames(a.facets_in, value), right = OwnNames(b.facets_in, value);
  // A side whose op was explained without such a step did not round it.
  for (const auto& [operand, words] : a.facets_in) {
    if (IsInside(value, operand)) right.try_emplace(operand, Words{"as_is"});
  }
  for (const auto& [operand, words] : b.facets_in) {
    if (IsInside(value, operand)) left.try_emplace(operand, Words{"as_is"});
  }
  for (const auto& [operand, words] : left) {
    if (operand.ends_with("@" + value)) continue;
    const std::string what = IsInside(value, operand)
                                 ? "the " + Braced(StepInside(operand, value)) + " inside " + Braced(value)
                                 : Braced(NumberPhrase(test_case, operand, value));
    const bool is_number = std::isdigit(static_cast<unsigned char>(what.back())) != 0;
    const size_t at = operand.find('@');
    const std::string when =
        is_number ? " when computing " + Braced(at == std::string::npos ? value : operand.substr(at + 1))
                  : "";
    auto in = Compare(left, right, operand, "as_is", "rounds", "round", what + " to {}" + when);
    if (!in) continue;
    const auto flushes = [](const Words& in_words) { return in_words == Words{"as_is+daz"}; };
    const Deed flush = Say("takes subnormal numbers of", "take subnormal numbers of", what + " as zero");
    if (flushes(words)) in->a = flush;
    if (flushes(right.at(operand))) in->b = flush;
    found.push_back(std::move(*in));
  }
  return found;
}

/// A step in float16 inside a float16 result: tf32 has as many bits, and nobody stores it there.
Classification WithoutTwins(const ValueResult& value) {
  Classification told = value.classification;
  if (value.dtype != DType::kFloat16) return told;
  for (auto& [cut, words] : told.cuts) {
    if (std::find(words.begin(), words.end(), "float16") != words.end()) std::erase(words, "tf32");
  }
  return told;
}

/// Steps on the way to `value` that one side rounds to one format and the other does not, two or more, as the program has them.
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
      if (left == a.cuts.end() || right == b.cuts.end() || !Disjoint(left->second, right->second)) continue;
      const bool alike = told.empty() || (left->second == a.cuts.at(told.front()) &&
                                          right->second == b.cuts.at(told.front()));
      if (alike) told.push_back(step.as);
    }
  }
  if (told.size() < 2) return std::nullopt;
  return Compare(a.cuts, b.cuts, told.front(), "none", "rounds", "round",
                 fmt::format("{} to {{}} on the way to {}", Braced(JoinNames(told)), Braced(value)));
}

/// The most telling facet of how a value was computed, its operands apart, in which the two have no word in common.
std::optional<Parting> FindRounding(const Case& test_case, const std::string& value, const ValueResult& a,
                                    const ValueResult& b) {
  const Classification left = WithoutTwins(a), right = WithoutTwins(b);
  const std::string where = fmt::format("before the {} {}", Name(a.dtype),
                                        WritesIntoBuffer(test_case.program, value) ? "buffer" : "result");
  const std::string own(Name(a.dtype));
  if (auto step = FindStepInside(value, left, right)) return step;
  const auto only_own = [&](const Classification& classification) {
    const auto mid = classification.facets.find("mid");
    return mid != classification.facets.end() && mid->second == Words{own};
  };
  const bool twice = only_own(left) || only_own(right);
  const bool inside = (only_own(left) && HasStepsInside(value, left)) || (only_own(right) && HasStepsInside(value, right));
  const std::string through =
      twice && inside ? fmt::format("at least one step inside {} to {{}}", Braced(value))
      : twice ? fmt::format("{} to {{}} along the way, before its {} store", Braced(value), own)
            : fmt::format("{} to {{}} {}", Braced(value), where);
  if (auto mid = Compare(left.facets, right.facets, "mid", "none", "rounds", "round", through)) {
    if (!twice) return mid;
    // Of a result in 16 bits: the steps on the way that are stored, by their names; float32 on the way rounds nothing that shows.
    if (auto steps = FindStepsOnTheWay(test_case, value, left, right)) return steps;
    const auto wide = [](const Classification& each) { return IsNothing(each.facets.at("mid"), "float32"); };
    if (wide(left)) mid->a = {};
    if (wide(right)) mid->b = {};
    return mid;
  }
  for (const auto& [name, words] : left.cuts) {
    auto cut = Compare(left.cuts, right.cuts, name, "none", "rounds", "round",
                       fmt::format("{} to {{}} on the way to {}", Braced(name), Braced(value)));
    if (cut) return cut;
  }
  const bool steps =
      HasStepsInside(value, left) || HasStepsInside(value, right) || !Sums(test_case.program, value);
  // Where every step is rounded, what it was computed in before shows in none.
  if (DescribeInside(value, left).all || DescribeInside(value, right).all) return std::nullopt;
  const auto accumulators = [](const Words& words, std::string_view) { return Accumulators(words); };
  auto acc = Compare(left.facets, right.facets, "acc", "", steps ? "computes" : "accumulates",
                     steps ? "compute" : "accumulate",
                     (steps ? "the steps inside " : "") + Braced(value) + " in {}", accumulators);
  if (!acc) return acc;
  // Beside a format that is known, one that is not is another one: that is all there is to say of it.
  const auto told = [](const Classification& each) {
    return Accumulators(each.facets.at("acc")) != JoinAccumulators({"bfloat16", "float64"});
  };
  if (told(left) && !told(right)) acc->b = {};
  if (!told(left) && told(right)) acc->a = {};
  // Beside a narrow sum, one in float32 or wider is what is written.
  const auto count_wide = [](const Classification& each) {
    const Words& words = each.facets.at("acc");
    return static_cast<size_t>(std::count_if(words.begin(), words.end(), [](const std::string& word) {
      const auto spec = ParseAcc(word);
      return spec && spec->wide();
    }));
  };
  const size_t wide_left = count_wide(left), wide_right = count_wide(right);
  if (wide_left == 0 && wide_right == right.facets.at("acc").size()) acc->b = {};
  if (wide_right == 0 && wide_left == left.facets.at("acc").size()) acc->a = {};
  return acc;
}

/// What each side does that the other does not: all of it, where one result takes several.
Parting Together(const std::vector<Parting>& partings) {
  constexpr size_t kMost = 3;
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

/// Beside what a side reads otherwise: that its sums are narrow in each of its models.
void AddNarrowSums(const Classification& classification, Deed* deed) {
  const auto acc = classification.facets.find("acc");
  if (deed->Nothing() || acc == classification.facets.end() || acc->second.empty()) return;
  const bool narrow = std::all_of(acc->second.begin(), acc->second.end(), [](const std::string& word) {
    const auto spec = ParseAcc(word);
    return spec && spec->bits() <= Binary16().precision;
  });
  if (!narrow) return;
  const std::string with = ", with sums in " + Accumulators(acc->second);
  deed->singular += with;
  deed->plural += with;
}

/// In what the two classifications have no word in common. Where one of them reads an operand otherwise, other facets are those of
/// other steps, but for the numbers of the program.
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
  for (Parting& operand : FindOperands(test_case, value, left, right)) found.push_back(std::move(operand));
  if (!found.empty()) return Together(found);
  if (auto prod =
          Compare(left.facets, right.facets, "prod", "exact", "rounds", "round", "each product to {}"))
    return prod;
  if (auto out = Compare(left.facets, right.facets, "out", "", "stores", "store", Braced(value) + " as {}"))
    return out;
  return FindNarrowAnywhere(value, left, right);
}

const ValueResult& ValueOf(const Side& side, const std::string& value) {
  return side.speaker.result->values.at(value);
}

const TensorData* TensorOf(const Side& side, const std::string& value) {
  if (side.speaker.observation == nullptr) return nullptr;
  const auto found = side.speaker.observation->values.find(value);
  return found == side.speaker.observation->values.end() ? nullptr : &found->second;
}

int64_t IndexOf(const std::vector<int64_t>& element, const Shape& shape) {
  int64_t index = 0;
  for (size_t axis = 0; axis < element.size() && axis < shape.size(); ++axis)
    index = index * shape[axis] + element[axis];
  return index;
}

/// Whether what a step read has the same bits on both sides where element `index` of `value` comes from, as far as operands of
/// its shape tell.
bool ReadTheSame(const Side& mine, const Side& rival, const std::string& value, int64_t index) {
  const Shape& shape = TensorOf(mine, value)->shape;
  for (const auto& [operand, words] : ValueOf(mine, value).classification.reads) {
    const TensorData *a = TensorOf(mine, operand), *b = TensorOf(rival, operand);
    if (operand == value || a == nullptr || b == nullptr || a->shape != shape || b->shape != shape) continue;
    const double x = a->At(index), y = b->At(index);
    if (x != y && !(x != x && y != y)) return false;
  }
  return true;
}

/// Whether all of a side have the same there.
bool IsShared(const Side& side, const std::string& value, int64_t index) {
  const double shown = TensorOf(side, value)->At(index);
  return std::all_of(side.all.begin(), side.all.end(), [&](const Observation* each) {
    if (each == nullptr || !each->values.contains(value)) return true;
    const double other = each->values.at(value).At(index);
    return other == shown ? std::signbit(other) == std::signbit(shown) : other != other && shown != shown;
  });
}

/// An element where the sides differ, best one where that is what is said of the first side's doing, then one where they computed
/// it from the same, and each side is of one mind: one that a model of the rival cannot give, else the first.
std::optional<int64_t> WitnessOf(const Side& mine, const Side& rival, const std::string& value) {
  const TensorData *a = TensorOf(mine, value), *b = TensorOf(rival, value);
  if (a == nullptr || b == nullptr || a->shape != b->shape || a->dtype != b->dtype) return std::nullopt;
  const auto differs = [&](int64_t index) {
    const double x = a->At(index), y = b->At(index);
    return x != y && !(x != x && y != y);
  };
  std::vector<int64_t> candidates;
  for (const auto& [side, other] : {std::pair{&mine, &rival}, std::pair{&rival, &mine}}) {
    const Classification& left = ValueOf(*side, value).classification;
    const Classification& right = ValueOf(*other, value).classification;
    const auto& models = right.models_proved.empty() ? right.models : right.models_proved;
    for (const Exclusion& exclusion : left.excluded) {
      if (std::find(models.begin(), models.end(), exclusion.model) == models.end()) continue;
      const int64_t index = IndexOf(exclusion.element, a->shape);
      if (index < a->size() && differs(index)) candidates.push_back(index);
    }
  }
  for (int64_t index = 0; index < a->size(); ++index) {
    if (differs(index)) candidates.push_back(index);
  }
  const auto fair = [&](int64_t index) { return ReadTheSame(mine, rival, value, index); };
  const auto shared = [&](int64_t index) {
    return IsShared(mine, value, index) && IsShared(rival, value, index);
  };
  // Of those in which the two differ, the one where what is said is what makes the difference.
  const std::vector<int64_t>& shown_by = ValueOf(mine, value).classification.shown_by;
  const auto shows = [&](int64_t index) {
    return fair(index) && std::find(shown_by.begin(), shown_by.end(), index) != shown_by.end();
  };
  auto best = std::find_if(candidates.begin(), candidates.end(),
                           [&](int64_t index) { return shows(index) && shared(index); });
  if (best == candidates.end()) best = std::find_if(candidates.begin(), candidates.end(), shows);
  if (best == candidates.end())
    best = std::find_if(candidates.begin(), candidates.end(),
                        [&](int64_t index) { return fair(index) && shared(index); });
  if (best == candidates.end()) best = std::find_if(candidates.begin(), candidates.end(), fair);
  if (best == candidates.end()) best = std::find_if(candidates.begin(), candidates.end(), shared);
  if (best != candidates.end()) return *best;
  return candidates.empty() ? std::nullopt : std::optional(candidates.front());
}

/// What the numbers of an unexplained value show, in parentheses; else how far from the exact value they are.
std::string Shows(const Classification& classification) {
  // How near a rejected model comes says nothing of the value.
  for (const std::string& says : classification.says) {
    if (says.find("nearest model") == std::string::npos && says.find("no form tried") == std::string::npos)
      return " (" + says + ")";
  }
  const double ulp = classification.max_ulp;
  return std::isfinite(ulp) ? fmt::format(" (up to {:.2g} ulp from the exact value)", ulp) : "";
}

/// " on jax" where not all of the side have what is shown of one.
std::string OnWhom(const Side& side, const std::string& value, int64_t index) {
  return IsShared(side, value, index) ? "" : " on " + side.speaker.result->backend;
}

/// ": product[0,3] is 2.5 against 2.4375".
std::string Witness(const Side& first, const Side& second, const std::string& value) {
  const auto index = WitnessOf(first, second, value);
  if (!index) return "";
  const TensorData &a = *TensorOf(first, value), &b = *TensorOf(second, value);
  return fmt::format(": {}{} is {}{} against {}{}", value, Element(Coordinates(*index, a.shape)),
                     FormatDecimal(a.At(*index)), OnWhom(first, value, *index), FormatDecimal(b.At(*index)),
                     OnWhom(second, value, *index));
}

}  // namespace

std::string DescribeClass(const Case& test_case, const std::string& value, const ValueResult& result) {
  const Classification& classification = result.classification;
  if (classification.kind == ClassificationKind::kUnmodelled) {
    return "in a way that is not explained" + Shows(classification);
  }
  std::vector<std::string> parts;
  for (const auto& [operand, words] : classification.facets_in) {
    if (words.size() == 1 && words[0] != "as_is")
      parts.push_back(
          fmt::format("{} rounded to {}", NumberPhrase(test_case, operand, value), Formats(words, "as_is")));
  }
  const auto words_of = [&](const char* facet) {
    const auto found = classification.facets.find(facet);
    return found == classification.facets.end() ? Words() : found->second;
  };
  if (const Words prod = words_of("prod"); prod.size() == 1 && prod[0] != "exact")
    parts.push_back("products in " + prod[0]);
  const InsideSteps inside = DescribeInside(value, classification);
  // A split operand in float32 makes up for a wider sum: where its operands may be as they are, the sum is told of those.
  Words sums;
  for (const PrecisionModel& model : classification.models) {
    const bool as_is =
        std::all_of(model.in.begin(), model.in.end(), [](const auto& in) { return in.second == "as_is"; });
    if (as_is && !model.acc.empty() && std::find(sums.begin(), sums.end(), model.acc) == sums.end())
      sums.push_back(model.acc);
  }
  const std::string acc = JoinAccumulators(sums.empty() || words_of("acc").empty() ? words_of("acc") : sums);
  if (!acc.empty() && acc != "exact" && acc != JoinAccumulators({"bfloat16", "float64"}) && !inside.all)
    parts.push_back((HasStepsInside(value, classification) ? "each step in " : "sums in ") + acc);
  if (!inside.text.empty()) parts.push_back(inside.text);
  const Words mid = words_of("mid");
  if (mid.size() == 1 && mid[0] != "none" && mid[0] != inside.coarsest)
    parts.push_back(fmt::format("{} rounded to {} before its {} store", value, mid[0], Name(result.dtype)));
  if (!parts.empty()) return "with " + Join(parts, ", ");
  if (classification.models.size() < 2) return "with one rounding";
  const auto as_written = [](const PrecisionModel& model) {
    const auto sum = ParseAcc(model.acc);
    return model.in.empty() && sum && sum->wide() && (model.mid == "none" || model.mid == "float32") &&
           std::all_of(model.cuts.begin(), model.cuts.end(),
                       [](const auto& cut) { return cut.second == "none" || cut.second == "float32"; });
  };
  return std::any_of(classification.models.begin(), classification.models.end(), as_written)
             ? "as it is written, as far as these inputs tell"
             : "with roundings that these inputs do not tell apart";
}

namespace {

std::string DescribeOutcome(const Side& side) {
  const Outcome& outcome = side.speaker.result->outcome;
  const std::string names = JoinNames(side.names);
  if (outcome.kind == OutcomeKind::kCrashed) {
    return fmt::format("{} {}{}", names, Verb(side, "crashes", "crash"),
                       outcome.error_class.empty() ? "" : " with " + FirstLine(outcome.error_class, 40));
  }
  if (outcome.kind == OutcomeKind::kRaised) {
    constexpr size_t kShown = 140;
    std::string text = FirstLine(outcome.text, kShown);
    return fmt::format("{} {} {}{}", names, Verb(side, "raises", "raise"),
                       outcome.error_class.empty() ? "an error" : FirstLine(outcome.error_class, 80),
                       text.empty() ? "" : fmt::format(" (\"{}\")", text));
  }
  const CaseResult& result = *side.speaker.result;
  if (result.value_order.empty()) return fmt::format("{} {}", names, Verb(side, "completes", "complete"));
  const std::string& first = result.value_order.front();
  const auto value = result.values.find(first);
  if (value == result.values.end()) return fmt::format("{} {}", names, Verb(side, "completes", "complete"));
  std::string text =
      fmt::format("{} {} {} as {}", names, Verb(side, "returns", "return"), first, Name(value->second.dtype));
  // A label that must name many words says less than the cell of the matrix.
  constexpr size_t kLongestLabel = 100;
  const std::string& label = value->second.classification.label;
  if (!label.empty() && label.size() <= kLongestLabel) text += fmt::format(" ({})", label);
  return text;
}

/// "17 of 256 elements", "17 to 20 of 256 elements" where not every pair has the same number.
std::string Share(std::span<const TensorDifference* const> differences, bool special) {
  int64_t fewest = differences.front()->elements, most = 0;
  for (const TensorDifference* each : differences) {
    const int64_t part = special ? each->special : each->number;
    fewest = std::min(fewest, part);
    most = std::max(most, part);
  }
  return fmt::format("{}{} of {} elements", fewest == most ? "" : fmt::format("{} to ", fewest), most,
                     differences.front()->elements);
}

/// A whole program that was judged as one, of which the results are those without any rounding before their own.
bool RoundsNothing(const Classification& classification) {
  return classification.piece.empty() && classification.fits && !classification.models.empty() &&
         !classification.cuts.empty() &&
         std::all_of(classification.cuts.begin(), classification.cuts.end(),
                     [](const auto& cut) { return cut.second == Words{"none"}; });
}

/// The first element that shows the difference, best where each side is of one mind.
int64_t ShownElement(const Side& a, const Side& b, const std::string& value, bool special,
                     const TensorDifference& difference) {
  const int64_t first = special ? difference.first_special : difference.first_number;
  const TensorData &left = *TensorOf(a, value), &right = *TensorOf(b, value);
  for (int64_t index = first; index < left.size(); ++index) {
    const double x = left.At(index), y = right.At(index);
    if ((special ? DiffersInKind(x, y) : DiffersInNumber(x, y)) && IsShared(a, value, index) &&
        IsShared(b, value, index))
      return index;
  }
  return first;
}

std::string ValueAt(const Side& side, const std::string& value, int64_t index) {
  return FormatDecimal(side.speaker.observation->values.at(value).At(index));
}

std::string Spell(const Cast& cast) {
  return fmt::format("{} to {} of {} under {}", cast.from, cast.to, Element(cast.shape),
                     FirstLine(cast.under, 60));
}

}  // namespace

std::optional<std::string> FindOtherRead(const Classification& a, const Classification& b) {
  for (const auto& [operand, words] : a.reads) {
    const auto other = b.reads.find(operand);
    if (other != b.reads.end() && Disjoint(words, other->second)) return operand;
  }
  if (ReadOtherwise(a, b)) return (IsWrittenAmong(a.together) ? b : a).together.front();
  return std::nullopt;
}

std::string JoinNames(const std::vector<std::string>& names) {
  if (names.size() < 2) return names.empty() ? "" : names.front();
  const std::vector<std::string> head(names.begin(), names.end() - 1);
  return Join(head, ", ") + " and " + names.back();
}

std::string FirstLine(std::string_view text, size_t limit) {
  std::string line;
  for (const char c : text.substr(0, text.find('\n'))) {
    line += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  }
  if (line.size() <= limit) return line;
  while (limit > 0 && (static_cast<unsigned char>(line[limit]) & 0xc0) == 0x80)
    --limit;  // not inside a UTF-8 character
  return line.substr(0, limit) + "...";
}

std::string OutcomeSentence(const Side& left, const Side& right) {
  const bool left_first = left.speaker.result->outcome.kind != OutcomeKind::kCompleted;
  const Side& first = left_first ? left : right;
  const Side& second = left_first ? right : left;
  return fmt::format("{}; {}.", DescribeOutcome(first), DescribeOutcome(second));
}

std::string DtypeSentence(const Side& a, const Side& b, const std::string& value, std::string_view left,
                          std::string_view right) {
  const auto clause = [&](const Side& side, std::string_view dtype) {
    if (dtype == "none")
      return fmt::format("{} {} no {}", JoinNames(side.names), Verb(side, "gives", "give"), value);
    return fmt::format("{} {} {} as {}", JoinNames(side.names), Verb(side, "gives", "give"), value, dtype);
  };
  return fmt::format("{}; {}.", clause(a, left), clause(b, right));
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

namespace {

/// ": y[0,3] is 2.5, as written 2.4375 (17 of 64 elements)", of an element in which the side is of one mind; empty where what is
/// written gives all that was looked at.
std::string BesideWhatIsWritten(const Side& side, const std::string& value) {
  const Classification& classification = ValueOf(side, value).classification;
  const TensorData* data = TensorOf(side, value);
  const std::vector<int64_t>& shown = classification.shown_by;
  if (data == nullptr || shown.empty() || shown.size() != classification.as_written.size()) return "";
  const auto shared =
      std::find_if(shown.begin(), shown.end(), [&](int64_t index) { return IsShared(side, value, index); });
  const auto k = static_cast<size_t>((shared == shown.end() ? shown.begin() : shared) - shown.begin());
  return fmt::format(": {}{} is {}{}, as written {} ({} of {} elements{})", value,
                     Element(Coordinates(shown[k], data->shape)), FormatDecimal(data->At(shown[k])),
                     OnWhom(side, value, shown[k]), FormatDecimal(classification.as_written[k]),
                     classification.shown_count, classification.shown_of,
                     classification.shown_of < data->size() ? " looked at" : "");
}

}  // namespace

std::string DeedSentence(const Side& doers, const Side& others, const std::string& value, const Deed& deed,
                         std::string_view basis, std::string_view although) {
  const std::string likely = basis == "proved" ? "" : " likely";
  std::string witness = BesideWhatIsWritten(doers, value);
  if (witness.empty()) witness = Witness(doers, others, value);
  return fmt::format("{}{} {}; {}{} {}{}{}.", JoinNames(doers.names), likely,
                     Verb(doers, deed.singular, deed.plural), JoinNames(others.names), likely,
                     Verb(others, "does not", "do not"), although, witness);
}

std::string UnexplainedSentence(const Side& who, const Side& others, const std::string& value) {
  std::string witness = BesideWhatIsWritten(who, value);
  if (witness.empty()) witness = Witness(who, others, value);
  return fmt::format("{} {} {} in a way that is not explained{}{}.", JoinNames(who.names),
                     Verb(who, "computes", "compute"), value, Shows(ValueOf(who, value).classification), witness);
}

std::string PrecisionSentence(const Case& test_case, const Side& a, const Side& b, const std::string& value,
                              std::string_view basis, std::string_view although) {
  const ValueResult& left = ValueOf(a, value);
  const ValueResult& right = ValueOf(b, value);
  const std::string likely = basis == "proved" ? "" : " likely";
  const auto parting = FindParting(test_case, value, left, right);
  if (!parting || (parting->a.Nothing() && parting->b.Nothing())) {
    const auto clause = [&](const Side& side, const ValueResult& mine) {
      return fmt::format("{}{} {} {} {}", JoinNames(side.names), likely, Verb(side, "computes", "compute"),
                         value, DescribeClass(test_case, value, mine));
    };
    const std::string how = DescribeClass(test_case, value, left);
    if (how == DescribeClass(test_case, value, right))
      return fmt::format("{} and {}{} both compute {} {}, and not in the same way{}.", JoinNames(a.names),
                         JoinNames(b.names), likely, value, how, Witness(a, b, value));
    return fmt::format("{}; {}{}.", clause(a, left), clause(b, right), Witness(a, b, value));
  }
  const bool a_first = !parting->a.Nothing();
  const Side& first = a_first ? a : b;
  const Side& second = a_first ? b : a;
  const Deed& deed = a_first ? parting->a : parting->b;
  const Deed& other = a_first ? parting->b : parting->a;
  const std::string second_deed =
      other.Nothing() ? std::string(Verb(second, "does not", "do not")) + std::string(although)
                      : std::string(Verb(second, other.singular, other.plural));
  return fmt::format("{}{} {}; {}{} {}{}.", JoinNames(first.names), likely,
                     Verb(first, deed.singular, deed.plural), JoinNames(second.names), likely, second_deed,
                     Witness(first, second, value));
}

namespace {

/// What every backend of a side gave.
std::vector<const TensorData*> TensorsOf(const Side& side, const std::string& value) {
  std::vector<const TensorData*> all{&side.speaker.observation->values.at(value)};
  for (const Observation* each : side.all) {
    if (each == nullptr) continue;
    if (const auto tensor = each->values.find(value); tensor != each->values.end())
      all.push_back(&tensor->second);
  }
  return all;
}

/// "jax gives zero where torch-eager gives subnormal numbers in product"; empty where neither does, or both, or anything else
/// differs too.
std::string WhoFlushes(const Side& a, const Side& b, const std::string& value) {
  bool left_zero = false, right_zero = false;
  for (const TensorData* left : TensorsOf(a, value)) {
    for (const TensorData* right : TensorsOf(b, value)) {
      const Flushing flushing = FindFlushing(*left, *right);
      if (!flushing.alone) return "";
      left_zero = left_zero || flushing.left;
      right_zero = right_zero || flushing.right;
    }
  }
  if (left_zero == right_zero) return "";
  const Side &zero = left_zero ? a : b, &keeps = left_zero ? b : a;
  return fmt::format("{} {} zero where {} {} subnormal numbers in {}", JoinNames(zero.names),
                     Verb(zero, "gives", "give"), JoinNames(keeps.names), Verb(keeps, "gives", "give"),
                     value);
}

}  // namespace

namespace {

/// Of a step that both sides compute in one precision, how far each is from the exact result of its operands: "torch-inductor has
/// it correctly rounded, torch-eager up to 0.73 ulp off". That is no cause, and where it is not known of every element, nothing is.
std::string HowFarOff(const Side& a, const Side& b, const std::string& value) {
  const Classification &left = ValueOf(a, value).classification, &right = ValueOf(b, value).classification;
  const auto whole = [](const Classification& one) { return one.checked > 0 && one.checked == one.elements; };
  const bool left_is = left.max_ulp <= 0.5, right_is = right.max_ulp <= 0.5;
  // What is known is known of those who speak, and of all that have the same bits of it.
  const auto of_one_mind = [&](const Side& side) {
    for (int64_t k = 0; k < TensorOf(side, value)->size(); ++k) {
      if (!IsShared(side, value, k)) return false;
    }
    return true;
  };
  if ((left_is && right_is) || left.piece != "step" || right.piece != "step" || !whole(left) ||
      !whole(right) || !of_one_mind(a) || !of_one_mind(b))
    return "why was not found";
  if (!left_is && !right_is)
    return fmt::format("neither is correctly rounded: {} {} up to {:.3g} ulp off, {} up to {:.3g}",
                       JoinNames(a.names), Verb(a, "is", "are"), left.max_ulp, JoinNames(b.names),
                       right.max_ulp);
  const Side &is = left_is ? a : b, &is_not = left_is ? b : a;
  return fmt::format("{} {} it correctly rounded, {} up to {:.2g} ulp off", JoinNames(is.names),
                     Verb(is, "has", "have"), JoinNames(is_not.names), std::max(left.max_ulp, right.max_ulp));
}

}  // namespace

std::string DifferenceSentence(DivergenceKind kind, const Side& a, const Side& b, const std::string& value,
                               std::span<const TensorDifference* const> differences) {
  const bool special = kind == DivergenceKind::kSpecial;
  const int64_t index = ShownElement(a, b, value, special, *differences.front());
  const Shape& shape = ValueOf(a, value).shape;
  const auto against = [&](const Side& first, const Side& second) {
    return fmt::format("{} = {}{} against {}{}", Element(Coordinates(index, shape)),
                       ValueAt(first, value, index), OnWhom(first, value, index),
                       ValueAt(second, value, index), OnWhom(second, value, index));
  };
  const std::string witness = against(a, b);
  const std::string share = Share(differences, special);
  double largest = 0;
  for (const TensorDifference* each : differences) largest = std::max(largest, each->largest_ulp);
  const std::string other = JoinNames(b.names);
  const std::string differs =
      fmt::format("{} {} from {}", JoinNames(a.names), Verb(a, "differs", "differ"), other);
  if (special) {
    const bool signs = std::all_of(differences.begin(), differences.end(), [](const TensorDifference* each) {
      return each->special == each->zero_signs;
    });
    return fmt::format("{} in the {} of {} ({}, e.g. {}).", differs, signs ? "signs of zeros" : "special values",
                       value, share, witness);
  }
  const std::string spread = ShortestDecimal(largest);
  if (kind == DivergenceKind::kOrder || kind == DivergenceKind::kBits) {
    if (kind == DivergenceKind::kBits)
      return fmt::format("{} in {} ({}, by up to {} ulp, e.g. {}); {}.", differs, value, share, spread,
                         witness, HowFarOff(a, b, value));
    return fmt::format("{} in {} ({}, by up to {} ulp, e.g. {}): another order of accumulation explains it.",
                       differs, value, share, spread, witness);
  }
  if (const std::string zero = WhoFlushes(a, b, value); !zero.empty()) {
    const bool b_first = zero.starts_with(JoinNames(b.names) + " give");
    return fmt::format("{} ({}, e.g. {}).", zero, share, b_first ? against(b, a) : witness);
  }
  const std::string size = largest > 0 ? fmt::format(", by up to {} ulp", spread) : "";
  std::vector<std::string> asked;
  for (const Side* side : {&a, &b}) {
    const auto& on_the_way = ValueOf(*side, value).classification.on_the_way;
    if (on_the_way.empty()) continue;
    asked.push_back(fmt::format("{} likely {} to {}", JoinNames(side->names),
                                DescribeOnTheWay(on_the_way, side->names.size() > 1), value));
  }
  if (!asked.empty()) {
    return fmt::format("{} in {} ({}{}, e.g. {}): as it was asked, {}.", differs, value, share, size,
                       witness, Join(asked, "; "));
  }
  for (const Side* side : {&a, &b}) {
    if (!RoundsNothing(ValueOf(*side, value).classification)) continue;
    return fmt::format("{} in {} ({}{}, e.g. {}): as it was asked, {}{} {} nothing on the way to {}.",
                       differs, value, share, size, witness, JoinNames(side->names),
                       ValueOf(*side, value).classification.rests_on_likelihood ? " likely" : "",
                       Verb(*side, "rounds", "round"), value);
  }
  return fmt::format("{} in {} ({}{}, e.g. {}).", differs, value, share, size, witness);
}

namespace {

/// In how many elements one side is infinite, or NaN, and the other is finite; the fewest and the most of all pairs.
struct OutOfRange {
  int64_t fewest = std::numeric_limits<int64_t>::max(), most = 0;

  void Add(int64_t count) {
    fewest = std::min(fewest, count);
    most = std::max(most, count);
  }
  std::string Text() const {
    return fewest == most ? std::to_string(most) : fmt::format("{} to {}", fewest, most);
  }
};

/// Infinities, then NaNs, of `mine` where `other` is finite.
std::pair<OutOfRange, OutOfRange> CountOutOfRange(const Side& mine, const Side& other,
                                                  const std::string& value) {
  std::pair<OutOfRange, OutOfRange> counts;
  for (const Observation* one : mine.all) {
    for (const Observation* rival : other.all) {
      if (one == nullptr || rival == nullptr) continue;
      const TensorData &left = one->values.at(value), &right = rival->values.at(value);
      int64_t infinite = 0, nan = 0;
      for (int64_t k = 0; k < left.size(); ++k) {
        if (!std::isfinite(right.At(k))) continue;
        infinite += std::isinf(left.At(k)) ? 1 : 0;
        nan += std::isnan(left.At(k)) ? 1 : 0;
      }
      counts.first.Add(infinite);
      counts.second.Add(nan);
    }
  }
  return counts;
}

}  // namespace

std::string RangeSentence(const Side& a, const Side& b, const std::string& value, Infinity infinity) {
  const TensorData &left = *TensorOf(a, value), &right = *TensorOf(b, value);
  const auto clause = [&](const Side& side, const Side& other) -> std::string {
    const auto [infinite, nan] = CountOutOfRange(side, other, value);
    std::vector<std::string> deeds, counts;
    if (infinite.most > 0) {
      deeds.push_back(infinity == Infinity::kOverflow
                          ? std::string(Verb(side, "overflows to inf", "overflow to inf"))
                          : std::string(Verb(side, "gives inf", "give inf")));
      counts.push_back(infinite.Text());
    }
    if (nan.most > 0) {
      deeds.push_back(std::string(Verb(side, "gives NaN", "give NaN")));
      counts.push_back(nan.Text());
    }
    if (deeds.empty()) return "";
    std::string text = fmt::format("{} {} in {} ({} of {} elements", JoinNames(side.names),
                                   Join(deeds, " and "), value, Join(counts, " and "), left.size());
    const TensorData &mine = *TensorOf(side, value), &rival = *TensorOf(other, value);
    for (int64_t k = 0; k < mine.size(); ++k) {
      if (std::isfinite(mine.At(k)) || !std::isfinite(rival.At(k))) continue;
      text += fmt::format(", first {} = {}{} against {}{}", Element(Coordinates(k, mine.shape)),
                          FormatDecimal(mine.At(k)), OnWhom(side, value, k), FormatDecimal(rival.At(k)),
                          OnWhom(other, value, k));
      break;
    }
    return text + ")";
  };
  ULPSCOPE_CHECK(left.size() == right.size(), "tensors of one shape");
  const std::string first = clause(a, b), second = clause(b, a);
  if (!first.empty() && !second.empty()) return fmt::format("{}; {}.", first, second);
  const Side& stays = first.empty() ? a : b;
  return fmt::format("{}{}; {} {} there.", first, second, JoinNames(stays.names),
                     Verb(stays, "does not", "do not"));
}

std::string ObservedStepsSentence(const Divergence& divergence, const std::vector<std::string>& changed,
                                  const std::vector<Divergence>& steps) {
  const auto holds = [](const Words& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  // One of `changed` on one side of the step, and whom it parts from on the other.
  const auto parts = [&](const Divergence& step) {
    // What others do on the way is no reason of its own doing: of a step the doers come first.
    for (const size_t side : {0, 1}) {
      const Words &mine = divergence.backends[side], &other = divergence.backends[1 - side];
      const bool me = std::any_of(changed.begin(), changed.end(), [&](const std::string& name) {
        return holds(mine, name) && holds(step.backends[0], name);
      });
      const bool them = std::any_of(other.begin(), other.end(),
                                    [&](const std::string& name) { return holds(step.backends[1], name); });
      if (me && them) return true;
    }
    return false;
  };
  constexpr size_t kMostTold = 2;
  Words told;
  size_t more = 0;
  for (const Divergence& step : steps) {
    if (step.kind != DivergenceKind::kPrecision || step.backends.size() != 2 || !parts(step)) continue;
    if (told.size() == kMostTold) {
      ++more;
      continue;
    }
    std::string text = step.sentence;
    text.resize(std::min({text.rfind(": " + step.value + "["), text.size()}));
    if (text.ends_with('.')) text.pop_back();
    if (!step.also.empty()) text += fmt::format("; likewise for {}", JoinNames(step.also));
    told.push_back(std::move(text));
  }
  const std::string changes =
      fmt::format(" Observing all steps changes {} on {}", divergence.value, JoinNames(changed));
  if (told.empty()) return changes + ", so the steps do not tell why.";
  return fmt::format("{}; there, {}{}.", changes, Join(told, ". "),
                     more == 0   ? ""
                     : more == 1 ? ". 1 more step parts"
                                 : fmt::format(". {} more steps part", more));
}

std::string GraphGapSentence(const std::string& backend, const GraphGap& gap) {
  const std::string_view verb = gap.basis == "proved" ? "prove" : "make it likely";
  if (gap.kind == GraphGap::Kind::kAppeared) {
    return fmt::format(
        "In {}, no stage of the trace names a format so narrow; the numbers of {} {} {} ({} -> {}).", backend,
        gap.value, verb, gap.format, gap.from, gap.to);
  }
  return fmt::format(
      "In {}, the {} stage rounds {} to {} and back; the numbers {} that nothing did ({} -> {}).", backend,
      gap.from, gap.value, gap.format, verb, gap.from, gap.to);
}

std::string CastsSentence(const Side& a, const Side& b, const std::string& stage, std::span<const Cast> left,
                          std::span<const Cast> right) {
  const auto only = [](std::span<const Cast> mine, std::span<const Cast> theirs) {
    std::vector<std::string> spelled;
    for (const Cast& cast : mine) {
      const auto same = [&](const Cast& other) {
        return cast.from == other.from && cast.to == other.to && cast.shape == other.shape;
      };
      if (std::count_if(mine.begin(), mine.end(), same) <= std::count_if(theirs.begin(), theirs.end(), same))
        continue;
      if (std::string text = Spell(cast); std::find(spelled.begin(), spelled.end(), text) == spelled.end()) {
        spelled.push_back(std::move(text));
      }
    }
    return spelled;
  };
  const auto clause = [&](const Side& side, std::vector<std::string> extra) {
    constexpr size_t kMostSpelled = 2;
    if (extra.size() > kMostSpelled + 1) {
      const size_t more = extra.size() - kMostSpelled;
      extra.resize(kMostSpelled);
      extra.push_back(fmt::format("and {} more", more));
    }
    return fmt::format("{} {} {}", JoinNames(side.names), Verb(side, "casts", "cast"), Join(extra, ", "));
  };
  const auto left_only = only(left, right);
  const auto right_only = only(right, left);
  std::vector<std::string> clauses;
  if (!left_only.empty()) clauses.push_back(clause(a, left_only));
  if (!right_only.empty()) clauses.push_back(clause(b, right_only));
  const Side& silent = left_only.empty() ? a : b;
  if (clauses.size() == 1)
    clauses.push_back(fmt::format("{} {}", JoinNames(silent.names), Verb(silent, "does not", "do not")));
  return fmt::format("The bits agree, but in the {} stage {}.", stage, Join(clauses, "; "));
}

}  // namespace ulpscope
