// Packs, multiplies by tiles, and decides which elements are proved.
#include "oracles/fast/grid.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "harness/base/check.h"
#include "harness/num/error_free.h"
#include "oracles/fast/expansion.h"
#include "oracles/fast/exponents.h"

namespace ulpscope::fast {
namespace {

/// Above this many refused elements of a tile, all of it is computed again with more levels.
constexpr int kFewRefused = 3;
/// Rows of tiles whose left panels together stay in the second-level cache.
constexpr int64_t kRowBlockBytes = 704 << 10;

int64_t Panels(int64_t lines, int width) { return (lines + width - 1) / width; }

}  // namespace

GridBounds BoundsOf(int64_t count) {
  const int64_t piece = std::min(count, kFlushEvery);
  const auto terms = static_cast<double>(count);
  const int log2_terms = CeilLog2(count), second = log2_terms - 51,
            third = 2 + std::max(-53, second - 52 + log2_terms);
  GridBounds bounds;
  bounds.exact_from = -105 + CeilLog2(piece);
  bounds.delta = terms * static_cast<double>(piece + 1) * 0x1p-105 * (1 + 0x1p-9);
  bounds.anchors = {.first = 3, .second = 3 * TwoTo(second), .third = 3 * TwoTo(third)};
  bounds.deep_exact_from = third - 104 + log2_terms;
  bounds.deep_delta = 8 * terms * terms * TwoTo(third - 105) * (1 + 0x1p-9);
  return bounds;
}

/// One tile: which lines, and its left panels.
struct GridProduct::Tile {
  int64_t row = 0, column = 0;
  int rows = 0, columns = 0;
  const double *a = nullptr, *b = nullptr;
};

void GridProduct::Pack(const Lines& lines, int width, Team& team, Buffer<double>* scales,
                       Buffer<double>* packed, double* low, double* scale) {
  double* down = scales->Need(lines.lines + kMostTileColumns);
  for (int64_t i = 0; i < lines.lines; ++i) {
    down[i] = TwoTo(-lines.exponent[i]);
    scale[i] = TwoTo(lines.exponent[i]);
    low[i] = lines.low[i] - lines.exponent[i];
  }
  double* to = packed->Need(Panels(lines.lines, width) * width * lines.count);
  const bool rows = lines.layout == Layout::kRows;
  const auto pack = rows ? kernels_.pack_lines[lines.type] : kernels_.pack_columns[lines.type];
  const size_t element = lines.type == kSourceF64   ? 8
                         : lines.type == kSourceF32 ? 4
                         : lines.type <= kSourceF16 ? 2
                                                    : 1;
  const auto work = [&](int64_t begin, int64_t end, int) {
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t first = panel * width;
      const auto* from = static_cast<const char*>(lines.data) +
                         static_cast<int64_t>(element) * (rows ? first * lines.stride : first);
      pack(from, lines.stride, lines.count, static_cast<int>(std::min<int64_t>(width, lines.lines - first)),
           width, down + first, to + first * lines.count);
    }
  };
  if (team.members() == 1)
    work(0, Panels(lines.lines, width), 0);
  else
    team.For(Panels(lines.lines, width), 1, work);
}

void GridProduct::Run(const Lines& a, const Lines& b, int64_t item, Team& team, Results::Store& store,
                      std::vector<int64_t>* refused) {
  ULPSCOPE_CHECK(a.count <= kMostTerms, "the proof covers sums of up to 2^30 terms");
  item_ = item;
  m_ = a.lines;
  n_ = b.lines;
  k_ = a.count;
  bounds_ = BoundsOf(k_);
  Pack(a, kernels_.rows, team, &scales_a_, &packed_a_, store.row_low.data() + item * m_,
       store.row_scale.data() + item * m_);
  Pack(b, kernels_.columns, team, &scales_b_, &packed_b_, store.column_low.data() + item * n_,
       store.column_scale.data() + item * n_);
  store.rules[static_cast<size_t>(item)] = Rule::kGrid;
  if (team.members() == 1) return Rows(0, m_, store, refused);
  std::vector<std::vector<int64_t>> lists(static_cast<size_t>(team.members()));
  team.For(m_, kernels_.rows, [&](int64_t begin, int64_t end, int member) {
    Rows(begin, end, store, &lists[static_cast<size_t>(member)]);
  });
  for (const auto& list : lists) refused->insert(refused->end(), list.begin(), list.end());
}

