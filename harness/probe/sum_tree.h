// SumTree: the order in which a kernel adds the products of one sum, as masks reveal it.
//
// With +M at i and -M at j over a field of units, every unit that is added before the two meet is lost in M;
// what is lost counts the products under the node of the summation tree where i and j meet (FPRev: Xie, Gao,
// Wang, Xue, "Revealing floating-point accumulation orders in software/hardware implementations", USENIX ATC
// 2025). All pairs together are the tree. A node that joins more than two at once is a fused unit.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ulpscope {

class SumTree {
 public:
  using Positions = std::vector<int64_t>;

  explicit SumTree(int64_t size) : size_(size), meet_(static_cast<size_t>(size * size), 1) {}

  int64_t size() const { return size_; }
  /// How many products lie under the node where i and j meet; 1 for i = j.
  int64_t Meet(int64_t i, int64_t j) const { return meet_[static_cast<size_t>(i * size_ + j)]; }
  bool operator==(const SumTree&) const = default;

  /// Joins subtrees in one node; returns its leaves.
  Positions Join(const std::vector<Positions>& parts);

  /// The tree with its leaves by position, "((0 1) (2 3))"; a fused node has more than two members. Members
  /// of a node stand in the order of their first leaf.
  std::string Text() const;
  /// "sequential", "16 lanes, folded in halves", ...; empty for a tree that is none of those known.
  std::string Name() const;
  /// The largest number of members of a node that are single products: 2 in a binary tree, n where n products
  /// join at once.
  int64_t WidestNode() const;

 private:
  std::string TextOf(const Positions& leaves) const;
  std::vector<Positions> MembersOf(const Positions& leaves) const;
  int64_t WidestOf(const Positions& leaves) const;
  friend std::optional<SumTree> RevealTree(
      int64_t size,
      const std::function<std::vector<int64_t>(std::span<const std::pair<int64_t, int64_t>>)>& ask);

  int64_t size_;
  std::vector<int64_t> meet_;
};

/// For pairs (i, j) of masks: the products that lie under their node. Asked in as few rounds as possible.
using AskMeets = std::function<std::vector<int64_t>(std::span<const std::pair<int64_t, int64_t>>)>;

/// Finds the tree over `size` products, querying n - 1 pairs (sequential) up to n log n or so. Nothing when
/// the answers are no tree: the order changed from one launch to the next, or masks did not absorb the units.
std::optional<SumTree> RevealTree(int64_t size, const AskMeets& ask);

}  // namespace ulpscope
