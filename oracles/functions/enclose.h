// Functions on intervals, and how far an implementation of a function may be from it: the enclosing arithmetic's view.
//
// No framework rounds its functions correctly, and few document a bound. The vectorised libraries that they call (SLEEF u10, MKL VML,
// XLA's polynomials) promise one to four units in the last place of the format they compute in, which is float32 for everything up to
// float32 and float64 above; results below the smallest normal number may come out as zero. So hard evidence takes a function
// step as anything within FunctionSlack units of that format around the exact image, subnormals flushed or not: a model falls by a
// rounding that it would have had to make, never by the last bits of somebody's polynomial. Square roots get one unit:
// PyTorch's float32 square root on a CPU is up to 0.75 units off.
#pragma once

#include "harness/model/oracle.h"
#include "oracles/plan.h"

namespace ulpscope {

/// Units in the last place of the format that computes a node; 0 where the operation is one that IEEE 754 requires and all
/// backends round correctly.
double FunctionSlack(NodeKind kind);
/// Binary64 for results of that dtype, else binary32.
const FloatFormat& ComputeFormat(const PlanNode& node);

/// f of every point of `a`; endpoints outwards by the error of PairFunction.
Interval FunctionImage(NodeKind kind, Interval a);
/// `value` widened by FunctionSlack and by the flush of subnormals.
Interval WithSlack(const PlanNode& node, Interval value);
Interval ConstantInterval(Irrational constant);

}  // namespace ulpscope
