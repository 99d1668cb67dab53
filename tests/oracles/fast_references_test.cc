// The fast path inside the oracle: what it takes over, how much of it is compared with Boost, and that a
// fault is found.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "oracles/fast/agree.h"
#include "oracles/oracle.h"
#include "tests/support/cases.h"

namespace ulpscope {
namespace {

using testing::MakeStep;
using testing::Tensor;

std::vector<int64_t> AllElements(int64_t count) {
  std::vector<int64_t> elements(static_cast<size_t>(count));
  std::iota(elements.begin(), elements.end(), 0);
  return elements;
}

struct Both {
  std::vector<Reference> fast, boost;
  OracleCounts counts, boost_counts;
};

Both Ask(const Case& c, const std::map<std::string, TensorData>& inputs, const std::string& value,
         const std::vector<int64_t>& elements) {
  Both both;
  auto fast = OpenCaseOracle(c, inputs);
  auto boost = OpenCaseOracle(c, inputs, {.engine = OracleEngine::kBoost, .plant_fault = {}});
  EXPECT_TRUE(fast && boost);
  both.fast = (*fast)->References(value, elements);
  both.boost = (*boost)->References(value, elements);
  both.counts = (*fast)->Counts();
  both.boost_counts = (*boost)->Counts();
  return both;
}

void ExpectAgreement(const Both& both, size_t count) {
  ASSERT_EQ(both.fast.size(), count);
  ASSERT_EQ(both.boost.size(), count);
  for (size_t i = 0; i < count; ++i)
    EXPECT_TRUE(fast::Agree(both.fast[i], both.boost[i])) << i << "\n"
                                                          << fast::Describe(both.fast[i]) << "\n"
                                                          << fast::Describe(both.boost[i]);
}

TEST(FastReferences, SmallValuesAreComparedAsAWhole) {
  for (const DType dtype :
       {DType::kFloat64, DType::kFloat32, DType::kBfloat16, DType::kFloat16, DType::kFloat8E4m3fn}) {
    const Case c = testing::MatmulCase(dtype, dtype, 9, 21, 11);
    const Both both = Ask(c, testing::NormalInputs(c, 1), "product", AllElements(99));
    ExpectAgreement(both, 99);
    EXPECT_EQ(both.counts.fast, 99);
    EXPECT_EQ(both.counts.compared, 99);
    EXPECT_EQ(both.counts.boost, 0);
    EXPECT_EQ(both.boost_counts.fast, 0);
    EXPECT_EQ(both.boost_counts.boost, 99);
  }
}

TEST(FastReferences, OfLargeValuesOneInAThousandIsCompared) {
  const Case c = testing::MatmulCase(DType::kBfloat16, DType::kBfloat16, 128, 64, 160);
  auto oracle = OpenCaseOracle(c, testing::NormalInputs(c, 2));
  (*oracle)->References("product", AllElements(500));
  const OracleCounts counts = (*oracle)->Counts();
  EXPECT_EQ(counts.fast, 128 * 160);
  EXPECT_GE(counts.compared, 10);
  EXPECT_LE(counts.compared, 40);
}

TEST(FastReferences, AFewElementsOfAHugeValueAreLeftToBoost) {
  const Case c = testing::MatmulCase(DType::kFloat32, DType::kFloat32, 300, 3, 300);
  auto oracle = OpenCaseOracle(c, testing::NormalInputs(c, 2));
  (*oracle)->References("product", AllElements(4));
  EXPECT_EQ((*oracle)->Counts().fast, 0);
  EXPECT_EQ((*oracle)->Counts().boost, 4);
}

TEST(FastReferences, SumsViewsCastsAndWhatIsBuiltOnThem) {
  Case c;
  c.id = "test/sums";
  c.tensors = {Tensor("x", DType::kFloat32, {4, 6, 5}), Tensor("w", DType::kFloat32, {7, 5})};
  c.program = {MakeStep("sum", {"x"}, "s", {{"dim", testing::Integers({1})}}),
               MakeStep("mean", {"x"}, "mean", {{"dim", testing::Integers({2})}}),
               MakeStep("cast", {"x"}, "narrow", {{"dtype", testing::Text("bfloat16")}}),
               MakeStep("cast", {"w"}, "v", {{"dtype", testing::Text("bfloat16")}}),
               MakeStep("linear", {"narrow", "v"}, "y")};
  c.observe = {"s", "mean", "y"};
  const auto inputs = testing::NormalInputs(c, 6);
  const Both sum = Ask(c, inputs, "s", AllElements(20));
  ExpectAgreement(sum, 20);
  EXPECT_EQ(sum.counts.fast, 20);
  const Both mean = Ask(c, inputs, "mean", AllElements(24));
  ExpectAgreement(mean, 24);
  EXPECT_EQ(mean.counts.fast, 24) << "the sum below the division";
  EXPECT_EQ(mean.counts.boost, 24) << "the division itself";
  const Both product = Ask(c, inputs, "y", AllElements(4 * 6 * 7));
  ExpectAgreement(product, 4 * 6 * 7);
  EXPECT_EQ(product.counts.fast, 4 * 6 * 7) << "casts of tensors are exact operands";
}

TEST(FastReferences, BiasAndGradients) {
  Case c;
  c.id = "test/linear";
  c.tensors = {Tensor("x", DType::kBfloat16, {6, 40}, true), Tensor("w", DType::kBfloat16, {5, 40}, true),
               Tensor("b", DType::kBfloat16, {5}, true), Tensor("g", DType::kBfloat16, {6, 5})};
  c.program = {MakeStep("linear", {"x", "w", "b"}, "y"),
               MakeStep("backward", {"y"}, "", {{"grad", testing::Text("g")}})};
  c.observe = {"y", "x.grad", "w.grad", "b.grad"};
  const auto inputs = testing::NormalInputs(c, 4);
  for (const auto& [value, size] :
       std::map<std::string, int64_t>{{"y", 30}, {"x.grad", 240}, {"w.grad", 200}, {"b.grad", 5}}) {
    const Both both = Ask(c, inputs, value, AllElements(size));
    ExpectAgreement(both, static_cast<size_t>(size));
    EXPECT_EQ(both.counts.fast, size) << value;
    EXPECT_EQ(both.counts.compared, size) << value;
  }
}

TEST(FastReferencesDeathTest, APlantedFaultStopsTheProcess) {
  const Case c = testing::MatmulCase(DType::kFloat32, DType::kFloat32, 9, 21, 11);
  const auto inputs = testing::NormalInputs(c, 1);
  const auto run = [&](const std::function<void(int64_t, Reference*)>& fault) {
    auto oracle = OpenCaseOracle(c, inputs, {.engine = OracleEngine::kFast, .plant_fault = fault});
    (*oracle)->References("product", AllElements(99));
  };
  run([](int64_t, Reference*) {});
  const auto wrong_hi = [](int64_t element, Reference* reference) {
    if (element == 42) reference->hi = std::nextafter(reference->hi, HUGE_VAL);
  };
  EXPECT_EXIT(run(wrong_hi), ::testing::ExitedWithCode(3),
              "disagree in case .*value 'product', element 42: fast hi .*Boost hi ");
  const auto wrong_lo = [](int64_t element, Reference* reference) {
    if (element == 7) reference->lo += std::fabs(reference->hi) * 0x1p-60;
  };
  EXPECT_EXIT(run(wrong_lo), ::testing::ExitedWithCode(3), "element 7: fast hi ");
  const auto wrong_kind = [](int64_t element, Reference* reference) {
    if (element == 98) reference->kind = ReferenceKind::kDomain;
  };
  EXPECT_EXIT(run(wrong_kind), ::testing::ExitedWithCode(3), "element 98: .*DOMAIN; Boost ");
}

}  // namespace
}  // namespace ulpscope
