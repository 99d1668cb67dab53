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

#include "harness/judge/classifier.h"
#include "harness/judge/same_errors.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {

/// Errors, told along the directions of their lines.
struct LineParts {
  std::vector<std::vector<double>> along;  ///< by direction and line: root mean square over the line, signed
  std::vector<std::vector<double>> steps;  ///< the same as changes of the step, in its own size
  std::vector<double> rest;                ///< of each element
  double lines = 0, elements = 0;          ///< root mean squares of `along` and of `rest`
};

/// Lines along their directions: of each line one number for each direction, and what is left.
class Lines {
 public:
  /// `steps`: what moves elements, `unit`: of each element the size that errors are told in.
  Lines(const std::vector<int64_t>& line_of, const std::vector<MovingStep>& steps, std::vector<double> unit)
      : unit_(std::move(unit)) {
    std::map<int64_t, std::vector<size_t>> members;
    for (size_t i = 0; i < line_of.size(); ++i) members[line_of[i]].push_back(i);
    std::vector<std::pair<double, const MovingStep*>> by_size;
    for (const MovingStep& step : steps) {
      double square = 0;
      for (size_t i = 0; i < step.moves.size(); ++i) square += std::pow(step.moves[i] / unit_[i], 2);
      if (std::isfinite(square) && square > 0) by_size.emplace_back(square, &step);
    }
    std::ranges::stable_sort(by_size, [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [line, elements] : members)
      lines_.push_back({.elements = elements, .directions = {}, .sizes = {}, .whole = {}});
    for (const auto& [size, step] : by_size) {
      if (names_.size() < kMostDirections && Add(*step)) names_.push_back(step->name);
    }
  }

  size_t count() const { return lines_.size(); }

  /// Of each line, by how much the errors that its elements have alone move it along direction `d`: a standard deviation, in the step's
  /// own size.
  std::vector<double> Noise(const LineParts& parts, size_t d) const {
    std::vector<double> noise;
    for (const Line& line : lines_) {
      double square = 0;
      for (const size_t i : line.elements) square += parts.rest[i] * parts.rest[i];
      const auto free = static_cast<double>(line.elements.size() - line.directions.size());
      noise.push_back(line.sizes[d] > 0 ? std::sqrt(square / std::max(1.0, free)) / line.sizes[d] : 0);
    }
    return noise;
  }
  const std::vector<std::string>& names() const { return names_; }

  /// Of each line, how many times as much another step than that of direction `d` moves it: a mean beside which deviations are small.
  std::vector<double> Beside(size_t d) const {
    std::vector<double> times;
    for (const Line& line : lines_) {
      double most = 0;
      for (size_t other = 0; other < line.whole.size(); ++other) {
        if (other != d && line.whole[d] > 0) most = std::max(most, line.whole[other] / line.whole[d]);
      }
      times.push_back(most);
    }
    return times;
  }

  LineParts Part(std::vector<double> errors) const {
    for (size_t i = 0; i < errors.size(); ++i) errors[i] /= unit_[i];
    const std::vector<std::vector<double>> none(names_.size());
    LineParts parts{.along = none, .steps = none, .rest = {}};
    double left = 0;
    for (const Line& line : lines_) {
      const double root = std::sqrt(static_cast<double>(line.elements.size()));
      for (size_t d = 0; d < line.directions.size(); ++d) {
        double along = 0;
        for (size_t i = 0; i < line.elements.size(); ++i)
          along += errors[line.elements[i]] * line.directions[d][i];
        for (size_t i = 0; i < line.elements.size(); ++i)
          errors[line.elements[i]] -= along * line.directions[d][i];
        parts.along[d].push_back(along / root);
        parts.steps[d].push_back(line.sizes[d] > 0 ? along / line.sizes[d] : 0);
        parts.lines += along * along / root / root;
      }
      for (const size_t i : line.elements) left += errors[i] * errors[i];
    }
    parts.lines = std::sqrt(parts.lines / static_cast<double>(lines_.size()));
    parts.elements = std::sqrt(left / static_cast<double>(errors.size()));
    parts.rest = std::move(errors);
    return parts;
  }

 private:
  static constexpr size_t kMostDirections = 2;
  struct Line {
    std::vector<size_t> elements;
    std::vector<std::vector<double>>
        directions;             ///< orthonormal; all zero where a step does not move the line
    std::vector<double> sizes;  ///< of what became a direction
    std::vector<double> whole;  ///< of the step, what it has in common with others included
  };

  /// False where the step moves no line otherwise than those before it.
  bool Add(const MovingStep& step) {
    // In units of an element: by its own size a step moves what it moves at all by millions.
    constexpr double kOther = 1e-3, kNothing = 1;
    size_t moved = 0;
    std::vector<std::vector<double>> directions;
    std::vector<double> sizes, wholes;
    for (const Line& line : lines_) {
      std::vector<double> direction;
      for (const size_t i : line.elements) direction.push_back(step.moves[i] / unit_[i]);
      const double whole = Norm(direction);
      for (const auto& before : line.directions) {
        double along = 0;
        for (size_t i = 0; i < direction.size(); ++i) along += direction[i] * before[i];
        for (size_t i = 0; i < direction.size(); ++i) direction[i] -= along * before[i];
      }
      const double left = Norm(direction);
      const bool other = left > kOther * whole && whole > kNothing;
      for (double& part : direction) part = other ? part / left : 0;
      moved += other ? 1 : 0;
      directions.push_back(std::move(direction));
      sizes.push_back(other ? left : 0);
      wholes.push_back(whole);
    }
    if (2 * moved < lines_.size()) return false;
    for (size_t i = 0; i < lines_.size(); ++i) {
      lines_[i].directions.push_back(std::move(directions[i]));
      lines_[i].sizes.push_back(sizes[i]);
      lines_[i].whole.push_back(wholes[i]);
    }
    return true;
  }

  static double Norm(const std::vector<double>& vector) {
    double square = 0;
    for (const double part : vector) square += part * part;
    return std::sqrt(square);
  }

  std::vector<double> unit_;
  std::vector<Line> lines_;
  std::vector<std::string> names_;
};

namespace {

/// Root mean square of what roots, reciprocals and quotients of libraries are off by, which moves a whole line: 1.5 units in the last
/// place at the most. Of each element's own steps the same, in its units.
constexpr double kUnits = 1.5, kLibrary = kUnits * 0x1p-23;
/// What these are off by to one side, in the mean over lines: a reciprocal of Newton's is never too large.
constexpr double kLeaning = kLibrary / 2;
/// The largest that one of these is off by.
constexpr double kOneLine = 0x1p-22;
/// Lines that are looked at, and elements of each.
constexpr size_t kFewestLines = 8, kMostLines = 64, kFewestOfLine = 4, kMostOfLine = 128;

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

}  // namespace

/// What lines and their elements err by, beside the orders of `model`.
struct MeasuredLines {
  const Hypothesis& model;  ///< float32 throughout
  std::vector<int64_t> elements;
  std::vector<double> errors;  ///< of each element
  Lines lines;
  std::vector<std::string> names;  ///< of the step that is each direction, as a sentence has it
  LineParts seen;
  /// Of orders of sums alone, and of those with inexact functions besides: the errors of these are drawn, and larger than libraries'
  /// are. By direction: the mean over lines at its largest with either and with the former, of the former root mean square and largest
  /// line.
  std::vector<double> lean, own_lean, size, largest;
  double each = 0;   ///< what elements err by beside their lines, at most, functions exact
  double alone = 0;  ///< the largest error of one element beside its line, in any order with any function
};

std::vector<std::pair<int64_t, int64_t>> Classifier::SomeOfEveryLine() const {
  constexpr int64_t kMostLooked = int64_t{1} << 14, kMostTerms = int64_t{1} << 20;
  std::vector<int64_t> looked;
  const int64_t count = std::min(observed_.size(), kMostLooked);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t element = static_cast<int64_t>(
        static_cast<double>(i) * static_cast<double>(observed_.size()) / static_cast<double>(count));
    if (std::isfinite(observed_.At(element)) && observed_.At(element) != 0) looked.push_back(element);
  }
  const auto lines_of = oracle_.LinesOf(value_, looked);
  std::map<int64_t, std::vector<int64_t>> members;
  for (size_t i = 0; i < looked.size(); ++i) members[lines_of[i]].push_back(looked[i]);
  std::erase_if(members, [](const auto& line) { return line.second.size() < kFewestOfLine; });
  const auto most = static_cast<size_t>(std::clamp<int64_t>(kMostTerms / std::max<int64_t>(1, shape_.terms),
                                                            kFewestLines, static_cast<int64_t>(kMostLines)));
  std::vector<std::pair<int64_t, int64_t>> chosen;
  size_t number = 0;
  for (const auto& [line, all] : members) {
    // Spread over all of them.
    const bool passed =
        members.size() > most && (number * most) / members.size() == ((number + 1) * most) / members.size();
    ++number;
    if (passed) continue;
    const size_t taken = std::min(all.size(), kMostOfLine);
    for (size_t i = 0; i < taken; ++i) chosen.emplace_back(all[i * all.size() / taken], line);
  }
  return chosen;
}

