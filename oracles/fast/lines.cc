// Scans operands.
#include "oracles/fast/lines.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "harness/base/check.h"
#include "oracles/fast/exponents.h"

namespace ulpscope::fast {
namespace {

/// Lines are scaled by powers of two between 2^-kMostExponent and 2^kMostExponent, so that undoing the
/// scaling of a pair of lines keeps every multiple of 2^-120 a normal number.
constexpr int kMostExponent = 430;
/// No scaled element may come near the subnormals: its lowest set bit stays above 2^-kDeepest.
constexpr double kDeepest = 900;

template <class T>
const void* Offset(const void* data, int64_t elements) {
  return static_cast<const T*>(data) + elements;
}

const void* Advance(const void* data, SourceType type, int64_t elements) {
  switch (type) {
    case kSourceF64:
      return Offset<double>(data, elements);
    case kSourceF32:
      return Offset<float>(data, elements);
    case kSourceBf16:
    case kSourceF16:
      return Offset<uint16_t>(data, elements);
    default:
      return Offset<uint8_t>(data, elements);
  }
}

}  // namespace

std::optional<SourceType> SourceOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return kSourceF64;
    case DType::kFloat32:
      return kSourceF32;
    case DType::kBfloat16:
      return kSourceBf16;
    case DType::kFloat16:
      return kSourceF16;
    case DType::kFloat8E4m3fn:
      return kSourceE4m3;
    case DType::kFloat8E5m2:
      return kSourceE5m2;
    default:
      return std::nullopt;
  }
}

bool IsFastType(DType dtype) { return SourceOf(dtype).has_value(); }

double ElementAt(const Matrix& matrix, int64_t offset) {
  const SourceType type = *SourceOf(matrix.dtype);
  double value;
  kPortableKernels.convert[type](Advance(matrix.data, type, offset), 1, &value);
  return value;
}

void Lines::Set(const Kernels& with, const Matrix& matrix, int64_t offset, int64_t line_count, int64_t terms,
                int64_t line_stride, int64_t k_stride) {
  kernels = &with;
  lines = line_count;
  count = terms;
  raw_type_ = type = *SourceOf(matrix.dtype);
  raw_ = data = Advance(matrix.data, type, offset);
  raw_line_stride_ = line_stride;
  raw_k_stride_ = k_stride;
  own = nullptr;
  has_specials = has_wild = false;
  specials.clear();
  special_line.clear();
  wild_line.clear();
  if (k_stride == 1 || count <= 1) {
    layout = Layout::kRows;
    stride = line_stride;
  } else if (line_stride == 1 || lines <= 1) {
    layout = Layout::kColumns;
    stride = k_stride;
  } else {
    double* copy = copy_.Need(lines * count);
    for (int64_t line = 0; line < lines; ++line) Gather(line, copy + line * count);
    data = copy;
    type = kSourceF64;
    layout = Layout::kRows;
    stride = count;
  }
}

void Lines::Gather(int64_t line, double* to) const {
  const auto convert = kernels->convert[raw_type_];
  if (raw_k_stride_ == 1) return convert(Advance(raw_, raw_type_, line * raw_line_stride_), count, to);
  for (int64_t k = 0; k < count; ++k)
    convert(Advance(raw_, raw_type_, line * raw_line_stride_ + k * raw_k_stride_), 1, to + k);
}

/// The raw elements of some lines into `own`, in the same layout.
void Lines::ConvertRange(int64_t begin, int64_t end) {
  const auto convert = kernels->convert[raw_type_];
  if (layout == Layout::kRows) {
    for (int64_t line = begin; line < end; ++line)
      convert(Advance(raw_, raw_type_, line * raw_line_stride_), count, own + line * stride);
  } else {
    for (int64_t k = 0; k < count; ++k)
      convert(Advance(raw_, raw_type_, k * raw_k_stride_ + begin), end - begin, own + k * stride + begin);
  }
}

void Lines::ScanRange(int64_t begin, int64_t end) {
  if (own != nullptr && layout == Layout::kColumns) ConvertRange(begin, end);
  if (layout == Layout::kRows) {
    const auto scan = kernels->scan_line[type];
    for (int64_t line = begin; line < end; ++line) {
      if (own != nullptr) ConvertRange(line, line + 1);
      scan(Advance(data, type, line * stride), count, norm + line, low + line);
    }
  } else {
    kernels->scan_columns[type](Advance(data, type, begin), stride, count, end - begin, norm + begin,
                                low + begin);
  }
}

