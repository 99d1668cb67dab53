// Of an op whose elements share sums, what a line of them errs by as one is told apart from what each errs by alone.
//
// A total, a mean or an inverse deviation that is off moves a whole line (a row of a softmax or of a norm) along a known direction, by
// an amount that nobody knows: it depends on the order of the sum. So every line is measured along these directions, and what is left
// is what the steps of each element err by. Three things are no order's doing:
//  - lines that all lean to one side by nearly as much: a factor, another eps, a term left out;
//  - lines that err by far more than those of any order tried;
//  - errors that are those of one step inside the op kept in fewer bits: the very same ones, number by number.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "harness/judge/classifier.h"
#include "harness/judge/row_parts.h"
#include "harness/judge/rule_numbers.h"
#include "harness/judge/same_errors.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

/// Root mean square of what roots, reciprocals and quotients of libraries are off by, which moves a whole line. Of each element's own
/// steps the same, in its units.
double OfLibrary() { return kUnitsOfLibrary * 0x1p-23; }

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double RootMeanSquare(const std::vector<double>& values) {
  double square = 0;
  for (const double value : values) square += value * value;
  return values.empty() ? 0 : std::sqrt(square / static_cast<double>(values.size()));
}

size_t OnOneSide(const std::vector<double>& values, double side) {
  return static_cast<size_t>(std::ranges::count_if(values, [side](const double value) {
    return value != 0 && std::signbit(value) == std::signbit(side);
  }));
}

std::vector<double> Together(const std::vector<std::vector<double>>& parts) {
  std::vector<double> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// ", N times as much as WHAT"; nothing where that does not err at all.
std::string TimesAsMuch(double seen, double own, const char* what) {
  return own > 0 ? fmt::format(", {:.1f} times as much as {}", seen / own, what) : "";
}

/// How unlikely it is that lines which err to either side lean as these do: by Student's t, and by their signs alone.
double Leaning(const std::vector<double>& lines) {
  const std::vector<double> values = Distinct(lines);
  const auto n = static_cast<double>(values.size());
  if (n < 3) return 0;
  const double mean = Mean(values);
  double square = 0;
  for (const double value : values) square += std::pow(value - mean, 2);
  const double t = square > 0 ? mean * mean * n * (n - 1) / square : kInf;
  const double share = static_cast<double>(OnOneSide(values, mean)) / n;
  const auto part = [](double p) { return p > 0 ? p * std::log(2 * p) : 0; };
  const double signs = share > 0.5 ? n * (part(share) + part(1 - share)) : 0;
  return std::max(n / 2 * std::log1p(t / (n - 1)), signs);
}

/// Lines that all lean to one side. "" where they do not, or orders do as well.
std::string LeanOfLines(const MeasuredLines& measured) {
  for (size_t d = 0; d < measured.lean.size(); ++d) {
    const std::vector<double>& steps = measured.seen.steps[d];
    const double mean = Mean(steps), lean = measured.lean[d];
    if (std::fabs(mean) <= kShareOfBias * OfLibrary() + std::max(lean, 2 * measured.own_lean[d]) ||
        Leaning(steps) < kNoCoincidence)
      continue;
    return fmt::format(
        "as if {} inside were too {} in {} of {} rows, by {:.1e} of itself in the mean, where no order "
        "tried of its sums is biased by more than {:.1e}",
        measured.names[d], mean > 0 ? "large" : "small", OnOneSide(steps, mean), measured.lines.count(),
        std::fabs(mean), lean);
  }
  return {};
}

/// Lines that err by more than any order's do, all together or one of them.
std::string SizeOfLines(const MeasuredLines& measured) {
  if (measured.lines.count() < kFewestRows) return {};
  // Nothing that people run is worse than the sequential order, which is among them; of few lines a root mean square is off by chance.
  const double room = kRoomOfRows + kRoomOfFewRows / std::sqrt(static_cast<double>(measured.lines.count()));
  for (size_t d = 0; d < measured.size.size(); ++d) {
    const std::string& name = measured.names[d];
    const std::vector<double>& steps = measured.seen.steps[d];
    const double size = RootMeanSquare(steps), units = RootMeanSquare(measured.seen.along[d]);
    // A variance in one pass errs by units of the mean, not of its own.
    if (units >= std::max(measured.seen.elements, kUnitsOfLibrary) &&
        size > room * measured.size[d] + OfLibrary())
      return fmt::format("whole rows err as if {} inside were off by {:.1e} of itself{}", name, size,
                         TimesAsMuch(size, measured.size[d], "in any order tried"));
    // What elements err by alone moves a line too: by the root of their number less than each.
    // Variances that are merged, or made in one pass, err by units of the mean.
    const std::vector<double> noise = measured.lines.Noise(measured.seen, d),
                              beside = measured.lines.Beside(d);
    size_t off = 0;
    double most = 0;
    for (size_t line = 0; line < steps.size(); ++line) {
      if (std::fabs(steps[line]) <=
          room * measured.largest[d] + kOneRow * (1 + beside[line]) + kDeviationsOfRow * noise[line])
        continue;
      ++off;
      most = std::max(most, std::fabs(steps[line]));
    }
    if (off > 0)
      return fmt::format("{} of {} rows err as if {} inside were off by up to {:.1e} of itself{}", off,
                         steps.size(), name, most,
                         TimesAsMuch(most, measured.largest[d], "in any order tried"));
  }
  return {};
}

/// Elements that err by more than their steps do.
std::string ElementsBesideLines(const MeasuredLines& measured) {
  const double elements = measured.seen.elements;
  if (measured.lines.count() < kFewestRows || elements <= 2 * measured.each + kUnitsOfLibrary) return {};
  return fmt::format(
      "apart from the error that rows share, elements are off by {:.1f} units in the last place{}", elements,
      TimesAsMuch(elements, measured.each, "their steps do in float32"));
}

/// Single elements that err by more than any element does in any order, by far.
std::string LoneElements(const MeasuredLines& measured) {
  size_t off = 0;
  double most = 0;
  for (const double rest : measured.seen.rest) {
    if (std::fabs(rest) <= kTimesOfElement * measured.alone + kUnitsOfElement) continue;
    ++off;
    most = std::max(most, std::fabs(rest));
  }
  if (off == 0) return {};
  return fmt::format(
      "apart from the error that rows share, {} of {} elements are off by up to {:.0f} units in the last "
      "place, "
      "where no "
      "element of any order tried errs by more than {:.1f}",
      off, measured.seen.rest.size(), most, measured.alone);
}

}  // namespace