std::optional<MeasuredLines> Classifier::MeasureLines() const {
  const Trial* plain = PlainFloat32();
  if (plain == nullptr || !plain->survived) return std::nullopt;
  const Hypothesis& model = *plain->hypothesis;
  std::vector<int64_t> elements, line_of;
  for (const auto& [element, line] : SomeOfEveryLine()) {
    elements.push_back(element);
    line_of.push_back(line);
  }
  if (elements.empty()) return std::nullopt;
  const auto steps = oracle_.MovesOfSteps(value_, elements, WhichSteps::kShared);
  const auto centre = model.Simulate(-1, elements);
  // Units in the last place of what the elements are made of: a bias may cancel it.
  std::vector<double> unit, errors;
  for (size_t i = 0; i < elements.size(); ++i) {
    double size = std::fabs(centre[i]);
    for (const MovingStep& step : steps) size = std::max(size, std::fabs(step.moves[i]));
    unit.push_back(Ulp(std::min(size, Binary32().max_finite), Binary32()));
    errors.push_back(observed_.At(elements[i]) - centre[i]);
    if (!std::isfinite(errors.back())) return std::nullopt;
  }
  Lines lines(line_of, steps, unit);
  if (lines.names().empty()) return std::nullopt;
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
    if (!std::isfinite(own.lines)) return std::nullopt;
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
  return measured;
}

