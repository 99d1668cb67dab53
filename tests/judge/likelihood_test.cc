// What likelihood may set aside, and what not: honest sums in orders of their own, and narrow sums that a store all but hides.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

#include "harness/judge/classify.h"
#include "harness/num/error_free.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"
#include "oracles/oracle.h"
#include "tests/support/cases.h"
#include "tests/support/models.h"

namespace ulpscope {
namespace {

/// float32 sums of float32 products in a random tree of their own.
TensorData InRandomTrees(const Case& c, const std::map<std::string, TensorData>& inputs, uint64_t seed) {
  const TensorData &a = inputs.at("a"), &b = inputs.at("b");
  const int64_t m = c.tensors[0].shape[0], k = c.tensors[0].shape[1], n = c.tensors[1].shape[1];
  TensorData product = TensorData::Zeros(DType::kFloat32, {m, n});
  uint64_t state = seed;
  std::vector<std::pair<size_t, size_t>> joins;
  for (auto left = static_cast<size_t>(k); left > 1; --left) {
    state = MixBits(state + kGoldenGamma);
    const size_t first = state % left, second = state / left % (left - 1);
    joins.emplace_back(first, second < first ? second : second + 1);
  }
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      std::vector<float> terms;
      for (int64_t x = 0; x < k; ++x)
        terms.push_back(static_cast<float>(a.At(i * k + x)) * static_cast<float>(b.At(x * n + j)));
      for (const auto& [first, second] : joins) {
        terms[first] += terms[second];
        std::swap(terms[second], terms.back());
        terms.pop_back();
      }
      product.Set(i * n + j, terms[0]);
    }
  }
  return product;
}

bool Holds(const Classification& result, const std::function<bool(const PrecisionModel&)>& what) {
  return std::any_of(result.models.begin(), result.models.end(), what);
}

TEST(Likelihood, AnHonestOrderOfItsOwnIsExplained) {
  // Positive terms: sums grow, and a truncating accumulator, which leans, comes near to their bits.
  const Case c = testing::MatmulCase(DType::kFloat32, DType::kFloat32, 16, 100, 16);
  int explained = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    auto inputs = testing::NormalInputs(c, seed);
    for (auto& [name, data] : inputs) {
      for (int64_t i = 0; i < data.size(); ++i) data.Set(i, std::fabs(data.At(i)));
    }
    const TensorData product = InRandomTrees(c, inputs, seed);
    auto oracle = OpenCaseOracle(c, inputs);
    ASSERT_TRUE(oracle);
    const Classification result = ClassifyValue(**oracle, "product", product);
    explained +=
        Holds(result, [](const PrecisionModel& model) { return AccWord(model.acc) == "float32"; }) ? 1 : 0;
    EXPECT_FALSE(
        Holds(result, [](const PrecisionModel& model) { return AccWord(model.acc) == "float32_rz"; }));
  }
  EXPECT_EQ(explained, 8);
}

// 32 results, four bits short each: what a float32 sum stores by an accident of 2^-128. Terms of very different sizes leave
// bounds that a truncation to 20 bits lies inside of.
TEST(Likelihood, FewResultsThatAllWantBitsAreNoAccident) {
  const Case c = testing::MatmulCase(DType::kBfloat16, DType::kFloat32, 4, 1000, 8);
  constexpr FloatFormat kShort{
      .name = "p20", .precision = 20, .emin = -126, .emax = 127, .max_finite = 0x1.ffffep127};
  for (const uint64_t seed : {8, 10, 13, 15}) {
    auto inputs = testing::NormalInputs(c, seed);
    for (auto& [name, data] : inputs) {
      for (int64_t i = 0; i < data.size(); ++i)
        data.Set(i, std::ldexp(data.At(i),
                               static_cast<int>(MixBits(seed * 7919 + static_cast<uint64_t>(i)) % 40) - 20));
    }
    const TensorData whole = InRandomTrees(c, inputs, seed);
    TensorData product = whole;
    for (int64_t i = 0; i < product.size(); ++i)
      product.Set(i, RoundTo(product.At(i), kShort, Rounding::kTowardZero));
    auto oracle = OpenCaseOracle(c, inputs);
    ASSERT_TRUE(oracle);
    EXPECT_TRUE(Holds(ClassifyValue(**oracle, "product", whole), [](const PrecisionModel& model) {
      return AccWord(model.acc) == "float32" && MidWord(model.mid) == "none";
    }));
    EXPECT_FALSE(Holds(ClassifyValue(**oracle, "product", product), [](const PrecisionModel& model) {
      return AccWord(model.acc) == "float32" && MidWord(model.mid) == "none";
    })) << seed;
  }
}

