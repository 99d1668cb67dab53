// The op table: vocabulary word -> expansion. A new op is one file in this folder and one row here.
#include "oracles/ops/table.h"

#include <array>

namespace ulpscope {
namespace {

struct Row {
  std::string_view word;
  OpLowering lower;
};

constexpr std::array<Row, 55> kRows{{
    {"matmul", LowerMatmul},
    {"mm", LowerMatmul},
    {"bmm", LowerMatmul},
    {"addmm", LowerAddmm},
    {"baddbmm", LowerAddmm},
    {"linear", LowerLinear},
    {"fsdp_linear", LowerFsdpLinear},
    {"add", LowerAdd},
    {"sub", LowerSub},
    {"mul", LowerMul},
    {"div", LowerDiv},
    {"neg", LowerNeg},
    {"relu", LowerRelu},
    {"sqrt", LowerSqrt},
    {"rsqrt", LowerRsqrt},
    {"cast", LowerCast},
    {"clone", LowerClone},
    {"detach", LowerDetach},
    {"sum", LowerSum},
    {"mean", LowerMean},
    {"layer_norm", LowerLayerNorm},
    {"exp", LowerExp},
    {"expm1", LowerExpm1},
    {"log", LowerLog},
    {"log1p", LowerLog1p},
    {"sin", LowerSin},
    {"cos", LowerCos},
    {"tanh", LowerTanh},
    {"sigmoid", LowerSigmoid},
    {"erf", LowerErf},
    {"erfc", LowerErfc},
    {"abs", LowerAbs},
    {"gelu", LowerGelu},
    {"silu", LowerSilu},
    {"softmax", LowerSoftmax},
    {"log_softmax", LowerLogSoftmax},
    {"logsumexp", LowerLogsumexp},
    {"rms_norm", LowerRmsNorm},
    {"amax", LowerAmax},
    {"empty", LowerEmpty},
    {"zeros", LowerFull},
    {"ones", LowerFull},
    {"full", LowerFull},
    {"transpose", LowerTranspose},
    {"t", LowerTranspose},
    {"reshape", LowerReshape},
    {"view", LowerReshape},
    {"expand", LowerExpand},
    {"permute", LowerPermute},
    {"select", LowerSelect},
    {"unsqueeze", LowerUnsqueeze},
    {"squeeze", LowerSqueeze},
    {"aten::mm", LowerMatmul},
    {"aten::matmul", LowerMatmul},
    {"aten::linear", LowerLinear},
}};

}  // namespace

OpLowering FindLowering(std::string_view op) {
  for (const auto& row : kRows) {
    if (row.word == op) return row.lower;
  }
  return nullptr;
}

std::vector<std::string> KnownOps() {
  std::vector<std::string> words;
  for (const auto& row : kRows) words.emplace_back(row.word);
  return words;
}

}  // namespace ulpscope