namespace {

/// Lines that all lean to one side. "" where they do not, or orders do as well.
std::string LeanOfLines(const MeasuredLines& measured) {
  for (size_t d = 0; d < measured.lean.size(); ++d) {
    const std::vector<double>& steps = measured.seen.steps[d];
    const double mean = Mean(steps), lean = measured.lean[d];
    if (std::fabs(mean) <= kLeaning + std::max(lean, 2 * measured.own_lean[d]) ||
        Leaning(steps) < kNoCoincidence)
      continue;
    return fmt::format(
        "as if {} inside were too {} in {} of {} lines, by {:.1e} of itself in the mean, where no order "
        "tried of its sums leans by more than {:.1e}",
        measured.names[d], mean > 0 ? "large" : "small", OnOneSide(steps, mean), measured.lines.count(),
        std::fabs(mean), lean);
  }
  return {};
}

/// Lines that err by more than any order's do, all together or one of them.
std::string SizeOfLines(const MeasuredLines& measured) {
  if (measured.lines.count() < kFewestLines) return {};
  // Nothing that people run is worse than the sequential order, which is among them; of few lines a root mean square is off by chance.
  const double room = 1.25 + 3 / std::sqrt(static_cast<double>(measured.lines.count()));
  for (size_t d = 0; d < measured.size.size(); ++d) {
    const std::string& name = measured.names[d];
    const std::vector<double>& steps = measured.seen.steps[d];
    const double size = RootMeanSquare(steps), units = RootMeanSquare(measured.seen.along[d]);
    // A variance in one pass errs by units of the mean, not of its own.
    if (units >= std::max(measured.seen.elements, kUnits) && size > room * measured.size[d] + kLibrary)
      return fmt::format("whole lines err as if {} inside were off by {:.1e} of itself{}", name, size,
                         TimesAsMuch(size, measured.size[d], "in any order tried"));
    // What elements err by alone moves a line too: by the root of their number less than each.
    constexpr double kDeviations = 5;
    // Variances that are merged, or made in one pass, err by units of the mean.
    const std::vector<double> noise = measured.lines.Noise(measured.seen, d),
                              beside = measured.lines.Beside(d);
    size_t off = 0;
    double most = 0;
    for (size_t line = 0; line < steps.size(); ++line) {
      if (std::fabs(steps[line]) <=
          room * measured.largest[d] + kOneLine * (1 + beside[line]) + kDeviations * noise[line])
        continue;
      ++off;
      most = std::max(most, std::fabs(steps[line]));
    }
    if (off > 0)
      return fmt::format("{} of {} lines err as if {} inside were off by up to {:.1e} of itself{}", off,
                         steps.size(), name, most,
                         TimesAsMuch(most, measured.largest[d], "in any order tried"));
  }
  return {};
}

/// Elements that err by more than their steps do.
std::string ElementsBesideLines(const MeasuredLines& measured) {
  const double elements = measured.seen.elements;
  if (measured.lines.count() < kFewestLines || elements <= 2 * measured.each + kUnits) return {};
  return fmt::format("beside what lines share, elements err by {:.1f} units in the last place{}", elements,
                     TimesAsMuch(elements, measured.each, "their steps do in float32"));
}

/// Single elements that err by more than any element does in any order, by far.
std::string LoneElements(const MeasuredLines& measured) {
  // Forms that no order stands for (2^(x log2 e)) and libraries' functions at their worst err by a few times as much.
  constexpr double kTimes = 4, kMoreUnits = 16;
  size_t off = 0;
  double most = 0;
  for (const double rest : measured.seen.rest) {
    if (std::fabs(rest) <= kTimes * measured.alone + kMoreUnits) continue;
    ++off;
    most = std::max(most, std::fabs(rest));
  }
  if (off == 0) return {};
  return fmt::format(
      "beside what lines share, {} of {} elements looked at err by up to {:.0f} units in the last place, "
      "where no "
      "element of any order tried errs by more than {:.1f}",
      off, measured.seen.rest.size(), most, measured.alone);
}

}  // namespace

