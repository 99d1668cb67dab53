// The certified fast path: batched products out[b,m,n] = alpha * sum_k a[b,m,k] b[b,k,n] + beta * c[b,m,n], exactly or with
// a proven bound, at close to the speed of a BLAS.
//
// Each element gets what the oracle's contract requires: hi, the exact value rounded to binary64; lo; a
// bound; a kind. Four tiers give it, each refusing where its proof does not apply, the next one taking over:
//
//   P1 peel.h             bfloat16, float16, float8: one binary64 GEMM of a BLAS, proved free of rounding
//   P2 grid.h             everything else with finite elements of ordinary size: a compensated GEMM of our own
//   P2' grid.h            the same with more levels, for the tiles that cancel
//   P3 superaccumulator.h element by element, exact for all of binary64; NaN and infinities by the rules of IEEE 754
//
// Every tier assumes round to nearest, no flushing of subnormals, and a classical algorithm. Rounding and
// flushing are checked in each thread that computes; the product is refused if they differ.
// Boost.Multiprecision remains the definition of truth: callers compare this path with it
// (oracles/fast/references.h).
#pragma once

#include <memory>

#include "oracles/fast/kernels.h"
#include "oracles/fast/results.h"

namespace ulpscope::fast {

enum class BlasUse { kWhenBound, kNever };
enum class LastTier {
  kAll,
  kAccumulatorOnly
};  ///< kAccumulatorOnly: every element by P3, as a second opinion

struct Options {
  int threads = 1;
  const Kernels* kernels = nullptr;  ///< null: the best that the machine has
  BlasUse blas = BlasUse::kWhenBound;
  LastTier tiers = LastTier::kAll;
};

/// Computes products; keeps threads and buffers. Not for several threads at a time.
class Engine {
 public:
  explicit Engine(Options options = {});
  ~Engine();

  /// False, with nothing computed, if the floating-point environment is not the default one.
  [[nodiscard]] bool Compute(const Product& product, Results* results);
  /// Team::correction_seconds of its threads.
  double correction_seconds() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace ulpscope::fast