std::vector<std::pair<int64_t, int64_t>> Classifier::SomeOfEveryLine() const {
  std::vector<int64_t> looked;
  const int64_t count = std::min(observed_.size(), kMostLookedInRows);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t element = static_cast<int64_t>(
        static_cast<double>(i) * static_cast<double>(observed_.size()) / static_cast<double>(count));
    if (std::isfinite(observed_.At(element)) && observed_.At(element) != 0) looked.push_back(element);
  }
  const auto lines_of = oracle_.LinesOf(value_, looked);
  std::map<int64_t, std::vector<int64_t>> members;
  for (size_t i = 0; i < looked.size(); ++i) members[lines_of[i]].push_back(looked[i]);
  std::erase_if(members, [](const auto& line) { return line.second.size() < kFewestOfRow; });
  const auto most = static_cast<size_t>(
      std::clamp<int64_t>(kMostTermsOfRows / std::max<int64_t>(1, shape_.terms),
                          static_cast<int64_t>(kFewestRows), static_cast<int64_t>(kMostRows)));
  std::vector<std::pair<int64_t, int64_t>> chosen;
  size_t number = 0;
  for (const auto& [line, all] : members) {
    // Spread over all of them.
    const bool passed =
        members.size() > most && (number * most) / members.size() == ((number + 1) * most) / members.size();
    ++number;
    if (passed) continue;
    const size_t taken = std::min(all.size(), kMostOfRow);
    for (size_t i = 0; i < taken; ++i) chosen.emplace_back(all[i * all.size() / taken], line);
  }
  return chosen;
}

