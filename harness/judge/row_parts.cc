// Errors of rows, divided along the directions in which the steps of an op move a row.
#include "harness/judge/row_parts.h"

#include <algorithm>
#include <map>

#include "harness/judge/rule_numbers.h"

namespace ulpscope {
namespace {

double Length(const std::vector<double>& vector) {
  double square = 0;
  for (const double part : vector) square += part * part;
  return std::sqrt(square);
}

}  // namespace

Lines::Lines(const std::vector<int64_t>& line_of, const std::vector<MovingStep>& steps,
             std::vector<double> unit)
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

std::vector<double> Lines::Noise(const LineParts& parts, size_t d) const {
  std::vector<double> noise;
  for (const Line& line : lines_) {
    double square = 0;
    for (const size_t i : line.elements) square += parts.rest[i] * parts.rest[i];
    const auto free = static_cast<double>(line.elements.size() - line.directions.size());
    noise.push_back(line.sizes[d] > 0 ? std::sqrt(square / std::max(1.0, free)) / line.sizes[d] : 0);
  }
  return noise;
}

std::vector<double> Lines::Beside(size_t d) const {
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

LineParts Lines::Part(std::vector<double> errors) const {
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

bool Lines::Add(const MovingStep& step) {
  // In units of an element: in its own size, a step moves anything it moves at all by millions.
  size_t moved = 0;
  std::vector<std::vector<double>> directions;
  std::vector<double> sizes, wholes;
  for (const Line& line : lines_) {
    std::vector<double> direction;
    for (const size_t i : line.elements) direction.push_back(step.moves[i] / unit_[i]);
    const double whole = Length(direction);
    for (const auto& before : line.directions) {
      double along = 0;
      for (size_t i = 0; i < direction.size(); ++i) along += direction[i] * before[i];
      for (size_t i = 0; i < direction.size(); ++i) direction[i] -= along * before[i];
    }
    const double left = Length(direction);
    const bool other = left > kOtherDirection * whole && whole > kMovesNothing;
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

}  // namespace ulpscope
