// Sums that no bank lists: orders that hang on their terms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "harness/casefile/generate.h"
#include "harness/casefile/load.h"
#include "harness/judge/classify.h"
#include "oracles/oracle.h"
#include "tests/judge/make.h"

namespace ulpscope {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr int64_t kLines = 64, kTerms = 100;

/// Lines of float32 numbers whose sums are classified as somebody computed them.
class Unlisted : public ::testing::Test {
 protected:
  void SetUp() override {
    LoadResult loaded = LoadCaseText(
        "cases:\n  - name: c\n    tensors: {x: {dtype: float32, shape: [64, 100], fill: normal}}\n"
        "    program: [{op: sum, of: [x], dim: -1, as: y}]\n    observe: [y]\n"
        "    contract: {status: unspecified, accept: any}\n",
        "test", "t", {});
    ASSERT_TRUE(loaded.errors.empty());
    auto inputs = MakeInputs(loaded.cases[0], 0);
    ASSERT_TRUE(inputs);
    x_ = inputs->at("x");
    auto oracle = OpenCaseOracle(loaded.cases[0], *inputs);
    ASSERT_TRUE(oracle);
    oracle_ = std::move(*oracle);
  }

  std::vector<float> Line(int64_t line) const {
    std::vector<float> terms;
    for (int64_t k = 0; k < kTerms; ++k) terms.push_back(static_cast<float>(x_.At(line * kTerms + k)));
    return terms;
  }
  /// From the most negative term up.
  std::vector<double> Ascending() const {
    std::vector<double> sums;
    for (int64_t line = 0; line < kLines; ++line) {
      std::vector<float> terms = Line(line);
      std::ranges::sort(terms);
      float sum = 0;
      for (const float term : terms) sum += term;
      sums.push_back(sum);
    }
    return sums;
  }
  Classification Classified(const std::vector<double>& sums) const {
    return ClassifyValues(*oracle_, {{"y", testing::Tensor(DType::kFloat32, {kLines}, sums)}}, {}).at("y");
  }

  TensorData x_;
  std::unique_ptr<CaseOracle> oracle_;
};

bool Names(const Classification& one, const std::string& acc) {
  return std::ranges::any_of(one.models,
                             [&](const PrecisionModel& model) { return AccWord(model.acc) == acc; });
}

TEST_F(Unlisted, SumsOfSortedTermsAreFloat32) {
  const Classification sorted = Classified(Ascending());
  EXPECT_TRUE(Names(sorted, "float32")) << sorted.label;
  EXPECT_THAT(TextsOf(sorted.notes), Contains(HasSubstr("from the most negative term up")));
}

TEST_F(Unlisted, OneResultThatIsNotSuchASumIsEnough) {
  for (const size_t at : {size_t{5}, size_t{63}}) {
    std::vector<double> sums = Ascending();
    const auto before = static_cast<float>(sums[at]);
    sums[at] = std::nextafter(before, 2 * before);
    const Classification one = Classified(sums);
    EXPECT_FALSE(Names(one, "float32")) << at << ": " << one.label;
  }
  std::vector<double> gone = Ascending();
  gone[7] = std::nan("");
  EXPECT_FALSE(Names(Classified(gone), "float32")) << "a NaN is no order's doing";
}

}  // namespace
}  // namespace ulpscope
