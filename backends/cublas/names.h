// cuBLAS's enumerations and the words for them: dtypes, compute types, statuses, reduction schemes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/num/dtype.h"

namespace ulpscope::cublas {

/// cudaDataType; nothing for a dtype that cuBLAS does not multiply.
std::optional<int> DataTypeOf(DType dtype);

/// A compute type: its word ("32F_FAST_TF32"), cublasComputeType_t, the dtype in which alpha and beta are
/// handed over, and the format in which it lets float32 operands be taken; empty: as they are.
struct ComputeType {
  std::string word;
  int value = 0;
  DType scale = DType::kFloat32;
  std::string operands = {};
};

/// The words, "default" apart.
const std::vector<ComputeType>& ComputeTypes();
/// The row of `word`; null for an unknown one. For "default" it is that of the operands: 64F for float64,
/// else 32F, as in frameworks.
const ComputeType* FindComputeType(const std::string& word, DType operands);

/// "NOT_SUPPORTED (15)"
std::string StatusText(int status);

/// cublasLtReductionScheme_t as a word: none, inplace, compute_type, output_type; nothing for an unknown
/// word.
std::optional<uint32_t> ReductionScheme(const std::string& word);
std::string ReductionName(uint32_t scheme);

}  // namespace ulpscope::cublas
