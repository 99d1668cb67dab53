// Binding: a precision model tied to the nodes of one plan, for the enclosing and the emulating arithmetic
// alike.
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "oracles/dot/sum.h"
#include "oracles/models.h"
#include "oracles/plain_sums.h"
#include "oracles/plan.h"

namespace ulpscope {

struct Binding {
  /// Roundings after each node, in order; for casts the program's own rounding is among them unless it is
  /// dropped.
  std::vector<std::vector<RoundSpec>> store;
  /// Input rounding of the two operands of each contraction, by node.
  std::vector<std::array<RoundSpec, 2>> in;
  std::map<std::string, RoundSpec> scalars;  ///< conversion of Python scalars, by the op that takes them
  RoundSpec prod;
  AccSpec acc;
  std::string term_key;  ///< names the roundings up to the products, for the cache of sums
};

/// The value of a constant under a binding.
double ConstantValue(const PlanNode& node, const Binding& binding);

/// Values of operands that are tensors of the case (or views of them): the same for every model, gathered
/// once.
struct RawOperands {
  std::vector<double> a, b;
};

/// The products of one element, by the pass of split operands.
using Passes = std::vector<std::vector<SumTerm>>;

/// Terms that reductions of the case's tensors add up, by node and element. Each node's are kept for the
/// roundings of operands and products that it was last queried with; they are the same for all orders and
/// accumulators.
class TermsInside {
 public:
  /// Null if they are not kept.
  const Passes* Find(const Binding& binding, int node, int64_t index) const;
  /// No-op if enough is kept already.
  void Keep(const Binding& binding, int node, int64_t index, Passes passes);

 private:
  static constexpr size_t kMostTerms = size_t{1} << 17;
  struct OfNode {
    std::array<RoundSpec, 2> in;
    RoundSpec prod;
    std::unordered_map<int64_t, Passes> by_element;
    size_t terms = 0;
    bool IsUnder(const Binding& binding, int node) const;
  };
  std::unordered_map<int, OfNode> known_;
  size_t terms_ = 0;
};

/// Sum of the exact (or rounded) products of one element, and of their magnitudes.
struct TermSum {
  double lo = 0, hi = 0, magnitude = 0;
  int64_t count = -1;            ///< of terms that are not zero; -1 unknown
  double first = 0, second = 0;  ///< if there are no others and they are known: the two addends; else NaN
  /// Every term is a multiple of 2 to this power; the least int if unknown.
  int lowest = std::numeric_limits<int>::min();
};

/// Shared by all hypotheses of one case.
struct EvaluationCache {
  std::vector<bool> raw;  ///< by node: a reduction whose operands are tensors or views of tensors
  std::vector<std::unordered_map<int64_t, RawOperands>> operands;
  std::vector<bool>
      fixed;  ///< by node: a reduction whose operands no model touches, as a choice among tensors
  TermsInside terms;
  std::unordered_map<std::string, std::unordered_map<int64_t, TermSum>>
      sums;  ///< key: node and Binding::term_key

  const Plan* plan = nullptr;
  const std::map<std::string, TensorData>* inputs = nullptr;
  std::map<int, std::shared_ptr<RawMatrices>> matrices;
  /// The last few that were requested, by the key of `sums`: models come grouped by the roundings of their
  /// operands.
  std::vector<std::pair<std::string, std::shared_ptr<PlainSums>>> plain;

  /// Both outlive this.
  EvaluationCache(const Plan& plan, const std::map<std::string, TensorData>& inputs);
  /// Null for anything but a contraction of tensors of the case.
  std::shared_ptr<PlainSums> Plain(int node, const Binding& binding);
};

}  // namespace ulpscope
