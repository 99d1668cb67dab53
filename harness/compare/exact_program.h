// A program in exact arithmetic: every value that it gives, with no step and no cast rounded
// (harness/ledger/alignment.h).
//
// The numbers in a program's text are binary64, and so rounded themselves: 1 / sqrt(48) is not a binary64 number. A
// number that both programs have is the same for both. The slack of a value is how far the other numbers move it if
// each changes by one unit in its last place.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "harness/base/result.h"
#include "harness/ledger/alignment.h"
#include "harness/ledger/hybrid.h"
#include "harness/model/case.h"
#include "harness/model/oracle.h"

namespace ulpscope {

/// The numbers of `one` that `other` does not have, except those that float32 has too: so short a number is taken as
/// exact.
std::set<double> NumbersOfOneAlone(const Case& one, const Case& other);

class ExactEvaluation {
 public:
  /// `numbers`: those of `c` that move. Fails if the program cannot be evaluated at all.
  static Result<ExactEvaluation> Open(const Case& c, const NamedTensors& inputs,
                                      const std::set<double>& numbers);

  /// How many elements of each value can be computed in a moment.
  int64_t MostElements() const;
  /// Every value that the case observes and every tensor: a sample of `most` elements of each, and of those of a shape in `also` these too.
  ExactProgram Values(int64_t most, const std::map<Shape, std::set<int64_t>>& also) const;

 private:
  Case case_;
  NamedTensors inputs_;
  std::unique_ptr<CaseOracle> oracle_;
  std::vector<std::unique_ptr<CaseOracle>> moved_;  ///< one for each of the numbers
};

}  // namespace ulpscope
