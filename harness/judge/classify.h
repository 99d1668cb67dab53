// The classifier: which precision models can have produced an observed value, with the element that excludes
// each rival.
//
// Two stages, never mixed. Hard evidence: a model is out when an observed element lies outside everything it
// can produce in any accumulation order (models_proved is what is left; contracts are judged on it alone).
// Likelihood: among those, models whose simulated accumulation orders explain the bits far worse than the
// best one are set aside (models is what is left; a label that rests on it says "likely"). The answer is the
// set, never a guess.
#pragma once

#include <map>
#include <string>

#include "harness/model/oracle.h"

namespace ulpscope {

/// The share of the results that a model has to give bit by bit where worst-case bounds and likelihood would hold more.
inline constexpr double kNearlyAll = 0.9;

struct ClassifyOptions {
  int64_t most_elements = 4096;       ///< larger results are judged on a fixed sample of this size
  int64_t likelihood_elements = 128;  ///< at most this many elements enter the likelihood
  int64_t most_terms =
      int64_t{1} << 25;  ///< terms of sums that the look at every element may cost; then it is a sample too
  /// Terms of sums that enclosing a value of several steps may cost; what costs more is not judged (its errors are
  /// measured). 0: any.
  int64_t most_work = 0;
  double keep_factor = 1e6;  ///< models this much less likely than the best one are set aside
  double worst_fit = -6;     ///< z-score below which a model does not explain the bits
  /// Without it a value that the bank does not explain is unmodelled, and nothing is searched beyond the bank.
  bool search = true;
  enum class Evidence { kAll, kHard };
  Evidence evidence = Evidence::kAll;  ///< kHard leaves likelihood out: `models` is `models_proved`
};

/// Classifies one value.
Classification ClassifyValue(const CaseOracle& oracle, const std::string& value, const TensorData& observed,
                             const ClassifyOptions& options = {});

/// Classifies every observed value.
std::map<std::string, Classification> ClassifyValues(const CaseOracle& oracle,
                                                     const std::map<std::string, TensorData>& observed,
                                                     const ClassifyOptions& options = {});

}  // namespace ulpscope
