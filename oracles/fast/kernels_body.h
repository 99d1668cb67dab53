// The bodies of the kernels, over vectors of ULPSCOPE_LANES doubles; included by one translation unit per
// instruction set, which defines V, Fma and the names. Everything here has internal linkage (kernels.h says
// why).
//
// Rounding: V's +, - and * round to nearest like the scalar operations, nothing is contracted
// (-ffp-contract=off), and the order of operations is as written.

#include <cstdint>
#include <cstring>

#include "oracles/fast/kernels.h"

#define ULPSCOPE_INLINE inline __attribute__((always_inline))

namespace ulpscope::fast {
namespace {

constexpr int kLanes = ULPSCOPE_LANES;
constexpr int kRows = kLanes == 8 ? 6 : 2;
constexpr int kColumns = 2 * kLanes;

using Bits = int64_t __attribute__((vector_size(kLanes * 8)));
// The types of unaligned memory are typedefs: in an alias declaration Clang drops the alignment.
typedef double LooseV __attribute__((vector_size(kLanes * 8), aligned(8), may_alias));
using Floats = float __attribute__((vector_size(kLanes * 4)));
typedef float LooseFloats __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
using Words = uint32_t __attribute__((vector_size(kLanes * 4)));
using Halves = uint16_t __attribute__((vector_size(kLanes * 2)));
typedef uint16_t LooseHalves __attribute__((vector_size(kLanes * 2), aligned(2), may_alias));

constexpr double kInfinity = __builtin_huge_val();

ULPSCOPE_INLINE V Load(const double* p) { return *reinterpret_cast<const LooseV*>(p); }
ULPSCOPE_INLINE void Store(double* p, V v) { *reinterpret_cast<LooseV*>(p) = v; }
#if ULPSCOPE_LANES == 8
ULPSCOPE_INLINE V Spread(double x) { return V{x, x, x, x, x, x, x, x}; }
#elif ULPSCOPE_LANES == 4
ULPSCOPE_INLINE V Spread(double x) { return V{x, x, x, x}; }
#else
ULPSCOPE_INLINE V Spread(double x) { return V{x, x}; }
#endif
ULPSCOPE_INLINE V Select(Bits mask, V yes, V no) { return mask ? yes : no; }
ULPSCOPE_INLINE V Least(V a, V b) { return a < b ? a : b; }

// ---- conversion: one struct per element type, Many for kLanes contiguous elements, One for a single one
// ----

struct F64 {
  using Element = double;
  static ULPSCOPE_INLINE V Many(const double* p) { return Load(p); }
  static ULPSCOPE_INLINE double One(const double* p) { return *p; }
};

struct F32 {
  using Element = float;
  static ULPSCOPE_INLINE V Many(const float* p) {
    return __builtin_convertvector(Floats(*reinterpret_cast<const LooseFloats*>(p)), V);
  }
  static ULPSCOPE_INLINE double One(const float* p) { return double{*p}; }
};

struct Bf16 {
  using Element = uint16_t;
  static ULPSCOPE_INLINE V Many(const uint16_t* p) {
#if defined(ULPSCOPE_F16C) && ULPSCOPE_LANES == 8
    const auto words = Words(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))), 16));
#else
    const Words words = __builtin_convertvector(Halves(*reinterpret_cast<const LooseHalves*>(p)), Words)
                        << 16;
#endif
    return __builtin_convertvector(Floats(words), V);
  }
  static ULPSCOPE_INLINE double One(const uint16_t* p) {
    const uint32_t word = uint32_t{*p} << 16;
    float value;
    std::memcpy(&value, &word, sizeof value);
    return double{value};
  }
};

struct F16 {
  using Element = uint16_t;
  static ULPSCOPE_INLINE double One(const uint16_t* p) {
    const uint64_t sign = uint64_t{*p} >> 15 << 63, exponent = *p >> 10 & 31, fraction = *p & 1023;
    if (exponent == 0) {
      const double value = static_cast<double>(fraction) * 0x1p-24;
      return sign != 0 ? -value : value;
    }
    const uint64_t bits = sign | (exponent == 31 ? uint64_t{2047} : exponent + 1008) << 52 | fraction << 42;
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  static ULPSCOPE_INLINE V Many(const uint16_t* p) {
#if defined(ULPSCOPE_F16C) && ULPSCOPE_LANES == 8
    return __builtin_convertvector(
        Floats(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))), V);
#elif defined(ULPSCOPE_F16C)
    return __builtin_convertvector(Floats(_mm_cvtph_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)))),
                                   V);
