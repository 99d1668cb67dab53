// Reference: the exact value of one element, as the oracle gives it.
#pragma once

#include "harness/num/float_format.h"

namespace ulpscope {

enum class ReferenceKind {
  kExact,      ///< hi + lo equals the exact real value
  kCertified,  ///< |exact - hi - lo| <= err
  kWide,       ///< the exact value is known but does not fit hi + lo; |exact - hi - lo| <= err all the same
  kDomain,     ///< NaN or infinity by the rules of IEEE 754
  kUndecided,  ///< no bound ended it
};

/// hi is the exact value rounded to binary64; hi + lo approximates it to err. Never judge from hi alone: rounding hi to a
/// narrow format rounds twice.
struct Reference {
  double hi = 0;
  double lo = 0;
  double err = 0;
  ReferenceKind kind = ReferenceKind::kUndecided;
};

}  // namespace ulpscope
