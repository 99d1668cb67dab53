// PlainSums: the sums of one contraction in plain binary64, a tile of columns at a time, with a bound on their error.
//
// An exact sum of every element for every rounding of the operands is what most of an enclosure costs, and
// most questions about it do not turn on its last bits. Here the sums of neighbouring columns are taken
// together, without error terms; a caller adds ErrorOf() to either side and requests the exact sum where that
// matters.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "harness/model/tensor.h"
#include "harness/words/facets.h"
#include "oracles/plan.h"

namespace ulpscope {

/// The operands of one contraction as they are in the case, rows of the left one and tiles of columns of the
/// right one; read at their first use.
class RawMatrices {
 public:
  static constexpr int64_t kTile = 8;  ///< columns that are summed together

  struct Strip {
    std::vector<double> values;  ///< k of a row; k times kTile of a tile, zeros beyond the last column
    double least = 0,
           largest =
               0;  ///< magnitudes, the least of those that are not zero; a NaN or an infinity is largest
    std::array<int64_t, kTile> zeros{};  ///< by column; of a row the first
    std::vector<int16_t> lowest;         ///< ExponentOfLowestBit() of each value, after its first use
  };

  /// `node` contracts tensors of the case, views of them, or constants. All outlive this.
  RawMatrices(const Plan& plan, const std::map<std::string, TensorData>& inputs, const PlanNode& node);

  int64_t k() const { return sizes_.k; }
  int64_t RowOf(int64_t index) const { return index / sizes_.n; }
  int64_t TileOf(int64_t index) const {
    return index / (sizes_.m * sizes_.n) * tiles_ + index % sizes_.n / kTile;
  }
  int64_t ColumnOf(int64_t index) const { return index % sizes_.n % kTile; }
  int64_t rows() const { return node_.shape[0] * sizes_.m; }
  int64_t tiles() const { return node_.shape[0] * tiles_; }
  int64_t tiles_of_a_row() const { return tiles_; }
  const Strip& Row(int64_t row);
  const Strip& Tile(int64_t tile);
  /// At least so many of the products of an element are not zero.
  int64_t LeastProducts(int64_t index);
  /// Every product of an element is a multiple of 2 to this power, one of rounded operands too: a rounding takes lowest bits away.
  int LowestBit(int64_t index);
  /// True if an operand of an element is a subnormal number of its dtype, or of the format that it is rounded to.
  bool HasSubnormals(int64_t index, const std::array<RoundSpec, 2>& in);
  /// Significant bits of a product of two of their values.
  int bits() const { return bits_; }

 private:
  double Read(int operand, int64_t position) const;
  void Measure(Strip* strip) const;
  static const std::vector<int16_t>& LowestOf(Strip* strip);

  const Plan& plan_;
  const PlanNode& node_;
  const Contraction& sizes_;
  std::array<const TensorData*, 2> data_{};
  std::array<double, 2> constant_{}, least_normal_{};
  int bits_ = 0;
  int64_t tiles_ = 0;
  std::vector<std::unique_ptr<Strip>> rows_, columns_;
  std::vector<std::array<int16_t, kTile>>
      lowest_;  ///< by row and tile of its columns; empty before the first use
  std::vector<bool> has_lowest_;
};

class PlainSums {
 public:
  struct Sum {
    double sum = 0, magnitude = 0;  ///< of the products, and of their magnitudes
  };

  /// Sums of products of operands that are rounded by `in`, each product by `prod`.
  PlainSums(std::shared_ptr<RawMatrices> raw, const std::array<RoundSpec, 2>& in, const RoundSpec& prod);

  /// Null if plain binary64 does not suffice: values that are not finite, products that leave the range or
  /// the precision.
  const Sum* At(int64_t index);
  /// How far a sum of this magnitude can be from the exact one, and from any other way to sum it in binary64.
  double ErrorOf(double magnitude) const { return relative_ * magnitude; }
  /// The same for the magnitude itself, as a share of it.
  double relative() const { return relative_; }
  /// True if At(), not null, is the result of `acc` for an element in every order.
  bool IsExact(int64_t index, const AccSpec& acc);
  RawMatrices& raw() { return *raw_; }

 private:
  using Strip = RawMatrices::Strip;
  struct Pieces {
    std::vector<Strip> parts;  ///< empty: the unrounded operand
    bool usable = false;
  };
  const Pieces& Rounded(int operand, int64_t which);
  bool Compute(int64_t row, int64_t tile, std::array<Sum, RawMatrices::kTile>* sums);

  std::shared_ptr<RawMatrices> raw_;
  std::array<RoundSpec, 2> in_;
  RoundSpec prod_;
  std::vector<std::pair<size_t, size_t>> passes_;  ///< pieces that are multiplied
  double relative_ = 0;
  std::array<std::vector<std::unique_ptr<Pieces>>, 2> rounded_;
  enum class Known : char { kNo, kYes, kCannot };
  std::vector<Known> known_;
  std::vector<uint32_t> place_;
  std::vector<std::array<Sum, RawMatrices::kTile>> sums_;
};

}  // namespace ulpscope