/// float32 lanes, each sum rounded to `bits`, the lanes joined in `joined` bits.
TensorData SumsInLanes(const Case& c, const std::map<std::string, TensorData>& inputs, size_t width, int bits,
                       int joined) {
  const TensorData &a = inputs.at("a"), &b = inputs.at("b");
  const int64_t m = c.tensors[0].shape[0], k = c.tensors[0].shape[1], n = c.tensors[1].shape[1];
  TensorData product = TensorData::Zeros(DType::kFloat32, {m, n});
  const auto round = [](TwoDoubles sum, int to) {
    return to >= 53 ? sum.hi : RoundTo(sum, FormatOfBits(to));
  };
  for (int64_t i = 0; i < m * n; ++i) {
    std::vector<double> lanes(width, 0);
    for (int64_t x = 0; x < k; ++x) {
      double& lane = lanes[static_cast<size_t>(x) % width];
      lane = round(TwoSum(lane, a.At(i / n * k + x) * b.At(x * n + i % n)), bits);
    }
    double sum = 0;
    for (const double lane : lanes) sum = round(TwoSum(sum, lane), joined);
    product.Set(i, sum);
  }
  return product;
}

// Errors tell a sum of float32's; that its parts were joined in float32 too only the bits of an order tell.
TEST(Likelihood, LanesThatAreJoinedInFloat64AreNotSaidToBeJoinedInFloat32) {
  const Case c = testing::MatmulCase(DType::kBfloat16, DType::kFloat32, 16, 64, 16);
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const auto inputs = testing::NormalInputs(c, seed);
    auto oracle = OpenCaseOracle(c, inputs);
    ASSERT_TRUE(oracle);
    // 12 lanes are among no orders that are tried.
    const Classification wider = ClassifyValue(**oracle, "product", SumsInLanes(c, inputs, 12, 24, 53));
    EXPECT_TRUE(Holds(wider, [](const PrecisionModel& model) { return model.acc == JoinedWider(); }))
        << wider.label;
    const auto values = EmulateProgram(c, inputs, PrecisionModel(), "lanes4");
    ASSERT_TRUE(values);
    const Classification plain = ClassifyValue(**oracle, "product", values->at("product"));
    EXPECT_FALSE(Holds(plain, [](const PrecisionModel& model) { return model.acc == JoinedWider(); }))
        << plain.label;
  }
}

// Sums in 23 bits err twice as much as float32's, as its worst orders do; but no result has a last bit.
TEST(Likelihood, ResultsWithoutALastBitAreNoFloat32Sums) {
  const Case c = testing::MatmulCase(DType::kBfloat16, DType::kFloat32, 16, 64, 16);
  const auto plain = [](const PrecisionModel& model) {
    return AccWord(model.acc) == "float32" && MidWord(model.mid) == "none";
  };
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const auto inputs = testing::NormalInputs(c, seed);
    auto oracle = OpenCaseOracle(c, inputs);
    ASSERT_TRUE(oracle);
    const Classification narrow = ClassifyValue(**oracle, "product", SumsInLanes(c, inputs, 1, 23, 23));
    EXPECT_FALSE(Holds(narrow, plain)) << narrow.label;
    const Classification honest = ClassifyValue(**oracle, "product", SumsInLanes(c, inputs, 1, 24, 24));
    EXPECT_TRUE(Holds(honest, plain)) << honest.label;
  }
}

// Lanes of 20 bits joined in float64 leave errors that a unit of products which cuts its terms may leave; no order of such
// units gives these bits.
TEST(Likelihood, ErrorsAloneAccuseNoUnitThatCuts) {
  const Case c = testing::MatmulCase(DType::kBfloat16, DType::kFloat32, 16, 64, 16);
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    auto inputs = testing::NormalInputs(c, seed);
    for (auto& [name, data] : inputs) {
      for (int64_t i = 0; i < data.size(); ++i) {
        const uint64_t bits = MixBits(seed * 7919 + static_cast<uint64_t>(i) + (name == "a" ? 0 : 1u << 20));
        data.Set(i, std::ldexp(data.At(i), static_cast<int>(bits % 40) - 20));
      }
    }
    auto oracle = OpenCaseOracle(c, inputs);
    ASSERT_TRUE(oracle);
    const Classification result = ClassifyValue(**oracle, "product", SumsInLanes(c, inputs, 16, 20, 53));
    EXPECT_FALSE(Holds(result, [](const PrecisionModel& model) {
      return AccWord(model.acc).starts_with("blockfma");
    })) << result.label;
  }
}

