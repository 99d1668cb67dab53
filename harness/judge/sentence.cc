// The sentences of divergences that have a cause, or are none of values.
#include "harness/judge/sentence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/judge/label.h"
#include "harness/judge/manner.h"
#include "harness/judge/parting.h"
#include "harness/judge/witness.h"
#include "harness/model/conforming.h"
#include "harness/model/flat_program.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

/// A remark about each member of a side, in parentheses: one text if it is true of all, else each with its name.
std::string ShowOfAll(const Side& side, const std::string& value) {
  std::vector<std::string> texts;
  for (const CaseResult* each : side.results)
    texts.push_back(ShowsOrHowFar(each->values.at(value).classification));
  const bool same =
      std::ranges::all_of(texts, [&](const std::string& text) { return text == texts.front(); });
  if (same) return texts.empty() ? "" : InParentheses(texts.front());
  std::vector<std::string> parts;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!texts[i].empty()) parts.push_back(side.names[i] + ": " + texts[i]);
  }
  return InParentheses(Join(parts, "; "));
}

/// Chosen: a line.
constexpr size_t kShownOfError = 140;

/// "raises RuntimeError ("...")"; with `several` backends "raise RuntimeError ("...")".
std::string DescribeOneOutcome(const CaseResult& result, bool several) {
  const auto verb = [&](const char* singular, const char* plural) { return several ? plural : singular; };
  const Outcome& outcome = result.outcome;
  if (outcome.kind == OutcomeKind::kCrashed) {
    return fmt::format("{}{}", verb("crashes", "crash"),
                       outcome.error_class.empty() ? "" : " with " + FirstLine(outcome.error_class, 40));
  }
  if (outcome.kind == OutcomeKind::kRaised) {
    std::string text = FirstLine(outcome.text, kShownOfError);
    return fmt::format("{} {}{}", verb("raises", "raise"),
                       outcome.error_class.empty() ? "an error" : FirstLine(outcome.error_class, 80),
                       text.empty() ? "" : fmt::format(" (\"{}\")", text));
  }
  if (result.value_order.empty()) return verb("completes", "complete");
  const std::string& first = result.value_order.front();
  const auto value = result.values.find(first);
  if (value == result.values.end()) return verb("completes", "complete");
  std::string text =
      fmt::format("{} {} as {}", verb("returns", "return"), Code(first), Name(value->second.dtype));
  // A label that must name many words is less informative than the cell of the matrix.
  constexpr size_t kLongestLabel = 100;
  const std::string& label = value->second.classification.label;
  if (!label.empty() && label.size() <= kLongestLabel) text += fmt::format(" ({})", label);
  return text;
}

/// Backends that raise or crash in several ways are described one by one.
std::string DescribeOutcome(const Side& side) {
  const auto clause = [](const Side& each) {
    return fmt::format("{} {}", JoinNames(each.names),
                       DescribeOneOutcome(*each.speaker.result, each.names.size() > 1));
  };
  if (side.speaker.result->outcome.kind == OutcomeKind::kCompleted) return clause(side);
  std::vector<Side> ways;
  for (size_t i = 0; i < side.results.size(); ++i) {
    const Outcome& mine = side.results[i]->outcome;
    const auto same = std::ranges::find_if(ways, [&](const Side& way) {
      const Outcome& other = way.speaker.result->outcome;
      return other.kind == mine.kind && other.error_class == mine.error_class &&
             FirstLine(other.text, kShownOfError) == FirstLine(mine.text, kShownOfError);
    });
    Side& way = same == ways.end() ? ways.emplace_back() : *same;
    if (way.names.empty()) way.speaker = {.result = side.results[i], .observation = side.all[i]};
    way.names.push_back(side.names[i]);
  }
  std::vector<std::string> clauses;
  for (const Side& way : ways) clauses.push_back(clause(way));
  return Join(clauses, ", ");
}

/// "17", "17 to 20": the number of elements in which each member of a side shows the behaviour.
std::string ShownCounts(const Side& side, const std::string& value) {
  const Classification& own = ValueOf(side, value).classification;
  int64_t fewest = own.shown_count, most = own.shown_count;
  for (const CaseResult* each : side.results) {
    const auto found = each->values.find(value);
    if (found == each->values.end() || found->second.classification.shown_of != own.shown_of) continue;
    fewest = std::min(fewest, found->second.classification.shown_count);
    most = std::max(most, found->second.classification.shown_count);
  }
  return fewest == most ? std::to_string(most) : fmt::format("{} to {}", fewest, most);
}

