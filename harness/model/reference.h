// Reference: the exact value of one element, as the oracle gives it.
#pragma once

#include <cstdint>

#include "harness/num/float_format.h"

namespace ulpscope {

enum class ReferenceKind {
  kExact,      ///< hi + lo equals the exact real value
  kCertified,  ///< |exact - hi - lo| <= err
  kWide,       ///< the exact value is known but does not fit hi + lo; |exact - hi - lo| <= err all the same
  kDomain,     ///< NaN or infinity by the rules of IEEE 754
  kUndecided,  ///< no bound ended it
};

/// hi is the exact value rounded to binary64; hi + lo approximates it to err. Never judge from hi alone:
/// rounding hi to a narrow format rounds twice.
struct Reference {
  double hi = 0;
  double lo = 0;
  double err = 0;
  ReferenceKind kind = ReferenceKind::kUndecided;

  TwoDoubles value() const { return {.hi = hi, .lo = lo}; }
};

/// Who gave the references so far, in elements.
struct OracleCounts {
  int64_t fast = 0;      ///< computed by the certified fast path
  int64_t compared = 0;  ///< of these, compared with Boost.Multiprecision, bit for bit
  int64_t boost = 0;     ///< answered by Boost.Multiprecision alone

  OracleCounts& operator+=(const OracleCounts& other) {
    fast += other.fast;
    compared += other.compared;
    boost += other.boost;
    return *this;
  }
};

}  // namespace ulpscope
