// Column-major products as cuBLAS documents them, in plain loops: what the stand-ins compute.
//
// Shares nothing with the adapter, not even its constants. It refuses what the real library refuses for
// reasons of shape (leading dimensions, operations), so that a wrong call fails here as it would there.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace fake {

// cudaDataType
enum Type { kFloat = 0, kDouble = 1, kHalf = 2, kBfloat16 = 14, kE4m3 = 28, kE5m2 = 29 };
enum Status { kSuccess = 0, kInvalidValue = 7, kNotSupported = 15 };

inline bool IsFloat8(int type) { return type == kE4m3 || type == kE5m2; }
inline int Bytes(int type) { return type == kDouble ? 8 : type == kFloat ? 4 : IsFloat8(type) ? 1 : 2; }

struct Narrow {
  int exponent, mantissa;
};
inline Narrow NarrowOf(int type) {
  return type == kHalf       ? Narrow{5, 10}
         : type == kBfloat16 ? Narrow{8, 7}
         : type == kE4m3     ? Narrow{4, 3}
                             : Narrow{5, 2};
}

/// To nearest even at `bits` significant bits, not below the exponent `least`.
inline double Round(double x, int bits, int least) {
  if (x == 0 || !std::isfinite(x)) return x;
  const int quantum = std::max(std::ilogb(x), least) - (bits - 1);
  return std::ldexp(std::nearbyint(std::ldexp(x, -quantum)), quantum);
}

inline double RoundType(double x, int type) {
  if (type == kDouble) return x;
  if (type == kFloat) return static_cast<double>(static_cast<float>(x));
  const Narrow narrow = NarrowOf(type);
  return Round(x, narrow.mantissa + 1, 2 - (1 << (narrow.exponent - 1)));
}

inline double Load(const void* base, int type, int64_t index) {
  const char* at = static_cast<const char*>(base) + index * Bytes(type);
  if (type == kDouble) {
    double value;
    std::memcpy(&value, at, 8);
    return value;
  }
  if (type == kFloat) {
    float value;
    std::memcpy(&value, at, 4);
    return value;
  }
  const Narrow narrow = NarrowOf(type);
  uint32_t bits = 0;
  std::memcpy(&bits, at, static_cast<size_t>(Bytes(type)));
  const uint32_t mantissa = bits & ((1U << narrow.mantissa) - 1);
  const int exponent = static_cast<int>(bits >> narrow.mantissa & ((1U << narrow.exponent) - 1));
  const double sign = (bits >> (narrow.exponent + narrow.mantissa)) != 0 ? -1 : 1;
  const int least = 2 - (1 << (narrow.exponent - 1));
  const double significand = mantissa + (exponent == 0 ? 0.0 : std::ldexp(1, narrow.mantissa));
  return sign * std::ldexp(significand, (exponent == 0 ? least : exponent - 1 + least) - narrow.mantissa);
}

inline void Store(void* base, int type, int64_t index, double value) {
  char* at = static_cast<char*>(base) + index * Bytes(type);
  value = RoundType(value, type);
  if (type == kDouble) {
    std::memcpy(at, &value, 8);
    return;
  }
  if (type == kFloat) {
    const auto single = static_cast<float>(value);
    std::memcpy(at, &single, 4);
    return;
  }
  const Narrow narrow = NarrowOf(type);
  const int least = 2 - (1 << (narrow.exponent - 1));
  const uint32_t sign = std::signbit(value) ? 1U << (narrow.exponent + narrow.mantissa) : 0;
  uint32_t bits = 0;
  if (value != 0) {
    const int exponent = std::max(std::ilogb(value), least);
    const auto significand = static_cast<uint32_t>(std::ldexp(std::fabs(value), narrow.mantissa - exponent));
    const bool normal = (significand >> narrow.mantissa) != 0;
    bits = normal ? (static_cast<uint32_t>(exponent - least + 1) << narrow.mantissa) + significand -
                        (1U << narrow.mantissa)
                  : significand;
  }
  bits |= sign;
  std::memcpy(at, &bits, static_cast<size_t>(Bytes(type)));
}

/// How one compute type sums: the operands' rounding (0 bits: none) and the accumulator's bits.
struct Arithmetic {
  int operand_bits = 0, accumulator_bits = 24;
  int scale = kFloat;
};

