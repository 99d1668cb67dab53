// A comparison in words.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/base/text.h"
#include "harness/compare/compare_programs.h"
#include "reports/ledger.h"

namespace ulpscope {
namespace {

/// Both numbers with as many digits as distinguish them; if binary64 has one for both, also how far they are
/// apart.
std::string ExactTexts(const ExactParting& parting, const std::string& f, const std::string& g) {
  constexpr int kFewestDigits = 4, kMostDigits = 17;
  for (int digits = kFewestDigits; digits <= kMostDigits; ++digits) {
    const std::string of_f = fmt::format("{:#.{}g}", parting.f.hi, digits),
                      of_g = fmt::format("{:#.{}g}", parting.g.hi, digits);
    if (of_f != of_g) return fmt::format("{} {}, {} {} (exact)", f, of_f, g, of_g);
  }
  const double apart = std::fabs((parting.f.hi - parting.g.hi) + (parting.f.lo - parting.g.lo));
  return fmt::format("{} and {} about {:.17g}, {:.2g} apart (exact)", f, g, parting.f.hi, apart);
}

std::string ElementText(int64_t element, const Shape& shape) {
  return "[" + Join(Coordinates(element, shape), ", ") + "]";
}

std::string DifferentText(const ProgramComparison& comparison) {
  const ExactParting& parting = *comparison.parting;
  const std::string element = ElementText(parting.element, comparison.parting_shape);
  const std::string exact = ExactTexts(parting, comparison.f, comparison.g);
  if (parting.at_g == parting.step)
    return fmt::format("different functions: `{}` differs first at {}: {}", parting.step, element, exact);
  return fmt::format("different functions: `{}` of {} is no value of {}; `{}` differs first at {}: {}",
                     parting.step, comparison.g, comparison.f, parting.at_g, element, exact);
}

std::string ResultText(const ComparedResult& result) {
  const std::string value = result.f == result.g ? result.g : result.f + " and " + result.g;
  std::string text = result.different == 0
                         ? fmt::format("exact results of {}: equal in {} of {} elements", value,
                                       result.compared - result.undecided, result.elements)
                         : fmt::format("exact results of {}: {} of {} elements differ, by up to {:.2g}",
                                       value, result.different, result.compared, result.largest);
  if (result.undecided > 0) text += fmt::format(" ({} undecided)", result.undecided);
  if (result.compared < result.elements && result.different > 0)
    text += fmt::format(" ({} elements in all)", result.elements);
  return text;
}

}  // namespace

std::string SummaryOf(const ProgramComparison& comparison) {
  if (comparison.parting) return DifferentText(comparison);
  const bool other_dtypes = std::ranges::any_of(
      comparison.results, [](const ComparedResult& result) { return result.differing < 0; });
  if (comparison.ledgers.empty())
    return other_dtypes ? "the same function; the results have other dtypes, and are not booked"
                        : "the same function, and both give the same bits";
  std::set<std::string> causes;
  const Ledger* worst = nullptr;
  for (const Ledger& ledger : comparison.ledgers) {
    for (const LedgerEntry& entry : ledger.entries) {
      for (const LedgerCause& cause : entry.causes) causes.insert(cause.sentence);
    }
    if (std::ranges::all_of(ledger.entries, &LedgerEntry::IsExplained)) continue;
    if (worst == nullptr || ledger.Unexplained() > worst->Unexplained()) worst = &ledger;
  }
  if (worst != nullptr)
    return fmt::format("the same function; {} of the difference of {} is not explained",
                       Percent(std::min(1.0, worst->Unexplained())), worst->value);
  return fmt::format("the same function; every difference is rounding: {} {} all of it",
                     Counted(static_cast<int64_t>(causes.size()), "cause"),
                     causes.size() == 1 ? "explains" : "explain");
}

std::vector<std::string> DetailsOf(const ProgramComparison& comparison) {
  std::vector<std::string> lines;
  if (comparison.parting) {
    if (!comparison.step_f.empty()) lines.push_back(comparison.f + ": " + comparison.step_f);
    if (!comparison.step_g.empty()) lines.push_back(comparison.g + ": " + comparison.step_g);
    if (!comparison.only_f.empty())
      lines.push_back(fmt::format("{} alone: {}", comparison.f, comparison.only_f));
  }
  for (const ComparedResult& result : comparison.results) lines.push_back(ResultText(result));
  if (!comparison.parting && comparison.of_numbers > 0)
    lines.push_back(
        fmt::format("numbers that only one of them has count as rounded to float64: they move the exact "
                    "results by up to {:.2g}",
                    comparison.of_numbers));
  for (const Ledger& ledger : comparison.ledgers) {
    lines.push_back(fmt::format("{}; {} of {} elements differ on {}", LedgerText(ledger), ledger.differing,
                                ledger.elements, comparison.backend));
    for (const LedgerEntry& entry : ledger.entries) {
      for (const LedgerCause& cause : entry.causes)
        lines.push_back(fmt::format("  {}: {}{}", entry.step, cause.sentence,
                                    cause.is_explained || entry.step.empty()
                                        ? ""
                                        : " A step is rounded in a way that is not known."));
    }
  }
  return lines;
}

}  // namespace ulpscope
