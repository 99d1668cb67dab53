// One function per op expansion; oracles/ops/table.cc lists them under their vocabulary words.
#pragma once

#include "oracles/lower.h"

namespace ulpscope {

int LowerMatmul(Lowering& low, const OpCall& call);
int LowerAddmm(Lowering& low, const OpCall& call);
int LowerLinear(Lowering& low, const OpCall& call);
int LowerFsdpLinear(Lowering& low, const OpCall& call);
int LowerAdd(Lowering& low, const OpCall& call);
int LowerSub(Lowering& low, const OpCall& call);
int LowerMul(Lowering& low, const OpCall& call);
int LowerDiv(Lowering& low, const OpCall& call);
int LowerNeg(Lowering& low, const OpCall& call);
int LowerRelu(Lowering& low, const OpCall& call);
int LowerSqrt(Lowering& low, const OpCall& call);
int LowerRsqrt(Lowering& low, const OpCall& call);
int LowerCast(Lowering& low, const OpCall& call);
int LowerClone(Lowering& low, const OpCall& call);
int LowerDetach(Lowering& low, const OpCall& call);
int LowerSum(Lowering& low, const OpCall& call);
int LowerMean(Lowering& low, const OpCall& call);
int LowerLayerNorm(Lowering& low, const OpCall& call);
int LowerExp(Lowering& low, const OpCall& call);
int LowerExpm1(Lowering& low, const OpCall& call);
int LowerLog(Lowering& low, const OpCall& call);
int LowerLog1p(Lowering& low, const OpCall& call);
int LowerSin(Lowering& low, const OpCall& call);
int LowerCos(Lowering& low, const OpCall& call);
int LowerTanh(Lowering& low, const OpCall& call);
int LowerSigmoid(Lowering& low, const OpCall& call);
int LowerErf(Lowering& low, const OpCall& call);
int LowerErfc(Lowering& low, const OpCall& call);
int LowerAbs(Lowering& low, const OpCall& call);
int LowerGelu(Lowering& low, const OpCall& call);
int LowerSilu(Lowering& low, const OpCall& call);
int LowerSoftmax(Lowering& low, const OpCall& call);
int LowerLogSoftmax(Lowering& low, const OpCall& call);
int LowerLogsumexp(Lowering& low, const OpCall& call);
int LowerRmsNorm(Lowering& low, const OpCall& call);
int LowerAmax(Lowering& low, const OpCall& call);
int LowerEmpty(Lowering& low, const OpCall& call);
int LowerFull(Lowering& low, const OpCall& call);
int LowerTranspose(Lowering& low, const OpCall& call);
int LowerReshape(Lowering& low, const OpCall& call);
int LowerExpand(Lowering& low, const OpCall& call);
int LowerPermute(Lowering& low, const OpCall& call);
int LowerSelect(Lowering& low, const OpCall& call);
int LowerUnsqueeze(Lowering& low, const OpCall& call);
int LowerSqueeze(Lowering& low, const OpCall& call);

}  // namespace ulpscope
