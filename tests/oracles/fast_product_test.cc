// The certified fast path against Boost, bit for bit: random and adversarial data, every instruction set, every tier.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "harness/num/tensor_data.h"
#include "oracles/exact/real.h"
#include "oracles/fast/blas.h"
#include "oracles/fast/product.h"

namespace ulpscope::fast {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// splitmix64 by counter.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Bits() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  double Uniform() { return static_cast<double>(Bits() >> 11) * 0x1p-53; }
  /// Near enough to normal for data: a sum of uniforms times a small spread of exponents.
  double Normal() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += Uniform();
    return sum;
  }
  int64_t Below(int64_t limit) { return static_cast<int64_t>(Bits() % static_cast<uint64_t>(limit)); }

 private:
  uint64_t state_;
};

double Into(double value, DType dtype) { return RoundTo(value, *FormatOf(dtype)); }

/// A product with its memory.
struct Problem {
  TensorData a, b, c;
  Product product;
};

struct Sizes {
  int64_t batch = 1, m = 1, n = 1, k = 1;
};

template <class F>
TensorData Fill(DType dtype, int64_t count, F value) {
  TensorData data = TensorData::Zeros(dtype, {count});
  for (int64_t i = 0; i < count; ++i) data.Set(i, Into(value(i), dtype));
  return data;
}

template <class FA, class FB>
Problem Make(DType type_a, DType type_b, Sizes s, FA fa, FB fb) {
  Problem p;
  p.a = Fill(type_a, s.batch * s.m * s.k, fa);
  p.b = Fill(type_b, s.batch * s.k * s.n, fb);
  p.product = {.batch = s.batch, .m = s.m, .n = s.n, .k = s.k, .a = {}, .b = {}, .c = {}, .alpha = 1, .beta = 1};
  p.product.a = {.data = nullptr, .dtype = type_a, .batch_stride = s.m * s.k, .row_stride = s.k, .column_stride = 1};
  p.product.b = {.data = nullptr, .dtype = type_b, .batch_stride = s.k * s.n, .row_stride = s.n, .column_stride = 1};
  return p;
}

Real Element(const Matrix& matrix, const TensorData& data, int64_t batch, int64_t row, int64_t column) {
  return Real::From(data.At(batch * matrix.batch_stride + row * matrix.row_stride + column * matrix.column_stride));
}

Reference ByBoost(const Problem& p, int64_t element) {
  const Product& product = p.product;
  const int64_t j = element % product.n, i = element / product.n % product.m, batch = element / (product.n * product.m);
  Real sum = Real::From(0.0);
  for (int64_t k = 0; k < product.k; ++k)
    sum = ulpscope::Add(sum, ulpscope::Multiply(Element(product.a, p.a, batch, i, k), Element(product.b, p.b, batch, k, j), 256), 256);
  if (product.alpha != 1) sum = ulpscope::Multiply(Real::From(product.alpha), sum, 256);
  if (product.c) sum = ulpscope::Add(sum, ulpscope::Multiply(Real::From(product.beta), Element(*product.c, p.c, batch, i, j), 256), 256);
  return sum.ToReference();
}

std::string Text(const Reference& r) {
  return FormatNumber(r.hi) + " + " + FormatNumber(r.lo) + " +- " + FormatNumber(r.err) + " kind " + std::to_string(static_cast<int>(r.kind));
}

struct Seen {
  int64_t compared = 0, exact = 0;
  TierCounts counts;
};

