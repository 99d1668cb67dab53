// Shared: the plan and the inputs of one case, with all that its hypotheses have computed in common.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "oracles/dot/many_sums.h"
#include "oracles/dot/sum.h"
#include "oracles/enclosure.h"
#include "oracles/plan.h"

namespace ulpscope {

/// One order of one model on the elements that were requested so far.
struct Simulated {
  std::vector<int64_t> elements;
  std::vector<double> values;
};

struct InLanes {
  std::string key;
  std::vector<int64_t> elements;
  std::unique_ptr<ManySums> sums;
};

/// State that all hypotheses of a case share.
struct Shared {
  Plan plan;
  std::map<std::string, TensorData> inputs;
  EvaluationCache cache;
  std::unordered_map<std::string, Simulated> simulations;
  /// Key of the roundings of operands and products that were last requested, and their terms by element: all
  /// orders and accumulators sum the same terms.
  std::string term_key;
  std::unordered_map<int64_t, Passes> terms;
  /// The last few in lanes, by the roundings of operands and the elements; null if lanes cannot hold them.
  std::vector<InLanes> many;

  Shared(Plan p, std::map<std::string, TensorData> i)
      : plan(std::move(p)), inputs(std::move(i)), cache(plan, inputs) {}
};

}  // namespace ulpscope
