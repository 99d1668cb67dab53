// Every way in which an accumulator can add up to four summands, as expressions that are evaluated together.
//
// A kernel's order is unknown, but over so few summands all orders can be written down: which pair meets
// first; whether a product enters by a fused multiply-add or is rounded first; for block units which summands
// share a block, whether blocks are chained or promoted to a float32 sum; for split-K which chunk each lies
// in. A result that none of the expressions gives is one that the accumulator cannot give.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "oracles/dot/sum.h"

namespace ulpscope {

class SumTrees {
 public:
  static constexpr int kMostSlots = 4;

  /// All expressions over `slots` summands. Shared: made once for each accumulator and count.
  static std::shared_ptr<const SumTrees> For(const AccSpec& acc, int slots);

  SumTrees(const AccSpec& acc, int slots);

  size_t structures() const { return acc_.in_two_words() ? visits_.size() : roots_.size(); }
  /// True for a split-K structure s all of whose summands lie in one chunk.
  bool one_chunk(size_t s) const {
    return acc_.partial != nullptr && nodes_[static_cast<size_t>(roots_[s])].kind == Kind::kPartial;
  }
  /// The result of each structure for the summands in their slots, before any later rounding.
  void Evaluate(std::span<const SumTerm> terms, std::vector<double>* results) const;

 private:
  enum class Kind { kEnter, kFuse, kPlus, kPlusInside, kBlock, kIdle, kPartial };
  struct Node {
    Kind kind = Kind::kEnter;
    int left = -1, right = -1;  ///< operands; of kFuse right is a slot
    unsigned slots = 0;         ///< of kBlock: the slots that join
  };

  const std::vector<int>& Binary(unsigned set);
  const std::vector<int>& Blocks(unsigned set);
  const std::vector<int>& Split(unsigned set);
  int Add(Node node);

  std::vector<std::vector<int>> visits_;  ///< of a sum in two words: the orders in which slots are visited
  AccSpec acc_, inner_;
  int slots_ = 0;
  std::vector<Node> nodes_;
  std::vector<int> roots_;
  std::vector<std::vector<int>> binary_, blocks_, split_;  // by set of slots
};

}  // namespace ulpscope
