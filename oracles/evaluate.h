// Evaluator: evaluates elements of a plan over an Arithmetic, on demand and each once.
//
// An Arithmetic has
//   using Value;
//   Value Input(const PlanNode&, int id, const TensorData&, int64_t index)
//   Value Constant(const PlanNode&)
//   Value Elementwise(const PlanNode&, int id, std::span<const Value> args, std::span<const Value> slack)   a maximum has many args
//   Value Contract(const PlanNode&, int id, int64_t index, std::span<const Value> a, std::span<const Value> b, const Value* addend)
//   Value Reduce(const PlanNode&, int id, int64_t index, std::span<const Value> terms)
//   std::optional<Value> Known(const PlanNode&, int id, int64_t index)   a reduction that needs no operands gathered
// and rounds, or not, as it sees fit: the exact arithmetic at casts alone, the others wherever their model does.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "harness/base/check.h"
#include "oracles/binding.h"
#include "oracles/plan.h"

namespace ulpscope {

template <class Arithmetic>
class Evaluator {
 public:
  using Value = typename Arithmetic::Value;

  /// `plan` and `inputs` must outlive the evaluator.
  Evaluator(const Plan& plan, const std::map<std::string, TensorData>& inputs, Arithmetic arithmetic)
      : plan_(plan),
        arithmetic_(std::move(arithmetic)),
        memo_(plan.nodes.size()),
        tensors_(plan.nodes.size()) {
    for (size_t id = 0; id < plan.nodes.size(); ++id) {
      roots_.push_back(plan.Root(static_cast<int>(id)));
      if (plan.nodes[id].kind == NodeKind::kInput) tensors_[id] = &inputs.at(plan.nodes[id].tensor);
    }
  }

  Arithmetic& arithmetic() { return arithmetic_; }

  Value At(int id, int64_t index) {
    const PlanNode& node = plan_.nodes[static_cast<size_t>(id)];
    switch (node.kind) {
      case NodeKind::kInput:
        return arithmetic_.Input(node, id, *tensors_[static_cast<size_t>(id)], index);
      case NodeKind::kConstant:
        return arithmetic_.Constant(node);
      case NodeKind::kView:
        return At(roots_[static_cast<size_t>(id)], plan_.RootIndex(id, index));
      case NodeKind::kChoose: {
        const size_t chosen = Condition(node.args[2], Source(node, 2, index)) ? 0 : 1;
        return At(node.args[chosen], Source(node, chosen, index));
      }
      default:
        break;
    }
    Memo& memo = memo_[static_cast<size_t>(id)];
    if (const Value* known = memo.Find(index)) return *known;
    Value value = Compute(node, id, index);
    memo.Keep(index, value, plan_.size(id));
    return value;
  }

  /// The terms that element `index` of the reduction `id` sums: operand values of a contraction, interleaved
  /// a0 b0 a1 b1.
  void Operands(int id, int64_t index, std::vector<Value>* a, std::vector<Value>* b) {
    const PlanNode& node = plan_.nodes[static_cast<size_t>(id)];
    a->clear();
    b->clear();
    a->reserve(static_cast<size_t>(node.k));
    b->reserve(static_cast<size_t>(node.kind == NodeKind::kContract ? node.k : 0));
    if (node.kind == NodeKind::kContract) {
      const int64_t column = index % node.n, row = index / node.n % node.m, batch = index / (node.n * node.m);
      for (int64_t k = 0; k < node.k; ++k) {
        a->push_back(At(node.args[0], (batch * node.m + row) * node.k + k));
        b->push_back(At(node.args[1], (batch * node.k + k) * node.n + column));
      }
      return;
    }
    const Shape& from = plan_.nodes[static_cast<size_t>(node.args[0])].shape;
    const auto strides = RowMajorStrides(from);
    // Base of the kept coordinates, then all coordinates of the summed axes in row-major order.
    int64_t base = 0, rest = index;
    for (size_t axis = from.size(); axis-- > 0;) {
      if (IsSummed(node, axis)) continue;
      base += rest % from[axis] * strides[axis];
      rest /= from[axis];
    }
    for (int64_t term = 0; term < node.k; ++term) {
      int64_t position = base, left = term;
      for (size_t i = node.axes.size(); i-- > 0;) {
        const auto axis = static_cast<size_t>(node.axes[i]);
        position += left % from[axis] * strides[axis];
        left /= from[axis];
      }
      a->push_back(At(node.args[0], position));
    }
  }

  /// The gathered operands of a reduction whose operands are tensors of the case.
  const RawOperands& Raw(int id, int64_t index) {
    auto& known = arithmetic_.cache()->operands[static_cast<size_t>(id)];
    if (const auto entry = known.find(index); entry != known.end()) return entry->second;
    std::vector<Value> a, b;
    Gather(id, index, &a, &b);
    return known.at(index);
  }

