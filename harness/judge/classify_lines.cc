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
  Lines(const std::vector<int64_t>& line_of, const std::vector<SharedStep>& steps, std::vector<double> unit)
      : unit_(std::move(unit)) {
    std::map<int64_t, std::vector<size_t>> members;
    for (size_t i = 0; i < line_of.size(); ++i) members[line_of[i]].push_back(i);
    std::vector<std::pair<double, const SharedStep*>> by_size;
    for (const SharedStep& step : steps) {
      double square = 0;
      for (size_t i = 0; i < step.moves.size(); ++i) square += std::pow(step.moves[i] / unit_[i], 2);
      if (std::isfinite(square) && square > 0) by_size.emplace_back(square, &step);
    }
    std::ranges::stable_sort(by_size, [](const auto& a, const auto& b) { return a.first > b.first; });
    for (const auto& [line, elements] : members)
      lines_.push_back({.elements = elements, .directions = {}, .sizes = {}});
    for (const auto& [size, step] : by_size) {
      if (names_.size() < kMostDirections && Add(*step)) names_.push_back(step->name);
    }
  }

  size_t count() const { return lines_.size(); }
  const std::vector<std::string>& names() const { return names_; }

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
  };

  /// False where the step moves no line otherwise than those before it.
  bool Add(const SharedStep& step) {
    // In units of an element: by its own size a step moves what it moves at all by millions.
    constexpr double kOther = 1e-3, kNothing = 1;
    size_t moved = 0;
    std::vector<std::vector<double>> directions;
    std::vector<double> sizes;
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
    }
    if (2 * moved < lines_.size()) return false;
    for (size_t i = 0; i < lines_.size(); ++i) {
      lines_[i].directions.push_back(std::move(directions[i]));
      lines_[i].sizes.push_back(sizes[i]);
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
/// Lines that are looked at, and elements of each.
constexpr size_t kFewestLines = 8, kMostLines = 64, kFewestOfLine = 4, kMostOfLine = 48;

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

bool Classifier::DoubtLines(std::set<PrecisionModel>* likely) {
  constexpr int64_t kMostLooked = int64_t{1} << 14, kMostTerms = int64_t{1} << 20;
  if (only_ != nullptr || !result_.says.empty() || !shape_.has_steps || shape_.reduction_length < 2 ||
      shape_.line_cuts.empty() || FormatOf(observed_.dtype) != &Binary32())
    return false;
  const auto plain = std::ranges::find_if(trials_, [this](const Trial& trial) {
    const PrecisionModel& model = trial.hypothesis->model();
    return trial.survived && model.acc == "float32" && model.cuts.empty() && IsAsAsked(model);
  });
  if (plain == trials_.end()) return false;
  const Hypothesis& model = *plain->hypothesis;
  // Lines, each with enough of its elements.
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
  std::vector<int64_t> elements, line_of;
  size_t number = 0;
  for (const auto& [line, all] : members) {
    // Spread over all of them.
    if ((number * most) / members.size() == ((number + 1) * most) / members.size() && members.size() > most) {
      ++number;
      continue;
    }
    ++number;
    const size_t taken = std::min(all.size(), kMostOfLine);
    for (size_t i = 0; i < taken; ++i) {
      elements.push_back(all[i * all.size() / taken]);
      line_of.push_back(line);
    }
  }
  if (elements.empty()) return false;
  const auto steps = oracle_.SharedSteps(value_, elements);
  const auto centre = model.Simulate(-1, elements);
  // Units in the last place of what the elements are made of: a bias may cancel it.
  std::vector<double> unit, errors;
  for (size_t i = 0; i < elements.size(); ++i) {
    double size = std::fabs(centre[i]);
    for (const SharedStep& step : steps) size = std::max(size, std::fabs(step.moves[i]));
    unit.push_back(Ulp(std::min(size, Binary32().max_finite), Binary32()));
    errors.push_back(observed_.At(elements[i]) - centre[i]);
    if (!std::isfinite(errors.back())) return false;
  }
  const Lines lines(line_of, steps, unit);
  if (lines.names().empty()) return false;
  const auto errors_of = [&](std::vector<double> values) {
    for (size_t i = 0; i < values.size(); ++i) values[i] -= centre[i];
    return values;
  };
  const LineParts seen = lines.Part(errors);
  const size_t directions = lines.names().size();
  // Of orders of sums alone, and of those with inexact functions besides: the errors of these are drawn, and larger than libraries' are.
  std::vector<double> lean(directions, 0), size(directions, 0);
  double each = 0;
  const auto names = model.orders();
  for (const int order : model.Orders()) {
    const LineParts own = lines.Part(errors_of(model.Stored(order, elements)));
    if (!std::isfinite(own.lines)) return false;
    const bool drawn = order >= 0 && names[static_cast<size_t>(order)].ends_with(kInexact);
    if (!drawn) each = std::max(each, own.elements);
    for (size_t d = 0; d < directions; ++d) {
      lean[d] = std::max(lean[d], std::fabs(Mean(own.steps[d])));
      if (!drawn) size[d] = std::max(size[d], RootMeanSquare(own.steps[d]));
    }
  }
  for (size_t d = 0; d < directions; ++d) {
    const double mean = Mean(seen.steps[d]);
    if (RootMeanSquare(seen.along[d]) < seen.elements || std::fabs(mean) <= 2 * (kLibrary + lean[d]) ||
        Leaning(seen.steps[d]) < kNoCoincidence)
      continue;
    result_.says.push_back(fmt::format(
        "as if {} inside were too {} in {} of {} lines, by {:.1e} of itself in the mean, where no order "
        "tried of its sums leans by more than {:.1e}",
        InsideName(lines.names()[d]), mean > 0 ? "large" : "small", OnOneSide(seen.steps[d], mean),
        lines.count(), std::fabs(mean), lean[d]));
    likely->clear();
    return true;
  }
  if (const std::string kept = StepKeptInLines(lines, model, elements, errors); !kept.empty()) {
    result_.says.push_back(kept);
    likely->clear();
    return true;
  }
  // Nothing that people run is worse than the sequential order, which is among them; of few lines a root mean square is off by chance.
  const double room = 1.25 + 3 / std::sqrt(static_cast<double>(lines.count()));
  for (size_t d = 0; d < directions && lines.count() >= kFewestLines; ++d) {
    const double seen_size = RootMeanSquare(seen.steps[d]), seen_units = RootMeanSquare(seen.along[d]);
    // A variance in one pass errs by units of the mean, not of its own.
    if (seen_units < std::max(seen.elements, kUnits) || seen_size <= room * size[d] + kLibrary) continue;
    result_.says.push_back(fmt::format("whole lines err as if {} inside were off by {:.1e} of itself{}",
                                       InsideName(lines.names()[d]), seen_size,
                                       TimesAsMuch(seen_size, size[d], "in any order tried")));
    likely->clear();
    return true;
  }
  if (shape_.has_functions || lines.count() < kFewestLines || seen.elements <= 2 * each + kUnits)
    return false;
  result_.says.push_back(
      fmt::format("beside what lines share, elements err by {:.1f} units in the last place{}", seen.elements,
                  TimesAsMuch(seen.elements, each, "their steps do in float32")));
  likely->clear();
  return true;
}

std::string Classifier::StepKeptInLines(const Lines& lines, const Hypothesis& model,
                                        const std::vector<int64_t>& elements,
                                        const std::vector<double>& errors) const {
  constexpr int kFewestBits = 9, kMostBits = 22;
  // A rounding to p bits is off by 2^(24 - p) units times 0.2 to 0.6.
  constexpr double kOneBit = 0.35, kFewestUnits = 0.6;
  const auto spent = static_cast<double>(lines.count() * lines.names().size());
  // Beside nothing else that is rounded, and beside each step in float32, which on steep data errs as much.
  const std::vector<double> centre = model.Simulate(-1, elements);
  for (const int order : {-1, 0}) {
    const std::vector<double> whole = model.Simulate(order, elements);
    std::vector<double> other = errors;
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
