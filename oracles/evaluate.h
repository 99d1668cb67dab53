// Evaluator: evaluates elements of a plan over an Arithmetic, on demand and each once.
//
// An Arithmetic has
//   using Value;
//   Value Input(const PlanNode&, int id, const TensorData&, int64_t index)
//   Value Constant(const PlanNode&)
//   Value Elementwise(const PlanNode&, int id, std::span<const Value> args, std::span<const Value> slack)   a maximum has many args
//   Value Contract(const PlanNode&, int id, int64_t index, std::span<const Value> a, std::span<const Value> b, const Value* addend)
//   Value Reduce(const PlanNode&, int id, int64_t index, std::span<const Value> terms)
//   std::optional<bool> Truth(const Value&)   what a condition says; nothing where it may be either
//   Value Either(const Value&, const Value&)   a choice that is open
//   std::optional<int64_t> Whole(const Value&)   a number that says which element; nothing where it is open
//   Value Nowhere()   an element that is not there
//   Value Count(const PlanNode&, int64_t index)
//   std::optional<Value> Known(const PlanNode&, int id, int64_t index, const Value* addend)   a reduction that needs no operands
//                                                                                       gathered; null: it adds nothing more
// may have, where values of the program are given, all three of
//   std::optional<Value> Given(int id, int64_t index)   an element that needs not be computed
//   void Give(int id, int64_t index, Value*)   puts in its place what is given of a computed one
//   Value Select(const Value& condition, const Value& a, const Value& b)   in the place of Either
// and rounds, or not, as it sees fit: the exact arithmetic at casts alone, the others wherever their model does.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/base/check.h"
#include "harness/base/find.h"
#include "oracles/binding.h"
#include "oracles/plan.h"