 private:
  /// Operands that are tensors of the case are gathered once for all models.
  void Gather(int id, int64_t index, std::vector<Value>* a, std::vector<Value>* b) {
    if constexpr (Arithmetic::kSharesOperands) {
      EvaluationCache* cache = arithmetic_.cache();
      if (cache->raw[static_cast<size_t>(id)]) {
        auto& known = cache->operands[static_cast<size_t>(id)];
        auto entry = known.find(index);
        if (entry == known.end()) {
          Operands(id, index, a, b);
          RawOperands raw;
          for (const Value& value : *a) raw.a.push_back(Arithmetic::ToDouble(value));
          for (const Value& value : *b) raw.b.push_back(Arithmetic::ToDouble(value));
          known.emplace(index, std::move(raw));
          return;
        }
        a->reserve(entry->second.a.size());
        b->reserve(entry->second.b.size());
        for (const double value : entry->second.a) a->push_back(Arithmetic::FromDouble(value));
        for (const double value : entry->second.b) b->push_back(Arithmetic::FromDouble(value));
        return;
      }
    }
    Operands(id, index, a, b);
  }

  /// Values of one node: by position while the node is small, by hash where only a sample of a large one is
  /// evaluated.
  class Memo {
   public:
    const Value* Find(int64_t index) const {
      if (!known_.empty())
        return known_[static_cast<size_t>(index)] != 0 ? &dense_[static_cast<size_t>(index)] : nullptr;
      const auto entry = sparse_.find(index);
      return entry == sparse_.end() ? nullptr : &entry->second;
    }
    void Keep(int64_t index, const Value& value, int64_t size) {
      constexpr int64_t kMostDense = 8192;
      if (size > kMostDense) {
        sparse_.emplace(index, value);
        return;
      }
      if (known_.empty()) {
        known_.resize(static_cast<size_t>(size));
        dense_.resize(static_cast<size_t>(size));
      }
      known_[static_cast<size_t>(index)] = 1;
      dense_[static_cast<size_t>(index)] = value;
    }

   private:
    std::vector<char> known_;
    std::vector<Value> dense_;
    std::unordered_map<int64_t, Value> sparse_;
  };

  /// A condition is data: lowering takes nothing else for one.
  bool Condition(int id, int64_t index) const {
    return tensors_[static_cast<size_t>(roots_[static_cast<size_t>(id)])]->At(plan_.RootIndex(id, index)) !=
           0;
  }

  static bool IsSummed(const PlanNode& node, size_t axis) {
    for (const int64_t summed : node.axes) {
      if (static_cast<size_t>(summed) == axis) return true;
    }
    return false;
  }

  int64_t Source(const PlanNode& node, size_t arg, int64_t index) const {
    if (plan_.nodes[static_cast<size_t>(node.args[arg])].shape == node.shape) return index;
    int64_t position = node.offset;
    for (size_t axis = node.shape.size(); axis-- > 0;) {
      position += index % node.shape[axis] * node.strides[arg][axis];
      index /= node.shape[axis];
    }
    return position;
  }

  Value Compute(const PlanNode& node, int id, int64_t index) {
    if (IsReduction(node.kind)) {
      if (std::optional<Value> known = arithmetic_.Known(node, id, index)) return *known;
      std::vector<Value> a, b;
      Gather(id, index, &a, &b);
      if (node.kind == NodeKind::kReduce) return arithmetic_.Reduce(node, id, index, a);
      if (node.args.size() < 3) return arithmetic_.Contract(node, id, index, a, b, nullptr);
      const Value addend = At(node.args[2], index);
      return arithmetic_.Contract(node, id, index, a, b, &addend);
    }
    std::vector<Value> args, slack;
    if (node.kind == NodeKind::kMaximum) {
      Operands(id, index, &args, &slack);
      return arithmetic_.Elementwise(node, id, args, {});
    }
    for (size_t i = 0; i < node.args.size(); ++i) args.push_back(At(node.args[i], Source(node, i, index)));
    if constexpr (Arithmetic::kNeedsSlack) {
      // A slack node has the shape of the node, or broadcasts into it like an operand of its own would.
      for (const int other : node.slack) {
        if (other == id) continue;
        slack.push_back(
            At(other, BroadcastIndex(node.shape, plan_.nodes[static_cast<size_t>(other)].shape, index)));
      }
    }
    return arithmetic_.Elementwise(node, id, args, slack);
  }

  static int64_t BroadcastIndex(const Shape& to, const Shape& from, int64_t index) {
    const auto strides = RowMajorStrides(from);
    int64_t position = 0;
    for (size_t axis = to.size(); axis-- > 0;) {
      const int64_t coordinate = index % to[axis];
      index /= to[axis];
      const size_t shift = to.size() - from.size();
      if (axis >= shift && from[axis - shift] != 1) position += coordinate * strides[axis - shift];
    }
    return position;
  }

  const Plan& plan_;
  Arithmetic arithmetic_;
  std::vector<Memo> memo_;
  std::vector<const TensorData*> tensors_;
  std::vector<int> roots_;
};

}  // namespace ulpscope
