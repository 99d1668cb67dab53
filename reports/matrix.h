// The matrix part of the console report as a table of plain cells, before any layout.
#pragma once

#include <string>
#include <vector>

#include "harness/model/run_report.h"

namespace ulpscope {

struct MatrixCell {
  std::string text;
  enum class Tone { kPlain, kFaint, kDivergent, kFailing } tone = Tone::kPlain;
};

struct MatrixRow {
  std::string label;                   ///< a value of the case; "" if no value was observed
  std::vector<MatrixCell> cells = {};  ///< one per column
  bool same_bits = false;              ///< all backends gave the same, tensors in every bit
};

struct MatrixCase {
  std::string id;
  std::vector<MatrixRow> rows = {};
};

struct Matrix {
  std::vector<std::string> backends;  ///< columns; those that skipped every case are left out
  std::vector<std::string> skipped;   ///< the ones left out
  std::vector<MatrixCase> cases;      ///< without those that no backend came to
  size_t skipped_cases = 0;           ///< cases that every backend skipped; left out of `cases`
};

Matrix BuildMatrix(const RunReport& report);

/// The meaning of the marks in its cells (reports/cell.h).
std::vector<std::string> LegendOf(const Matrix& matrix);

/// At least two backends have this value, all the same, and nothing differs or fails.
bool AllAgree(const MatrixRow& row);

/// Something differs or fails, or two backends have different values; one backend alone does not count.
bool Differs(const MatrixRow& row);

/// True for the statuses that end a run with an exit code other than 0.
bool IsFailing(Status status);

}  // namespace ulpscope
