// Selects the elements of a large result that are judged if looking at all of them costs too much.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "harness/model/tensor.h"

namespace ulpscope {

/// `parts` numbers below `count`: first, last, one of each stratum by hash (even steps would meet every other column).
std::set<int64_t> Spread(int64_t count, int64_t parts);

/// At most about `most` element indices, ascending, the same for every backend and run; all if there are no more. Whole
/// rows along the last axis (neighbours share a row's sums, and a row of a normalisation is evaluated whole), among
/// them the first and the last one; for long rows both ends, where kernels keep their tails, and runs between.
std::vector<int64_t> ElementsToCheck(const Shape& shape, int64_t most);

}  // namespace ulpscope
