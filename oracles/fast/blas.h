// The oracle's own OpenBLAS: one function, bound at its first use.
#pragma once

#include <cstdint>
#include <string>

namespace ulpscope::fast {

enum class Layout { kRows, kColumns };  ///< whether a row of A or a column of B is contiguous

/// C = A B with alpha = 1 and beta = 0 over binary64: the only form that the proof of P1 (peel.h) covers.
/// OpenBLAS is bound by dlopen of its file, so that a build and a machine without it work (P2 then does
/// everything). It is set to one thread: the oracle has its own.
class Blas {
 public:
  /// Null when the library cannot be bound.
  static const Blas* Get();
  /// Get, for a process that has no other thread yet: the library is kept from making threads of its own, which would wait in
  /// sched_yield beside the oracle's and take up to a third of the processor time of a small run.
  static const Blas* GetWithoutThreads();

  /// c[i * ldc + j] for i < m, j < n. kRows: a[i * lda + k], b[j * ldb + k]; kColumns: a[k * lda + i], b[k *
  /// ldb + j].
  void Multiply(int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, Layout layout_a,
                const double* b, int64_t ldb, Layout layout_b, double* c, int64_t ldc) const;
  /// openblas_get_corename(): "SkylakeX", "Haswell", ...
  std::string CoreName() const;

 private:
  Blas() = default;
  using Gemm = void (*)(int, int, int, int, int, int, double, const double*, int, const double*, int, double,
                        double*, int);
  Gemm gemm_ = nullptr;
  char* (*core_name_)() = nullptr;
};

}  // namespace ulpscope::fast
