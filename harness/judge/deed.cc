// Words of facets, and the deeds that they are.
#include "harness/judge/deed.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/judge/flat_program.h"
#include "harness/judge/label.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

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

}  // namespace

Deed Say(std::string_view singular, std::string_view plural, const std::string& rest) {
  return {.singular = fmt::format("{} {}", singular, rest), .plural = fmt::format("{} {}", plural, rest)};
}

bool Disjoint(const Words& a, const Words& b) {
  if (a.empty() || b.empty()) return false;
  return std::ranges::none_of(a, [&](const std::string& word) { return Contains(b, word); });
}

bool IsNothing(const Words& words, std::string_view none) {
  if (none.empty() || !Contains(words, none)) return false;
  // What may be none is no deed: a format that changes nothing here stands beside it.
  if (none == "as_is") return true;
  return std::ranges::all_of(words,
                             [&](const std::string& word) { return word == none || word == "float32"; });
}

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

std::string Accumulators(const Words& words) {
  constexpr size_t kMostNamed = 2;
  std::string joined = JoinAccumulators(words);
  const bool parts = Contains(words, kJoinedWider);
  return words.size() <= kMostNamed && FindFormat(joined) == nullptr && !parts ? Join(words, " or ") : joined;
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
    // Of an op that takes it by name: "margin 0.1".
    std::vector<std::string> named;
    for (const auto& [name, attr] : step->attrs) {
      if (const auto number = attr.Number()) named.push_back(name + " " + ShortestDecimal(*number));
    }
    if (named.size() == 1) return named.front();
  }
  // XLA multiplies by the reciprocal of a number that it is to divide by.
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

std::optional<Parting> Compare(const std::map<std::string, Words>& a, const std::map<std::string, Words>& b,
                               const std::string& key, std::string_view none, std::string_view singular,
                               std::string_view plural, std::string_view form,
                               std::string (*spell)(const Words&, std::string_view)) {
  const auto left = a.find(key);
  const auto right = b.find(key);
  if (left == a.end() || right == b.end() || !Disjoint(left->second, right->second)) return std::nullopt;
  const auto deed = [&](const Words& words) {
    if (IsNothing(words, none)) return Deed{};
    return Say(singular, plural, fmt::format(fmt::runtime(form), spell(words, none)));
  };
  return Parting{.a = deed(left->second), .b = deed(right->second)};
}

}  // namespace ulpscope
