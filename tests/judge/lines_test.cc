// What lines of a softmax or a norm err by as one, and what their elements err by alone: planted faults of a few units.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "harness/base/hash.h"
#include "harness/judge/classify.h"
#include "harness/num/float_format.h"
#include "oracles/oracle.h"
#include "tests/support/cases.h"

namespace ulpscope {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kManyLines = 40, kLineColumns = 64;

double In(int bits, double value) {
  const int exponent = std::ilogb(value);
  const double quantum = std::ldexp(1.0, exponent - bits + 1);
  return std::nearbyint(value / quantum) * quantum;
}

struct ProgramOfLines {
  Case c;
  std::map<std::string, TensorData> inputs;
  const TensorData& x() const { return inputs.at("x"); }

  Classification Judge(const TensorData& y) const {
    auto oracle = OpenCaseOracle(c, inputs);
    EXPECT_TRUE(oracle);
    return ClassifyValue(**oracle, "y", y);
  }
};

ProgramOfLines MakeProgram(const std::string& op, double scale) {
  ProgramOfLines made;
  made.c.id = op;
  made.c.tensors.push_back(testing::Tensor("x", DType::kFloat32, {kManyLines, kLineColumns}));
  Step step = op == "softmax" ? testing::MakeStep(op, {"x"}, "y", {{"dim", testing::Integer(1)}})
                              : testing::MakeStep(op, {"x"}, "y",
                                                  {{"normalized_shape", testing::Integers({kLineColumns})}});
  if (op == "layer_norm") step.attrs["eps"] = Attr{.value = 1e-5};
  made.c.program = {step};
  made.c.observe = {"y"};
  made.inputs = testing::NormalInputs(made.c, 7);
  TensorData& x = made.inputs.at("x");
  for (int64_t i = 0; i < x.size(); ++i) x.Set(i, static_cast<float>(scale * x.At(i)));
  return made;
}

using Change = std::function<double(double)>;
double Nothing(double value) { return value; }

/// In float32, in four lanes.
float SumOf(const std::function<float(int64_t)>& term) {
  float lanes[4] = {0, 0, 0, 0};
  for (int64_t i = 0; i < kLineColumns; ++i) lanes[i % 4] += term(i);
  return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

TensorData Softmax(const TensorData& x, const Change& exp = Nothing, const Change& total = Nothing) {
  TensorData y = TensorData::Zeros(DType::kFloat32, x.shape);
  for (int64_t r = 0; r < kManyLines; ++r) {
    double top = -INFINITY;
    for (int64_t i = 0; i < kLineColumns; ++i) top = std::max(top, x.At(r * kLineColumns + i));
    const auto e = [&](int64_t i) {
      return static_cast<float>(exp(static_cast<float>(
          std::exp(static_cast<double>(static_cast<float>(x.At(r * kLineColumns + i) - top))))));
    };
    const auto sum = static_cast<float>(total(SumOf(e)));
    for (int64_t i = 0; i < kLineColumns; ++i) y.Set(r * kLineColumns + i, e(i) / sum);
  }
  return y;
}

TensorData LayerNorm(const TensorData& x, bool eps_beside_the_root, const Change& kept = Nothing) {
  TensorData y = TensorData::Zeros(DType::kFloat32, x.shape);
  for (int64_t r = 0; r < kManyLines; ++r) {
    const auto at = [&](int64_t i) { return static_cast<float>(x.At(r * kLineColumns + i)); };
    const float mean = SumOf(at) / static_cast<float>(kLineColumns);
    const auto centred = [&](int64_t i) { return at(i) - mean; };
    const float variance =
        SumOf([&](int64_t i) { return centred(i) * centred(i); }) / static_cast<float>(kLineColumns);
    const float root = eps_beside_the_root ? std::sqrt(variance) + 1e-5F : std::sqrt(variance + 1e-5F);
    const auto rstd = static_cast<float>(kept(1 / root));
    for (int64_t i = 0; i < kLineColumns; ++i) y.Set(r * kLineColumns + i, centred(i) * rstd);
  }
  return y;
}

std::string Said(const Classification& found) { return JoinTexts(found.says) + found.label; }

TEST(LinesOfAnOp, HonestOnesAreNotDoubted) {
  const ProgramOfLines softmax = MakeProgram("softmax", 1), norm = MakeProgram("layer_norm", 8);
  for (const Classification& found :
       {softmax.Judge(Softmax(softmax.x())), norm.Judge(LayerNorm(norm.x(), false))}) {
    EXPECT_TRUE(found.fits) << Said(found);
    EXPECT_TRUE(found.says.empty()) << Said(found);
  }
}

TEST(LinesOfAnOp, RowsThatAreAllTheSameAreOneObservation) {
  ProgramOfLines same = MakeProgram("layer_norm", 1);
  TensorData& x = same.inputs.at("x");
  for (int64_t i = 0; i < x.size(); ++i) x.Set(i, x.At(i % kLineColumns));
  const Classification found = same.Judge(LayerNorm(x, false));
  EXPECT_TRUE(found.fits) << Said(found);
}

// Five units of a float32 softmax, within what libraries' exponentials are off by: the numbers themselves tell.
TEST(LinesOfAnOp, ExponentialsInFewBitsAreToldByTheirErrors) {
  const ProgramOfLines softmax = MakeProgram("softmax", 1);
  for (const int bits : {20, 22}) {
    const Classification found =
        softmax.Judge(Softmax(softmax.x(), [bits](double e) { return In(bits, e); }));
    EXPECT_FALSE(found.fits);
    EXPECT_THAT(Said(found),
                HasSubstr("as if exp inside were rounded to " + std::to_string(bits) + " significant bits"));
  }
}

TEST(LinesOfAnOp, AFactorThatAllLinesShareIsNoOrdersDoing) {
  const ProgramOfLines softmax = MakeProgram("softmax", 1);
  const Classification found =
      softmax.Judge(Softmax(softmax.x(), Nothing, [](double total) { return total * (1 + 2e-6); }));
  EXPECT_FALSE(found.fits);
  EXPECT_THAT(Said(found),
              HasSubstr("as if total inside were too large in 40 of 40 rows, by 2.0e-06 of itself"));
}

// Two units of 2^-23, where a library's reciprocal may be off by one and a half to either side: all lines to one side are not.
TEST(LinesOfAnOp, AFewUnitsToOneSideInAllLinesAreTold) {
  const ProgramOfLines softmax = MakeProgram("softmax", 1);
  const auto judge = [&](double factor) {
    return softmax.Judge(Softmax(softmax.x(), Nothing, [factor](double total) { return total * factor; }));
  };
  EXPECT_THAT(Said(judge(1 + 3.2e-7)), HasSubstr("as if total inside were too large in 40 of 40 rows"));
  const Classification half = judge(1 + 3e-8);
  EXPECT_TRUE(half.fits) << Said(half);
}

TEST(LinesOfAnOp, EpsBesideTheRootMakesEveryDeviationTooLarge) {
  const ProgramOfLines norm = MakeProgram("layer_norm", 8);
  double due = 0;
  for (int64_t r = 0; r < kManyLines; ++r) {
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < kLineColumns; ++i) mean += norm.x().At(r * kLineColumns + i) / kLineColumns;
    for (int64_t i = 0; i < kLineColumns; ++i)
      variance += std::pow(norm.x().At(r * kLineColumns + i) - mean, 2) / kLineColumns;
    const float root = std::sqrt(static_cast<float>(variance)) + 1e-5F;  // not all of eps is left beside it
    due += (1 - std::sqrt(variance + 1e-5) / root) / kManyLines;
  }
  const Classification found = norm.Judge(LayerNorm(norm.x(), true));
  EXPECT_FALSE(found.fits);
  EXPECT_THAT(
      Said(found),
      HasSubstr(fmt::format("as if rstd inside were too small in 40 of 40 rows, by {:.1e} of itself", due)));
}

TEST(LinesOfAnOp, AnInverseDeviationInFewBits) {
  const ProgramOfLines norm = MakeProgram("layer_norm", 1);
  const Classification found =
      norm.Judge(LayerNorm(norm.x(), false, [](double rstd) { return In(20, rstd); }));
  EXPECT_FALSE(found.fits);
  EXPECT_THAT(Said(found), HasSubstr("as if rstd inside were rounded to 20 significant bits"));
}

// Rows off to either side alike have no bias; each is off by far more than an order of its sum makes it.
TEST(LinesOfAnOp, RowsThatErrBeyondEveryOrderOfTheirSumsAreReported) {
  const ProgramOfLines softmax = MakeProgram("softmax", 1);
  int row = 0;
  const Classification found = softmax.Judge(Softmax(
      softmax.x(), Nothing, [&row](double total) { return total * (1 + (row++ % 2 == 0 ? 2e-6 : -2e-6)); }));
  EXPECT_FALSE(found.fits);
  EXPECT_THAT(Said(found), HasSubstr("whole rows err as if total inside were off by 2.0e-06 of itself"));
}

TEST(LinesOfAnOp, ARowThatErrsBeyondEveryOrderOfItsSumIsReported) {
  const ProgramOfLines softmax = MakeProgram("softmax", 1);
  int row = 0;
  const Classification found = softmax.Judge(
      Softmax(softmax.x(), Nothing, [&row](double total) { return total * (row++ == 7 ? 1 + 1.2e-6 : 1); }));
  EXPECT_FALSE(found.fits);
  EXPECT_THAT(Said(found), HasSubstr("1 of 40 rows err as if total inside were off by up to"));
}

/// `y`, where some elements, one in `one_in`, are off by up to so many units of 2^-23 of themselves.
TensorData WithErrors(TensorData y, double units, int64_t one_in) {
  for (int64_t i = 0; i < y.size(); i += one_in) {
    const double share = static_cast<double>(MixBits(static_cast<uint64_t>(i) + 5) >> 11) * 0x1p-52 - 1;
    y.Set(i, static_cast<float>(y.At(i) * (1 + share * units * 0x1p-23)));
  }
  return y;
}

TEST(LinesOfAnOp, ElementsOfANormThatErrBesideTheirRowsAreReported) {
  const ProgramOfLines norm = MakeProgram("layer_norm", 1);
  const Classification found = norm.Judge(WithErrors(LayerNorm(norm.x(), false), 16, 1));
  EXPECT_FALSE(found.fits);
  EXPECT_THAT(Said(found), HasSubstr("apart from the error that rows share, elements are off by"));
}

TEST(LinesOfAnOp, SingleElementsThatErrBesideTheirRowsAreReported) {
  const ProgramOfLines softmax = MakeProgram("softmax", 1);
  const Classification found = softmax.Judge(WithErrors(Softmax(softmax.x()), 60, 640));
  EXPECT_FALSE(found.fits);
  EXPECT_THAT(Said(found), HasSubstr("of 2560 elements are off by up to"));
}

TEST(LinesOfAnOp, ElementsOfALineShareItsSumsAndMoveWithThem) {
  for (const int64_t dim : {0, 1}) {
    ProgramOfLines softmax = MakeProgram("softmax", 1);
    softmax.c.program[0].attrs["dim"] = testing::Integer(dim);
    auto oracle = OpenCaseOracle(softmax.c, softmax.inputs);
    ASSERT_TRUE(oracle);
    const std::vector<int64_t> elements{0, 1, kLineColumns, kLineColumns + 1};
    const auto lines = (*oracle)->LinesOf("y", elements);
    EXPECT_EQ(lines[0] == lines[1], dim == 1);
    EXPECT_EQ(lines[0] == lines[2], dim == 0);
    EXPECT_NE(lines[0], lines[3]);
    const auto steps = (*oracle)->MovesOfSteps("y", elements, WhichSteps::kShared);
    const auto total = std::find_if(steps.begin(), steps.end(),
                                    [](const MovingStep& step) { return step.name == "y.total"; });
    ASSERT_NE(total, steps.end());
    const auto exact = (*oracle)->References("y", elements);
    // y = e / total: its derivative by the logarithm of the total is -y.
    for (size_t i = 0; i < elements.size(); ++i)
      EXPECT_NEAR(total->moves[i], -exact[i].hi, 1e-5 * exact[i].hi);
  }
}

}  // namespace
}  // namespace ulpscope