/// False for a compute type that these operands and this result do not have.
inline bool Choose(int compute, int a, int b, int c, Arithmetic* how) {
  const bool single = a == kFloat && b == kFloat && c == kFloat;
  const bool narrow = a == b && (a == kHalf || a == kBfloat16) && (c == a || c == kFloat);
  const bool float8 = IsFloat8(a) && IsFloat8(b) && (c == kFloat || c == kHalf || c == kBfloat16);
  switch (compute) {
    case 64:
    case 65:
      *how = {0, 11, kHalf};
      return a == kHalf && b == kHalf && c == kHalf;
    case 68:
      *how = {0, 24, kFloat};
      return single || narrow || float8;
    case 69:
      *how = {0, 24, kFloat};
      return single || narrow;
    case 70:
    case 71:
      *how = {0, 53, kDouble};
      return a == kDouble && b == kDouble && c == kDouble;
    case 74:
      *how = {11, 24, kFloat};
      return single;
    case 75:
      *how = {8, 24, kFloat};
      return single;
    case 77:
      *how = {11, 24, kFloat};
      return single;
    case 78:
      *how = {24, 24, kFloat};
      return single;
    default:
      return false;
  }
}

struct Problem {
  int op_a = 0, op_b = 0;  // 0 = N, 1 = T
  int64_t m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;
  int type_a = 0, type_b = 0, type_c = 0;
  const void *a = nullptr, *b = nullptr, *alpha = nullptr, *beta = nullptr;
  void* c = nullptr;
  int64_t stride_a = 0, stride_b = 0, stride_c = 0, batch = 1;
  int parts = 1;                 ///< of K
  bool narrow_partials = false;  ///< each part stored in C's type
  const void* bias = nullptr;    ///< one for each row of C
  int type_bias = 0;
};

inline bool HoldsRows(int64_t ld, int64_t rows) { return ld >= (rows > 1 ? rows : 1); }

inline int Multiply(const Problem& p, Arithmetic how) {
  if (p.m < 0 || p.n < 0 || p.k < 0) return kInvalidValue;
  if (!HoldsRows(p.lda, p.op_a == 0 ? p.m : p.k) || !HoldsRows(p.ldb, p.op_b == 0 ? p.k : p.n) ||
      !HoldsRows(p.ldc, p.m))
    return kInvalidValue;
  const double alpha = Load(p.alpha, how.scale, 0), beta = Load(p.beta, how.scale, 0);
  const auto sum = [&](double x) {
    return how.accumulator_bits == 53 ? x : Round(x, how.accumulator_bits, how.scale == kHalf ? -14 : -126);
  };
  const auto in = [&](double x) { return how.operand_bits == 0 ? x : Round(x, how.operand_bits, -126); };
  for (int64_t batch = 0; batch < p.batch; ++batch) {
    for (int64_t j = 0; j < p.n; ++j) {
      for (int64_t i = 0; i < p.m; ++i) {
        double total = 0;
        for (int part = 0; part < p.parts; ++part) {
          double partial = 0;
          for (int64_t x = p.k * part / p.parts; x < p.k * (part + 1) / p.parts; ++x) {
            const int64_t at_a = batch * p.stride_a + (p.op_a == 0 ? i + x * p.lda : x + i * p.lda);
            const int64_t at_b = batch * p.stride_b + (p.op_b == 0 ? x + j * p.ldb : j + x * p.ldb);
            partial = sum(partial + in(Load(p.a, p.type_a, at_a)) * in(Load(p.b, p.type_b, at_b)));
          }
          total = sum(total + (p.narrow_partials ? RoundType(partial, p.type_c) : partial));
        }
        const int64_t at = batch * p.stride_c + i + j * p.ldc;
        double value = alpha * total;
        if (beta != 0) value = sum(value + beta * Load(p.c, p.type_c, at));
        if (p.bias != nullptr) value = sum(value + Load(p.bias, p.type_bias, i));
        Store(p.c, p.type_c, at, value);
      }
    }
  }
  return kSuccess;
}

/// Appends a line to $FAKE_CUDA_LOG.
inline void Log(const std::string& line) {
  const char* path = std::getenv("FAKE_CUDA_LOG");
  std::FILE* file = path != nullptr ? std::fopen(path, "a") : nullptr;
  if (file == nullptr) return;
  std::fprintf(file, "%s\n", line.c_str());
  std::fclose(file);
}

inline int FromEnvironment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoi(text) : otherwise;
}

inline std::string Text(const Problem& p, int compute) {
  char line[512];
  std::snprintf(line, sizeof line,
                "{\"op\": [%d, %d], \"size\": [%ld, %ld, %ld], \"ld\": [%ld, %ld, %ld], \"type\": [%d, %d, "
                "%d], \"stride\": [%ld, "
                "%ld, %ld], \"batch\": %ld, \"compute\": %d, \"parts\": %d, \"narrow\": %d, \"bias\": %d}",
                p.op_a, p.op_b, p.m, p.n, p.k, p.lda, p.ldb, p.ldc, p.type_a, p.type_b, p.type_c, p.stride_a,
                p.stride_b, p.stride_c, p.batch, compute, p.parts, p.narrow_partials ? 1 : 0,
                p.bias != nullptr ? 1 : 0);
  return line;
}

}  // namespace fake
