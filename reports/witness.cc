// Choosing and phrasing the element.
#include "reports/witness.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/num/float_format.h"
#include "reports/decisive.h"

namespace ulpscope {
namespace {

bool IsAmong(const std::vector<std::string>& names, const std::string& name) { return Contains(names, name); }

std::string RangeText(const Exclusion& exclusion) {
  return exclusion.low == exclusion.high
             ? FormatDecimal(exclusion.low)
             : fmt::format("{} to {}", FormatDecimal(exclusion.low), FormatDecimal(exclusion.high));
}

/// `exact` with enough digits to differ from `observed`: two numbers that look alike prove nothing.
std::string ExactText(double exact, double observed) {
  if (exact == observed) return "the same";
  std::string text = FormatDecimal(exact);
  for (int digits = 9; digits <= 17 && text == FormatDecimal(observed); ++digits)
    text = fmt::format("{:.{}g}", exact, digits);
  return text;
}

/// The facets of a model that contain a choice.
std::string ModelText(const PrecisionModel& model) {
  std::vector<std::string> parts;
  for (const auto& [operand, in] : model.in)
    parts.push_back(fmt::format("{} rounded to {}", operand, InWord(in)));
  if (!model.prod.none()) parts.push_back("each product in " + ProdWord(model.prod));
  parts.push_back("sums in " + AccWord(model.acc));
  for (const auto& [cut, to] : model.cuts) parts.push_back(fmt::format("{} rounded to {}", cut, MidWord(to)));
  parts.push_back(model.mid.none() ? "nothing rounded before the output"
                                   : "rounded through " + MidWord(model.mid));
  return Join(parts, ", ");
}

const Exclusion* Against(const Classification& mine, const Classification& rival) {
  const auto& models = rival.models_proved.empty() ? rival.models : rival.models_proved;
  const auto found = std::ranges::find_if(
      mine.excluded, [&](const Exclusion& exclusion) { return Contains(models, exclusion.model); });
  return found == mine.excluded.end() ? nullptr : &*found;
}

Witness Phrase(const std::string& value, const std::string& backend, const Exclusion& witness,
               const std::string& rival) {
  const std::string who =
      rival.empty() ? "the nearest model that is excluded" : "as " + rival + " computes it";
  return {.proof = fmt::format("{}[{}] = {} on {}; the exact value is {}", value, Join(witness.element, ","),
                               FormatDecimal(witness.observed), backend,
                               ExactText(witness.reference, witness.observed)),
          .rival = fmt::format("{} ({}): {} there{}", who, ModelText(witness.model), RangeText(witness),
                               witness.low == witness.high ? "" : ", in any order of summation")};
}

}  // namespace

Witnesses::Witnesses(const RunReport& report) {
  for (const CaseResult& result : report.results) results_[{result.id, result.backend}] = &result;
}

/// The first member of the other side that gave `value`.
std::pair<std::string, const Classification*> Witnesses::Opposite(const CaseResult& result,
                                                                  const Divergence* divergence,
                                                                  const std::string& value) const {
  if (divergence == nullptr || divergence->backends.size() != 2) return {};
  const auto& groups = divergence->backends;
  for (const auto& backend : IsAmong(groups[0], result.backend) ? groups[1] : groups[0]) {
    const auto other = results_.find({result.id, backend});
    if (other == results_.end()) continue;
    const auto found = other->second->values.find(value);
    if (found != other->second->values.end()) return {backend, &found->second.classification};
  }
  return {};
}

std::optional<Witness> Witnesses::Of(const CaseResult& result, const Divergence* divergence) const {
  if (result.value_order.empty()) return std::nullopt;
  const std::string value = divergence == nullptr ? result.value_order.front() : divergence->value;
  const auto found = result.values.find(value);
  if (found == result.values.end()) return std::nullopt;
  const Classification& mine = found->second.classification;
  const auto [other, theirs] = Opposite(result, divergence, value);
  if (theirs != nullptr) {
    if (const Exclusion* witness = Against(mine, *theirs))
      return Phrase(value, result.backend, *witness, other);
    if (const Exclusion* witness = Against(*theirs, mine))
      return Phrase(value, other, *witness, result.backend);
  }
  const Exclusion* nearest = NearestRival(mine);
  if (nearest == nullptr) return std::nullopt;
  return Phrase(value, result.backend, *nearest, "");
}

}  // namespace ulpscope