#else
    V v{};
    for (int i = 0; i < kLanes; ++i) v[i] = One(p + i);
    return v;
#endif
  }
};

constexpr double PowerOfTwo(int exponent) {
  double value = 1;
  for (; exponent > 0; --exponent) value *= 2;
  for (; exponent < 0; ++exponent) value /= 2;
  return value;
}

struct ByteTable {
  double value[256];
  constexpr ByteTable(int exponent_bits, int bias, int fraction_bits) : value{} {
    for (int byte = 0; byte < 256; ++byte) {
      const int exponent = byte >> fraction_bits & ((1 << exponent_bits) - 1);
      const int fraction = byte & ((1 << fraction_bits) - 1);
      const int full = fraction + (exponent == 0 ? 0 : 1 << fraction_bits);
      const double magnitude = full * PowerOfTwo((exponent == 0 ? 1 : exponent) - bias - fraction_bits);
      value[byte] = byte >= 128 ? -magnitude : magnitude;
    }
  }
  constexpr ByteTable& Mark(int from, int to, double special) {
    for (int byte = from; byte <= to; ++byte) {
      value[byte] = special;
      value[byte + 128] = -special;
    }
    return *this;
  }
};

// OCP 8-bit floating point 1.0: E4M3 has NaN at S.1111.111 alone; E5M2 has infinities and NaNs as IEEE 754
// does.
constexpr ByteTable kE4m3Values = ByteTable(4, 7, 3).Mark(0x7f, 0x7f, __builtin_nan(""));
constexpr ByteTable kE5m2Values =
    ByteTable(5, 15, 2).Mark(0x7c, 0x7c, kInfinity).Mark(0x7d, 0x7f, __builtin_nan(""));

template <const ByteTable& kTable>
struct Byte {
  using Element = uint8_t;
  static ULPSCOPE_INLINE double One(const uint8_t* p) { return kTable.value[*p]; }
  static ULPSCOPE_INLINE V Many(const uint8_t* p) {
    V v{};
    for (int i = 0; i < kLanes; ++i) v[i] = kTable.value[p[i]];
    return v;
  }
};

// ---- scanning ----

/// The value of the lowest set bit of each element, infinity for zeros. Infinities and NaNs give rubbish: the
/// callers see them in the sum of squares.
ULPSCOPE_INLINE V LowBit(V x) {
  const Bits magnitude = Bits(x) & INT64_MAX;
  const Bits cleared = magnitude & (magnitude - 1);
  const V all = V(magnitude);
  const V low = all - V(cleared);
  // In a power of two no fraction bit is set: taking one away would reach into the exponent.
  const Bits no_fraction = (magnitude & ((int64_t{1} << 52) - 1)) == 0;
  return Select(magnitude == 0, Spread(kInfinity), Select(no_fraction, all, low));
}

template <class T>
void ScanLine(const void* from, int64_t count, double* squares, double* low) {
  const auto* x = static_cast<const typename T::Element*>(from);
  V s0{}, s1{}, l0 = Spread(kInfinity), l1 = l0;
  int64_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    const V a = T::Many(x + i), b = T::Many(x + i + kLanes);
    s0 = Fma(a, a, s0);
    s1 = Fma(b, b, s1);
    l0 = Least(LowBit(a), l0);
    l1 = Least(LowBit(b), l1);
  }
  for (; i < count; i += kLanes) {
    V a{};
    for (int lane = 0; lane < kLanes && i + lane < count; ++lane) a[lane] = T::One(x + i + lane);
    s0 = Fma(a, a, s0);
    l0 = Least(LowBit(a), l0);
  }
  s0 = s0 + s1;
  l0 = Least(l0, l1);
  double sum = s0[0], least = l0[0];
  for (int lane = 1; lane < kLanes; ++lane) {
    sum += s0[lane];
    least = l0[lane] < least ? l0[lane] : least;
  }
  *squares = sum;
  *low = least;
}

