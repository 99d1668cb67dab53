// P1: an exact product of narrow formats by one binary64 GEMM that is proved free of rounding.
//
// Claim. Let every element of row i of A be a multiple of 2^l_i, every element of column j of B a multiple of 2^l_j, and
// ||a_i|| ||b_j|| <= 2^53 2^(l_i + l_j). Then a classical binary64 GEMM gives the exact dot product, whatever its order,
// blocking, vector width or use of fma. Proof: every product and every partial sum, over any subset of the terms, is an
// integer multiple of 2^(l_i + l_j), and by the Cauchy-Schwarz inequality not above sum |a_ik| |b_kj| <= ||a_i|| ||b_j||:
// an integer of at most 2^53 units. Each is representable, so no operation ever rounds.
// Assumed of the BLAS: the classical algorithm (not Strassen's), alpha = 1 and beta = 0 (so that scaling is by 1, and C is
// not read), round to nearest and no flushing. Assumed of the numbers: products neither overflow nor underflow binary64;
// the narrow formats span 2^-149 .. 2^128 at most, and wild lines never get here.
//
// The budget is split evenly: l_i is the least integer with ||a_i|| <= 2^(l_i + 26.5), the same for columns.
// Elements that are no multiples of 2^l are peeled: A = A' + A'', B = B' + B''. The GEMM gives A'B'; what is
// missing, A''B' + A B'', is sparse, and its sums are formed with TwoSum: an element where any of them rounds
// is refused. (hi, lo) = TwoSum(A'B', rest) is then exact. P1 refuses the product if more than 1/64 of an
// operand would be peeled.
#pragma once

#include "oracles/fast/lines.h"
#include "oracles/fast/store.h"

namespace ulpscope::fast {

class PeeledProduct {
 public:
  PeeledProduct(const Kernels& kernels, const Blas& blas) : kernels_(kernels), blas_(blas) {}

  /// False, with nothing written, if too much would have to be peeled. Elements that it refuses are appended to
  /// `refused`.
  bool Run(const Lines& a, const Lines& b, int64_t item, Team& team, Results::Store& store,
           std::vector<int64_t>* refused);

 private:
  struct Peeled {
    int64_t line = 0, k = 0;
    double value = 0;
  };
  struct Side {
    Buffer<double> copy, limits;
    double* matrix = nullptr;  ///< the copy, or the data that Lines converted
    std::vector<Peeled> peeled;
    int64_t stride = 0;
    double* At(const Lines& lines, int64_t line, int64_t k) const;
  };
  bool Prepare(const Lines& lines, Team& team, Side* side);
  static void Restore(const Lines& lines, const Side& side);
  void Correct(const Lines& a, const Lines& b, int64_t row, Results::Store& store,
               std::vector<double>* scratch, std::vector<int64_t>* refused) const;

  const Kernels& kernels_;
  const Blas& blas_;
  Side a_, b_;
  int64_t item_ = 0;
};

}  // namespace ulpscope::fast
