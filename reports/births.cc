// Births of infinities and NaNs as text.
#include "reports/births.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "reports/places.h"

namespace ulpscope {
namespace {

std::string ElementText(const SpecialElement& element) {
  return fmt::format("{}[{}]", element.value, Join(element.at, ","));
}

std::string SpreadText(const NonFiniteBirth& birth) {
  constexpr size_t kMostSteps = 5;
  std::vector<std::string> texts;
  const size_t all = birth.spread.size();
  for (size_t i = 0; i < all; ++i) {
    // The first ones, and the last.
    if (all > kMostSteps && i >= kMostSteps - 1 && i + 1 < all) continue;
    const NonFiniteBirth::Spread& each = birth.spread[i];
    texts.push_back(fmt::format("{} of {} of {}", each.count,
                                i == 0 ? Counted(each.elements, "element") : std::to_string(each.elements),
                                each.step));
  }
  if (all > kMostSteps) texts.insert(texts.end() - 1, "of " + Counted(all - kMostSteps, "more step"));
  return Join(texts, ", ");
}

std::string ValuesText(const std::vector<std::string>& values) {
  constexpr size_t kMostValues = 3;
  if (values.size() <= kMostValues) return Join(values, ", ");
  return fmt::format("{} and {}", values.front(), Counted(values.size() - 1, "more value"));
}

std::string WhereText(const std::vector<std::string>& backends, bool everywhere) {
  if (backends.size() == 1) return " on " + backends[0];
  if (everywhere) return fmt::format(" on all {} backends", backends.size());
  const std::vector<std::string> head(backends.begin(), backends.end() - 1);
  return " on " + Join(head, ", ") + " and " + backends.back();
}

}  // namespace

std::string OperandsText(const NonFiniteBirth& birth) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kSigns{
      {{"add", " + "}, {"sub", " - "}, {"mul", " * "}, {"div", " / "}, {"pow", " ** "}}};
  const auto numbers = Mapped(birth.operands, FormatDecimal);
  if (numbers.empty()) return "";
  const auto sign = std::ranges::find(kSigns, birth.op, [](const auto& row) { return row.first; });
  if (sign != kSigns.end() && numbers.size() == 2) return Join(numbers, sign->second);
  return fmt::format("{}({})", birth.op, Join(numbers, ", "));
}

std::string BirthSentence(const NonFiniteBirth& birth, const std::string& where) {
  const double largest = FormatOf(birth.dtype)->max_finite;
  const std::optional<double>& exact = birth.born.exact;
  const std::string operands = OperandsText(birth), at = "[" + Join(birth.born.at, ",") + "]";
  std::string text = birth.what + " of " + ValuesText(birth.values);
  if (birth.op.empty())
    text += fmt::format(" at {}{}", at, where);
  else
    text += fmt::format(" begins in step {} ({}, {}{}){}", birth.born.value, birth.op,
                        operands.empty() ? "" : operands + " ", "at " + at, where);
  text += exact ? "; the exact value there is " + FormatDecimal(*exact) : "; there is no exact value";
  if (exact && std::isfinite(*exact) && std::fabs(*exact) > largest)
    text += fmt::format(", beyond {}, the largest {}", FormatDecimal(largest), Name(birth.dtype));
  if (birth.end && birth.end->exact && birth.end->value != birth.born.value)
    text += fmt::format("{} {} is exactly {}", exact ? ", and" : ", but", ElementText(*birth.end),
                        FormatDecimal(*birth.end->exact));
  return text + ". Not finite: " + SpreadText(birth) + ".";
}

std::string BirthSentence(const RunReport& report, const SharedBirth& shared) {
  std::string text = BirthSentence(*shared.birth, WhereText(shared.backends, shared.everywhere));
  const StepOrigin* origin = OriginOf(report, shared.case_id, shared.birth->born.value);
  return origin == nullptr ? text : text + " At " + origin->Text() + ".";
}

std::vector<SharedBirth> SharedBirthsOf(const RunReport& report) {
  std::map<std::string_view, size_t> computed;
  for (const CaseResult& result : report.results)
    computed[result.id] +=
        result.status != Status::kNotRun && result.outcome.kind == OutcomeKind::kCompleted ? 1 : 0;
  std::vector<SharedBirth> shared;
  std::map<std::pair<std::string_view, std::string>, size_t> number;
  for (const CaseResult& result : report.results) {
    for (const NonFiniteBirth& birth : result.not_finite) {
      const auto [known, is_new] = number.try_emplace({result.id, BirthSentence(birth, "")}, shared.size());
      if (is_new) shared.push_back({.case_id = result.id, .birth = &birth, .backends = {}});
      shared[known->second].backends.push_back(result.backend);
    }
  }
  for (SharedBirth& each : shared) {
    each.everywhere = each.backends.size() == computed[each.case_id];
    each.diverges = std::ranges::any_of(report.divergences, [&](const Divergence& divergence) {
      const auto of = [&](const std::string& value) {
        return divergence.value == value || Contains(divergence.also, value);
      };
      return divergence.case_id == each.case_id && divergence.kind == DivergenceKind::kSpecial &&
             std::ranges::any_of(each.birth->values, of);
    });
  }
  return shared;
}

}  // namespace ulpscope
