// Operands and results of the certified fast path: a batched product of operands in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "harness/model/reference.h"
#include "harness/num/dtype.h"

namespace ulpscope::fast {

/// One operand in memory; strides count elements and may be 0 (broadcast).
struct Matrix {
  const void* data = nullptr;
  DType dtype = DType::kFloat32;
  int64_t batch_stride = 0, row_stride = 0, column_stride = 1;
};

struct Product {
  int64_t batch = 1, m = 0, n = 0, k = 0;
  Matrix a;  ///< [batch, m, k]
  Matrix b;  ///< [batch, k, n]
  std::optional<Matrix> c;
  double alpha = 1, beta = 1;
};

/// True for the element types that the fast path converts exactly.
bool IsFastType(DType dtype);

/// Which tier gave how many elements.
struct TierCounts {
  int64_t peel = 0, grid = 0, deep = 0, accumulated = 0, special = 0;
  int64_t total() const { return peel + grid + deep + accumulated + special; }
};

/// The results of one product. Buffers are kept from one product to the next.
class Results {
 public:
  Results();
  ~Results();
  Results(Results&&) noexcept;
  Results& operator=(Results&&) noexcept;

  int64_t size() const;
  /// Element (b * m + i) * n + j.
  Reference At(int64_t element) const;
  /// True if P1 and P2 both refused (deep counts as fallen back).
  bool FellBack(int64_t element) const;
  const TierCounts& counts() const;

  struct Store;
  Store& store() { return *store_; }

 private:
  std::unique_ptr<Store> store_;
};

}  // namespace ulpscope::fast