void Lines::Scan(Team& team) {
  constexpr int64_t kPad = 2 * kMostTileColumns;
  double* numbers = numbers_.Need(2 * (lines + kPad));
  norm = numbers;
  low = numbers + lines + kPad;
  exponent = exponents_.Need(lines + kPad);
  // Narrow elements are read twice, by the scan and by whoever computes: converted once, and scanned while
  // they are in the cache, they cost less.
  constexpr int64_t kCacheElements = 1 << 16;
  if (type > kSourceF32 && (layout == Layout::kRows || lines * count <= kCacheElements)) {
    stride = std::max<int64_t>(1, layout == Layout::kRows ? count : lines);
    data = own = copy_.Need(lines * count + 1);
    type = kSourceF64;
  }
  std::atomic<bool> strange{false};
  const auto scan = [&](int64_t begin, int64_t end, int) {
    ScanRange(begin, end);
    bool odd = false;
    for (int64_t line = begin; line < end; ++line) {
      const double squares = norm[line], lowest = low[line];
      if (lowest == std::numeric_limits<double>::infinity() && squares == 0) {
        low[line] = kNoLowBit;
        exponent[line] = 0;
        continue;
      }
      if (!(squares > 0x1p-860 && squares < 0x1p860)) {
        odd = true;
        continue;
      }
      // A sum of at most 2^30 rounded squares is off by less than a factor 1 + 2^-22; underflowed squares are far
      // below.
      norm[line] = std::sqrt(squares) * (1 + 0x1p-20);
      exponent[line] = FloorLog2(norm[line] * (1 + 0x1p-18)) + 1;
      low[line] = FloorLog2(lowest);
      odd |= low[line] - exponent[line] < -kDeepest;
    }
    if (odd) strange = true;
  };
  if (team.members() == 1) {
    scan(0, lines, 0);
  } else {
    team.For(lines, 64, scan);
  }
  if (strange) Clean();
}

/// The rare case: element by element into a copy without NaN, infinities and lines of extreme magnitudes.
void Lines::Clean() {
  Buffer<double> fresh;
  double* copy = fresh.Need(lines * count);
  special_line.assign(static_cast<size_t>(lines), 0);
  wild_line.assign(static_cast<size_t>(lines), 0);
  for (int64_t line = 0; line < lines; ++line) {
    double* x = copy + line * count;
    Gather(line, x);
    int most = std::numeric_limits<int>::min();
    for (int64_t k = 0; k < count; ++k) {
      if (!std::isfinite(x[k])) {
        specials.push_back({.line = line, .k = k, .value = x[k]});
        special_line[static_cast<size_t>(line)] = 1;
        has_specials = true;
        x[k] = 0;
      } else if (x[k] != 0) {
        most = std::max(most, FloorLog2(std::fabs(x[k])));
      }
    }
    bool wild =
        most > kMostExponent - 40 || (most < -(kMostExponent - 40) && most > std::numeric_limits<int>::min());
    double squares = 0, lowest = std::numeric_limits<double>::infinity();
    if (!wild) {
      kernels->scan_line[kSourceF64](x, count, &squares, &lowest);
      wild = squares > 0 && FloorLog2(lowest) - (FloorLog2(std::sqrt(squares)) + 2) < -kDeepest;
    }
    if (wild) {
      wild_line[static_cast<size_t>(line)] = 1;
      has_wild = true;
      std::fill(x, x + count, 0.0);
      squares = 0;
    }
    norm[line] = squares == 0 ? 0 : std::sqrt(squares) * (1 + 0x1p-20);
    low[line] = squares == 0 ? kNoLowBit : FloorLog2(lowest);
    exponent[line] = squares == 0 ? 0 : FloorLog2(norm[line] * (1 + 0x1p-18)) + 1;
  }
  if (!has_specials) special_line.clear();
  if (!has_wild) wild_line.clear();
  std::swap(copy_, fresh);
  own = nullptr;
  data = copy;
  type = kSourceF64;
  layout = Layout::kRows;
  stride = count;
}

}  // namespace ulpscope::fast
