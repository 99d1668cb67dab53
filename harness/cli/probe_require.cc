// Demands on a datasheet.
#include "harness/cli/probe_require.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/text.h"
#include "harness/casefile/load.h"
#include "harness/judge/contract.h"
#include "oracles/models.h"

namespace ulpscope {
namespace {

constexpr size_t kNamedModels = 3;

Error RequireError(const std::string& found) {
  return Problem("--require cannot be read", "'" + found + "'", "FACET=WORD[|WORD...], joined by commas",
                 "as in acc=at_least_float32,in=as_is,mid=none");
}

bool IsSafe(std::string_view text) { return !text.empty() && text.find_first_of("\"\\\n\r\t") == text.npos; }

std::string Shown(const std::vector<PrecisionModel>& models) {
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(models.size(), kNamedModels); ++i) names.push_back(models[i].Name());
  const std::string more =
      models.size() > kNamedModels ? fmt::format(" and {} more", models.size() - kNamedModels) : "";
  return Join(names, " or ") + more;
}

}  // namespace

Result<ValueDemand> ParseRequire(const std::string& text) {
  if (text.empty()) return ValueDemand{};
  std::string demand;
  for (const std::string& part : SplitOutsideParentheses(text, ',')) {
    const size_t equals = part.find('=');
    if (equals == part.npos || !IsSafe(part)) return Fail(RequireError(part));
    std::vector<std::string> words;
    for (const std::string& word : SplitOutsideParentheses(std::string_view(part).substr(equals + 1), '|'))
      words.push_back("\"" + word + "\"");
    const std::string facet = part.substr(0, equals);
    if (facet == "dtype") return Fail(RequireError(part));  // --out-dtype asks for that
    demand += fmt::format("{}\"{}\": [{}]", demand.empty() ? "" : ", ", facet, Join(words, ", "));
  }
  const LoadResult loaded = LoadCaseText(
      "cases: [{name: required, tensors: {x: {dtype: float32, shape: [8], fill: normal}}, "
      "program: [{op: relu, of: [x], as: y}], observe: [y], contract: {status: unspecified, accept: {y: {" +
          demand + "}}}}]",
      "--require", "required", {});
  if (!loaded.errors.empty()) {
    Error error = loaded.errors.front();
    error.message = "--require: " + error.message;
    error.pos = {};
    return Fail(error);
  }
  return loaded.cases.front().contract.values.at("y");
}

RequireAnswer AnswerRequire(const Datasheet& sheet, const ValueDemand& demand) {
  using enum ContractVerdict;
  std::vector<PrecisionModel> inside, outside;
  const auto is_inside = [&](const PrecisionModel& model) {
    return IsInside(model, demand, Classification());
  };
  for (const std::string& name : sheet.models) {
    const auto model = ParsePrecisionModel(name);
    if (model) (is_inside(*model) ? inside : outside).push_back(*model);
  }
  if (inside.empty() && outside.empty())
    return {.verdict = kUnmodelled, .sentence = "undecided: no precision model gives these outputs"};
  if (outside.empty())
    return {.verdict = kConforms, .sentence = "proved: what remains possible is " + Shown(inside)};
  if (!inside.empty())
    return {
        .verdict = kUndetermined,
        .sentence = fmt::format("undecided: {} would meet it, {} would not", Shown(inside), Shown(outside))};
  std::string sentence = "violated: what remains possible is " + Shown(outside);
  for (const auto& [name, witness] : sheet.excluded) {
    const auto model = ParsePrecisionModel(name);
    // The plainest model that would meet it is the most informative one.
    if (!model || !is_inside(*model) || !model->in.empty() || !model->prod.none() || !model->mid.none())
      continue;
    sentence += fmt::format("; {} fell to {}", name, witness);
    break;
  }
  return {.verdict = kViolates, .sentence = std::move(sentence)};
}

}  // namespace ulpscope
