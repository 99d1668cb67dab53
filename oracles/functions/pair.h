// Functions on pairs of doubles: the emulating and the enclosing arithmetic's view of
// oracles/functions/exact.h.
//
// Each kernel reduces its argument with constants of 192 bits, sums a series whose remainder is below 2^-106,
// and works in pair arithmetic, whose operations err by less than 2^-102 relative (Joldes, Muller and
// Popescu, "Tight and rigorous error bounds for basic building blocks of double-word arithmetic", 2017). The
// relative error of the result is below kFunctionError wherever the result is a normal binary64 number; what
// a kernel cannot hold (sine of 2^100, sine next to a multiple of pi) goes to the exact functions.
// tests/oracles/functions_test.cc holds the bound against MPFR.
#pragma once

#include "harness/num/float_format.h"
#include "oracles/plan.h"

namespace ulpscope {

/// Far below half an ulp of binary64, so a result rounded once is right but for one argument in 2^20 or so.
/// erfc needs it most: beyond 1/2 it starts from 1 - erf.
inline constexpr double kFunctionError = 0x1p-72;

/// Largest error of kFastExp relative to exp: 1.125e-4 of the polynomial, and below 1.1e-5 from rounding the
/// bits of large numbers and the scaled argument in float32.
inline constexpr double kFastExpError = 1.25e-4;

/// f(a); NaN and infinities as in ApplyFunction. Results below 2^-1022 are rounded once to binary64's
/// subnormals, with the sign of the rest in `lo`.
TwoDoubles PairFunction(NodeKind kind, TwoDoubles a);
/// a to the power of a number: exponents of a few bits by squaring and roots, others through log and exp, whose error
/// is that of the exponent times log a.
TwoDoubles PairPower(TwoDoubles a, double exponent);
/// The angle of the point (x, y); zeros have their signs.
TwoDoubles PairAtan2(TwoDoubles y, TwoDoubles x);
/// So many eighths of a full turn.
TwoDoubles PairAngle(int eighths);
TwoDoubles PairConstant(Irrational constant);

}  // namespace ulpscope
