// Words for facets, and the behaviour that they describe.
#include "harness/judge/deed.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/judge/label.h"
#include "harness/model/flat_program.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

/// "operand x". Facets identify a Python number by the op that takes it and, if one subprogram has two such ops, by the
/// op's result: "the number in the mul that gives half" for "scalar.mul@half".
std::string OperandPhrase(const std::string& operand, const std::string& value) {
  constexpr std::string_view kNumber = "scalar.";
  if (!operand.starts_with(kNumber)) return "operand " + Code(operand);
  const size_t at = operand.find('@');
  return fmt::format("the number in the {} that gives {}",
                     operand.substr(kNumber.size(), at == std::string::npos ? at : at - kNumber.size()),
                     Code(at == std::string::npos ? value : operand.substr(at + 1)));
}

}  // namespace

Deed Say(std::string_view singular, std::string_view plural, const std::string& rest) {
  return {.singular = fmt::format("{} {}", singular, rest), .plural = fmt::format("{} {}", plural, rest)};
}

bool IsNothing(const std::vector<RoundSpec>& roundings, NoDeed nothing) {
  const auto is_none = [](const RoundSpec& each) { return each.none(); };
  if (nothing == NoDeed::kNever || std::ranges::none_of(roundings, is_none)) return false;
  // A set that allows no rounding shows no behaviour: a format beside it changes nothing here.
  if (nothing == NoDeed::kUnrounded) return true;
  return std::ranges::all_of(
      roundings, [&](const RoundSpec& each) { return is_none(each) || each == ToNearest(Binary32()); });
}

std::string Formats(const std::vector<RoundSpec>& roundings, const Spelling& spelling) {
  constexpr size_t kMostNamed = 3;  // chosen: formats in one clause
  Words named;
  for (const RoundSpec& each : roundings) {
    if (spelling.nothing == NoDeed::kNever || !each.none())
      named.push_back(WithoutUsualMode(spelling.word(each)));
  }
  const size_t left_out = roundings.size() - named.size();
  std::string text = named.size() > kMostNamed ? fmt::format("{}, {} or one of {} more formats", named[0],
                                                             named[1], named.size() - 2)
                                               : Join(named, " or ");
  return left_out > 0 && !named.empty() ? text + ", or not at all" : text;
}

std::string Accumulators(const std::vector<AccSpec>& accs) {
  constexpr size_t kMostNamed = 2;  // chosen: accumulators in one clause
  std::string joined = JoinAccumulators(accs);
  const bool parts = Contains(accs, JoinedWider());
  return accs.size() <= kMostNamed && FindFormat(joined) == nullptr && !parts ? Join(WordsOf(accs), " or ")
                                                                              : joined;
}

std::string NumberPhrase(const Case& test_case, const std::string& operand, const std::string& value) {
  const size_t at = operand.find('@');
  const Step* step = FindStep(test_case.program, at == std::string::npos ? value : operand.substr(at + 1));
  std::vector<double> numbers;
  for (size_t i = 0; step != nullptr && i < step->of.size(); ++i) {
    if (!step->of[i].IsScalar()) continue;
    if (const auto number = step->of[i].scalar->Number()) numbers.push_back(*number);
  }
  const bool own = step != nullptr && operand.starts_with("scalar." + step->op);
  if (own && numbers.empty()) {
    // An op that takes the number by name: "margin 0.1".
    std::vector<std::string> named;
    for (const auto& [name, attr] : step->attrs) {
      if (const auto number = attr.Number()) named.push_back(name + " " + ShortestDecimal(*number));
    }
    if (named.size() == 1) return named.front();
  }
  // XLA replaces the division by a number with a multiplication by its reciprocal.
  if (step != nullptr && step->op == "div" && operand.starts_with("scalar.mul") && numbers.size() == 1 &&
      step->of.back().IsScalar())
    return "1/" + ShortestDecimal(numbers[0]);
  if (!own || numbers.size() != 1 || step->attrs.contains("alpha") || step->attrs.contains("value"))
    return OperandPhrase(operand, value);
  return ShortestDecimal(numbers[0]);
}

std::string Braced(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    escaped += c;
    if (c == '{' || c == '}') escaped += c;
  }
  return escaped;
}

Deed Phrase::Of(const std::string& formats) const {
  return Say(singular, plural, fmt::format(fmt::runtime(form), formats));
}

std::optional<Parting> Compare(const std::vector<RoundSpec>& a, const std::vector<RoundSpec>& b,
                               const Spelling& spelling, const Phrase& phrase) {
  if (!Disjoint(a, b)) return std::nullopt;
  const auto deed = [&](const std::vector<RoundSpec>& roundings) {
    return IsNothing(roundings, spelling.nothing) ? Deed{} : phrase.Of(Formats(roundings, spelling));
  };
  return Parting{.a = deed(a), .b = deed(b)};
}

std::optional<Parting> Compare(const std::vector<AccSpec>& a, const std::vector<AccSpec>& b,
                               const Phrase& phrase) {
  if (!Disjoint(a, b)) return std::nullopt;
  return Parting{.a = phrase.Of(Accumulators(a)), .b = phrase.Of(Accumulators(b))};
}

}  // namespace ulpscope
