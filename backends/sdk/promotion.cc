// PyTorch's type promotion: the lattice and the ranks.
#include "backends/sdk/promotion.h"

namespace ulpscope::sdk {
namespace {

enum class Category { kBool, kInteger, kFloating };

Category CategoryOf(DType dtype) {
  if (dtype == DType::kBool) return Category::kBool;
  return IsFloating(dtype) ? Category::kFloating : Category::kInteger;
}

bool IsEightBitFloat(DType dtype) { return dtype == DType::kFloat8E4m3fn || dtype == DType::kFloat8E5m2; }

/// A Python scalar that decides the category brings the default dtype of that category, not its own width.
DType DefaultOf(DType scalar) { return IsFloating(scalar) ? DType::kFloat32 : scalar; }

}  // namespace

std::optional<DType> Promote(DType a, DType b) {
  if (a == b) return a;
  const Category category_a = CategoryOf(a);
  const Category category_b = CategoryOf(b);
  if (category_a != category_b) {
    const DType high = category_a > category_b ? a : b;
    return high;
  }
  if (category_a == Category::kFloating) {
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
    if (!result || CategoryOf(*of_rank) > CategoryOf(*result)) result = of_rank;
  }
  return result;
}

}  // namespace ulpscope::sdk