std::shared_ptr<const MeasuredLines> Classifier::MeasureLines() const {
  const Trial* plain = PlainFloat32();
  if (plain == nullptr || !plain->survived) return nullptr;
  const Hypothesis& model = *plain->hypothesis;
  std::vector<int64_t> elements, line_of;
  for (const auto& [element, line] : SomeOfEveryLine()) {
    elements.push_back(element);
    line_of.push_back(line);
  }
  if (elements.empty()) return nullptr;
  const auto steps = oracle_.MovesOfSteps(value_, elements, WhichSteps::kShared);
  const auto centre = model.Simulate(-1, elements);
  // Units in the last place of what the elements are made of: a bias may cancel it.
  std::vector<double> unit, errors;
  for (size_t i = 0; i < elements.size(); ++i) {
    double size = std::fabs(centre[i]);
    for (const MovingStep& step : steps) size = std::max(size, std::fabs(step.moves[i]));
    unit.push_back(Ulp(std::min(size, Binary32().max_finite), Binary32()));
    errors.push_back(observed_.At(elements[i]) - centre[i]);
    if (!std::isfinite(errors.back())) return nullptr;
  }
  Lines lines(line_of, steps, unit);
  if (lines.names().empty()) return nullptr;
  LineParts seen = lines.Part(errors);
  std::vector<std::string> said;
  for (const std::string& name : lines.names()) said.push_back(InsideName(name));
  const std::vector<double> zeros(lines.names().size(), 0);
  MeasuredLines measured{.model = model,
                         .elements = std::move(elements),
                         .errors = std::move(errors),
                         .lines = std::move(lines),
                         .names = std::move(said),
                         .seen = std::move(seen),
                         .lean = zeros,
                         .own_lean = zeros,
                         .size = zeros,
                         .largest = zeros};
  const auto names = model.orders();
  for (const int order : model.Orders()) {
    std::vector<double> off = model.Stored(order, measured.elements);
    for (size_t i = 0; i < off.size(); ++i) off[i] -= centre[i];
    const LineParts own = measured.lines.Part(std::move(off));
    if (!std::isfinite(own.lines)) return nullptr;
    const bool drawn = order >= 0 && names[static_cast<size_t>(order)].ends_with(kInexact);
    for (const double rest : own.rest) measured.alone = std::max(measured.alone, std::fabs(rest));
    if (!drawn) measured.each = std::max(measured.each, own.elements);
    for (size_t d = 0; d < zeros.size(); ++d) {
      const double lean = std::fabs(Mean(own.steps[d]));
      measured.lean[d] = std::max(measured.lean[d], lean);
      if (drawn) continue;
      measured.own_lean[d] = std::max(measured.own_lean[d], lean);
      measured.size[d] = std::max(measured.size[d], RootMeanSquare(own.steps[d]));
      // What elements err by alone moves a line too; that is no order's doing.
      const std::vector<double> noise = measured.lines.Noise(own, d);
      for (size_t line = 0; line < noise.size(); ++line)
        measured.largest[d] = std::max(measured.largest[d], std::fabs(own.steps[d][line]) - 2 * noise[line]);
    }
  }
  return std::make_shared<const MeasuredLines>(std::move(measured));
}

void Classifier::MeasureRows() { now_.rows = MeasureLines(); }

void Classifier::RowsErr(Remark shown) {
  if (shown.text.empty()) return;
  result_.says.push_back(std::move(shown));
  now_.likely.clear();
  now_.rows_err = true;
  now_.rows.reset();
}

void Classifier::DoubtBiasOfRows() { RowsErr({RemarkKind::kChange, LeanOfLines(*now_.rows)}); }

void Classifier::DoubtStepInRows() { RowsErr({RemarkKind::kChange, StepKeptInLines(*now_.rows)}); }

void Classifier::DoubtSizeOfRows() { RowsErr({RemarkKind::kErrors, SizeOfLines(*now_.rows)}); }

void Classifier::DoubtElementsOfRows() { RowsErr({RemarkKind::kErrors, ElementsBesideLines(*now_.rows)}); }

void Classifier::DoubtLoneElements() { RowsErr({RemarkKind::kErrors, LoneElements(*now_.rows)}); }

std::string Classifier::StepKeptInLines(const MeasuredLines& measured) const {
  const Hypothesis& model = measured.model;
  const std::vector<int64_t>& elements = measured.elements;
  const Lines& lines = measured.lines;
  const auto spent = static_cast<double>(lines.count() * lines.names().size());
  // Beside nothing else that is rounded, and beside each step in float32, which on steep data errs as much.
  const std::vector<double> centre = model.Simulate(-1, elements);
  for (const int order : {-1, 0}) {
    const std::vector<double> whole = model.Simulate(order, elements);
    std::vector<double> other = measured.errors;
    for (size_t i = 0; i < other.size(); ++i) other[i] -= whole[i] - centre[i];
    const LineParts left = lines.Part(std::move(other));
    const double most = std::max(left.lines, left.elements);
    if (most < kFewestUnits) continue;
    const int about = Binary32().precision - static_cast<int>(std::lround(std::log2(most / kUnitsOfOneBit)));
    for (int bits = std::min(about + 2, kMostBitsInRows); bits >= std::max(about - 2, kFewestBitsInRows);
         --bits) {
      for (const auto& kept : oracle_.StepsKept(value_, observed_.dtype, bits)) {
        if (kept->model().cuts.size() != 1) continue;
        std::vector<double> moved = kept->Simulate(order, elements), relative;
        // What cancels (the maximum) leaves others' roundings elsewhere, and is no rounding of the result.
        if (DifferentValues(kept->Simulate(-1, elements), centre) * 2 < elements.size()) continue;
        for (size_t i = 0; i < moved.size(); ++i) {
          moved[i] -= whole[i];
          relative.push_back(moved[i] / centre[i]);
        }
        const double free = static_cast<double>(Distinct(relative).size()) - spent;
        const LineParts due = lines.Part(std::move(moved));
        const auto along = Together(due.along);
        if (!AreThose(left.rest, due.rest, free) &&
            !AreThose(Together(left.along), along, static_cast<double>(Distinct(along).size())))
          continue;
        return AsIfRounded(kept->model(), bits);
      }
    }
  }
  return {};
}

}  // namespace ulpscope
