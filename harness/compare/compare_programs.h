// Compares two programs on the same inputs: whether they are one function and, if so, what makes up each difference
// between their computed results.
//
// The exact results decide: if they differ, the programs differ in a step (harness/ledger/alignment.h). If they are
// equal, the computed results differ by rounding alone, which is booked like the difference of two backends
// (harness/docs/ledger.md): g is the program, g's run is one side, and f's run the other, as if it were a backend that
// stores the values that both programs have exactly.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/compare/compared_run.h"
#include "harness/ledger/alignment.h"
#include "harness/model/ledger.h"
#include "harness/workspace/workspace.h"

namespace ulpscope {

struct ProgramToCompare {
  std::string name;
  Case test_case;
};

struct ProgramComparison {
  std::string f, g, backend;
  std::vector<ComparedResult> results;
  std::optional<ExactParting> parting;  ///< nothing: the same function
  Shape parting_shape;                  ///< of the value in which it shows
  /// The steps of both programs in which they differ, and the one that f alone has, as case files write them; empty without one.
  std::string step_f, step_g, only_f;
  /// The most that an exact result moves with the last bits of the numbers that only one of the programs has.
  double of_numbers = 0;
  std::vector<ResultPair> matched;  ///< steps of both programs that are equal exactly
  std::vector<Ledger> ledgers;      ///< of results that differ in bits, if they are the same function
};

/// Error if the two cannot be compared: other inputs under one name, none in common, results that do not correspond, a
/// backend that does not compute them, or a result without an exact value.
Result<ProgramComparison> ComparePrograms(const Workspace& workspace, const ProgramToCompare& f,
                                          const ProgramToCompare& g, const CompareOptions& options);

/// "the same function; every difference is rounding: 2 causes explain all of it"
/// "different functions: `var` differs first at [3, 0]: f 0.2500, g 0.2601 (exact)"
std::string SummaryOf(const ProgramComparison& comparison);
/// The text lines below the summary.
std::vector<std::string> DetailsOf(const ProgramComparison& comparison);

}  // namespace ulpscope
