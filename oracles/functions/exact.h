// Exact functions: proven enclosures of exp, log, sin, cos, tanh, erf, erfc, of what is made of these (exp2,
// log2, sinh, cosh), of powers and angles at exact binary numbers, to any precision.
//
// Everything is fixed-point arithmetic on Boost's integers in units of 2^-W: an operation truncates by less
// than one unit, so the error of a series is a count of its operations. W holds 96 bits more than requested;
// each function states a bound on its error in units (at most 2^64), and the enclosure is that far to both
// sides, then cut outwards to the requested precision.
//
// How Ziv's doubling ends. At an algebraic argument other than the exact cases below, exp, expm1, log, log1p,
// sin, cos and tanh are transcendental (Lindemann and Weierstrass), so they never meet a binary number or the
// middle between two, and some precision decides every rounding. Exact cases: exp(0) = cos(0) = erfc(0) = 1,
// expm1(0) = log1p(0) = log(1) = sin(0) = tanh(0) = erf(0) = 0; they come out as points. No such theorem is
// known for erf and erfc: there the cap of the precision ends it, and the element is Undecided. The same
// holds for what is composed of several functions. exp2 of a whole number, log2 of a power of two and powers whose
// exponent is a whole number of eighths are taken by squaring and by roots, which are exact where they can be.
//
// Arguments that would cost without deciding anything are cut short: |exp's argument| >= 2^15 (the result is
// beyond 2^47000, so beyond every format: overflow counts as infinity, underflow as [0, 2^-47000]); tanh and
// erf within 2^-(p+8) of their limit; sin and cos of |x| >= 2^8192, which no binary64 number is, give [-1,
// 1].
#pragma once

#include "oracles/exact/real.h"
#include "oracles/plan.h"

namespace ulpscope {

/// f(a) enclosed to `precision` bits; `kind` is one of IsFunction. NaN and infinities follow IEEE
/// 754-2019 9.2.1 (log(-1) is NaN, log(0) is -inf, exp(-inf) is 0, sin(inf) is NaN).
Real ApplyFunction(NodeKind kind, const Real& a, int64_t precision);
/// The same through the tables of 65,536 entries for arguments of bfloat16 and float16: filled at the first
/// use, kept for the process, one per function and format. Thread-safe.
Real TabulatedFunction(NodeKind kind, const Real& a, int64_t precision);
/// a to the power of a number, NaN and infinities as C's pow has them.
Real Power(const Real& a, double exponent, int64_t precision);
/// The angle of the point (x, y), in (-pi, pi]; a zero counts as positive, infinities as C's atan2 has them.
Real Atan2(const Real& y, const Real& x, int64_t precision);
Real ConstantOf(Irrational constant, int64_t precision);

}  // namespace ulpscope
