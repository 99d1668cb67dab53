// The table of orders.
#include "oracles/dot/orders.h"

namespace ulpscope {
namespace {

std::vector<SumOrder> MakeOrders(bool addend_last) {
  using Tree = SumOrder::Tree;
  std::vector<SumOrder> orders{{.tree = Tree::kSequential, .name = "sequential"},
                               {.tree = Tree::kReversed, .name = "reversed"},
                               {.tree = Tree::kLanes, .width = 2, .name = "lanes2"},
                               {.tree = Tree::kLanes, .width = 4, .name = "lanes4"},
                               {.tree = Tree::kLanes, .width = 8, .name = "lanes8"},
                               {.tree = Tree::kLanes, .width = 16, .name = "lanes16"},
                               {.tree = Tree::kLanes, .width = 32, .name = "lanes32"},
                               {.tree = Tree::kPairwise, .name = "pairwise"},
                               {.tree = Tree::kBlocks, .width = 4, .name = "blocks4"},
                               {.tree = Tree::kBlocks, .width = 16, .name = "blocks16"},
                               {.tree = Tree::kOddFirstPairs, .name = "odd_first_pairs"},
                               {.tree = Tree::kHalves, .name = "halves"},
                               {.tree = Tree::kBlocks, .width = 2, .name = "blocks2"}};
  if (addend_last) {
    const size_t count = orders.size();
    for (size_t i = 0; i < count; ++i) {
      SumOrder last = orders[i];
      last.addend_last = true;
      last.name += "+c";
      orders.push_back(last);
    }
  }
  return orders;
}

}  // namespace

const std::vector<SumOrder>& SumOrders(AddendOrders addend) {
  static const std::vector<SumOrder> plain = MakeOrders(false), both = MakeOrders(true);
  return addend == AddendOrders::kNone ? plain : both;
}

}  // namespace ulpscope
