// ExactRest: one value of a program of which some values are given, as a backend stored them, and the rest is computed
// exactly, to about 2^-100 a step.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "harness/base/result.h"
#include "harness/model/case.h"
#include "harness/num/float_format.h"
#include "harness/num/tensor_data.h"

namespace ulpscope {

/// The result of one step as a backend stored it.
struct StoredStep {
  std::string name;
  TensorData data;
  /// Root mean square of its errors on the backend's own operands, relative to that of its elements; 0: it is the exact
  /// result in every element that was looked at.
  double error = 0;
};

/// The construction of one hybrid, by stored step.
struct HybridOfSteps {
  std::vector<bool> given;  ///< the others are computed
  /// True: each computed step is rounded once to its stored dtype; false: it is read unrounded.
  bool rounds = false;
  int in_float32 = -1;  ///< the stored step that is rounded to float32 instead of its dtype; -1: none
};

class ExactRest {
 public:
  virtual ~ExactRest() = default;
  /// The stored steps that the value depends on, in their original order; the value itself is the last one if it is
  /// stored.
  virtual const std::vector<StoredStep>& steps() const = 0;
  /// Terms of sums and elementwise steps that `elements` elements of the value rest on.
  virtual int64_t Work(int64_t elements) const = 0;
  /// Fills StoredStep::error, from all that these elements of the value rest on.
  virtual void MeasureSteps(std::span<const int64_t> elements) = 0;
  /// These elements of the value, for each hybrid. Elements may be NaN if the value takes elements by numbers
  /// that differ between hybrids.
  virtual std::vector<std::vector<TwoDoubles>> Evaluate(std::span<const int64_t> elements,
                                                        std::span<const HybridOfSteps> hybrids) const = 0;
};

/// How many hybrids are evaluated at the cost of little more than one.
constexpr int64_t kHybridsAtOnce = 8;

/// Opens the exact rest of `value` of `c`, in which casts named `unrounded` round nothing. `stored`: in program order;
/// steps that the value does not depend on, and steps unknown to the oracle, are left out. Fails if the value has no
/// exact result, or if two stored values are equal in exact arithmetic and yet differ.
Result<std::unique_ptr<ExactRest>> OpenExactRest(const Case& c, std::map<std::string, TensorData> inputs,
                                                 const std::set<std::string>& unrounded,
                                                 const std::string& value, std::vector<StoredStep> stored);

}  // namespace ulpscope
