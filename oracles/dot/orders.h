// The orders that a sum may be taken in: shapes of binary trees over its terms.
#pragma once

#include <bit>
#include <cstddef>
#include <string>
#include <vector>

namespace ulpscope {

/// A summation order: a shape of binary tree over the terms.
struct SumOrder {
  enum class Tree { kSequential, kReversed, kLanes, kPairwise, kBlocks, kOddFirstPairs, kHalves };
  Tree tree = Tree::kSequential;
  int width = 0;             ///< lanes or block length
  bool addend_last = false;  ///< beta * c is added after the products instead of before
  std::string name;
};

/// Number of terms in the left part of a pairwise sum of `count` terms, two or more. Neighbours are added
/// first, then neighbouring pairs; a term without a neighbour waits, so the left part is a power of two.
inline size_t PairwiseSplit(size_t count) { return std::bit_floor(count - 1); }

/// The family of orders that the classifier knows; `with_addend` doubles it for fused accumulation.
enum class AddendOrders { kNone, kBoth };
const std::vector<SumOrder>& SumOrders(AddendOrders addend);

}  // namespace ulpscope
