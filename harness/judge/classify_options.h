// What a classification may cost, and what it takes for evidence.
#pragma once

#include <cstdint>
#include <vector>

#include "harness/judge/label.h"
#include "harness/model/oracle.h"

namespace ulpscope {

/// The share of the results that a model has to give bit by bit where worst-case bounds and likelihood would hold more.
inline constexpr double kNearlyAll = 0.9;
/// And that something narrower than the program asks for has to give: its bounds hold much that is something else.
inline constexpr double kNearlyEvery = 0.98;

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
  /// Numbers that are not floating-point ones are compared with the exact ones where nothing on their way rounds. Not where an
  /// operand is a stored result that may have been read before it was rounded.
  bool settle = true;
  /// Models beside the bank: what a contract names may be a combination that the bank does not list.
  std::vector<Proposal> named = {};
  /// Elements that are looked at besides the sample, where no sum makes elements of one line belong together.
  std::vector<int64_t> also = {};
  enum class Evidence { kAll, kHard };
  Evidence evidence = Evidence::kAll;  ///< kHard leaves likelihood out: `models` is `models_proved`
  /// The operands are random numbers: orders that are not simulated err as those that are.
  bool ordinary = false;
  ErrorsOf errors = ErrorsOf::kThisStep;  ///< for the label
  /// A contract that does not name the store: what it asks for is excluded only together with a store that keeps either
  /// neighbour. Null: stores that are listed are all that is tried.
  const ValueDemand* any_store_of = nullptr;
};

}  // namespace ulpscope
