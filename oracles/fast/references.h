// FastReferences: the contractions and sums of a plan whose operands are exact binary64 numbers, by the
// certified fast path, compared with the definition of truth.
//
// Never silently wrong: every element of a small value, every element that fell back (of large values with
// very many of them: every one that is asked for), and one in a thousand of the others are computed by
// Boost.Multiprecision too. One that disagrees is our bug: the process ends with exit code 3 and both values.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/model/oracle.h"
#include "oracles/fast/product.h"
#include "oracles/plan.h"

namespace ulpscope::fast {

/// Only tests plant faults: called with each reference that the fast path gave before it is compared.
using Corruption = std::function<void(int64_t element, Reference*)>;

class FastReferences {
 public:
  /// Evaluates an element of a node of the plan by Boost alone.
  using Truth = std::function<Reference(int node, int64_t element)>;

  /// `plan` and `inputs` outlive this. `name` names the case in a failure.
  FastReferences(const Plan& plan, const std::map<std::string, TensorData>& inputs, std::string name,
                 Truth truth, Corruption corrupt);
  ~FastReferences();

  /// True if `node` (no view) is a contraction or sum of exact operands, and computing all of it pays when
  /// `asked` of its elements are needed. Computes and compares it at the first request.
  bool Has(int node, int64_t asked);
  /// An element of a node for which Has() is true.
  Reference At(int node, int64_t element);

  /// Elements computed fast, and how many of them were compared with Boost.
  int64_t computed() const { return computed_; }
  int64_t compared() const { return compared_; }

 private:
  struct Value;
  struct Operand;
  std::optional<Operand> Exact(int node);
  std::optional<Operand> View(const PlanNode& node, const Operand& of) const;
  std::optional<Operand> Elementwise(const PlanNode& node, const Operand& of) const;
  std::unique_ptr<Value> Compute(int node);
  bool Multiply(const PlanNode& node, Results* results);
  bool Sum(const PlanNode& node, Results* results);
  void CompareSome(int node, Value& value);
  void CompareOne(int node, Value& value, int64_t element);
  Reference Fast(const Value& value, int64_t element) const;

  const Plan& plan_;
  const std::map<std::string, TensorData>& inputs_;
  std::string name_;
  Truth truth_;
  Corruption corrupt_;
  std::unique_ptr<Engine> engine_;
  std::map<int, std::unique_ptr<Value>> values_;  ///< null: this node is not for the fast path
  std::map<int, std::optional<Operand>> operands_;
  int64_t computed_ = 0, compared_ = 0;
};

}  // namespace ulpscope::fast