/// ": y[0,3] is 2.5, expected 2.4375 (17 of 64 elements)", for the element furthest from the expected result in which
/// the members of the side agree and the others have something else. Empty if the expected result matches in all
/// elements looked at, or if the others have the same in all that are known.
std::string BesideWhatIsWritten(const Side& side, const Side& others, const std::string& value) {
  const Classification& classification = ValueOf(side, value).classification;
  const TensorData* data = TensorOf(side, value);
  const std::vector<int64_t>& shown = classification.shown_by;
  if (data == nullptr || shown.empty() || shown.size() != classification.as_written.size()) return "";
  const TensorData* theirs = TensorOf(others, value);
  const auto parts = [&](int64_t index) {
    return theirs == nullptr || index >= theirs->size() || theirs->At(index) != data->At(index);
  };
  // An element in which the side's members disagree is shown only if no other element separates the sides.
  std::optional<size_t> found;
  std::pair<bool, double> highest;
  for (size_t i = 0; i < shown.size(); ++i) {
    if (!parts(shown[i])) continue;
    const std::pair rank(IsShared(side, value, shown[i]),
                         ElementDistance(data->At(shown[i]), classification.as_written[i], data->dtype));
    if (found && rank <= highest) continue;
    found = i;
    highest = rank;
  }
  if (!found) return "";
  const size_t k = *found;
  return fmt::format(": {} is {}{}, expected {} ({} of {} elements{})",
                     Code(value + Bracketed(Coordinates(shown[k], data->shape))),
                     FormatDecimal(data->At(shown[k])), OnWhom(side, value, shown[k]),
                     FormatDecimal(classification.as_written[k]), ShownCounts(side, value),
                     classification.shown_of, classification.shown_of < data->size() ? " looked at" : "");
}

/// Ends a sentence in which both sides do the same.
constexpr std::string_view kStillDiffer =
    "the results of the two sides differ for a reason that was not found";

std::string Spell(const Cast& cast) {
  return fmt::format("a tensor of shape {} from {} to {} in `{}`", Bracketed(cast.shape), cast.from, cast.to,
                     FirstLine(cast.under, 60));
}

}  // namespace

std::string DescribeClass(const Case& test_case, const std::string& value, const ValueResult& result) {
  return DescribeManner(test_case, value, result, WideSums::kTold).text;
}

std::string OfAnyValue(std::string text, const std::string& value) {
  const std::string name = Code(value);
  for (size_t at = text.find(name); at != std::string::npos; at = text.find(name, at))
    text.replace(at, name.size(), "a value");
  return text;
}

Sentence OutcomeSentence(const Side& left, const Side& right) {
  const bool left_first = left.speaker.result->outcome.kind != OutcomeKind::kCompleted;
  const Side& first = left_first ? left : right;
  const Side& second = left_first ? right : left;
  return {.claim = fmt::format("{}; {}", DescribeOutcome(first), DescribeOutcome(second)),
          .summary = DescribeOneOutcome(*first.speaker.result, false)};
}

Sentence DtypeSentence(const Side& a, const Side& b, const std::string& value, std::string_view left,
                       std::string_view right) {
  const auto clause = [&](const Side& side, std::string_view dtype) {
    if (dtype == "none")
      return fmt::format("{} {} no {}", JoinNames(side.names), Verb(side, "gives", "give"), Code(value));
    return fmt::format("{} {} {} as {}", JoinNames(side.names), Verb(side, "gives", "give"), Code(value),
                       dtype);
  };
  return {.claim = fmt::format("{}; {}", clause(a, left), clause(b, right)),
          .summary = left == "none" ? "gives no such value" : fmt::format("gives a value as {}", left)};
}

Sentence DeedSentence(const Side& doers, const Side& others, const std::string& value, const Deed& deed,
                      std::string_view basis, std::string_view although) {
  const std::string likely = basis == "proved" ? "" : " likely";
  std::string witness = BesideWhatIsWritten(doers, others, value);
  if (witness.empty()) witness = Witness(doers, others, value);
  return {fmt::format("{}{} {}; {}{} {}{}", JoinNames(doers.names), likely,
                      Verb(doers, deed.singular, deed.plural), JoinNames(others.names), likely,
                      Verb(others, "does not", "do not"), although),
          std::move(witness), OfAnyValue(deed.singular, value)};
}

Sentence UnexplainedSentence(const Side& who, const Side& others, const std::string& value) {
  std::string witness = BesideWhatIsWritten(who, others, value);
  if (witness.empty()) witness = Witness(who, others, value);
  return {fmt::format("{} {} {} in a way that is not explained{}", JoinNames(who.names),
                      Verb(who, "computes", "compute"), Code(value), ShowOfAll(who, value)),
          std::move(witness), "computes a value in a way that is not explained"};
}

