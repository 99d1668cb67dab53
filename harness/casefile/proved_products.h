// The products of a program whose operands are tensors of the case: auxiliary inputs are made for these.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/model/case.h"

namespace ulpscope {

/// A fill, not a crossed probe: among the inputs of ops' own, of 16-bit operands, and of short sums.
constexpr char kOrdinary[] = "normal";

/// One operand of a product: a tensor, and the dimension of it that is summed over.
struct ProvedOperand {
  const TensorSpec* tensor = nullptr;
  size_t dim = 0;

  int64_t k() const { return tensor->shape[dim]; }
  int64_t lines() const { return ElementCount(tensor->shape) / std::max<int64_t>(1, k()); }
};

/// A matrix product of two tensors of the case, or a sum of one.
struct ProvedProduct {
  std::string value;        ///< the value of the product: product, w.grad
  std::string buffer;       ///< the other name that out= gives it
  ProvedOperand a, b = {};  ///< of a sum b has no tensor
  int64_t results = 0;
  const TensorSpec* addend = nullptr;
  std::string probe = {};  ///< the only one of an op around a sum; else empty
  bool is_short = false;   ///< of 16-bit operands, with a 16-bit output

  bool IsSum() const { return b.tensor == nullptr; }
};

struct ProvedProducts {
  std::vector<ProvedProduct> products;
  /// Value -> the names of its direct operands; tensors and gradients among them.
  std::map<std::string, std::set<std::string>> sources;

  /// Names of values whose path includes the value, itself included.
  std::set<std::string> PathOf(const std::string& value) const;
};
ProvedProducts FindProducts(const Case& one);

}  // namespace ulpscope
