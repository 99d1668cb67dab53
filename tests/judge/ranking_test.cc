// Which models stay likely beside the true one, and which do not: results whose arithmetic anyone can read here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <string>

#include "harness/words/facets.h"
#include "tests/judge/products.h"

namespace ulpscope {
namespace {

using testing::ClassifyProduct;
using ::testing::Contains;
using testing::Either;
using testing::ExactSum;
using testing::ProductsOf;
using testing::ShuffledSum;
using testing::Terms;

double InFloat32(double x) { return RoundTo(x, Binary32()); }

double FromFirstToLast(const Terms& terms) {
  double sum = 0;
  for (const double term : terms) sum = InFloat32(sum + term);
  return sum;
}

bool AnyModel(const Classification& found, const std::function<bool(const PrecisionModel&)>& what) {
  return std::ranges::any_of(found.models, what);
}

bool IsNarrow(const PrecisionModel& model) { return model.acc.bits() <= Binary16().precision; }

PrecisionModel WithProducts(PrecisionModel model, const RoundSpec& products) {
  model.prod = products;
  return model;
}

// Sums in 26 bits, rounded to either neighbour: no order tried gives the bits. By errors alone products may have been rounded
// to float32 or not.
TEST(Ranking, AnUntestedOrderDoesNotTellWhetherProductsWereRounded) {
  for (const int bits : {26, 27, 28}) {
    const auto found =
        ClassifyProduct({.read = DType::kFloat32}, [bits](const Terms& row, const Terms& column, int64_t i) {
          double sum = 0;
          int64_t number = i * 64;
          for (const double product : ProductsOf(row, column))
            sum = Either(sum + product, FormatOfBits(bits), number++);
          return InFloat32(sum);
        });
    ASSERT_FALSE(found.models.empty()) << found.label;
    for (const PrecisionModel& model : found.models) {
      if (!model.in.empty()) continue;
      if (model.prod.none()) {
        EXPECT_THAT(found.models, Contains(WithProducts(model, ToNearest(Binary32()))))
            << bits << " " << model.Name();
      } else if (model.prod.rounds_to(Binary32())) {
        EXPECT_THAT(found.models, Contains(WithProducts(model, {}))) << bits << " " << model.Name();
      }
    }
  }
}

// Within float16's range few results tell products in 11 bits of its range from those of float32's.
TEST(Ranking, ProductsInElevenBitsMayHaveEitherRange) {
  const auto found = ClassifyProduct({}, [](const Terms& row, const Terms& column, int64_t) {
    return FromFirstToLast(
        ProductsOf(row, column, [](double product) { return RoundTo(product, FormatOfBits(11)); }));
  });
  EXPECT_TRUE(AnyModel(found, [](const PrecisionModel& model) { return model.prod == ToBits(11); }))
      << found.label;
  EXPECT_TRUE(AnyModel(found, [](const PrecisionModel& model) { return model.prod.rounds_to(Binary16()); }))
      << found.label;
}

// An exact sum that is stored as either neighbour errs no more than a float32 sum of as many terms does.
TEST(Ranking, AnOutputToEitherNeighbourMayErrAsFloat32SumsDo) {
  const auto found = ClassifyProduct({}, [](const Terms& row, const Terms& column, int64_t i) {
    return Either(ExactSum(ProductsOf(row, column)), Binary32(), i);
  });
  EXPECT_TRUE(AnyModel(found, [](const PrecisionModel& model) {
    return model.out.faithful && model.acc.exact();
  })) << found.label;
  EXPECT_TRUE(AnyModel(found, [](const PrecisionModel& model) { return model.acc == SumsIn(Binary32()); }))
      << found.label;
}

// An operand in 21 bits moves the results by less than the worst order of a float32 sum does.
TEST(Ranking, AnOperandInTwentyOneBitsIsNamedBesideAFloat32Sum) {
  const auto found =
      ClassifyProduct({.read = DType::kFloat32}, [](const Terms& row, const Terms& column, int64_t) {
        Terms products;
        for (size_t k = 0; k < row.size(); ++k)
          products.push_back(RoundTo(row[k], FormatOfBits(21)) * column[k]);
        return ShuffledSum(products, Binary32());
      });
  EXPECT_TRUE(AnyModel(found, [](const PrecisionModel& model) {
    const auto in = model.in.find("a");
    return in != model.in.end() && in->second.bits() == 21;
  })) << found.label;
}

// Of 64 numbers that are rounded to 22 bits some lie half-way: which way these went no errors tell.
TEST(Ranking, AnUntestedOrderDoesNotTellWhichWayTiesOfAnOperandGo) {
  const auto found =
      ClassifyProduct({.read = DType::kFloat32}, [](const Terms& row, const Terms& column, int64_t) {
        Terms products;
        for (size_t k = 0; k < row.size(); ++k)
          products.push_back(RoundTo(row[k], FormatOfBits(22)) * column[k]);
        return ShuffledSum(products, Binary32());
      });
  for (const Rounding rounding : {Rounding::kNearestEven, Rounding::kNearestAway}) {
    EXPECT_TRUE(AnyModel(found, [rounding](const PrecisionModel& model) {
      const auto in = model.in.find("a");
      return in != model.in.end() && in->second.bits() == 22 && in->second.rounding == rounding;
    })) << found.label;
  }
}

// An operand of bfloat16 numbers in 6 bits errs as much as a bfloat16 sum does. Its bits tell, not the size of its errors.
TEST(Ranking, AnOperandInSixBitsIsNoBfloat16Sum) {
  const auto found = ClassifyProduct({.stored = DType::kBfloat16, .terms = 16},
                                     [](const Terms& row, const Terms& column, int64_t) {
                                       Terms products;
                                       for (size_t k = 0; k < row.size(); ++k)
                                         products.push_back(RoundTo(row[k], FormatOfBits(6)) * column[k]);
                                       return RoundTo(ShuffledSum(products, Binary32()), Bfloat16());
                                     });
  ASSERT_TRUE(found.fits) << found.label;
  for (const PrecisionModel& model : found.models) {
    const auto in = model.in.find("a");
    EXPECT_TRUE(in != model.in.end() && in->second.bits() == 6) << model.Name();
  }
}

/// Eight lanes of float32, joined by halves, each addition cut.
double CutInLanes(Terms lanes) {
  for (double& lane : lanes) lane = RoundTo(lane, Binary32(), Rounding::kTowardZero);
  for (size_t left = lanes.size() / 2; left > 0; left /= 2) {
    for (size_t i = 0; i < left; ++i)
      lanes[i] = RoundTo(TwoSum(lanes[i], lanes[i + left]), Binary32(), Rounding::kTowardZero);
  }
  return lanes[0];
}

// Three products of tf32 pieces, their sums cut: few terms leave errors of a size that sums to nearest leave as well. No
// order of these gives the bits.
TEST(Ranking, FewTermsOfSplitOperandsNameNoSumToNearestByTheirErrors) {
  for (const uint64_t seed : {1, 3, 5}) {
    const auto found = ClassifyProduct({.read = DType::kFloat32, .terms = 8, .seed = seed},
                                       [](const Terms& row, const Terms& column, int64_t) {
                                         std::array<Terms, 3> parts;
                                         const auto high = [](double x) { return RoundTo(x, Tf32()); };
                                         for (size_t k = 0; k < row.size(); ++k) {
                                           const double a = high(row[k]), b = high(column[k]);
                                           parts[0].push_back(high(row[k] - a) * b);
                                           parts[1].push_back(a * high(column[k] - b));
                                           parts[2].push_back(a * b);
                                         }
                                         double sum = 0;
                                         for (const Terms& part : parts)
                                           sum = InFloat32(sum + CutInLanes(part));
                                         return sum;
                                       });
    EXPECT_FALSE(AnyModel(found, [](const PrecisionModel& model) {
      return model.acc == SumsIn(Binary32()) &&
             std::ranges::any_of(model.in, [](const auto& in) { return in.second.pieces > 1; });
    })) << found.label;
  }
}

// Six results, rounded once to ten bits: sums that are rounded to float16, which has eleven, give them too.
TEST(Ranking, AFewResultsInTenBitsMayHaveBeenRoundedToTen) {
  const auto found = ClassifyProduct({.rows = 3, .terms = 3, .columns = 2},
                                     [](const Terms& row, const Terms& column, int64_t) {
                                       return RoundTo(ExactSum(ProductsOf(row, column)), FormatOfBits(10));
                                     });
  for (const RoundSpec& rounding : {ToBits(10), ToNearest(Binary16())}) {
    EXPECT_TRUE(AnyModel(found, [&](const PrecisionModel& model) { return model.mid == rounding; }))
        << found.label;
  }
}

/// Means of 64 rows of bfloat16 numbers, summed in float32.
Classification MeansOfRows(uint64_t seed) {
  constexpr int64_t kRows = 64, kColumns = 64;
  Case c;
  c.id = "mean";
  c.tensors.push_back(testing::Tensor("x", DType::kBfloat16, {kRows, kColumns}));
  c.program = {testing::MakeStep("mean", {"x"}, "y", {{"dim", testing::Integers({1})}})};
  c.observe = {"y"};
  const auto inputs = testing::NormalInputs(c, seed);
  TensorData y = TensorData::Zeros(DType::kBfloat16, {kRows});
  for (int64_t r = 0; r < kRows; ++r) {
    Terms row;
    for (int64_t i = 0; i < kColumns; ++i) row.push_back(inputs.at("x").At(r * kColumns + i));
    y.Set(r, RoundTo(InFloat32(FromFirstToLast(row) / kColumns), Bfloat16()));
  }
  const auto oracle = OpenCaseOracle(c, inputs);
  return ClassifyValue(**oracle, "y", y);
}

TEST(Ranking, AMeanStoredInBfloat16WasNotSummedInFloat16) {
  for (const uint64_t seed : {1, 2, 3}) {
    const auto found = MeansOfRows(seed);
    EXPECT_TRUE(AnyModel(found, [](const PrecisionModel& model) { return model.acc == SumsIn(Binary32()); }))
        << found.label;
    EXPECT_FALSE(AnyModel(found, IsNarrow)) << found.label;
  }
}

/// layer_norm in float32, in two passes from the first element to the last, of four rows of eight numbers.
Classification NormOfFourRows(uint64_t seed) {
  Case c;
  c.id = "norm";
  c.tensors.push_back(testing::Tensor("x", DType::kFloat32, {4, 8}));
  Step norm = testing::MakeStep("layer_norm", {"x"}, "y", {{"normalized_shape", testing::Integers({8})}});
  norm.attrs["eps"] = Attr{.value = 1e-5};
  c.program = {norm};
  c.observe = {"y"};
  auto inputs = testing::NormalInputs(c, seed);
  TensorData& x = inputs.at("x");
  TensorData y = TensorData::Zeros(DType::kFloat32, {4, 8});
  for (int64_t r = 0; r < 4; ++r) {
    Terms row;
    for (int64_t i = 0; i < 8; ++i) row.push_back(x.At(r * 8 + i));
    const double mean = InFloat32(FromFirstToLast(row) / 8);
    Terms squares;
    for (double& one : row) {
      one = InFloat32(one - mean);
      squares.push_back(InFloat32(one * one));
    }
    const double variance = InFloat32(FromFirstToLast(squares) / 8),
                 root = InFloat32(std::sqrt(InFloat32(variance + 1e-5F)));
    const double rstd = InFloat32(1 / root);
    for (int64_t i = 0; i < 8; ++i) y.Set(r * 8 + i, InFloat32(row[static_cast<size_t>(i)] * rstd));
  }
  const auto oracle = OpenCaseOracle(c, inputs);
  return ClassifyValue(**oracle, "y", y);
}

// Which way the last bits of a norm lean is the doing of its form: a sum that is cut is no explanation of them.
TEST(Ranking, ANormOfAFewRowsIsNotTakenForTruncatingSums) {
  for (const uint64_t seed : {1, 2, 3}) {
    const auto found = NormOfFourRows(seed);
    EXPECT_TRUE(AnyModel(found, [](const PrecisionModel& model) { return model.acc == SumsIn(Binary32()); }))
        << found.label;
    EXPECT_FALSE(AnyModel(found, [](const PrecisionModel& model) {
      return model.acc == SumsIn(Binary32(), Rounding::kTowardZero);
    })) << found.label;
  }
}

// Elements of a row share what its sums are off by: 32 elements of four rows are four observations of the sums, which leave
// other sums as likely.
TEST(Ranking, ANormOfAFewRowsMayHaveCompensatedSums) {
  for (const uint64_t seed : {3, 5, 6, 11}) {
    const auto found = NormOfFourRows(seed);
    for (const char* sums : {"float32", "compensated"})
      EXPECT_TRUE(AnyModel(found, [sums](const PrecisionModel& model) { return AccWord(model.acc) == sums; }))
          << found.label;
  }
}

// The sample, half of the elements, is what sums in float16 give as well: the other half is not.
TEST(Ranking, MoreElementsThanTheSampleTellSumsInFloat16) {
  for (const uint64_t seed : {1, 3}) {
    const auto found = ClassifyProduct({.stored = DType::kBfloat16, .terms = 6, .seed = seed},
                                       [](const Terms& row, const Terms& column, int64_t) {
                                         return RoundTo(FromFirstToLast(ProductsOf(row, column)), Bfloat16());
                                       });
    EXPECT_TRUE(AnyModel(found, [](const PrecisionModel& model) { return model.acc == SumsIn(Binary32()); }))
        << found.label;
    EXPECT_FALSE(AnyModel(found, IsNarrow)) << found.label;
  }
}

}  // namespace
}  // namespace ulpscope
