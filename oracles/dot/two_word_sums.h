// Sums that keep a second word: the step and the end of each, and their error bounds. One row for each member of
// TwoWords.
#pragma once

#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {

/// Both words are numbers of float32.
struct TwoWordSum {
  double high = 0, low = 0;
};

struct TwoWordRow {
  TwoWords kind;
  void (*add)(TwoWordSum* sum, TwoDoubles term);
  double (*value)(const TwoWordSum& sum);  ///< a number of float32
  /// The error of a sum of `terms` terms in any order, at most, relative to the sum of their magnitudes.
  double (*relative_bound)(double terms);
};
const TwoWordRow& RowOf(TwoWords kind);

}  // namespace ulpscope
