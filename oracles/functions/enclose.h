// Functions on intervals, and how far an implementation of a function may be from it: the enclosing
// arithmetic's view.
//
// No framework rounds its functions correctly, and few document a bound. Measured on 65,536 normal arguments
// in float32, in units in the last place: PyTorch 2.13 on a CPU 0.50 (tanh) to 0.83 (log), 1.94 (sin,
// compiled), 1.97 (sigmoid); JAX 0.10.2 0.99 (exp), 1.06 (log), 3.7 (tanh), 4.2 (erf), 5.1 (expm1), 34
// (erfc); square roots 0.75 in eager PyTorch, reciprocal ones 1.5. Results below the smallest normal number
// may come out as zero. So hard evidence takes a function step as anything within FunctionSlack units, of the
// format that a node computes in, around the exact image: 8 for functions, 64 for small erfc, 1 for square
// roots. A model is excluded by a rounding that it would have had to make, never by the last bits of an
// implementation's polynomial: a bfloat16 rounding is 65,536 units of float32. A larger error is unmodelled,
// and should be: erf as torch.compile vectorises it in float32 is 15,580 units off at -4.9e-5, being good to
// 6e-8 absolutely instead.
#pragma once

#include <cmath>

#include "harness/model/oracle.h"
#include "harness/num/float_format.h"
#include "oracles/plan.h"

namespace ulpscope {

inline constexpr Interval kEverything{.lo = -kInf, .hi = kInf, .special = true};

/// The neighbouring double: a bound rounded outwards.
inline double Down(double value) { return std::nextafter(value, -kInf); }
inline double Up(double value) { return std::nextafter(value, kInf); }

/// Units in the last place of the format that computes a node; 0 where the operation is one that IEEE 754
/// requires and all backends round correctly. No standard of the frameworks bounds the error of a function.
/// XLA's on CPUs (jaxlib 0.10.2, 131,072 values each) are the furthest measured: expm1 5.5, erf 4.3, tanh
/// 4.1, and erfc 61 where it is small; powers have what OpenCL C allows (its table of errors in ulp), 16.
double FunctionSlack(NodeKind kind);
/// The same as a distance from `value`, in a format. An erfc that is not small is what is left of 1 - erf: off as erf is, and rounded
/// once or twice.
double FunctionReach(NodeKind kind, double value, const FloatFormat& format);
/// Binary64 for results of that dtype, else binary32.
const FloatFormat& ComputeFormat(const PlanNode& node);

/// f of every point of `a`; endpoints outwards by the error of PairFunction.
Interval FunctionImage(NodeKind kind, Interval a);
Interval PowerImage(Interval a, double exponent);
/// Every angle of a point (x, y); both of pi and -pi if y may be a zero of either sign with a negative x.
Interval AngleImage(Interval y, Interval x);
/// `value` widened by FunctionSlack and by the flush of subnormals.
Interval WithSlack(const PlanNode& node, Interval value);
Interval ConstantInterval(Irrational constant);

}  // namespace ulpscope
