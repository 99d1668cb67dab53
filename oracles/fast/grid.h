// P2, the grid-compensated product, and P2', its deeper form.
//
// Scaling. Row i of A is multiplied by 2^-e_i and column j of B by 2^-f_j, exactly (lines.h refuses lines where that could
// underflow), so that norms are below 1 - 2^-19. By the Cauchy-Schwarz inequality the sum of |a_ik b_kj| over k, and with it
// every partial sum, is below 1 - 2^-19. Up to 2^30 terms.
//
// P2. S = 3, c = 0; per term t = fma(a, b, S); d = t - S; c += fma(a, b, -d); S = t.
//   S is 3 plus a partial sum plus at most k roundings of 2^-52 each: it stays inside [2, 4), where the unit is g = 2^-51.
//   t and S are multiples of g in one binade, so d = t - S is exact, and ab - d is the rounding error of the first fma:
//   at most g/2 = 2^-52. With a a multiple of 2^l_i and b of 2^l_j, ab - d is a multiple of 2^(l_i + l_j) (g is one too).
//   * If l_i + l_j >= -105 + ceil(log2 k): ab - d has at most 53 bits, so the second fma is exact; all partial sums of c
//     are multiples of 2^(l_i + l_j) not above k 2^-52 <= 2^53 2^(l_i + l_j): no addition rounds. (S - 3) + c is exact.
//   * In any case the second fma errs by at most 2^-105 and the m-th addition to c by at most m 2^-52 2^-53: together
//     delta <= (k^2 + k) 2^-105 (1 + 2^-10), the last factor for the second-order terms.
//   Sums longer than 2^12 are cut: c of each piece goes into a pair by TwoSum, which is exact in the first case (the pair's
//   low part is a multiple of 2^(l_i + l_j) far below its 2^53rd multiple), and errs far less than delta in the second;
//   the first case then asks for 2^12 in the place of k, and delta becomes k (2^12 + 1) 2^-105 (1 + 2^-10).
//   Then hi + lo = TwoSum(S - 3, c); S - 3 is exact (Sterbenz). If delta is not 0, Ziv's test applies:
//   hi is accepted only if
//   hi + (lo - 2 delta) and hi + (lo + 2 delta) both round to hi. The factor 2 covers the rounding of lo +- 2 delta (at most
//   2^-53 |lo| <= 2^-107 < delta, since |hi| < 1), and rounding is monotone: so hi is the exact value rounded to nearest.
//
// P2'. Every product as p = RN(ab), q = ab - p (exact: one fma; products near the bottom of the range lose at most 2^-1075).
//   Three levels, each an anchor 3 * 2^L of its own, so that its unit is 2^(L - 51) throughout; x is put on a level by
//   next = level + x; x -= next - level (Fast2Sum, exact because |x| < level), leaving |x| <= 2^(L - 52).
//   Level 1 (L = 0) takes p; level 2, L2 = ceil(log2 k) - 51, takes what p left (k pieces of at most 2^-52: half its reach)
//   and leaves r, |r| <= 2^(L2 - 52); level 3, L3 = 2 + max(-53, L2 - 52 + ceil(log2 k)), takes r + q, added first. r is a
//   multiple of the unit of p: if it is not 0, that unit is at most 2^(L2 - 52), so |q| is less and |r + q| <= 2^(L2 - 51): the
//   addition is exact if l_i + l_j >= L2 - 104, and errs by at most 2^(L2 - 104) otherwise; if r = 0 it is exact. The sum of
//   all |r + q| is below 2^-53 + k 2^(L2 - 51): within level 3's reach.
//   The rest, k pieces of at most 2^(L3 - 52), is added up plainly: exactly if
//   l_i + l_j >= L3 - 105 + ceil(log2 k), else
//   within k^2 2^(L3 - 105) (1 + 2^-10). L3 >= -51 makes the first condition follow from l_i + l_j >= L3 - 104 + ceil(log2 k),
//   which is what is asked, and both errors together stay below 8 k^2 2^(L3 - 105). The four sums are then added exactly
//   (expansion.h).
//
// Assumptions: round to nearest, no flushing (product.h); fma is one rounding; finite lines of tame magnitude (lines.h).
#pragma once

#include "oracles/fast/lines.h"
#include "oracles/fast/store.h"

namespace ulpscope::fast {

/// The longest piece that one c accumulates.
constexpr int64_t kFlushEvery = int64_t{1} << 12;
/// The longest sum that the proof covers.
constexpr int64_t kMostTerms = int64_t{1} << 30;

/// Bounds that the proof gives for sums of `terms` terms, in scaled units.
struct GridBounds {
  double exact_from = 0;  ///< l_i + l_j from here on: exact
  double delta = 0;       ///< bound of the error elsewhere
  double deep_exact_from = 0, deep_delta = 0;
  DeepAnchors anchors;
};
GridBounds BoundsOf(int64_t terms);

class GridProduct {
 public:
  explicit GridProduct(const Kernels& kernels) : kernels_(kernels) {}

  /// The product number `item` of the batch. Elements that it refuses are appended to `refused`.
  void Run(const Lines& a, const Lines& b, int64_t item, Team& team, Results::Store& store,
           std::vector<int64_t>* refused);

 private:
  struct Side;
  struct Tile;
  void Pack(const Lines& lines, int width, Team& team, Buffer<double>* scales, Buffer<double>* packed,
            double* low, double* scale);
  void Rows(int64_t begin, int64_t end, Results::Store& store, std::vector<int64_t>* refused);
  bool OneTile(const Tile& tile, Results::Store& store, std::vector<int64_t>* refused);
  void DeepTile(const Tile& tile, Results::Store& store, const uint32_t* wanted,
                std::vector<int64_t>* refused);
  int LongSums(const Tile& tile, Results::Store& store, uint32_t* mask) const;

  const Kernels& kernels_;
  Buffer<double> packed_a_, packed_b_, scales_a_, scales_b_;
  int64_t item_ = 0, m_ = 0, n_ = 0, k_ = 0;
  GridBounds bounds_;
};

}  // namespace ulpscope::fast