Sentence PrecisionSentence(const Case& test_case, const Side& a, const Side& b, const std::string& value,
                           std::string_view basis, std::string_view although) {
  const ValueResult& left = ValueOf(a, value);
  const ValueResult& right = ValueOf(b, value);
  const std::string likely = basis == "proved" ? "" : " likely";
  const auto parting = FindParting(test_case, value, left, right);
  if (!parting || (parting->a.Nothing() && parting->b.Nothing())) {
    const auto clause = [&](const Side& side, const std::string& how) {
      return fmt::format("{}{} {} {} {}", JoinNames(side.names), likely, Verb(side, "computes", "compute"),
                         Code(value), how);
    };
    const auto how = [&](const Side& side) {
      const ValueResult& own = ValueOf(side, value);
      return own.classification.kind == ClassificationKind::kUnmodelled
                 ? "in a way that is not explained" + ShowOfAll(side, value)
                 : DescribeClass(test_case, value, own);
    };
    const std::string how_left = how(a), how_right = how(b);
    // The size of an unexplained error belongs to one value.
    const auto summary = [&](const ValueResult& own, const std::string& text) {
      return own.classification.kind == ClassificationKind::kUnmodelled
                 ? std::string("computes a value in a way that is not explained")
                 : OfAnyValue(fmt::format("computes {} {}", Code(value), text), value);
    };
    // If both sides round inside the op, the fact that one side's sums are known to be wide is not the difference.
    const Manner bare = DescribeManner(test_case, value, left, WideSums::kLeftOut);
    const bool rounds =
        bare.names_inside && bare.text == DescribeManner(test_case, value, right, WideSums::kLeftOut).text;
    if (how_left == how_right || (rounds && (how_left == bare.text || how_right == bare.text)))
      return {fmt::format("{}; {} {} the same, and {}", clause(a, rounds ? bare.text : how_left),
                          JoinNames(b.names), Verb(b, "does", "do"), kStillDiffer),
              Witness(a, b, value), summary(left, rounds ? bare.text : how_left)};
    return {fmt::format("{}; {}", clause(a, how_left), clause(b, how_right)), Witness(a, b, value),
            right.classification.kind == ClassificationKind::kUnmodelled ? summary(right, how_right)
                                                                         : summary(left, how_left)};
  }
  const bool a_first = !parting->a.Nothing();
  const Side& first = a_first ? a : b;
  const Side& second = a_first ? b : a;
  const Deed& deed = a_first ? parting->a : parting->b;
  const Deed& other = a_first ? parting->b : parting->a;
  // If both sides have the same behaviour, the difference is elsewhere, since their results differ.
  if (deed == other)
    return {fmt::format("{}{} {}; {} {} the same, and {}", JoinNames(first.names), likely,
                        Verb(first, deed.singular, deed.plural), JoinNames(second.names),
                        Verb(second, "does", "do"), kStillDiffer),
            Witness(first, second, value), OfAnyValue(deed.singular, value)};
  const std::string second_deed =
      other.Nothing() ? std::string(Verb(second, "does not", "do not")) + std::string(although)
                      : std::string(Verb(second, other.singular, other.plural));
  std::string witness = other.Nothing() ? BesideWhatIsWritten(first, second, value) : "";
  if (witness.empty()) witness = Witness(first, second, value);
  return {fmt::format("{}{} {}; {}{} {}", JoinNames(first.names), likely,
                      Verb(first, deed.singular, deed.plural), JoinNames(second.names), likely, second_deed),
          std::move(witness), OfAnyValue(deed.singular, value)};
}

std::string ObservedStepsSentence(const Divergence& divergence, const std::vector<ObservedChange>& changed,
                                  const std::vector<Divergence>* steps) {
  const auto holds = [](const Words& names, const std::string& name) { return Contains(names, name); };
  Words effects;
  for (const ObservedChange& each : changed) {
    const double ulp = each.of.largest_ulp;
    effects.push_back(fmt::format("{} ({} of {} elements{}{})", each.backend,
                                  each.of.number + each.of.special, each.of.elements,
                                  ulp > 0 ? fmt::format(", by up to {} ulp", Ulps(ulp)) : "",
                                  each.same_as.empty() ? "" : "; it then equals " + JoinNames(each.same_as)));
  }
  const std::string changes =
      fmt::format(" Observing all steps changes {} on {}", Code(divergence.value), JoinNames(effects));
  if (steps == nullptr) return changes + ".";
  // True if one of `changed` is on one side of the step, and a backend that it differs from is on the other.
  const auto parts = [&](const Divergence& step) {
    // The behaviour of other backends is no reason for a backend's own; `backends[0]` of a step has the behaviour.
    for (const size_t side : {0, 1}) {
      const Words &mine = divergence.backends[side], &other = divergence.backends[1 - side];
      const bool me = std::ranges::any_of(changed, [&](const ObservedChange& each) {
        // If it has the bits of the other side, its steps do not explain the difference.
        return each.same_as.empty() && holds(mine, each.backend) && holds(step.backends[0], each.backend);
      });
      const bool them =
          std::ranges::any_of(other, [&](const std::string& name) { return holds(step.backends[1], name); });
      if (me && them) return true;
    }
    return false;
  };
  constexpr size_t kMostTold = 2;  // chosen: steps in one sentence
  Words told;
  size_t more = 0;
  for (const Divergence& step : *steps) {
    if (step.kind != DivergenceKind::kPrecision || step.backends.size() != 2 || !parts(step)) continue;
    if (told.size() == kMostTold) {
      ++more;
      continue;
    }
    std::string text = step.claim;
    if (!step.also.empty()) text += fmt::format("; the same for {}", JoinCode(step.also));
    told.push_back(std::move(text));
  }
  if (told.empty())
    return fmt::format("{}; what {} without observation is unknown.", changes,
                       changed.size() == 1 ? "it does" : "they do");
  return fmt::format("{}; there, {}{}.", changes, Join(told, ". "),
                     more == 0   ? ""
                     : more == 1 ? ". 1 more step differs"
                                 : fmt::format(". {} more steps differ", more));
}

