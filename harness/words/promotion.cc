// PyTorch's type promotion: the lattice and the ranks.
#include "harness/words/promotion.h"

namespace ulpscope {
namespace {

bool IsEightBitFloat(DType dtype) { return IsFloating(dtype) && SizeOf(dtype) == 1; }

/// A Python scalar that decides the category brings the default dtype of that category, not its own width.
DType DefaultOf(DType scalar) { return IsFloating(scalar) ? DType::kFloat32 : scalar; }

}  // namespace

std::optional<DType> Promote(DType a, DType b) {
  if (a == b) return a;
  if (KindOf(a) != KindOf(b)) return KindOf(a) > KindOf(b) ? a : b;
  if (IsFloating(a)) {
    if (IsEightBitFloat(a) || IsEightBitFloat(b)) return std::nullopt;
    if (SizeOf(a) != SizeOf(b)) return SizeOf(a) > SizeOf(b) ? a : b;
    return DType::kFloat32;  // bfloat16 with float16: neither holds the other
  }
  // uint8 and int8 need int16; uint8 fits every wider signed type.
  if (SizeOf(a) == SizeOf(b)) return DType::kInt16;
  return SizeOf(a) > SizeOf(b) ? a : b;
}

std::optional<DType> ResultType(std::span<const PromotionOperand> operands) {
  std::optional<DType> result;
  for (const OperandRank rank : {OperandRank::kTensor, OperandRank::kZeroDim, OperandRank::kScalar}) {
    std::optional<DType> of_rank;
    for (const PromotionOperand& operand : operands) {
      if (operand.rank != rank) continue;
      const DType dtype = rank == OperandRank::kScalar ? DefaultOf(operand.dtype) : operand.dtype;
      of_rank = of_rank ? Promote(*of_rank, dtype) : std::optional(dtype);
      if (!of_rank) return std::nullopt;
    }
    if (!of_rank) continue;
    if (!result || KindOf(*of_rank) > KindOf(*result)) result = of_rank;
  }
  return result;
}

}  // namespace ulpscope