/// Every `step`-th element against Boost.
Seen Compare(Problem& p, Options options, const std::string& what, int64_t step = 1) {
  p.product.a.data = p.a.bytes.data();
  p.product.b.data = p.b.bytes.data();
  if (p.product.c) p.product.c->data = p.c.bytes.data();
  Engine engine(options);
  Results results;
  EXPECT_TRUE(engine.Compute(p.product, &results)) << what;
  Seen seen;
  int failures = 0;
  for (int64_t i = 0; i < results.size() && failures < 5; i += step) {
    const Reference fast = results.At(i), boost = ByBoost(p, i);
    ++seen.compared;
    seen.exact += fast.kind == ReferenceKind::kExact;
    const std::string line = what + " [" + std::to_string(i) + "]\n fast  " + Text(fast) + "\n boost " + Text(boost);
    bool good = std::isnan(boost.hi) ? std::isnan(fast.hi) : std::bit_cast<uint64_t>(fast.hi) == std::bit_cast<uint64_t>(boost.hi);
    if (fast.kind == ReferenceKind::kDomain || boost.kind == ReferenceKind::kDomain) {
      good = good && fast.kind == boost.kind;
    } else if (fast.kind == ReferenceKind::kCertified) {
      good = good && Compare(Dyadic::From(std::fabs(fast.lo - boost.lo)), Dyadic::From(fast.err) + Dyadic::From(boost.err)) <= 0 && fast.err <= std::fabs(fast.hi) * 0x1p-53;
    } else {
      good = good && std::bit_cast<uint64_t>(fast.lo) == std::bit_cast<uint64_t>(boost.lo) && fast.kind == boost.kind && fast.err == boost.err;
    }
    EXPECT_TRUE(good) << line;
    failures += good ? 0 : 1;
  }
  seen.counts = results.counts();
  EXPECT_EQ(seen.counts.total(), results.size()) << what;
  return seen;
}

std::vector<const Kernels*> AllKernels() {
  std::vector<const Kernels*> all;
  for (const Level level : {Level::kPortable, Level::kAvx2, Level::kAvx512}) {
    if (const Kernels* kernels = KernelsOf(level)) all.push_back(kernels);
  }
  return all;
}

constexpr DType kTypes[] = {DType::kFloat64, DType::kFloat32, DType::kBfloat16, DType::kFloat16, DType::kFloat8E4m3fn, DType::kFloat8E5m2};

TEST(FastProduct, RandomDataAgreesOnEveryInstructionSet) {
  for (const Kernels* kernels : AllKernels()) {
    for (const DType dtype : kTypes) {
      Random random(7);
      const auto normal = [&](int64_t) { return random.Normal(); };
      Problem p = Make(dtype, dtype, {.batch = 1, .m = 45, .n = 38, .k = 70}, normal, normal);
      const Seen seen = Compare(p, {.kernels = kernels}, std::string(kernels->name) + " " + std::string(Name(dtype)));
      EXPECT_EQ(seen.compared, 45 * 38);
      EXPECT_GE(seen.exact, dtype == DType::kFloat64 ? 0 : 45 * 38 - 20);
      EXPECT_LE(seen.counts.deep + seen.counts.accumulated, 2);
      const bool narrow = dtype != DType::kFloat64 && dtype != DType::kFloat32;
      EXPECT_EQ(seen.counts.peel > 0, narrow && Blas::Get() != nullptr);
    }
  }
}

TEST(FastProduct, OddShapes) {
  int64_t compared = 0;
  for (const Kernels* kernels : AllKernels()) {
    for (const DType dtype : {DType::kFloat64, DType::kBfloat16}) {
      for (const int64_t m : {0, 1, 2, 5, 7, 13}) {
        for (const int64_t n : {0, 1, 3, 8, 9, 17, 33}) {
          for (const int64_t k : {0, 1, 2, 7, 9, 33}) {
            Random random(static_cast<uint64_t>(m * 10000 + n * 100 + k));
            const auto normal = [&](int64_t) { return random.Normal(); };
            Problem p = Make(dtype, dtype, {.batch = 2, .m = m, .n = n, .k = k}, normal, normal);
            compared += Compare(p, {.kernels = kernels}, "m n k " + std::to_string(m) + " " + std::to_string(n) + " " + std::to_string(k), 3).compared;
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 10000);
}

}  // namespace
}  // namespace ulpscope::fast
