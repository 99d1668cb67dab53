// Trial: one hypothesis about a value and how it fared.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/judge/likelihood.h"
#include "harness/model/oracle.h"

namespace ulpscope {

/// How a hypothesis was excluded. Thousands are; the sentence is made for the few that are kept.
struct Fallen {
  enum class How { kStore, kOrders, kBounds, kChunk, kNear } how = How::kBounds;
  size_t at = 0;        ///< of the elements that are looked at
  Interval range;       ///< everything that the model can give there
  size_t possible = 0;  ///< kOrders: how many results
  std::string why;      ///< kChunk, kNear
};

struct Trial {
  std::unique_ptr<Hypothesis> hypothesis;
  bool survived = true;
  size_t passed = 0;  ///< elements checked before it fell
  Fallen fallen;
  /// The checked elements that depend on the order. If too many, `few_open` is false and the list empty: all count as
  /// open.
  std::vector<int64_t> open = {};
  bool few_open = true;
  LikelihoodResult match;
  int further = -1;  ///< the additional order of its hypothesis that gives every result
  double probe = 0;  ///< the law on a few elements
  double log_likelihood = 0;
  double fit = 0;
  Residuals residuals;

  void NoteOpen(int64_t element, size_t most) {
    few_open = few_open && open.size() < most;
    if (few_open)
      open.push_back(element);
    else
      open = {};
  }
  void Take(const LikelihoodResult& likelihood) {
    log_likelihood = likelihood.log_likelihood;
    fit = likelihood.fit;
    residuals = likelihood.residuals;
  }
};

}  // namespace ulpscope
