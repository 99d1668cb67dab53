// A program in exact arithmetic: every value that it gives, with no step and no cast rounded (harness/ledger/alignment.h).
//
// The numbers that a program is written with are binary64, and so rounded themselves: 1 / sqrt(48) is none that binary64 has. A number that both
// programs have is the same for both. How far the others, by one unit in their last place, move each value is its slack.
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

/// The numbers of `one` that `other` has not, those aside that float32 has too: what is as short is meant as it stands.
std::set<double> NumbersOfOneAlone(const Case& one, const Case& other);

class ExactEvaluation {
 public:
  /// `numbers`: of `c`, which move. Fails where the program cannot be evaluated at all.
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
