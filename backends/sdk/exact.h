// Exact arithmetic on doubles as hi + lo pairs: enough to round a sum, product, quotient or root exactly
// once.
//
// Source: Dekker 1971, Knuth TAOCP 4.2.2 (TwoSum), Shewchuk 1997 (expansions; the summation is that of
// Python's fsum). lo carries the sign that decides a tie; where binary64 overflows or the result is a NaN, lo
// is 0.
//
// Quotients and roots are not those of harness/num/error_free.h: glue rounds each once and needs the nearest
// double and the side of the rest, which one division gives; there a pair is good to 2^-100, as later steps
// need.
#pragma once

#include <span>

#include "harness/num/float_format.h"

namespace ulpscope::sdk {

TwoDoubles ExactSum(double a, double b);
/// Exact as long as the product's last bit is above the smallest subnormal of binary64.
TwoDoubles ExactProduct(double a, double b);
/// hi = RN(a / b); lo has the sign of the rest.
TwoDoubles Quotient(double a, double b);
/// hi = RN(sqrt(a)); lo has the sign of the rest.
TwoDoubles SquareRoot(double a);
/// 1 / sqrt(a): hi within one ulp, corrected to nearest; lo has the sign of the rest.
TwoDoubles ReciprocalSquareRoot(double a);
/// hi = the exact sum rounded to nearest; lo has the sign and size of the rest.
TwoDoubles ExactSum(std::span<const double> terms);
/// (hi + lo) / n, with the sign of the rest in lo.
TwoDoubles Divide(TwoDoubles value, double n);

}  // namespace ulpscope::sdk