namespace ulpscope {

template <class Arithmetic>
concept GivesValues = requires(const Arithmetic& arithmetic, typename Arithmetic::Value value, int id,
                               int64_t index) {
  arithmetic.Given(id, index);
  arithmetic.Give(id, index, &value);
  arithmetic.Select(value, value, value);
};

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
      sizes_.push_back(plan.size(static_cast<int>(id)));
      if (plan.nodes[id].kind == NodeKind::kInput)
        tensors_[id] = &inputs.at(plan.nodes[id].Get<TensorRead>().tensor);
    }
  }

  Arithmetic& arithmetic() { return arithmetic_; }

  Value At(int id, int64_t index) {
    const PlanNode& node = plan_.at(id);
    switch (node.kind) {
      case NodeKind::kInput:
        return arithmetic_.Input(node, id, *tensors_[static_cast<size_t>(id)], index);
      case NodeKind::kConstant:
        return arithmetic_.Constant(node);
      case NodeKind::kView:
        return At(roots_[static_cast<size_t>(id)], plan_.RootIndex(id, index));
      case NodeKind::kChoose: {
        const Value said = At(node.args[2], Source(node, 2, index));
        const std::optional<bool> condition = arithmetic_.Truth(said);
        if (!condition) {
          const Value first = At(node.args[0], Source(node, 0, index)),
                      second = At(node.args[1], Source(node, 1, index));
          if constexpr (GivesValues<Arithmetic>)
            return arithmetic_.Select(said, first, second);
          else
            return arithmetic_.Either(first, second);
        }
        const size_t chosen = *condition ? 0 : 1;
        return At(node.args[chosen], Source(node, chosen, index));
      }
      case NodeKind::kJoin: {
        const auto [part, at] = PartOf(node, index);
        return At(node.args[part], at);
      }
      case NodeKind::kTake: {
        const Taken& taken = node.Get<Taken>();
        const std::optional<int64_t> number =
            arithmetic_.Whole(At(node.args[1], PlaceBy(taken.numbers, node.shape, index)));
        if (!number || *number < 0 || *number >= taken.extent) return arithmetic_.Nowhere();
        return At(node.args[0], PlaceBy(taken.strides, node.shape, index) + *number * taken.apart);
      }
      case NodeKind::kCount:
        return arithmetic_.Count(node, index);
      default:
        break;
    }
    Memo& memo = memo_[static_cast<size_t>(id)];
    if (const Value* known = memo.Find(index)) return *known;
    if constexpr (GivesValues<Arithmetic>) {
      if (std::optional<Value> given = arithmetic_.Given(id, index)) return *std::move(given);
    }
    Value value = Compute(node, id, index);
    if constexpr (GivesValues<Arithmetic>) arithmetic_.Give(id, index, &value);
    memo.Keep(index, value, sizes_[static_cast<size_t>(id)]);
    return value;
  }

  /// The terms that element `index` of the reduction `id` sums: operand values of a contraction, interleaved
  /// a0 b0 a1 b1.
  void Operands(int id, int64_t index, std::vector<Value>* a, std::vector<Value>* b) {
    const PlanNode& node = plan_.at(id);
    a->clear();
    b->clear();
    if (node.kind == NodeKind::kContract) {
      const auto& [m, n, k, alpha, beta] = node.Get<Contraction>();
      a->reserve(static_cast<size_t>(k));
      b->reserve(static_cast<size_t>(k));
      const int64_t column = index % n, row = index / n % m, batch = index / (n * m);
      AlongLine(node.args[0], (batch * m + row) * k, 1, k, a);
      AlongLine(node.args[1], batch * k * n + column, n, k, b);
      return;
    }
    const auto& [axes, length] = node.along();
    a->reserve(static_cast<size_t>(length));
    if (node.kind == NodeKind::kScan) {
      int64_t inner = 1;
      for (size_t i = static_cast<size_t>(axes[0]) + 1; i < node.shape.size(); ++i) inner *= node.shape[i];
      const int64_t along = index / inner % length;
      for (int64_t k = 0; k <= along; ++k) a->push_back(At(node.args[0], index - (along - k) * inner));
      return;
    }
    const Shape& from = plan_.at(node.args[0]).shape;
    const auto strides = RowMajorStrides(from);
    // Base of the kept coordinates, then all coordinates of the summed axes in row-major order.
    int64_t base = 0, rest = index;
    for (size_t axis = from.size(); axis-- > 0;) {
      if (IsAmong(axes, axis)) continue;
      base += rest % from[axis] * strides[axis];
      rest /= from[axis];
    }
    for (int64_t term = 0; term < length; ++term) {
      int64_t position = base, left = term;
      for (size_t i = axes.size(); i-- > 0;) {
        const auto axis = static_cast<size_t>(axes[i]);
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
    Buffer a(&spare_), b(&spare_);
    Gather(id, index, &a.values, &b.values);
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

  /// Values of one node by position, in pages made when first written: a sample of a large result touches few
  /// of them. The pages lie in a two-level table, since hundreds of hypotheses each look at a few elements of
  /// tensors with millions.
  class Memo {
   public:
    const Value* Find(int64_t index) const {
      const auto page = static_cast<size_t>(index) / kPage, part = page / kPages;
      if (part >= parts_.size() || parts_[part] == nullptr) return nullptr;
      const Page* found = (*parts_[part])[page % kPages].get();
      const size_t at = static_cast<size_t>(index) % kPage;
      return found != nullptr && found->known[at] ? &found->values[at] : nullptr;
    }
    void Keep(int64_t index, Value value, int64_t size) {
      const auto page = static_cast<size_t>(index) / kPage, part = page / kPages;
      if (parts_.empty()) parts_.resize(static_cast<size_t>(size) / (kPage * kPages) + 1);
      if (parts_[part] == nullptr) parts_[part] = std::make_unique<Part>();
      std::unique_ptr<Page>& found = (*parts_[part])[page % kPages];
      if (found == nullptr) found = std::make_unique<Page>();
      const size_t at = static_cast<size_t>(index) % kPage;
      found->values[at] = std::move(value);
      found->known[at] = true;
    }

   private:
    static constexpr size_t kPage = 64, kPages = 128;
    struct Page {
      std::array<Value, kPage> values{};
      std::array<bool, kPage> known{};
    };
    using Part = std::array<std::unique_ptr<Page>, kPages>;
    std::vector<std::unique_ptr<Part>> parts_;
  };

  /// Buffers that are used again: a large sum is gathered millions of times, also while another one is.
  class Buffer {
   public:
    explicit Buffer(std::vector<std::vector<Value>>* spare) : spare_(spare) {
      if (spare_->empty()) return;
      values = std::move(spare_->back());
      spare_->pop_back();
    }
    ~Buffer() {
      values.clear();
      spare_->push_back(std::move(values));
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    std::vector<Value> values;

   private:
    std::vector<std::vector<Value>>* spare_;
  };

  /// `count` elements of `id` from `first` on, `step` apart. Most operands of a product are views, through which a line
  /// along one axis stays a line.
  void AlongLine(int id, int64_t first, int64_t step, int64_t count, std::vector<Value>* values) {
    const auto [root, position, stride] = plan_.LineBelow(id, first, step, count);
    for (int64_t k = 0; k < count; ++k) values->push_back(At(root, position + k * stride));
  }

  static bool IsAmong(const std::vector<int64_t>& axes, size_t axis) {
    return Contains(axes, static_cast<int64_t>(axis));
  }

  /// The argument of a kJoin that holds an element, and its index there.
  std::pair<size_t, int64_t> PartOf(const PlanNode& node, int64_t index) const {
    const auto axis = static_cast<size_t>(node.Get<Joined>().axis);
    int64_t inner = 1;
    for (size_t i = axis + 1; i < node.shape.size(); ++i) inner *= node.shape[i];
    const int64_t outer = index / (inner * node.shape[axis]);
    int64_t along = index / inner % node.shape[axis];
    for (size_t part = 0; part < node.args.size(); ++part) {
      const int64_t extent = plan_.at(node.args[part]).shape[axis];
      if (along < extent) return {part, (outer * extent + along) * inner + index % inner};
      along -= extent;
    }
    ULPSCOPE_CHECK(false, "an element beyond what was joined");
  }

  int64_t Source(const PlanNode& node, size_t arg, int64_t index) const {
    if (plan_.at(node.args[arg]).shape == node.shape) return index;
    const Arrangement& read = node.Get<Arrangement>();
    return read.offset + PlaceBy(read.strides[arg], node.shape, index);
  }

  Value Compute(const PlanNode& node, int id, int64_t index) {
    if (IsReduction(node.kind)) {
      std::optional<Value> added;
      if (node.kind == NodeKind::kContract && node.args.size() == 3) added = At(node.args[2], index);
      const Value* addend = added ? &*added : nullptr;
      if (std::optional<Value> known = arithmetic_.Known(node, id, index, addend)) return *known;
      Buffer a(&spare_), b(&spare_);
      Gather(id, index, &a.values, &b.values);
      if (node.kind != NodeKind::kContract) return arithmetic_.Reduce(node, id, index, a.values);
      return arithmetic_.Contract(node, id, index, a.values, b.values, addend);
    }
    Buffer args(&spare_), slack(&spare_);
    if (TakesLine(node.kind)) {
      Operands(id, index, &args.values, &slack.values);
      return arithmetic_.Elementwise(node, id, args.values, {});
    }
    for (size_t i = 0; i < node.args.size(); ++i)
      args.values.push_back(At(node.args[i], Source(node, i, index)));
    if constexpr (Arithmetic::kNeedsSlack) {
      // A slack node has the shape of the node, or broadcasts into it like an operand of its own would.
      for (const int other : node.slack) {
        if (other == id) continue;
        slack.values.push_back(At(other, BroadcastIndex(node.shape, plan_.at(other).shape, index)));
      }
    }
    return arithmetic_.Elementwise(node, id, args.values, slack.values);
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
  std::vector<int64_t> sizes_;
  std::vector<std::vector<Value>> spare_;
};

}  // namespace ulpscope
