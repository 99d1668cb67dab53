// Kernels: the inner loops of the fast oracle, one table per instruction set.
//
// The bodies are written once (kernels_body.h) over vectors of 2, 4 or 8 doubles and compiled once per
// instruction set, in translation units of their own that define nothing with external linkage but their
// table: an inline function compiled for AVX-512 there must never be the copy that the linker keeps for a
// machine without it.
#pragma once

#include <cstdint>

namespace ulpscope::fast {

/// Element types that convert to binary64 exactly. The order is that of Kernels' arrays of functions.
enum SourceType { kSourceF64, kSourceF32, kSourceBf16, kSourceF16, kSourceE4m3, kSourceE5m2, kSourceTypes };

/// Widest tile of any table: buffers for one tile are this large.
constexpr int kMostTile = 6 * 16;
constexpr int kMostTileRows = 6;
constexpr int kMostTileColumns = 16;

/// Arguments of FinishTile besides the sums: see grid.h for the proof that it applies.
struct TileFinish {
  const double* row_low;     ///< exponent of the lowest set bit of each scaled row
  const double* column_low;  ///< the same of each scaled column
  const double* row_scale;   ///< powers of two that undo the scaling
  const double* column_scale;
  double exact_from = 0;   ///< row_low + column_low from here on: the sums are exact
  double twice_delta = 0;  ///< twice the bound of the error elsewhere
};

/// Anchors of the three levels of the deep kernel.
struct DeepAnchors {
  double first = 3, second = 0, third = 0;
};

struct Kernels {
  const char* name;   ///< "avx512", "avx2", "portable"
  int rows, columns;  ///< of a tile: packed panels are this wide

  /// One line of `count` contiguous elements: the sum of squares and the least lowest-set-bit value (infinity
  /// if all are 0).
  void (*scan_line[kSourceTypes])(const void* x, int64_t count, double* squares, double* low);
  /// `lines` columns of a matrix of `count` rows that lie `stride` elements apart.
  void (*scan_columns[kSourceTypes])(const void* x, int64_t stride, int64_t count, int64_t lines,
                                     double* squares, double* low);
  void (*convert[kSourceTypes])(const void* x, int64_t count, double* to);
  /// Panels: to[k][width] = scale[line] * x(line, k) for `lines` <= width lines, zeros beside them.
  void (*pack_lines[kSourceTypes])(const void* x, int64_t stride, int64_t count, int lines, int width,
                                   const double* scale, double* to);
  void (*pack_columns[kSourceTypes])(const void* x, int64_t stride, int64_t count, int lines, int width,
                                     const double* scale, double* to);

  /// One tile of the grid-compensated product over `count` terms: a[k][rows], b[k][columns]; s and c are read
  /// and written.
  void (*grid)(const double* a, const double* b, int64_t count, double* s, double* c);
  /// The same by the deep kernel: four sums per element, written as sums[4][rows * columns].
  void (*deep)(const double* a, const double* b, int64_t count, const DeepAnchors& anchors, double* sums);
  /// hi + lo of a full tile. Bit j of refused[i] is set if neither exactness nor Ziv's test applies. Returns how many
  /// were refused.
  int (*finish)(const double* s, const double* c, const TileFinish& how, double* hi, double* lo,
                int64_t stride, uint32_t* refused);

  /// Sets bits where the value of an element's lowest set bit is below limit; returns true if there is one.
  bool (*any_low)(const double* x, int64_t count, const double* limits);
  /// sum[j] += factor * x[j] exactly; returns false (sums then useless) if any addition rounded.
  bool (*add_exactly)(double factor, const double* x, int64_t count, double* sum);
  /// hi[j] + lo[j] = hi[j] + add[j] exactly.
  void (*two_sum)(double* hi, double* lo, const double* add, int64_t count);
};

enum class Level { kPortable, kAvx2, kAvx512 };

/// Null if the machine or the build lacks it.
const Kernels* KernelsOf(Level level);
/// The best that this machine has.
const Kernels& BestKernels();

extern const Kernels kPortableKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels, kAvx512Kernels;
#endif

}  // namespace ulpscope::fast
