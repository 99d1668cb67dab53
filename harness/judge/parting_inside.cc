// Roundings inside an op, by its elementary steps or by the properties that all models of a side share.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/judge/label.h"
#include "harness/judge/parting.h"
#include "harness/judge/side.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

/// True if every model of `classification` rounds steps inside the op to 16 bits other than those in `told`.
bool RoundsMoreInside(const std::string& value, const Classification& classification,
                      const std::vector<std::string>& told) {
  return !classification.models.empty() &&
         std::ranges::all_of(classification.models, [&](const PrecisionModel& model) {
           return std::ranges::any_of(model.cuts, [&](const auto& cut) {
             return IsInside(value, cut.first) && cut.second.bits() <= Binary16().precision &&
                    !Contains(told, cut.first);
           });
         });
}

/// The steps inside the op that each model rounds, by the formats that they may be rounded to.
std::map<Words, std::vector<std::string>> RoundedInside(const std::string& value,
                                                        const Classification& classification) {
  std::map<Words, std::vector<std::string>> rounded;
  for (const auto& [cut, roundings] : classification.cuts) {
    const bool perhaps = std::ranges::any_of(roundings, [](const RoundSpec& each) { return each.none(); });
    if (IsInside(value, cut) && !perhaps) rounded[WordsOf(roundings, MidWord)].push_back(cut);
  }
  return rounded;
}

/// True if a step inside the op other than those in `told` may be rounded: one model rounds it, another does not.
bool MayRoundMoreInside(const std::string& value, const Classification& classification,
                        const std::vector<std::string>& told) {
  return std::ranges::any_of(classification.cuts, [&](const auto& cut) {
    return IsInside(value, cut.first) && !Contains(told, cut.first) &&
           std::ranges::any_of(cut.second, [](const RoundSpec& each) { return !each.none_or(Binary32()); });
  });
}

/// "rounds the exp and total inside y to bfloat16": all known roundings of steps inside.
Deed RoundsInside(const std::string& value, const Classification& classification) {
  constexpr size_t kMostNamed = 3;  // chosen: steps in one clause
  const auto rounded = RoundedInside(value, classification);
  std::vector<std::string> parts;
  for (const auto& [words, cuts] : rounded) {
    const auto& formats = classification.cuts.at(cuts.front());
    std::vector<std::string> names;
    for (const std::string& cut : cuts)
      names.push_back((names.empty() ? "the " : "") + StepInside(cut, value));
    const bool more = rounded.size() == 1 && RoundsMoreInside(value, classification, cuts);
    if (more) names.emplace_back("other steps");
    // If there are many steps, the rounding of some has no visible effect, and the numbers do not show which.
    const bool perhaps = !more && rounded.size() == 1 && MayRoundMoreInside(value, classification, cuts);
    // "the sigmoid of `v`" would be sigmoid(v).
    const std::string which = DescribeInside(value, classification).all ? "each step of"
                              : names.size() > kMostNamed
                                  ? "several steps of"
                                  : (perhaps ? "at least " : "") + JoinNames(names) + " inside";
    parts.push_back(fmt::format("{} {} to {}", which, Code(value), Formats(formats, kOfIntermediates)));
  }
  return Say("rounds", "round", Join(parts, " and "));
}

/// The formats of at most 16 bits among the roundings before a value's own output rounding.
std::set<std::string> NarrowIn(const PrecisionModel& model, const std::string& value) {
  std::set<std::string> narrow;
  const auto add = [&](const FloatFormat* format) {
    if (format != nullptr && format->precision <= Binary16().precision)
      narrow.insert(std::string(format->name));
  };
  for (const auto& [operand, in] : model.in) add(in.format);
  add(model.prod.format);
  add(model.acc.partial != nullptr ? model.acc.partial : model.acc.format);
  add(model.mid.format);
  for (const auto& [cut, rounding] : model.cuts) {
    if (IsInside(value, cut)) add(rounding.format);
  }
  return narrow;
}

/// "accumulates the sums inside y in bfloat16": for narrow sums, whose steps may be rounded under another form's names.
Deed SumsNarrowly(const std::string& value, const Classification& classification) {
  if (!SumsInside(classification) || !SumsNarrow(classification)) return {};
  return Say("accumulates", "accumulate",
             fmt::format("the sums of {} in {}", Code(value), Accumulators(classification.facets.acc)));
}

}  // namespace

