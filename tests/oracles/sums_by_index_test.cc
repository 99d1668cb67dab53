// index_add, scatter_add, linspace and instance_norm against MPFR by other formulas, and runs of models inside their intervals.
//
// ULPSCOPE_ELEMENTS=100000 requests that many elements of each instead of a few.
#include <gmpxx.h>
#include <gtest/gtest.h>
#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <numeric>

#include "oracles/models.h"
#include "oracles/oracle.h"
#include "tests/support/big.h"
#include "tests/support/cases.h"

namespace ulpscope {
namespace {

using testing::Big;
using testing::Integer;
using testing::MakeStep;
using testing::Tensor;

constexpr int64_t kIndexLines = 4, kPlaces = 7;

/// The extent that gives every value as many elements as are requested.
int64_t Extent() {
  const char* asked = std::getenv("ULPSCOPE_ELEMENTS");
  return asked == nullptr ? 5 : (std::atoll(asked) + kIndexLines - 1) / kIndexLines;
}

struct IndexedInputs {
  Case c;
  std::map<std::string, TensorData> in;
  int64_t n = 0;

  double At(const char* name, int64_t i) const { return in.at(name).At(i); }
  int64_t Index(int64_t i) const { return static_cast<int64_t>(At("index", i)); }
  int64_t Spot(int64_t i) const { return static_cast<int64_t>(At("spots", i)); }
};

/// x [kLines, n]; rows of kPlaces are added to it, by one index for all lines or one for each; w [3, kLines, n] has channels.
IndexedInputs MakeIndexed(DType dtype, int64_t n) {
  IndexedInputs made;
  made.n = n;
  Case& c = made.c;
  c.id = "test/sums_by_index";
  c.tensors = {Tensor("x", dtype, {kIndexLines, n}),
               Tensor("xt", dtype, {n, kIndexLines}),
               Tensor("source", dtype, {kIndexLines, kPlaces}),
               Tensor("st", dtype, {kPlaces, kIndexLines}),
               Tensor("w", dtype, {1, kIndexLines, n}),
               Tensor("weight", dtype, {kIndexLines}),
               Tensor("bias", dtype, {kIndexLines})};
  made.in = testing::NormalInputs(c, 41);
  c.tensors.push_back(Tensor("index", DType::kInt64, {kPlaces}));
  c.tensors.push_back(Tensor("spots", DType::kInt64, {kIndexLines, kPlaces}));
  TensorData index = TensorData::Zeros(DType::kInt64, {kPlaces}),
             spots = TensorData::Zeros(DType::kInt64, {kIndexLines, kPlaces});
  for (int64_t i = 0; i < kPlaces; ++i) index.Set(i, static_cast<double>(i * i % std::min<int64_t>(n, 4)));
  for (int64_t i = 0; i < spots.size(); ++i)
    spots.Set(i, static_cast<double>(i * 3 % std::min<int64_t>(n, 5)));
  made.in.emplace("index", std::move(index));
  made.in.emplace("spots", std::move(spots));
  c.program = {
      MakeStep("index_add", {"x", "index", "source"}, "added",
               {{"dim", Integer(1)}, {"alpha", Attr{.value = 0.7}}}),
      MakeStep("index_add", {"xt", "index", "st"}, "rows", {{"dim", Integer(-2)}}),
      MakeStep("scatter_add", {"x", "spots", "source"}, "scattered", {{"dim", Integer(1)}}),
      MakeStep("linspace", {}, "between",
               {{"start", Attr{.value = -0.3}},
                {"end", Attr{.value = 1.7}},
                {"num", Integer(kIndexLines * n)},
                {"dtype", testing::Text(std::string(Name(dtype)))}}),
      MakeStep("instance_norm", {"w", "weight", "bias"}, "normed", {{"eps", Attr{.value = 0x1p-10}}})};
  c.observe = {"added", "rows", "scattered", "between", "normed"};
  return made;
}

/// Sum of what is given at the places that name `place`, by `named` and `given`.
Big Given(int64_t place, const std::function<int64_t(int64_t)>& named,
          const std::function<double(int64_t)>& given) {
  Big sum;
  for (int64_t i = 0; i < kPlaces; ++i) sum = named(i) == place ? sum + given(i) : sum;
  return sum;
}

std::map<std::string, std::function<Big(int64_t)>> Truth(const IndexedInputs& made) {
  const int64_t n = made.n;
  std::vector<Big> means, variances;
  for (int64_t line = 0; line < kIndexLines; ++line) {
    Big sum, squares;
    for (int64_t j = 0; j < n; ++j) {
      const double w = made.At("w", line * n + j);
      sum = sum + w;
      squares = squares + Big(w) * w;
    }
    const auto count = static_cast<double>(n);
    means.push_back(sum / count);
    variances.push_back(squares / count - sum / count * (sum / count));
  }
  return {
      {"added",
       [&made, n](int64_t i) {
         return Big(made.At("x", i)) +
                Big(0.7) * Given(
                               i % n, [&](int64_t k) { return made.Index(k); },
                               [&](int64_t k) { return made.At("source", i / n * kPlaces + k); });
       }},
      {"rows",
       [&made](int64_t i) {
         return Big(made.At("xt", i)) +
                Given(
                    i / kIndexLines, [&](int64_t k) { return made.Index(k); },
                    [&](int64_t k) { return made.At("st", k * kIndexLines + i % kIndexLines); });
       }},
      {"scattered",
       [&made, n](int64_t i) {
         return Big(made.At("x", i)) + Given(
                                           i % n, [&](int64_t k) { return made.Spot(i / n * kPlaces + k); },
                                           [&](int64_t k) { return made.At("source", i / n * kPlaces + k); });
       }},
      {"between",
       [n](int64_t i) {
         return Big(-0.3) +
                (Big(1.7) - Big(-0.3)) * static_cast<double>(i) / static_cast<double>(kIndexLines * n - 1);
       }},
      {"normed",
       [&made, n, means, variances](int64_t i) {
         const auto line = static_cast<size_t>(i / n);
         return (Big(made.At("w", i)) - means[line]) / (variances[line] + Big(0x1p-10)).Apply(mpfr_sqrt) *
                    made.At("weight", i / n) +
                made.At("bias", i / n);
       }},
  };
}

class SumsByIndex : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Dtypes, SumsByIndex,
                         ::testing::Values(DType::kFloat64, DType::kFloat32, DType::kBfloat16),
                         [](const auto& dtype) { return std::string(Name(dtype.param)); });

TEST_P(SumsByIndex, ReferencesAgreeWithMpfrByOtherFormulas) {
  const IndexedInputs made = MakeIndexed(GetParam(), Extent());
  const auto oracle = OpenCaseOracle(made.c, made.in);
  ASSERT_TRUE(oracle);
  int64_t checked = 0;
  for (const auto& [name, formula] : Truth(made)) {
    const auto shape = (*oracle)->Describe(name);
    ASSERT_TRUE(shape) << name << ": " << (shape ? "" : shape.error().Text());
    EXPECT_EQ(shape->declared, GetParam()) << name;
    std::vector<int64_t> elements(static_cast<size_t>(ElementCount(shape->shape)));
    std::iota(elements.begin(), elements.end(), 0);
    const auto references = (*oracle)->References(name, elements);
    for (const int64_t i : elements) {
      const Reference& reference = references[static_cast<size_t>(i)];
      const mpq_class off = formula(i).Rational() - mpq_class(reference.hi) - mpq_class(reference.lo);
      ASSERT_NE(reference.kind, ReferenceKind::kUndecided) << name << i;
      ASSERT_LE(abs(off), mpq_class(reference.err) + mpq_class(0x1p-400)) << name << "[" << i << "]";
      ASSERT_LE(reference.err, (std::fabs(reference.hi) + 1) * 0x1p-80) << name;
      ++checked;
    }
  }
  EXPECT_EQ(checked, 5 * kIndexLines * Extent());
}

TEST_P(SumsByIndex, EveryRunOfAModelLiesInItsInterval) {
  if (GetParam() == DType::kFloat64) GTEST_SKIP() << "the narrower ones have more models";
  const IndexedInputs made = MakeIndexed(GetParam(), 5);
  const auto oracle = OpenCaseOracle(made.c, made.in);
  ASSERT_TRUE(oracle);
  const std::vector<int64_t> elements{0, 1, 2, 3, 7, 9, 12, 15, 19};
  int64_t checked = 0;
  for (const auto& name : made.c.observe) {
    PrecisionModel model;
    const auto truth = TrueModel(made.c, name, model, GetParam());
    ASSERT_TRUE(truth);
    const auto bank = (*oracle)->Bank(name, GetParam());
    const auto found =
        std::find_if(bank.begin(), bank.end(), [&](const auto& one) { return one->model() == *truth; });
    ASSERT_NE(found, bank.end()) << name << " " << truth->Name();
    const auto orders = static_cast<int>((*found)->orders().size());
    for (int order = 0; order < orders; order += std::max(1, orders / 6)) {
      const auto run = (*found)->Simulate(order, elements);
      for (size_t i = 0; i < elements.size(); ++i) {
        const Interval range = (*found)->Enclose(elements[i]);
        const double stored = (*found)->Store(run[i]);
        ASSERT_TRUE(range.Holds(stored))
            << name << "[" << i << "] " << stored << " of " << range.lo << " .. " << range.hi;
        ASSERT_LT(range.hi - range.lo, 0.25) << name << " says nothing";
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 90);
}

}  // namespace
}  // namespace ulpscope
