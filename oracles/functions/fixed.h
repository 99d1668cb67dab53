// Fixed-point kernels: series on big integers in units of 2^-w, with their error bounds in units.
#pragma once

#include <boost/multiprecision/cpp_int.hpp>
#include <cstdint>

#include "oracles/exact/dyadic.h"

namespace ulpscope::fixed {

using Integer = boost::multiprecision::cpp_int;

/// a b / 2^w towards zero: less than one unit off.
Integer Multiply(const Integer& a, const Integer& b, int64_t w);
/// a / 2^count towards zero.
Integer ShiftRight(const Integer& a, int64_t count);
/// value 2^w towards zero.
Integer Of(const Dyadic& value, int64_t w);
/// Significant bits of |a|, 0 for zero.
int64_t BitLength(const Integer& a);

/// pi 2^w, off by at most 3 units.
Integer Pi(int64_t w);
/// ln(2) 2^w, off by at most 3 units.
Integer Ln2(int64_t w);

/// exp(r / 2^w) 2^w for |r| <= 2^(w-1). At w <= 5000 the error is below 2^60 units plus twice that of r.
Integer Exp(const Integer& r, int64_t w);
/// 2 atanh(z / 2^w) 2^w for |z| <= 0.2 2^w. The error is below 4 w units plus 3 times that of z.
Integer TwiceAtanh(const Integer& z, int64_t w);
/// atan(z / 2^w) 2^w for |z| <= 0.2 2^w, with the same error.
Integer Atan(const Integer& z, int64_t w);
/// sin and cos of r / 2^w, |r| <= 2^w. The error is below 4 w units plus that of r.
struct SinCos {
  Integer sin, cos;
};
SinCos SinAndCos(const Integer& r, int64_t w);

/// sum over n of x (2x^2)^n / (2n+1)!!, that is sqrt(pi)/2 exp(x^2) erf(x), enclosed in units; x > 0.
struct Bounds {
  Integer low, high;
};
Bounds ErfSeries(const Dyadic& x, int64_t w);
/// sum over n of (-1)^n (2n-1)!! / (2x^2)^n, that is sqrt(pi) x exp(x^2) erfc(x), enclosed; truncated at a term below
/// 2^(w/2) units, or before terms begin to grow: the remainder of this alternating series is smaller than the first
/// term left out.
Bounds ErfcSeries(const Dyadic& x, int64_t w);

}  // namespace ulpscope::fixed