TEST(Likelihood, RivalsGiveTheBitsOfMoreThanTheSample) {
  const Case c = testing::MatmulCase(DType::kBfloat16, DType::kBfloat16, 64, 64, 64);
  PrecisionModel model;
  model.acc = testing::Acc("float32");
  model.out = testing::Out("bfloat16_rne");
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const auto inputs = testing::NormalInputs(c, seed);
    auto oracle = OpenCaseOracle(c, inputs);
    ASSERT_TRUE(oracle);
    const auto values = EmulateProgram(c, inputs, model, "lanes4");
    ASSERT_TRUE(values);
    // Of this many elements a sum in so few bits gives others somewhere, if not among the first 128.
    const Classification result = ClassifyValue(**oracle, "product", values->at("product"));
    EXPECT_TRUE(Holds(result, [](const PrecisionModel& each) { return AccWord(each.acc) == "float32"; }));
    EXPECT_FALSE(Holds(result, [](const PrecisionModel& each) {
      return AccWord(each.acc).starts_with("float16");
    })) << result.label;
  }
}

// The gradient of sum(layer_norm(x)^2) all but vanishes; in float64 it is noise of the form that a framework computes it in,
// which is not the one that the bank's models take their steps from.
TEST(Likelihood, AnotherFormOfTheStepsInsideAnOpIsNoNarrowSum) {
  Case c;
  c.id = "norm";
  const int64_t rows = 4, columns = 6;
  c.tensors = {testing::Tensor("x", DType::kFloat64, {rows, columns}, true)};
  Step norm =
      testing::MakeStep("layer_norm", {"x"}, "y", {{"normalized_shape", testing::Integers({columns})}});
  const double eps = 1e-5;
  norm.attrs["eps"] = Attr{.value = eps};
  c.program = {norm, testing::MakeStep("mul", {"y", "y"}, "z"), testing::MakeStep("sum", {"z"}, "s"),
               testing::MakeStep("backward", {"s"}, "")};
  c.observe = {"x.grad"};
  const auto inputs = testing::NormalInputs(c, 3);
  TensorData observed = TensorData::Zeros(DType::kFloat64, {rows, columns});
  for (int64_t r = 0; r < rows; ++r) {
    const auto x = [&](int64_t i) { return inputs.at("x").At(r * columns + i); };
    double mean = 0, moment = 0;  // Welford's
    for (int64_t i = 0; i < columns; ++i) {
      const double away = x(i) - mean;
      mean += away / static_cast<double>(i + 1);
      moment += away * (x(i) - mean);
    }
    const double scale = 1 / std::sqrt(moment / columns + eps);
    double ds = 0, db = 0;
    std::array<double, 6> g{};
    for (int64_t i = 0; i < columns; ++i) {
      g[static_cast<size_t>(i)] = 2 * ((x(i) - mean) * scale);
      ds += g[static_cast<size_t>(i)] * x(i);
      db += g[static_cast<size_t>(i)];
    }
    const double a = (db * mean - ds) * scale * scale * scale / columns, b = -a * mean - db * scale / columns;
    for (int64_t i = 0; i < columns; ++i)
      observed.Set(r * columns + i, scale * g[static_cast<size_t>(i)] + a * x(i) + b);
  }
  auto oracle = OpenCaseOracle(c, inputs);
  ASSERT_TRUE(oracle);
  const Classification found = ClassifyValue(**oracle, "x.grad", observed);
  // No model gives these bits; of four lines of noise their sizes tell nothing either.
  const bool open = std::any_of(found.models.begin(), found.models.end(), [](const PrecisionModel& model) {
    return AccWord(model.acc) == "float64" || AccWord(model.acc) == "exact";
  });
  EXPECT_TRUE(open || found.kind == ClassificationKind::kUnmodelled) << found.label;
}