bool Classifier::DoubtLines(std::set<PrecisionModel>* likely) {
  if (only_ != nullptr || !result_.says.empty() || !shape_.has_steps || shape_.reduction_length < 2 ||
      shape_.line_cuts.empty() || FormatOf(observed_.dtype) != &Binary32())
    return false;
  const auto measured = MeasureLines();
  if (!measured) return false;
  std::string says = LeanOfLines(*measured);
  if (says.empty()) says = StepKeptInLines(*measured);
  if (says.empty()) says = SizeOfLines(*measured);
  if (says.empty() && !shape_.has_functions) says = ElementsBesideLines(*measured);
  if (says.empty()) says = LoneElements(*measured);
  if (says.empty()) return false;
  result_.says.push_back(std::move(says));
  likely->clear();
  return true;
}

std::string Classifier::StepKeptInLines(const MeasuredLines& measured) const {
  const Hypothesis& model = measured.model;
  const std::vector<int64_t>& elements = measured.elements;
  const Lines& lines = measured.lines;
  constexpr int kFewestBits = 9, kMostBits = 22;
  // A rounding to p bits is off by 2^(24 - p) units times 0.2 to 0.6.
  constexpr double kOneBit = 0.35, kFewestUnits = 0.6;
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
    const int about = Binary32().precision - static_cast<int>(std::lround(std::log2(most / kOneBit)));
    for (int bits = std::min(about + 2, kMostBits); bits >= std::max(about - 2, kFewestBits); --bits) {
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