template <class T>
void ScanColumns(const void* from, int64_t stride, int64_t count, int64_t lines, double* squares,
                 double* low) {
  const auto* x = static_cast<const typename T::Element*>(from);
  for (int64_t j = 0; j < lines; ++j) {
    squares[j] = 0;
    low[j] = kInfinity;
  }
  constexpr int64_t kChunk = 512;  // the accumulators stay in the first-level cache
  constexpr int kUnrolled = 4;
  for (int64_t begin = 0; begin < lines; begin += kChunk) {
    const int64_t end = begin + kChunk < lines ? begin + kChunk : lines;
    for (int64_t k = 0; k < count; k += kUnrolled) {
      const int rows = count - k < kUnrolled ? static_cast<int>(count - k) : kUnrolled;
      const auto* row = x + k * stride;
      int64_t j = begin;
      if (rows == kUnrolled) {
        for (; j + kLanes <= end; j += kLanes) {
          V s = Load(squares + j), l = Load(low + j);
          for (int r = 0; r < kUnrolled; ++r) {
            const V a = T::Many(row + r * stride + j);
            s = Fma(a, a, s);
            l = Least(LowBit(a), l);
          }
          Store(squares + j, s);
          Store(low + j, l);
        }
      }
      for (; j < end; ++j) {
        for (int r = 0; r < rows; ++r) {
          const V a = Spread(T::One(row + r * stride + j));
          squares[j] = squares[j] + a[0] * a[0];
          const V l = LowBit(a);
          low[j] = l[0] < low[j] ? l[0] : low[j];
        }
      }
    }
  }
}

template <class T>
void Convert(const void* from, int64_t count, double* to) {
  const auto* x = static_cast<const typename T::Element*>(from);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) Store(to + i, T::Many(x + i));
  for (; i < count; ++i) to[i] = T::One(x + i);
}

template <class T>
void PackLines(const void* from, int64_t stride, int64_t count, int lines, int width, const double* scale,
               double* to) {
  const auto* x = static_cast<const typename T::Element*>(from);
  for (int line = 0; line < width; ++line) {
    if (line >= lines) {
      for (int64_t k = 0; k < count; ++k) to[k * width + line] = 0;
      continue;
    }
    const auto* row = x + line * stride;
    const double factor = scale[line];
    int64_t k = 0;
    for (; k + kLanes <= count; k += kLanes) {
      const V v = T::Many(row + k) * factor;
      for (int lane = 0; lane < kLanes; ++lane) to[(k + lane) * width + line] = v[lane];
    }
    for (; k < count; ++k) to[k * width + line] = T::One(row + k) * factor;
  }
}

template <class T>
void PackColumns(const void* from, int64_t stride, int64_t count, int lines, int width, const double* scale,
                 double* to) {
  const auto* x = static_cast<const typename T::Element*>(from);
  if (lines == kColumns && width == kColumns) {
    const V f0 = Load(scale), f1 = Load(scale + kLanes);
    for (int64_t k = 0; k < count; ++k) {
      Store(to + k * kColumns, T::Many(x + k * stride) * f0);
      Store(to + k * kColumns + kLanes, T::Many(x + k * stride + kLanes) * f1);
    }
    return;
  }
  for (int64_t k = 0; k < count; ++k) {
    for (int line = 0; line < lines; ++line)
      to[k * width + line] = T::One(x + k * stride + line) * scale[line];
    for (int line = lines; line < width; ++line) to[k * width + line] = 0;
  }
}

// ---- the grid-compensated product: named registers, because arrays of accumulators end up on the stack ----

#define ULPSCOPE_GRID_LOAD(i)                                                    \
  V s##i##0 = Load(s + i * kColumns), s##i##1 = Load(s + i * kColumns + kLanes); \
  V c##i##0 = Load(c + i * kColumns), c##i##1 = Load(c + i * kColumns + kLanes)
