// Errors of rows: the error that the elements of a row share, because they share a sum, and each element's own error.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "harness/model/oracle.h"

namespace ulpscope {

/// Errors, decomposed along the directions of their rows.
struct LineParts {
  std::vector<std::vector<double>> along;  ///< by direction and line: root mean square over the line, signed
  std::vector<std::vector<double>> steps;  ///< the same as changes of the step, in its own size
  std::vector<double> rest;                ///< of each element
  double lines = 0, elements = 0;          ///< root mean squares of `along` and of `rest`
};

/// Rows and their directions: one number for each row and direction, and a remainder.
class Lines {
 public:
  /// `steps`: those that move elements. `unit`: the unit of error of each element.
  Lines(const std::vector<int64_t>& line_of, const std::vector<MovingStep>& steps, std::vector<double> unit);

  size_t count() const { return lines_.size(); }
  const std::vector<std::string>& names() const { return names_; }

  /// For each row, how much its elements' individual errors move it along `d`: a standard deviation in the step's size.
  std::vector<double> Noise(const LineParts& parts, size_t d) const;

  /// For each row, the most that another step moves it, as a multiple of how much the step of direction `d` does.
  std::vector<double> Beside(size_t d) const;

  LineParts Part(std::vector<double> errors) const;

 private:
  struct Line {
    std::vector<size_t> elements;
    std::vector<std::vector<double>> directions;  ///< orthonormal; all zero if a step does not move the row
    std::vector<double> sizes;                    ///< of the directions
    std::vector<double> whole;                    ///< of the step, including its share in other directions
  };

  /// False if no row has a component of the step beyond the steps before it.
  bool Add(const MovingStep& step);

  std::vector<double> unit_;
  std::vector<Line> lines_;
  std::vector<std::string> names_;
};

/// The errors of rows and of their elements, next to those of the orders of `model`.
struct MeasuredLines {
  const Hypothesis& model;  ///< float32 throughout
  std::vector<int64_t> elements;
  std::vector<double> errors;  ///< of each element
  Lines lines;
  std::vector<std::string> names;  ///< of the step that is each direction, as a sentence has it
  LineParts seen;
  /// The errors of sums in any order, and of those together with inexact functions; the latter are drawn at random,
  /// larger than libraries' own. By direction: the largest mean over rows with either (`lean`) and with sums alone
  /// (`own_lean`); with sums alone, the root mean square and the largest row.
  std::vector<double> lean, own_lean, size, largest;
  double each = 0;   ///< largest error of elements apart from their rows, with exact functions
  double alone = 0;  ///< largest error of one element apart from its row, in any order with any function
};

}  // namespace ulpscope