Sentence GraphGapSentence(const std::string& backend, const GraphGap& gap) {
  const bool proved = gap.basis == "proved";
  const std::string value = Code(gap.value), stages = fmt::format("{} -> {}", gap.from, gap.to);
  if (gap.kind == GraphGap::Kind::kAppeared)
    return {.claim = fmt::format(
                "The results of {} on {} {} {}, and no stage of its trace names a format so narrow ({})",
                value, backend, proved ? "prove" : "make it likely that there is", gap.format, stages),
            .summary = fmt::format("has {} in a value, which no stage of its trace shows", gap.format)};
  const std::string does = gap.by == GraphGap::By::kOp
                               ? fmt::format("computes {} in {}", value, gap.format)
                               : fmt::format("rounds {} to {} and back", value, gap.format);
  return {
      .claim = fmt::format("The {} stage of {} {}, but what is executed {} ({})", gap.from, backend, does,
                           proved ? "does not: the results prove it" : "likely does not", stages),
      .summary = OfAnyValue(fmt::format("has a stage that {}, and does not execute that", does), gap.value)};
}

Sentence CastsSentence(const Side& a, const Side& b, const std::string& stage, std::span<const Cast> left,
                       std::span<const Cast> right) {
  bool once_more = false;  // the other side has the more frequent casts of one side too
  // A kind of cast that is more frequent is reported once, with an op that makes it.
  const auto only = [&](std::span<const Cast> mine, std::span<const Cast> theirs) {
    std::vector<std::string> spelled;
    std::vector<const Cast*> told;
    for (const Cast& cast : mine) {
      const auto same = [&](const Cast& other) {
        return cast.from == other.from && cast.to == other.to && cast.shape == other.shape;
      };
      const auto same_op = [&](const Cast& other) { return same(other) && cast.under == other.under; };
      const auto more = [&](const auto& alike) {
        return std::ranges::count_if(mine, alike) > std::ranges::count_if(theirs, alike);
      };
      if (!more(same) || !more(same_op) ||
          std::ranges::any_of(told, [&](const Cast* each) { return same(*each); }))
        continue;
      told.push_back(&cast);
      once_more = once_more || std::ranges::any_of(theirs, same);
      spelled.push_back(Spell(cast));
    }
    return spelled;
  };
  const auto clause = [&](const Side& side, std::vector<std::string> extra) {
    constexpr size_t kMostSpelled = 2;  // chosen: casts in one clause
    if (extra.size() > kMostSpelled + 1) {
      const size_t more = extra.size() - kMostSpelled;
      extra.resize(kMostSpelled);
      extra.push_back(fmt::format("and {} more", more));
    }
    return fmt::format("{} {} {}", JoinNames(side.names), Verb(side, "converts", "convert"),
                       Join(extra, ", "));
  };
  const auto left_only = only(left, right);
  const auto right_only = only(right, left);
  std::vector<std::string> clauses;
  if (!left_only.empty()) clauses.push_back(clause(a, left_only));
  if (!right_only.empty()) clauses.push_back(clause(b, right_only));
  const Side& silent = left_only.empty() ? a : b;
  if (clauses.size() == 1)
    clauses.push_back(fmt::format("{} {}", JoinNames(silent.names),
                                  once_more ? Verb(silent, "does so less often", "do so less often")
                                            : Verb(silent, "does not", "do not")));
  return {.claim =
              fmt::format("The results agree bit by bit, but in the {} stage {}", stage, Join(clauses, "; ")),
          .summary = "has other casts in its trace"};
}

}  // namespace ulpscope