/// layer_norm of rows in bfloat16 with float32 sums; `steps`: those that are stored in bfloat16.
TensorData NormWithStoredSteps(const TensorData& x, const std::set<std::string>& steps) {
  const int64_t rows = x.shape[0], columns = x.shape[1];
  TensorData y = TensorData::Zeros(DType::kBfloat16, x.shape);
  const auto step = [&](const char* name, double value) {
    value = static_cast<float>(value);
    return steps.contains(name) ? RoundTo(value, Bfloat16()) : value;
  };
  for (int64_t r = 0; r < rows; ++r) {
    float sum = 0, squares = 0;
    for (int64_t i = 0; i < columns; ++i) sum += static_cast<float>(x.At(r * columns + i));
    const double mean = step("mean", sum / static_cast<float>(columns));
    const auto centred = [&](int64_t i) { return step("centered", x.At(r * columns + i) - mean); };
    for (int64_t i = 0; i < columns; ++i) squares += static_cast<float>(centred(i) * centred(i));
    const double variance = step("var", squares / static_cast<float>(columns));
    const double rstd = step("rstd", 1 / std::sqrt(static_cast<float>(variance + 1e-5)));
    for (int64_t i = 0; i < columns; ++i)
      y.Set(r * columns + i, RoundTo(static_cast<float>(centred(i) * rstd), Bfloat16()));
  }
  return y;
}

// No framework is known to store the distances from the mean. What does is not a bfloat16 sum.
TEST(Likelihood, StepsStoredWhereNobodyIsKnownToDoSoAreNoNarrowSum) {
  Case c;
  c.id = "norm";
  const int64_t rows = 12, columns = 24;
  c.tensors.push_back(testing::Tensor("x", DType::kBfloat16, {rows, columns}));
  Step norm =
      testing::MakeStep("layer_norm", {"x"}, "y", {{"normalized_shape", testing::Integers({columns})}});
  norm.attrs["eps"] = Attr{.value = 1e-5};
  c.program = {norm};
  c.observe = {"y"};
  const auto inputs = testing::NormalInputs(c, 3);
  auto oracle = OpenCaseOracle(c, inputs);
  ASSERT_TRUE(oracle);
  const std::set<std::string> stored{"mean", "centered", "var", "rstd"};
  const Classification found = ClassifyValue(**oracle, "y", NormWithStoredSteps(inputs.at("x"), stored));
  ASSERT_FALSE(found.models.empty()) << found.label;
  // Which of the others show depends on the numbers.
  std::set<std::string> cuts;
  for (const PrecisionModel& model : found.models) {
    EXPECT_EQ(AccWord(model.acc), "float32") << found.label;
    EXPECT_TRUE(model.cuts.contains("y.mean") && model.cuts.contains("y.centered")) << model.Name();
    for (const auto& [cut, format] : model.cuts) cuts.insert(cut);
  }
  for (const std::string& step : stored) EXPECT_TRUE(cuts.contains("y." + step)) << step;
}

// Few short rows, all steps stored: a sum in bfloat16 may give every bit of them too, and is no better an explanation.
TEST(Likelihood, ANarrowSumThatGivesTheBitsIsNotTheOnlyOne) {
  Case c;
  c.id = "norm";
  const int64_t rows = 4, columns = 8;
  c.tensors.push_back(testing::Tensor("x", DType::kBfloat16, {rows, columns}));
  Step norm =
      testing::MakeStep("layer_norm", {"x"}, "y", {{"normalized_shape", testing::Integers({columns})}});
  norm.attrs["eps"] = Attr{.value = 1e-5};
  c.program = {norm};
  c.observe = {"y"};
  int narrow = 0;
  for (const uint64_t seed : {4, 5, 10, 14}) {
    auto inputs = testing::NormalInputs(c, seed);
    auto oracle = OpenCaseOracle(c, inputs);
    ASSERT_TRUE(oracle);
    const TensorData y =
        NormWithStoredSteps(inputs.at("x"), {"mean", "centered", "var", "rstd", "normalized"});
    const Classification found = ClassifyValue(**oracle, "y", y);
    if (!Holds(found, [](const PrecisionModel& model) { return AccWord(model.acc) == "bfloat16"; })) continue;
    ++narrow;
    EXPECT_TRUE(Holds(found, [](const PrecisionModel& model) { return AccWord(model.acc) == "float32"; }))
        << seed << " " << found.label;
  }
  EXPECT_GT(narrow, 0);
}

