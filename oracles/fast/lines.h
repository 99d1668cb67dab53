// Lines: one operand of a product as the k-vectors that it is made of (rows of A, columns of B), scanned for
// what the proofs need: an upper bound of each line's norm, the exponent of its lowest set bit, and what is
// not an ordinary number.
#pragma once

#include <optional>
#include <vector>

#include "oracles/fast/blas.h"
#include "oracles/fast/buffer.h"
#include "oracles/fast/kernels.h"
#include "oracles/fast/results.h"
#include "oracles/fast/team.h"

namespace ulpscope::fast {

/// A NaN or an infinity.
struct SpecialElement {
  int64_t line = 0, k = 0;
  double value = 0;
};

std::optional<SourceType> SourceOf(DType dtype);
double ElementAt(const Matrix& matrix, int64_t offset);

/// Low bits of a line of zeros: it fulfils every demand.
constexpr double kNoLowBit = 1 << 20;

class Lines {
 public:
  /// `data` is the first element of line 0; line i's element k lies at i * line_stride + k * k_stride.
  void Set(const Kernels& kernels, const Matrix& matrix, int64_t offset, int64_t lines, int64_t count,
           int64_t line_stride, int64_t k_stride);
  /// Fills everything below. Lines of unordinary elements are replaced by a copy in which those are zero.
  void Scan(Team& team);

  int64_t lines = 0, count = 0;
  SourceType type = kSourceF64;
  const void* data = nullptr;
  Layout layout =
      Layout::kRows;  ///< kRows: a line is contiguous, lines `stride` apart. kColumns: k steps `stride` apart
  int64_t stride = 0;

  double* norm = nullptr;   ///< upper bounds; 0 for lines of zeros
  double* low = nullptr;    ///< exponent of the lowest set bit (a floor of it), kNoLowBit for zeros
  int* exponent = nullptr;  ///< norm < 2^exponent, with room for every rounding of a sum of 2^30 terms
  bool has_specials = false, has_wild = false;
  std::vector<SpecialElement> specials;  ///< by line, then k
  std::vector<char> special_line;        ///< empty without specials
  std::vector<char> wild_line;  ///< lines whose magnitudes no tier but P3 takes; read as zeros by the others

  /// `data`, for P1 to take elements out of, if the operand was converted before it was scanned; otherwise
  /// null.
  double* own = nullptr;

  /// Converts one line into `to`, specials and all.
  void Gather(int64_t line, double* to) const;
  const Kernels* kernels = nullptr;

 private:
  void ScanRange(int64_t begin, int64_t end);
  void ConvertRange(int64_t begin, int64_t end);
  void Clean();

  const void* raw_ = nullptr;
  SourceType raw_type_ = kSourceF64;
  int64_t raw_line_stride_ = 0, raw_k_stride_ = 0;
  Buffer<double> numbers_, copy_;
  Buffer<int> exponents_;
};

}  // namespace ulpscope::fast
