// PyTorch's type promotion, for the oracle and for adapters without a framework.
//
// Source: torch.result_type and c10::promoteTypes. Operands fall into three ranks: tensors with axes, 0-dim
// tensors, Python scalars. A lower rank changes the result only when its category (bool < integer < floating)
// is higher than that of all the ranks above it: a bfloat16 tensor times a float64 0-dim tensor is bfloat16,
// an int32 tensor times 1.5 float32.
#pragma once

#include <optional>
#include <span>

#include "harness/num/dtype.h"

namespace ulpscope {

enum class OperandRank { kTensor, kZeroDim, kScalar };

/// The properties of one operand that promotion depends on. A Python bool is kBool, an int kInt64, a float
/// kFloat64: its category.
struct PromotionOperand {
  DType dtype = DType::kFloat32;
  OperandRank rank = OperandRank::kTensor;
};

/// The common dtype of two tensors of one rank; nothing where PyTorch refuses (an 8-bit float with anything
/// else).
std::optional<DType> Promote(DType a, DType b);

/// torch.result_type over all operands; nothing where PyTorch refuses or without operands.
std::optional<DType> ResultType(std::span<const PromotionOperand> operands);

}  // namespace ulpscope
