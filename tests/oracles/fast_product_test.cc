// The certified fast path against Boost, bit for bit: random and adversarial data, every instruction set,
// every tier.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "harness/num/tensor_data.h"
#include "oracles/exact/real.h"
#include "oracles/fast/agree.h"
#include "oracles/fast/blas.h"
#include "oracles/fast/product.h"
#include "oracles/fast/self_test.h"

namespace ulpscope::fast {
namespace {

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

double Into(double value, DType dtype) {
  if (dtype == DType::kFloat8E4m3fn && std::isinf(value)) return std::nan("");  // it has no infinities
  return RoundTo(value, *FormatOf(dtype));
}

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
Problem MakeProduct(DType type_a, DType type_b, Sizes s, FA fa, FB fb) {
  Problem p;
  p.a = Fill(type_a, s.batch * s.m * s.k, fa);
  p.b = Fill(type_b, s.batch * s.k * s.n, fb);
  p.product = {
      .batch = s.batch, .m = s.m, .n = s.n, .k = s.k, .a = {}, .b = {}, .c = {}, .alpha = 1, .beta = 1};
  p.product.a = {
      .data = nullptr, .dtype = type_a, .batch_stride = s.m * s.k, .row_stride = s.k, .column_stride = 1};
  p.product.b = {
      .data = nullptr, .dtype = type_b, .batch_stride = s.k * s.n, .row_stride = s.n, .column_stride = 1};
  return p;
}

Real Element(const Matrix& matrix, const TensorData& data, int64_t batch, int64_t row, int64_t column) {
  return Real::From(
      data.At(batch * matrix.batch_stride + row * matrix.row_stride + column * matrix.column_stride));
}

Reference ByBoost(const Problem& p, int64_t element) {
  const Product& product = p.product;
  const int64_t j = element % product.n, i = element / product.n % product.m,
                batch = element / (product.n * product.m);
  Real sum = Real::From(0.0);
  for (int64_t k = 0; k < product.k; ++k)
    sum = ulpscope::Add(
        sum,
        ulpscope::Multiply(Element(product.a, p.a, batch, i, k), Element(product.b, p.b, batch, k, j), 256),
        256);
  if (product.alpha != 1) sum = ulpscope::Multiply(Real::From(product.alpha), sum, 256);
  if (product.c)
    sum = ulpscope::Add(
        sum, ulpscope::Multiply(Real::From(product.beta), Element(*product.c, p.c, batch, i, j), 256), 256);
  return sum.ToReference();
}

struct SeenProduct {
  int64_t compared = 0, exact = 0;
  TierCounts counts;
};

/// Every `step`-th element against Boost.
SeenProduct CompareFast(Problem& p, Options options, const std::string& what, int64_t step = 1) {
  p.product.a.data = p.a.bytes.data();
  p.product.b.data = p.b.bytes.data();
  if (p.product.c) p.product.c->data = p.c.bytes.data();
  Engine engine(options);
  Results results;
  EXPECT_TRUE(engine.Compute(p.product, &results)) << what;
  SeenProduct seen;
  int failures = 0;
  for (int64_t i = 0; i < results.size() && failures < 5; i += step) {
    const Reference fast = results.At(i), boost = ByBoost(p, i);
    ++seen.compared;
    seen.exact += fast.kind == ReferenceKind::kExact;
    const std::string line =
        what + " [" + std::to_string(i) + "]\n fast  " + Describe(fast) + "\n boost " + Describe(boost);
    // A certificate must also be worth something.
    const bool good = Agree(fast, boost) &&
                      (fast.kind != ReferenceKind::kCertified || fast.err <= std::fabs(fast.hi) * 0x1p-53);
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

constexpr DType kTypes[] = {DType::kFloat64, DType::kFloat32,      DType::kBfloat16,
                            DType::kFloat16, DType::kFloat8E4m3fn, DType::kFloat8E5m2};

TEST(FastProduct, RandomDataAgreesOnEveryInstructionSet) {
  for (const Kernels* kernels : AllKernels()) {
    for (const DType dtype : kTypes) {
      Random random(7);
      const auto normal = [&](int64_t) { return random.Normal(); };
      Problem p = MakeProduct(dtype, dtype, {.batch = 1, .m = 45, .n = 38, .k = 70}, normal, normal);
      const SeenProduct seen =
          CompareFast(p, {.kernels = kernels}, std::string(kernels->name) + " " + std::string(Name(dtype)));
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
            Problem p = MakeProduct(dtype, dtype, {.batch = 2, .m = m, .n = n, .k = k}, normal, normal);
            compared +=
                CompareFast(p, {.kernels = kernels},
                            "m n k " + std::to_string(m) + " " + std::to_string(n) + " " + std::to_string(k),
                            3)
                    .compared;
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 10000);
}

// ---- adversarial data ----

struct Adversary {
  const char* name;
  double (*a)(Random&, Sizes, int64_t);
  double (*b)(Random&, Sizes, int64_t);
};

double SpreadOver(Random& random, int binades) {
  return std::ldexp(random.Normal(), static_cast<int>(random.Below(2 * binades + 1)) - binades);
}

const Adversary kAdversaries[] = {
    {"integers", [](Random& r, Sizes, int64_t) { return static_cast<double>(r.Below(257) - 128); },
     [](Random& r, Sizes, int64_t) { return static_cast<double>(r.Below(17) - 8); }},
    {"zero rows", [](Random& r, Sizes s, int64_t i) { return i / s.k % 3 == 0 ? 0.0 : r.Normal(); },
     [](Random& r, Sizes s, int64_t i) { return i % s.n % 4 == 1 ? -0.0 : r.Normal(); }},
    {"one huge, the rest tiny",
     [](Random& r, Sizes s, int64_t i) { return i % s.k == 3 ? 0x1p14 : std::ldexp(r.Normal(), -12); },
     [](Random& r, Sizes s, int64_t i) { return i / s.n % s.k == 3 ? 1.0 : std::ldexp(r.Normal(), -12); }},
    {"spread over 24 binades", [](Random& r, Sizes, int64_t) { return SpreadOver(r, 12); },
     [](Random& r, Sizes, int64_t) { return SpreadOver(r, 12); }},
    {"exact ties",
     [](Random& r, Sizes s, int64_t i) {
       return i % s.k == 0 ? 1.0 : i % s.k == 1 ? 0x1p-27 * (r.Below(2) == 0 ? 1 : -1) : 0.0;
     },
     [](Random&, Sizes s, int64_t i) { return i / s.n % s.k == 0 ? 1.0 : 0x1p-26; }},
    {"ties and 2^-130",
     [](Random& r, Sizes s, int64_t i) {
       return i % s.k == 0   ? 1.0
              : i % s.k == 1 ? 0x1p-27
              : i % s.k == 2 ? 0x1p-65 * static_cast<double>(r.Below(3) - 1)
                             : 0.0;
     },
     [](Random&, Sizes s, int64_t i) {
       return i / s.n % s.k == 0 ? 1.0 : i / s.n % s.k == 1 ? 0x1p-26 : 0x1p-65;
     }},
    {"overflow edge", [](Random& r, Sizes, int64_t) { return r.Normal() * 0x1p1021; },
     [](Random& r, Sizes, int64_t) { return r.Normal(); }},
    {"near 2^500", [](Random& r, Sizes, int64_t) { return r.Normal() * 0x1p500; },
     [](Random& r, Sizes, int64_t) { return r.Normal() * 0x1p520; }},
    {"subnormal", [](Random& r, Sizes, int64_t) { return r.Normal() * 0x1p-1060; },
     [](Random& r, Sizes, int64_t) { return r.Normal(); }},
    {"products underflow", [](Random& r, Sizes, int64_t) { return r.Normal() * 0x1p-540; },
     [](Random& r, Sizes, int64_t) { return r.Normal() * 0x1p-530; }},
    {"full exponent range",
     [](Random& r, Sizes, int64_t) { return std::ldexp(r.Normal(), static_cast<int>(r.Below(2040)) - 1070); },
     [](Random& r, Sizes, int64_t) {
       return std::ldexp(r.Normal(), static_cast<int>(r.Below(2040)) - 1070);
     }},
    {"infinities and NaNs",
     [](Random& r, Sizes, int64_t) {
       const auto x = r.Below(200);
       return x == 0 ? kInf : x == 1 ? -kInf : x == 2 ? std::nan("") : x < 20 ? 0.0 : r.Normal();
     },
     [](Random& r, Sizes, int64_t) {
       const auto x = r.Below(300);
       return x == 0 ? kInf : x == 1 ? -kInf : x == 2 ? std::nan("") : x < 20 ? 0.0 : r.Normal();
     }},
    {"huge beside infinities", [](Random& r, Sizes, int64_t) { return r.Below(50) == 0 ? -kInf : 0x1p1020; },
     [](Random&, Sizes, int64_t) { return 0x1p1000; }},
};

/// The value in the type's own range: float64's extremes become the type's extremes.
double Shrink(double x, DType dtype) {
  if (dtype == DType::kFloat64 || !std::isfinite(x) || x == 0) return x;
  const FloatFormat& format = *FormatOf(dtype);
  const int exponent = std::ilogb(x);
  if (exponent >= format.emin - format.precision && exponent <= format.emax) return x;
  const int span = format.emax - format.emin + format.precision;
  return std::ldexp(x, ((exponent + 2200) % span) + format.emin - format.precision + 1 - exponent);
}

TEST(FastProduct, AdversarialDataAgrees) {
  constexpr Sizes kSizes{.batch = 1, .m = 27, .n = 37, .k = 33};
  int64_t compared = 0, fallen = 0, special = 0;
  for (const Kernels* kernels : AllKernels()) {
    for (const DType dtype : kTypes) {
      for (const Adversary& adversary : kAdversaries) {
        Random random(99);
        Problem p = MakeProduct(
            dtype, dtype, kSizes, [&](int64_t i) { return Shrink(adversary.a(random, kSizes, i), dtype); },
            [&](int64_t i) { return Shrink(adversary.b(random, kSizes, i), dtype); });
        const SeenProduct seen = CompareFast(
            p, {.kernels = kernels},
            std::string(kernels->name) + " " + std::string(Name(dtype)) + " " + adversary.name, 2);
        compared += seen.compared;
        fallen += seen.counts.deep + seen.counts.accumulated;
        special += seen.counts.special;
      }
    }
  }
  EXPECT_GE(compared, 6 * 13 * 27 * 37 / 2);
  EXPECT_GT(fallen, 1000) << "nothing adversarial about this data";
  EXPECT_GT(special, 1000);
}

TEST(FastProduct, CancellationAgreesAndGoesDeep) {
  constexpr Sizes kSizes{.batch = 1, .m = 20, .n = 41, .k = 64};
  for (const Kernels* kernels : AllKernels()) {
    for (const DType dtype : kTypes) {
      for (const double rest : {0.0, 0x1p-20, 0x1p-60, 0x1p-110}) {
        Random random(5);
        std::vector<double> a, b;
        const auto fill_a = [&](int64_t i) {
          const int64_t k = i % kSizes.k;
          a.push_back(k == kSizes.k - 1                              ? rest
                      : k >= kSizes.k / 2 - 1 && k > 0 && k % 2 == 1 ? 0
                                                                     : random.Normal());
          if (k > 0 && k % 2 == 0) a.back() = -a[a.size() - 2];
          return a.back();
        };
        const auto fill_b = [&](int64_t i) {
          const int64_t k = i / kSizes.n;
          b.push_back(k > 0 && k % 2 == 0 ? b[b.size() - static_cast<size_t>(kSizes.n)] : random.Normal());
          return b.back();
        };
        Problem p = MakeProduct(dtype, dtype, kSizes, fill_a, fill_b);
        const SeenProduct seen = CompareFast(
            p, {.kernels = kernels},
            std::string(kernels->name) + " " + std::string(Name(dtype)) + " rest " + FormatNumber(rest), 3);
        EXPECT_EQ(seen.compared, (20 * 41 + 2) / 3);
      }
    }
  }
}

TEST(FastProduct, MixedTypesTransposedStridedAndBroadcastOperands) {
  constexpr Sizes kSizes{.batch = 3, .m = 30, .n = 26, .k = 40};
  int64_t products = 0;
  for (const auto& [type_a, type_b] : {std::pair{DType::kBfloat16, DType::kFloat16},
                                       {DType::kBfloat16, DType::kFloat32},
                                       {DType::kFloat64, DType::kFloat8E5m2},
                                       {DType::kFloat64, DType::kFloat64},
                                       {DType::kFloat16, DType::kFloat16}}) {
    for (int how = 0; how < 8; ++how) {
      Random random(static_cast<uint64_t>(how));
      const auto normal = [&](int64_t) { return random.Normal(); };
      Problem p = MakeProduct(type_a, type_b, {.batch = 3, .m = 60, .n = 52, .k = 80}, normal, normal);
      p.product.batch = kSizes.batch;
      p.product.m = kSizes.m;
      p.product.n = kSizes.n;
      p.product.k = kSizes.k;
      Matrix &a = p.product.a, &b = p.product.b;
      if ((how & 1) != 0) std::swap(a.row_stride, a.column_stride);
      if ((how & 2) != 0) std::swap(b.row_stride, b.column_stride);
      if (how == 4) a.column_stride = b.row_stride = 2;
      if (how == 5) a.batch_stride = 0;
      if (how == 6) b.row_stride = 0;
      if (how == 7) a.row_stride = b.column_stride = 0;
      EXPECT_EQ(
          CompareFast(p, {}, "layout " + std::to_string(how) + " " + std::string(Name(type_a)), 2).compared,
          3 * 30 * 26 / 2);
      ++products;
    }
  }
  EXPECT_EQ(products, 40);
}

TEST(FastProduct, AlphaBetaAndBiasAreExactTerms) {
  constexpr Sizes kSizes{.batch = 2, .m = 9, .n = 17, .k = 30};
  int64_t products = 0;
  for (const DType dtype : kTypes) {
    for (const double alpha : {1.0, -2.0, 0.3, 0.0}) {
      for (const double beta : {1.0, -0.5, 0.7, 0.0, 0x1p-600}) {
        Random random(3);
        const auto normal = [&](int64_t) { return random.Normal(); };
        Problem p = MakeProduct(dtype, dtype, kSizes, normal, normal);
        p.c = Fill(dtype, 17, [&](int64_t j) { return j == 5 ? kInf : j == 6 ? 0.0 : random.Normal(); });
        p.product.c =
            Matrix{.data = nullptr, .dtype = dtype, .batch_stride = 0, .row_stride = 0, .column_stride = 1};
        p.product.alpha = alpha;
        p.product.beta = beta;
        CompareFast(
            p, {},
            std::string(Name(dtype)) + " alpha " + FormatNumber(alpha) + " beta " + FormatNumber(beta));
        ++products;
      }
    }
  }
  EXPECT_EQ(products, 6 * 4 * 5);
}

TEST(FastProduct, LongSumsAreFlushed) {
  for (const DType dtype : {DType::kFloat64, DType::kFloat32, DType::kBfloat16}) {
    Random random(11);
    const auto normal = [&](int64_t) { return random.Normal(); };
    Problem p = MakeProduct(dtype, dtype, {.batch = 1, .m = 3, .n = 5, .k = 3 * 4096 + 77}, normal, normal);
    CompareFast(p, {.blas = BlasUse::kNever}, std::string(Name(dtype)) + " long");
  }
}

TEST(FastProduct, EveryTierAgreesWithEveryOther) {
  Random random(8);
  const auto normal = [&](int64_t) { return random.Normal(); };
  Problem p = MakeProduct(DType::kBfloat16, DType::kBfloat16, {.batch = 1, .m = 40, .n = 40, .k = 40}, normal,
                          normal);
  EXPECT_EQ(CompareFast(p, {.blas = BlasUse::kNever}, "grid").counts.grid, 1600);
  EXPECT_EQ(CompareFast(p, {.tiers = LastTier::kAccumulatorOnly}, "accumulator").counts.accumulated, 1600);
  EXPECT_EQ(CompareFast(p, {.threads = 2}, "two threads").compared, 1600);
  EXPECT_EQ(CompareFast(p, {.threads = 3, .blas = BlasUse::kNever}, "three threads").compared, 1600);
}

// ---- each assumption of the proofs, broken ----

TEST(FastProductRefuses, ToPeelMoreThanOneInSixtyFour) {
  Random random(21);
  const auto spread = [&](int64_t) { return SpreadOver(random, 20); };
  Problem p = MakeProduct(DType::kBfloat16, DType::kBfloat16, {.batch = 1, .m = 40, .n = 40, .k = 40}, spread,
                          spread);
  const SeenProduct seen = CompareFast(p, {}, "wide bfloat16");
  EXPECT_EQ(seen.counts.peel, 0);
  EXPECT_GT(seen.counts.grid, 0);
}

TEST(FastProductRefuses, TheNormBudgetOfOneColumnAlone) {
  Random random(22);
  // One element of column 7 is 40 binades below the others: it leaves the dense product and comes back by the
  // correction.
  const auto normal = [&](int64_t) { return random.Normal(); };
  const auto column = [&](int64_t i) { return i == 9 * 40 + 7 ? 0x1.8p-40 : random.Normal(); };
  Problem p = MakeProduct(DType::kBfloat16, DType::kBfloat16, {.batch = 1, .m = 40, .n = 40, .k = 40}, normal,
                          column);
  const SeenProduct seen = CompareFast(p, {}, "one wide column");
  if (Blas::Get() == nullptr) GTEST_SKIP() << "no OpenBLAS";
  EXPECT_EQ(seen.counts.peel, 1600);
  EXPECT_EQ(seen.exact, 1600);
}

TEST(FastProductRefuses, LinesOfExtremeMagnitude) {
  Random random(23);
  const auto a = [&](int64_t i) {
    return i / 33 == 4   ? random.Normal() * 0x1p600
           : i / 33 == 6 ? std::ldexp(random.Normal(), static_cast<int>(random.Below(1000)) - 900)
                         : random.Normal();
  };
  const auto b = [&](int64_t) { return random.Normal(); };
  Problem p = MakeProduct(DType::kFloat64, DType::kFloat64, {.batch = 1, .m = 20, .n = 30, .k = 33}, a, b);
  const SeenProduct seen = CompareFast(p, {}, "two wild rows");
  EXPECT_EQ(seen.counts.accumulated, 2 * 30);
}

TEST(FastProductRefuses, ExactnessWhereTheLowestBitsAreTooLow) {
  // 2^-52 + 2^-52 ... : with one element near 1 the certificate of exactness must go, Ziv's test decides.
  const auto a = [&](int64_t i) { return i % 16 == 0 ? 1.0 : 0x1.0000000000001p-30; };
  const auto b = [&](int64_t i) { return i / 16 == 0 ? 1.0 : 0x1.0000000000001p-30; };
  Problem p = MakeProduct(DType::kFloat64, DType::kFloat64, {.batch = 1, .m = 8, .n = 16, .k = 16}, a, b);
  const SeenProduct seen = CompareFast(p, {}, "low bits");
  EXPECT_EQ(seen.exact, 0);
}

#if defined(__SSE2__)
class OtherControlWord {
 public:
  explicit OtherControlWord(unsigned bits) : before_(_mm_getcsr()) { _mm_setcsr(before_ | bits); }
  ~OtherControlWord() { _mm_setcsr(before_); }

 private:
  unsigned before_;
};

TEST(FastProductRefuses, EveryOtherFloatingPointEnvironment) {
  const double one = 1;
  Product product{.batch = 1, .m = 1, .n = 1, .k = 1, .a = {}, .b = {}, .c = {}, .alpha = 1, .beta = 1};
  product.a = product.b = {
      .data = &one, .dtype = DType::kFloat64, .batch_stride = 0, .row_stride = 1, .column_stride = 1};
  Engine engine;
  Results results;
  EXPECT_TRUE(engine.Compute(product, &results));
  int refused = 0;
  for (const unsigned bits : {0x8000u, 0x0040u, 0x2000u, 0x4000u, 0x6000u}) {
    const OtherControlWord other(bits);
    refused += engine.Compute(product, &results) ? 0 : 1;
  }
  EXPECT_EQ(refused, 5);
  EXPECT_TRUE(engine.Compute(product, &results));
}

TEST(FastProductRefuses, ThreadsWithAnotherEnvironment) {
  // Threads inherit the control word of the one that starts them.
  std::optional<OtherControlWord> other(0x8000u);
  Engine engine({.threads = 2});
  other.reset();
  const double one = 1;
  Product product{.batch = 1, .m = 1, .n = 1, .k = 1, .a = {}, .b = {}, .c = {}, .alpha = 1, .beta = 1};
  product.a = product.b = {
      .data = &one, .dtype = DType::kFloat64, .batch_stride = 0, .row_stride = 1, .column_stride = 1};
  Results results;
  EXPECT_FALSE(engine.Compute(product, &results));
}
#endif

TEST(FastProduct, SelfTestPassesOnEveryInstructionSetAndFindsABrokenKernel) {
  for (const Kernels* kernels : AllKernels()) EXPECT_EQ(SelfTest({.kernels = kernels}), "");
  Kernels broken = kPortableKernels;
  // A certificate that accepts everything.
  broken.finish = [](const double* s, const double* c, const TileFinish& how, double* hi, double* lo,
                     int64_t stride, uint32_t* refused) {
    kPortableKernels.finish(s, c, how, hi, lo, stride, refused);
    std::fill(refused, refused + kMostTileRows, 0u);
    return 0;
  };
  EXPECT_NE(SelfTest({.kernels = &broken}), "");
  broken = kPortableKernels;
  broken.deep = [](const double* a, const double* b, int64_t count, const DeepAnchors& anchors,
                   double* sums) {
    kPortableKernels.deep(a, b, count, anchors, sums);
    sums[3 * kPortableKernels.rows * kPortableKernels.columns] += 0x1p-140;
  };
  EXPECT_NE(SelfTest({.kernels = &broken}), "");
}

}  // namespace
}  // namespace ulpscope::fast
