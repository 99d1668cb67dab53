// Tries the certificates.
#include "oracles/fast/self_test.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "harness/num/tensor_data.h"
#include "oracles/fast/agree.h"

namespace ulpscope::fast {
namespace {

constexpr int64_t kM = 13, kN = 35, kK = 40;

/// Values that a linear congruence spreads over `binades` binades, rounded to the type.
TensorData Spread(DType dtype, int64_t count, uint64_t seed, int binades) {
  TensorData data = TensorData::Zeros(dtype, {count});
  uint64_t state = seed;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double fraction = 1 + static_cast<double>(state >> 12) * 0x1p-52;
    double value = (state & 1) != 0 ? -fraction : fraction;
    for (auto down = static_cast<int>((state >> 40) % static_cast<uint64_t>(binades)); down > 0; --down)
      value /= 2;
    data.Set(i, RoundTo(value, *FormatOf(dtype)));
  }
  return data;
}

/// The second half of every sum takes the first away again, but for one element in eight.
void Cancel(TensorData* a, TensorData* b) {
  for (int64_t i = 0; i < kM; ++i) {
    for (int64_t k = kK / 2; k < kK; ++k) {
      if ((i + k) % 8 != 0) a->Set(i * kK + k, -a->At(i * kK + k - kK / 2));
    }
  }
  for (int64_t k = kK / 2; k < kK; ++k) {
    for (int64_t j = 0; j < kN; ++j) b->Set(k * kN + j, b->At((k - kK / 2) * kN + j));
  }
}

std::string Differences(const TensorData& a, const TensorData& b, const Options& options) {
  Product product{.batch = 1, .m = kM, .n = kN, .k = kK, .a = {}, .b = {}, .c = {}, .alpha = 1, .beta = 1};
  product.a = {
      .data = a.bytes.data(), .dtype = a.dtype, .batch_stride = 0, .row_stride = kK, .column_stride = 1};
  product.b = {
      .data = b.bytes.data(), .dtype = b.dtype, .batch_stride = 0, .row_stride = kN, .column_stride = 1};
  Options slow = options;
  slow.tiers = LastTier::kAccumulatorOnly;
  Results fast, truth;
  if (!Engine(options).Compute(product, &fast) || !Engine(slow).Compute(product, &truth))
    return "the floating-point environment is not the default one";
  for (int64_t i = 0; i < fast.size(); ++i) {
    const Reference x = fast.At(i), y = truth.At(i);
    if (!Agree(x, y))
      return std::string(Name(a.dtype)) + " element " + std::to_string(i) + ": " + Describe(x) + " against " +
             Describe(y);
  }
  return "";
}

}  // namespace

std::string SelfTest(const Options& options) {
  for (const DType dtype : {DType::kBfloat16, DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    for (const int binades : {4, 14, 60}) {
      TensorData a = Spread(dtype, kM * kK, 1, binades), b = Spread(dtype, kK * kN, 2, binades);
      if (std::string wrong = Differences(a, b, options); !wrong.empty()) return wrong;
      Cancel(&a, &b);
      a.Set(3 * kK + 5, std::numeric_limits<double>::infinity());
      b.Set(7 * kN + 9, std::numeric_limits<double>::quiet_NaN());
      if (dtype == DType::kFloat64) a.Set(5 * kK, 0x1p-1074);
      if (std::string wrong = Differences(a, b, options); !wrong.empty()) return wrong;
    }
  }
  return "";
}

}  // namespace ulpscope::fast
