// Enumerates and evaluates summation expressions.
#include "oracles/dot/trees.h"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>
#include <tuple>

#include "harness/base/check.h"

namespace ulpscope {

std::shared_ptr<const SumTrees> SumTrees::For(const AccSpec& acc, int slots) {
  // Expressions depend on the kind of accumulator alone, but keep its spec for evaluation.
  using Key = std::tuple<const FloatFormat*, const FloatFormat*, const FloatFormat*, int, int, int, int,
                         TwoWords, int>;
  static std::mutex mutex;
  static std::map<Key, std::shared_ptr<const SumTrees>> known;
  const std::lock_guard lock(mutex);
  auto& trees =
      known[{acc.format, acc.partial, acc.combine, acc.block, acc.fraction, static_cast<int>(acc.rounding),
             static_cast<int>(acc.subnormals) * 2 + (acc.via_float32 ? 1 : 0), acc.two_words, slots}];
  if (!trees) trees = std::make_shared<const SumTrees>(acc, slots);
  return trees;
}

SumTrees::SumTrees(const AccSpec& acc, int slots) : acc_(acc), slots_(slots) {
  ULPSCOPE_CHECK(slots >= 1 && slots <= kMostSlots && !acc.exact(),
                 "summation trees of this accumulator cannot be listed");
  if (acc.in_two_words()) {
    std::vector<int> order;
    for (int slot = 0; slot < slots; ++slot) order.push_back(slot);
    do visits_.push_back(order);
    while (std::next_permutation(order.begin(), order.end()));
    return;
  }
  inner_.format = &Binary32();
  inner_.subnormals = acc.subnormals;
  const unsigned all = (1u << slots) - 1;
  binary_.resize(all + 1);
  blocks_.resize(all + 1);
  split_.resize(all + 1);
  roots_ = acc_.block > 0 ? Blocks(all) : acc_.partial != nullptr ? Split(all) : Binary(all);
}

int SumTrees::Add(Node node) {
  nodes_.push_back(node);
  return static_cast<int>(nodes_.size()) - 1;
}

const std::vector<int>& SumTrees::Binary(unsigned set) {
  auto& all = binary_[set];
  if (!all.empty()) return all;
  std::vector<int> made;
  if (std::has_single_bit(set)) {
    made.push_back(Add({.kind = Kind::kEnter, .left = -1, .right = std::countr_zero(set), .slots = set}));
  }
  for (unsigned part = (set - 1) & set; part > 0; part = (part - 1) & set) {
    const unsigned rest = set & ~part;
    const std::vector<int> left = Binary(part);
    if (std::has_single_bit(rest)) {
      for (const int x : left)
        made.push_back(Add({.kind = Kind::kFuse, .left = x, .right = std::countr_zero(rest), .slots = rest}));
    }
    if (part < rest) continue;  // additions commute
    for (const int x : left) {
      for (const int y : Binary(rest))
        made.push_back(Add({.kind = acc_.partial != nullptr ? Kind::kPlusInside : Kind::kPlus,
                            .left = x,
                            .right = y,
                            .slots = 0}));
    }
  }
  return binary_[set] = made;
}

const std::vector<int>& SumTrees::Blocks(unsigned set) {
  auto& all = blocks_[set];
  if (!all.empty()) return all;
  std::vector<int> made;
  if (std::popcount(set) <= acc_.block)
    made.push_back(Add({.kind = Kind::kBlock, .left = -1, .right = -1, .slots = set}));
  for (unsigned part = (set - 1) & set; part > 0; part = (part - 1) & set) {
    const unsigned rest = set & ~part;
    const std::vector<int> left = Blocks(part);
    if (std::popcount(rest) <= acc_.block) {
      for (const int x : left)
        made.push_back(Add({.kind = Kind::kBlock, .left = x, .right = -1, .slots = rest}));
    }
    if (part < rest) continue;
    for (const int x : left) {
      for (const int y : Blocks(rest))
        made.push_back(Add({.kind = Kind::kPlus, .left = x, .right = y, .slots = 0}));
    }
  }
  if (acc_.fraction < 23) {
    // A block of zeros truncates the running sum again: F bits below the least exponent are fewer than subnormal
    // float32 numbers have.
    const size_t count = made.size();
    for (size_t i = 0; i < count; ++i)
      made.push_back(Add({.kind = Kind::kIdle, .left = made[i], .right = -1, .slots = 0}));
  }
  return blocks_[set] = made;
}

const std::vector<int>& SumTrees::Split(unsigned set) {
  auto& all = split_[set];
  if (!all.empty()) return all;
  std::vector<int> made;
  for (const int chunk : std::vector<int>(Binary(set)))
    made.push_back(Add({.kind = Kind::kPartial, .left = chunk, .right = -1, .slots = 0}));
  for (unsigned part = (set - 1) & set; part > 0; part = (part - 1) & set) {
    const unsigned rest = set & ~part;
    if (part < rest) continue;
    const std::vector<int> left = Split(part);
    for (const int x : left) {
      for (const int y : Split(rest))
        made.push_back(Add({.kind = Kind::kPlus, .left = x, .right = y, .slots = 0}));
    }
  }
  return split_[set] = made;
}

void SumTrees::Evaluate(std::span<const SumTerm> terms, std::vector<double>* results) const {
  if (acc_.in_two_words()) {
    static const SumOrder sequential;
    results->clear();
    std::vector<SumTerm> visited;
    for (const auto& order : visits_) {
      visited.clear();
      for (const int slot : order) visited.push_back(terms[static_cast<size_t>(slot)]);
      results->push_back(SumInOrder(acc_, sequential, visited, nullptr).hi);
    }
    return;
  }
  thread_local std::vector<double> values;
  values.resize(nodes_.size());
  const AccSpec& step = acc_.partial != nullptr ? inner_ : acc_;
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    const auto left = static_cast<size_t>(node.left), right = static_cast<size_t>(node.right);
    switch (node.kind) {
      case Kind::kEnter:
        values[i] = StoreIn(step, terms[right].value);
        break;
      case Kind::kFuse:
        values[i] =
            terms[right].value.hi == 0 ? values[left] : StepIn(step, values[left], terms[right].value);
        break;
      case Kind::kPlus:
        values[i] = AddPartials(acc_, values[left], values[right]);
        break;
      case Kind::kPlusInside:
        values[i] = StepIn(inner_, values[left], {.hi = values[right], .lo = 0});
        break;
      case Kind::kBlock: {
        SumTerm joined[kMostSlots];
        size_t count = 0;
        for (int slot = 0; slot < slots_; ++slot) {
          if ((node.slots >> slot & 1u) != 0) joined[count++] = terms[static_cast<size_t>(slot)];
        }
        values[i] = BlockStep(acc_, node.left < 0 ? 0 : values[left], {joined, count});
        break;
      }
      case Kind::kIdle:
        values[i] = BlockStep(acc_, values[left], {});
        break;
      case Kind::kPartial:
        values[i] = RoundTo(values[left], *acc_.partial, Rounding::kNearestEven, acc_.subnormals);
        break;
    }
  }
  results->clear();
  for (const int root : roots_) results->push_back(values[static_cast<size_t>(root)]);
}

}  // namespace ulpscope