// Rows of one number times one vector: all that is made of one mean errs with it, and four rows are four pieces of evidence.
TEST(Likelihood, AnHonestNormOfFewRowsIsModelled) {
  const int64_t rows = 4, columns = 8;
  Case c;
  c.id = "norm";
  c.tensors.push_back(testing::Tensor("x", DType::kFloat32, {rows, columns}));
  Step norm =
      testing::MakeStep("layer_norm", {"x"}, "y", {{"normalized_shape", testing::Integers({columns})}});
  norm.attrs["eps"] = Attr{.value = 1e-5};
  c.program = {norm};
  c.observe = {"y"};
  for (uint64_t seed = 30; seed < 130; ++seed) {
    auto inputs = testing::NormalInputs(c, seed);
    TensorData& x = inputs.at("x");
    TensorData y = TensorData::Zeros(DType::kFloat32, x.shape);
    for (int64_t r = 0; r < rows; ++r) {
      const double factor = 0.1 / static_cast<double>(r + 1);
      float sum = 0, squares = 0;
      for (int64_t i = 0; i < columns; ++i) {
        x.Set(r * columns + i, static_cast<float>(factor * x.At(i)));
        sum += static_cast<float>(x.At(r * columns + i));
      }
      const float mean = sum / static_cast<float>(columns);
      const auto centred = [&](int64_t i) { return static_cast<float>(x.At(r * columns + i)) - mean; };
      for (int64_t i = 0; i < columns; ++i) squares += centred(i) * centred(i);
      const float rstd = 1 / std::sqrt(squares / static_cast<float>(columns) + 1e-5F);
      for (int64_t i = 0; i < columns; ++i) y.Set(r * columns + i, centred(i) * rstd);
    }
    auto oracle = OpenCaseOracle(c, inputs);
    ASSERT_TRUE(oracle);
    const Classification found = ClassifyValue(**oracle, "y", y);
    EXPECT_TRUE(Holds(found, [](const PrecisionModel& model) { return AccWord(model.acc) == "float32"; }))
        << seed << ": " << found.label;
  }
}

/// A sum in float32 that is stored in float16 before it is divided; `reads`: what is summed.
// Steps of 22 kinds, each rounded or not: to list four million programs in order to count them would take hours.
TEST(Likelihood, ProgramsOfManyStepsAreCountedNotListed) {
  Case c;
  c.id = "many";
  c.tensors = {testing::Tensor("x", DType::kBfloat16, {4, 8})};
  std::string last = "x";
  for (int i = 0; i < 6; ++i) {
    const std::string a = "a" + std::to_string(i), b = "b" + std::to_string(i);
    c.program.push_back(testing::MakeStep("softmax", {last}, a, {{"dim", testing::Integer(1)}}));
    c.program.push_back(testing::MakeStep("silu", {a}, b));
    last = b;
  }
  c.observe = {last};
  for (const bool natural : {false, true}) {
    auto oracle = OpenCaseOracle(c, testing::NormalInputs(c, 3), {.natural = natural});
    ASSERT_TRUE(oracle);
    const auto shape = (*oracle)->Describe(last);
    ASSERT_TRUE(shape);
    EXPECT_GT(shape->most_models, int64_t{1} << 22);
  }
}

TEST(Likelihood, AMeanWhoseSumIsStored) {
  Case c;
  c.id = "mean";
  const int64_t rows = 64, columns = 24;
  c.tensors.push_back(testing::Tensor("x", DType::kFloat16, {rows, columns}));
  c.program = {testing::MakeStep("mean", {"x"}, "y", {{"dim", testing::Integers({1})}})};
  c.observe = {"y"};
  const auto inputs = testing::NormalInputs(c, 3);
  TensorData y = TensorData::Zeros(DType::kFloat16, {rows});
  for (int64_t r = 0; r < rows; ++r) {
    float sum = 0;
    for (int64_t i = 0; i < columns; ++i) sum += static_cast<float>(inputs.at("x").At(r * columns + i));
    y.Set(r, RoundTo(static_cast<float>(RoundTo(sum, Binary16())) / static_cast<float>(columns), Binary16()));
  }
  auto oracle = OpenCaseOracle(c, inputs);
  ASSERT_TRUE(oracle);
  const Classification found = ClassifyValue(**oracle, "y", y);
  ASSERT_FALSE(found.models.empty()) << found.label;
  for (const PrecisionModel& model : found.models) {
    const auto cut = model.cuts.find("y.sum");
    EXPECT_TRUE(AccWord(model.acc) == "float16" || AccWord(model.acc) == "float16_via_float32" ||
                (cut != model.cuts.end() && cut->second.rounds_to(Binary16())))
        << model.Name();
  }
}

}  // namespace
}  // namespace ulpscope
