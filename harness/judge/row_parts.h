// Errors of rows: what a row of elements that share a sum errs by as one, and what each of them errs by alone.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "harness/model/oracle.h"

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
  Lines(const std::vector<int64_t>& line_of, const std::vector<MovingStep>& steps, std::vector<double> unit);

  size_t count() const { return lines_.size(); }
  const std::vector<std::string>& names() const { return names_; }

  /// Of each line, by how much the errors that its elements have alone move it along direction `d`: a standard deviation, in the step's
  /// own size.
  std::vector<double> Noise(const LineParts& parts, size_t d) const;

  /// Of each line, how many times as much another step than that of direction `d` moves it: a mean beside which deviations are small.
  std::vector<double> Beside(size_t d) const;

  LineParts Part(std::vector<double> errors) const;

 private:
  struct Line {
    std::vector<size_t> elements;
    std::vector<std::vector<double>>
        directions;             ///< orthonormal; all zero where a step does not move the line
    std::vector<double> sizes;  ///< of what became a direction
    std::vector<double> whole;  ///< of the step, what it has in common with others included
  };

  /// False where the step moves no line otherwise than those before it.
  bool Add(const MovingStep& step);

  std::vector<double> unit_;
  std::vector<Line> lines_;
  std::vector<std::string> names_;
};

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

}  // namespace ulpscope