bool IsInside(const std::string& value, const std::string& cut) { return cut.starts_with(value + "."); }

RoundingSets StepsAsComputed(const std::string& value, const Classification& classification) {
  RoundingSets steps = classification.cuts;
  for (auto& [cut, roundings] : steps) {
    if (!IsInside(value, cut)) continue;
    for (const PrecisionModel& model : classification.models) {
      const RoundSpec* own = Lookup(model.cuts, cut);
      if ((own != nullptr && !own->none()) || !model.acc.binary() || model.acc.wide()) continue;
      const RoundSpec rounding = ToNearest(*model.acc.format);
      if (!Contains(roundings, rounding)) roundings.push_back(rounding);
    }
  }
  return steps;
}

bool SumsInside(const Classification& classification) {
  return classification.labelled == FormatOfWhat::kSums;
}

std::string NarrowInEach(const std::string& value, const Classification& classification) {
  if (classification.models.empty()) return "";
  std::set<std::string> always = NarrowIn(classification.models.front(), value);
  for (const PrecisionModel& model : classification.models) {
    const std::set<std::string> mine = NarrowIn(model, value);
    if (mine.empty()) return "";
    std::erase_if(always, [&](const std::string& format) { return !mine.contains(format); });
  }
  return always.empty() ? "16 bits" : *always.begin();
}

bool HasStepsInside(const std::string& value, const Classification& classification) {
  if (classification.labelled == FormatOfWhat::kSteps) return true;
  return std::ranges::any_of(classification.cuts,
                             [&](const auto& cut) { return IsInside(value, cut.first); });
}

std::optional<Parting> FindStepInside(const std::string& value, const Classification& a,
                                      const Classification& b) {
  RoundingSets left = StepsAsComputed(value, a), right = StepsAsComputed(value, b);
  const std::vector<RoundSpec> unrounded{RoundSpec{}};
  for (const auto& [cut, roundings] : a.cuts) right.try_emplace(cut, unrounded);
  for (const auto& [cut, roundings] : b.cuts) left.try_emplace(cut, unrounded);
  const bool part = std::ranges::any_of(left, [&](const auto& each) {
    return IsInside(value, each.first) && Disjoint(each.second, right.at(each.first));
  });
  if (!part) return std::nullopt;
  const bool a_rounds = !RoundedInside(value, a).empty(), b_rounds = !RoundedInside(value, b).empty();
  if (!a_rounds && !b_rounds) return std::nullopt;
  // Which step it is may not be known of one that all its models round something inside.
  const auto deed = [&](const Classification& each, bool rounds) {
    if (rounds) return RoundsInside(value, each);
    const std::string format = RoundsMoreInside(value, each, {}) ? NarrowInEach(value, each) : "";
    return format.empty()
               ? SumsNarrowly(value, each)
               : Say("rounds", "round", fmt::format("at least one step of {} to {}", Code(value), format));
  };
  return Parting{.a = deed(a, a_rounds), .b = deed(b, b_rounds)};
}

std::optional<Parting> FindNarrowAnywhere(const std::string& value, const Classification& a,
                                          const Classification& b) {
  if (a.models.empty() || b.models.empty()) return std::nullopt;
  // Without a format in common there is to be none at all on the other side.
  const auto rounds_alone = [&](const std::string& format, const Classification& other) {
    return !format.empty() && std::ranges::none_of(other.models, [&](const PrecisionModel& model) {
      const std::set<std::string> narrow = NarrowIn(model, value);
      return FindFormat(format) == nullptr ? !narrow.empty() : narrow.contains(format);
    });
  };
  const std::string in_a = NarrowInEach(value, a), in_b = NarrowInEach(value, b);
  const bool left = rounds_alone(in_a, b);
  if (!left && !rounds_alone(in_b, a)) return std::nullopt;
  const Classification& rounds = left ? a : b;
  const std::string& format = left ? in_a : in_b;
  const Deed deed =
      Say("rounds", "round",
          HasStepsInside(value, rounds) ? fmt::format("at least one step of {} to {}", Code(value), format)
                                        : fmt::format("an intermediate of {} to {}", Code(value), format));
  return left ? Parting{.a = deed, .b = {}} : Parting{.a = {}, .b = deed};
}

}  // namespace ulpscope