void GridProduct::Rows(int64_t begin, int64_t end, Results::Store& store, std::vector<int64_t>* refused) {
  const int64_t panel_bytes = std::max<int64_t>(1, kernels_.rows * k_ * static_cast<int64_t>(sizeof(double)));
  const int64_t block = std::max<int64_t>(1, kRowBlockBytes / panel_bytes) * kernels_.rows;
  int deep_streak = 0;
  for (int64_t top = begin; top < end; top += block) {
    const int64_t bottom = std::min(end, top + block);
    for (int64_t column = 0; column < n_; column += kernels_.columns) {
      for (int64_t row = top; row < bottom; row += kernels_.rows) {
        const Tile tile{.row = row,
                        .column = column,
                        .rows = static_cast<int>(std::min<int64_t>(kernels_.rows, end - row)),
                        .columns = static_cast<int>(std::min<int64_t>(kernels_.columns, n_ - column)),
                        .a = packed_a_.data() + row * k_,
                        .b = packed_b_.data() + column * k_};
        // After eight tiles in a row that cancelled, fifteen of sixteen go to P2' at once; the result is the
        // same or better.
        if (deep_streak >= 8 && deep_streak % 16 != 0) {
          uint32_t all[kMostTileRows];
          std::fill(all, all + kMostTileRows, ~uint32_t{0});
          DeepTile(tile, store, all, refused);
          ++deep_streak;
        } else {
          deep_streak = OneTile(tile, store, refused) ? deep_streak + 1 : 0;
        }
      }
    }
  }
}

/// Returns true if the tile had to be computed by the deep kernel.
bool GridProduct::OneTile(const Tile& tile, Results::Store& store, std::vector<int64_t>* refused) {
  uint32_t mask[kMostTileRows];
  int bad = 0;
  if (k_ > kFlushEvery) {
    bad = LongSums(tile, store, mask);
  } else {
    alignas(64) double s[kMostTile], c[kMostTile], hi[kMostTile], lo[kMostTile];
    const int size = kernels_.rows * kernels_.columns;
    std::fill(s, s + size, 3.0);
    std::fill(c, c + size, 0.0);
    kernels_.grid(tile.a, tile.b, k_, s, c);
    double *to_hi = store.hi.data() + (item_ * m_ + tile.row) * n_ + tile.column,
           *to_lo = store.lo.data() + (item_ * m_ + tile.row) * n_ + tile.column;
    TileFinish how{.row_low = store.row_low.data() + item_ * m_ + tile.row,
                   .column_low = store.column_low.data() + item_ * n_ + tile.column,
                   .row_scale = store.row_scale.data() + item_ * m_ + tile.row,
                   .column_scale = store.column_scale.data() + item_ * n_ + tile.column,
                   .exact_from = store.exact_from,
                   .twice_delta = store.twice_delta};
    if (tile.rows == kernels_.rows && tile.columns == kernels_.columns) {
      bad = kernels_.finish(s, c, how, to_hi, to_lo, n_, mask);
    } else {
      // The four arrays are padded: elements beyond the rows are read but not used.
      bad = kernels_.finish(s, c, how, hi, lo, kernels_.columns, mask);
      for (int i = 0; i < tile.rows; ++i) {
        std::copy_n(hi + i * kernels_.columns, tile.columns, to_hi + i * n_);
        std::copy_n(lo + i * kernels_.columns, tile.columns, to_lo + i * n_);
      }
    }
  }
  if (bad == 0) return false;
  bad = 0;
  const uint32_t within = (uint32_t{1} << tile.columns) - 1;
  for (int i = 0; i < kernels_.rows; ++i) {
    mask[i] = i < tile.rows ? mask[i] & within : 0;
    bad += std::popcount(mask[i]);
  }
  if (bad == 0) return false;
  if (bad > kFewRefused) {
    DeepTile(tile, store, mask, refused);
    return true;
  }
  store.NeedMarks();
  for (int i = 0; i < tile.rows; ++i) {
    for (int j = 0; j < tile.columns; ++j) {
      if ((mask[i] >> j & 1) != 0) refused->push_back((item_ * m_ + tile.row + i) * n_ + tile.column + j);
    }
  }
  return false;
}