#define ULPSCOPE_GRID_STEP(i)            \
  {                                      \
    const V x = Spread(a[i]);            \
    const V t0 = Fma(x, b0, s##i##0);    \
    const V t1 = Fma(x, b1, s##i##1);    \
    const V d0 = t0 - s##i##0;           \
    const V d1 = t1 - s##i##1;           \
    s##i##0 = t0;                        \
    s##i##1 = t1;                        \
    c##i##0 = c##i##0 + Fma(x, b0, -d0); \
    c##i##1 = c##i##1 + Fma(x, b1, -d1); \
  }
#define ULPSCOPE_GRID_STORE(i)               \
  Store(s + i * kColumns, s##i##0);          \
  Store(s + i * kColumns + kLanes, s##i##1); \
  Store(c + i * kColumns, c##i##0);          \
  Store(c + i * kColumns + kLanes, c##i##1)

void Grid(const double* a, const double* b, int64_t count, double* s, double* c) {
  ULPSCOPE_GRID_LOAD(0);
  ULPSCOPE_GRID_LOAD(1);
#if ULPSCOPE_LANES == 8
  ULPSCOPE_GRID_LOAD(2);
  ULPSCOPE_GRID_LOAD(3);
  ULPSCOPE_GRID_LOAD(4);
  ULPSCOPE_GRID_LOAD(5);
#endif
  for (int64_t k = 0; k < count; ++k, a += kRows, b += kColumns) {
    const V b0 = Load(b), b1 = Load(b + kLanes);
    ULPSCOPE_GRID_STEP(0);
    ULPSCOPE_GRID_STEP(1);
#if ULPSCOPE_LANES == 8
    ULPSCOPE_GRID_STEP(2);
    ULPSCOPE_GRID_STEP(3);
    ULPSCOPE_GRID_STEP(4);
    ULPSCOPE_GRID_STEP(5);
#endif
  }
  ULPSCOPE_GRID_STORE(0);
  ULPSCOPE_GRID_STORE(1);
#if ULPSCOPE_LANES == 8
  ULPSCOPE_GRID_STORE(2);
  ULPSCOPE_GRID_STORE(3);
  ULPSCOPE_GRID_STORE(4);
  ULPSCOPE_GRID_STORE(5);
#endif
}

// ---- the deep kernel: every product as a pair, three anchored levels and a rest ----

struct DeepSum {
  V first, second, third, rest;
};

/// level += x on its grid; x becomes what the grid cannot hold. Exact: |x| is below level's least magnitude.
/// The sum is an fma with 1, the same number: half of the units that add can do nothing else than fma and
/// multiply.
ULPSCOPE_INLINE void OntoGrid(V& level, V& x) {
  const V next = Fma(x, Spread(1.0), level);
  x = x - (next - level);
  level = next;
}

ULPSCOPE_INLINE void DeepStep(DeepSum& sum, V a, V b) {
  V product = a * b;
  V tail = Fma(a, b, -product);
  OntoGrid(sum.first, product);
  OntoGrid(sum.second, product);
  tail = product + tail;
  OntoGrid(sum.third, tail);
  sum.rest = Fma(tail, Spread(1.0), sum.rest);
}

ULPSCOPE_INLINE void DeepStore(const DeepSum& sum, const DeepAnchors& anchors, double* to) {
  constexpr int kTile = kRows * kColumns;
  Store(to, sum.first - anchors.first);
  Store(to + kTile, sum.second - anchors.second);
  Store(to + 2 * kTile, sum.third - anchors.third);
  Store(to + 3 * kTile, sum.rest);
}

void Deep(const double* a, const double* b, int64_t count, const DeepAnchors& anchors, double* sums) {
  const DeepSum start{Spread(anchors.first), Spread(anchors.second), Spread(anchors.third), V{}};
  constexpr int kStrip = kRows == 6 ? 6 : 1;
  for (int row = 0; row < kRows; row += kStrip) {
    for (int half = 0; half < 2; ++half) {
      const double *left = a + row, *right = b + half * kLanes;
      DeepSum sum0 = start;
#if ULPSCOPE_LANES == 8
      DeepSum sum1 = start, sum2 = start, sum3 = start, sum4 = start, sum5 = start;
#endif
      for (int64_t k = 0; k < count; ++k, left += kRows, right += kColumns) {
        const V y = Load(right);
        DeepStep(sum0, Spread(left[0]), y);
#if ULPSCOPE_LANES == 8
        DeepStep(sum1, Spread(left[1]), y);
        DeepStep(sum2, Spread(left[2]), y);
        DeepStep(sum3, Spread(left[3]), y);
        DeepStep(sum4, Spread(left[4]), y);
        DeepStep(sum5, Spread(left[5]), y);
#endif
      }
      double* to = sums + row * kColumns + half * kLanes;
      DeepStore(sum0, anchors, to);
#if ULPSCOPE_LANES == 8
      DeepStore(sum1, anchors, to + kColumns);
      DeepStore(sum2, anchors, to + 2 * kColumns);
      DeepStore(sum3, anchors, to + 3 * kColumns);
      DeepStore(sum4, anchors, to + 4 * kColumns);
      DeepStore(sum5, anchors, to + 5 * kColumns);
#endif
    }
  }
}

// ---- from sums to results ----

int Finish(const double* s, const double* c, const TileFinish& how, double* hi, double* lo, int64_t stride,
           uint32_t* refused) {
  int total = 0;
  const V twice = Spread(how.twice_delta);
  for (int i = 0; i < kRows; ++i) {
    uint32_t mask = 0;
    for (int j = 0; j < kColumns; j += kLanes) {
      const V x = Load(s + i * kColumns + j) - 3.0, y = Load(c + i * kColumns + j);
      const V sum = x + y, part = sum - x;
      const V rest = (x - (sum - part)) + (y - part);
      const V scale = Load(how.column_scale + j) * how.row_scale[i];
      Store(hi + i * stride + j, sum * scale);
      Store(lo + i * stride + j, rest * scale);
      const V reach = Load(how.column_low + j) + how.row_low[i];
      const Bits good =
          (reach >= how.exact_from) | ((sum + (rest + twice) == sum) & (sum + (rest - twice) == sum));
      Bits bad = ~good;
      for (int lane = 0; lane < kLanes; ++lane) mask |= static_cast<uint32_t>(bad[lane] & 1) << (j + lane);
    }
    refused[i] = mask;
    total += __builtin_popcount(mask);
  }
  return total;
}

// ---- sparse corrections ----

bool AnyLow(const double* x, int64_t count, const double* limits) {
  Bits found{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) found |= LowBit(Load(x + i)) < Load(limits + i);
  bool any = false;
  for (int lane = 0; lane < kLanes; ++lane) any |= found[lane] != 0;
  for (; i < count; ++i) any |= LowBit(Spread(x[i]))[0] < limits[i];
  return any;
}

bool AddExactly(double factor, const double* x, int64_t count, double* sum) {
  V lost{};
  int64_t i = 0;
  for (; i < count; i += kLanes) {
    V a{}, p{};
    const int lanes = count - i < kLanes ? static_cast<int>(count - i) : kLanes;
    if (lanes == kLanes) {
      a = Load(sum + i);
      p = Load(x + i) * factor;
    } else {
      for (int lane = 0; lane < lanes; ++lane) {
        a[lane] = sum[i + lane];
        p[lane] = x[i + lane] * factor;
      }
    }
    const V t = a + p, part = t - a;
    const V rest = (a - (t - part)) + (p - part);
    lost = Select(rest != V{}, Spread(1), lost);
    for (int lane = 0; lane < lanes; ++lane) sum[i + lane] = t[lane];
  }
  double any = 0;
  for (int lane = 0; lane < kLanes; ++lane) any += lost[lane];
  return any == 0;
}

void AddPairs(double* hi, double* lo, const double* add, int64_t count) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const V a = Load(hi + i), b = Load(add + i);
    const V t = a + b, part = t - a;
    Store(hi + i, t);
    Store(lo + i, (a - (t - part)) + (b - part));
  }
  for (; i < count; ++i) {
    const double a = hi[i], b = add[i];
    const double t = a + b, part = t - a;
    hi[i] = t;
    lo[i] = (a - (t - part)) + (b - part);
  }
}

using E4m3 = Byte<kE4m3Values>;
using E5m2 = Byte<kE5m2Values>;

}  // namespace

#define ULPSCOPE_EACH_TYPE(f) \
  { f<F64>, f<F32>, f<Bf16>, f<F16>, f<E4m3>, f<E5m2> }

extern const Kernels ULPSCOPE_TABLE;
const Kernels ULPSCOPE_TABLE = {
    ULPSCOPE_TABLE_NAME,
    kRows,
    kColumns,
    ULPSCOPE_EACH_TYPE(ScanLine),
    ULPSCOPE_EACH_TYPE(ScanColumns),
    ULPSCOPE_EACH_TYPE(Convert),
    ULPSCOPE_EACH_TYPE(PackLines),
    ULPSCOPE_EACH_TYPE(PackColumns),
    Grid,
    Deep,
    Finish,
    AnyLow,
    AddExactly,
    AddPairs,
};

}  // namespace ulpscope::fast