/// Sums longer than kFlushEvery. Few elements have that many terms: the ends are scalar.
int GridProduct::LongSums(const Tile& tile, Results::Store& store, uint32_t* mask) const {
  alignas(64) double s[kMostTile], c[kMostTile], high[kMostTile], low[kMostTile];
  const int size = kernels_.rows * kernels_.columns;
  std::fill(s, s + size, 3.0);
  std::fill(high, high + size, 0.0);
  std::fill(low, low + size, 0.0);
  for (int64_t k = 0; k < k_; k += kFlushEvery) {
    std::fill(c, c + size, 0.0);
    kernels_.grid(tile.a + k * kernels_.rows, tile.b + k * kernels_.columns, std::min(kFlushEvery, k_ - k), s,
                  c);
    for (int at = 0; at < size; ++at) {
      const TwoDoubles sum = TwoSum(high[at], c[at]);
      high[at] = sum.hi;
      low[at] += sum.lo;
    }
  }
  int bad = 0;
  for (int i = 0; i < tile.rows; ++i) {
    mask[i] = 0;
    for (int j = 0; j < tile.columns; ++j) {
      const int64_t row = item_ * m_ + tile.row + i, column = item_ * n_ + tile.column + j,
                    element = row * n_ + tile.column + j;
      const bool exact = store.row_low.data()[row] + store.column_low.data()[column] >= store.exact_from;
      const int at = i * kernels_.columns + j;
      const double parts[] = {s[at] - 3, high[at], low[at]};
      const auto sum = RoundSum(parts, exact ? 0 : store.twice_delta / 2);
      if (!sum) {
        mask[i] |= uint32_t{1} << j;
        ++bad;
        continue;
      }
      const double scale = store.row_scale.data()[row] * store.column_scale.data()[column];
      store.hi.data()[element] = sum->hi * scale;
      store.lo.data()[element] = sum->lo * scale;
      if (sum->kind != ReferenceKind::kExact) {
        store.NeedMarks();
        store.Set(element,
                  {.hi = sum->hi * scale, .lo = sum->lo * scale, .err = sum->err * scale, .kind = sum->kind},
                  Tier::kMain);
      }
    }
  }
  return bad;
}

void GridProduct::DeepTile(const Tile& tile, Results::Store& store, const uint32_t* wanted,
                           std::vector<int64_t>* refused) {
  alignas(64) double sums[4 * kMostTile];
  kernels_.deep(tile.a, tile.b, k_, bounds_.anchors, sums);
  store.NeedMarks();
  const int size = kernels_.rows * kernels_.columns;
  for (int i = 0; i < tile.rows; ++i) {
    for (int j = 0; j < tile.columns; ++j) {
      if ((wanted[i] >> j & 1) == 0) continue;
      const int64_t row = item_ * m_ + tile.row + i, column = item_ * n_ + tile.column + j,
                    element = row * n_ + tile.column + j;
      const double* sum = sums + i * kernels_.columns + j;
      const double parts[] = {sum[0], sum[size], sum[2 * size], sum[3 * size]};
      const bool exact =
          store.row_low.data()[row] + store.column_low.data()[column] >= bounds_.deep_exact_from;
      const auto rounded = RoundSum(parts, exact ? 0 : bounds_.deep_delta);
      if (!rounded) {
        refused->push_back(element);
        continue;
      }
      const double scale = store.row_scale.data()[row] * store.column_scale.data()[column];
      store.Set(element,
                {.hi = rounded->hi * scale,
                 .lo = rounded->lo * scale,
                 .err = rounded->err * scale,
                 .kind = rounded->kind},
                Tier::kDeep);
    }
  }
}

}  // namespace ulpscope::fast
