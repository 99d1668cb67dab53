// Causes in programs of several steps: operands read unrounded, forms of a step, contracted products, gradients that are rounded as
// they are added up, and where infinities begin. All bits are computed here, by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "harness/base/find.h"
#include "harness/judge/asked.h"
#include "harness/judge/classify.h"
#include "harness/judge/forms.h"
#include "harness/judge/local.h"
#include "harness/judge/non_finite.h"
#include "harness/judge/parting.h"
#include "harness/num/float_format.h"
#include "oracles/oracle.h"
#include "tests/support/cases.h"
#include "tests/support/models.h"

namespace ulpscope {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::MakeStep;
using testing::NormalInputs;

using CauseValues = std::map<std::string, TensorData>;

double CauseIn(const FloatFormat& format, double x) { return RoundTo(x, format); }
double F32(double x) { return CauseIn(Binary32(), x); }
double B16(double x) { return CauseIn(Bfloat16(), x); }

OpenPiece CausePieces() {
  return [](const Case& piece, CauseValues in, const PieceOptions& options) {
    return OpenCaseOracle(
        piece, std::move(in),
        {.unrounded = options.unrounded, .natural = options.natural, .as_written = options.as_written});
  };
}

std::map<std::string, Classification> CauseJudge(const Case& program, const CauseValues& inputs,
                                                 const CauseValues& values) {
  OracleCounts counts;
  return JudgeSteps(program, inputs, values, CausePieces(), &counts);
}

Case CauseProgram(std::vector<TensorSpec> tensors, std::vector<Step> steps) {
  Case program;
  program.id = "cause~opened";
  program.companion_of = "cause";
  program.tensors = std::move(tensors);
  program.program = std::move(steps);
  for (const Step& step : program.program) program.observe.push_back(step.as);
  return program;
}

Step CauseOfNumber(const std::string& op, const std::string& x, double number, const std::string& as) {
  Step step = MakeStep(op, {x}, as);
  step.of.push_back({.name = {}, .scalar = Attr{number}});
  return step;
}

Classification CauseReads(std::map<std::string, std::vector<std::string>> reads,
                          std::vector<std::string> together) {
  Classification found;
  found.piece = "step";
  found.reads = std::move(reads);
  found.together = std::move(together);
  return found;
}

TEST(Causes, EveryOperandThatIsReadUnroundedAloneIsNamed) {
  const auto kept = CauseReads({{"a", {"unrounded"}}, {"b", {"unrounded"}}}, {"a+b"});
  const auto stored = CauseReads({{"a", {"stored", "unrounded"}}, {"b", {"stored"}}}, {"", "a"});
  const auto found = FindReads("s", kept, stored);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].a.singular, "computes `s` from the unrounded `a` and `b`");
  EXPECT_TRUE(found[0].b.Nothing());
  // None of them by itself is told apart.
  const auto either =
      CauseReads({{"a", {"stored", "unrounded"}}, {"b", {"stored", "unrounded"}}}, {"", "a", "b"});
  const auto both = FindReads("s", kept, either);
  ASSERT_EQ(both.size(), 1u);
  EXPECT_EQ(both[0].a.singular, "computes `s` from the unrounded `a` and `b`");
  const auto one_of =
      CauseReads({{"a", {"stored", "unrounded"}}, {"b", {"stored", "unrounded"}}}, {"a", "b"});
  const auto open = FindReads("s", one_of, either);
  ASSERT_EQ(open.size(), 1u);
  EXPECT_EQ(open[0].a.singular, "computes `s` from the unrounded `a`, or `b`");
}

TEST(Causes, AnOperandThatBothReadUnroundedStandsOnBothSides) {
  const auto two = CauseReads({{"a", {"unrounded"}}, {"b", {"unrounded"}}}, {"a+b"});
  const auto one = CauseReads({{"a", {"unrounded"}}, {"b", {"stored"}}}, {"a"});
  const auto found = FindReads("s", two, one);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].a.singular, "computes `s` from the unrounded `a` and `b`");
  EXPECT_EQ(found[0].b.singular, "computes `s` from the unrounded `a`");
}

TEST(Causes, ADivisionByANumberIsAProductWithItsReciprocal) {
  constexpr int64_t kCount = 512;
  constexpr double kNumber = 0.001999;
  const Case program = CauseProgram({testing::Tensor("z", DType::kFloat32, {kCount})},
                                    {MakeStep("abs", {"z"}, "v"), CauseOfNumber("div", "v", kNumber, "y")});
  const CauseValues inputs = NormalInputs(program, 3);
  CauseValues values{{"v", TensorData::Zeros(DType::kFloat32, {kCount})},
                     {"y", TensorData::Zeros(DType::kFloat32, {kCount})}};
  const float number = static_cast<float>(kNumber), reciprocal = 1.0f / number;
  int64_t unlike = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    const auto v = static_cast<float>(std::fabs(inputs.at("z").At(i)));
    values.at("v").Set(i, v);
    values.at("y").Set(i, v * reciprocal);
    unlike += v * reciprocal != v / number ? 1 : 0;
  }
  ASSERT_GT(unlike, 0);
  const auto judged = CauseJudge(program, inputs, values).at("y");
  EXPECT_EQ(judged.form, "v * float32(1 / float32(0.001999))") << judged.label;
  // One way to convert the number: not the elements that neither way gives, nor those that the double one does not.
  EXPECT_EQ(judged.shown_count, unlike);
}

TEST(Causes, AQuotientByWhatIsTheSameAlongALine) {
  constexpr int64_t kRows = 16, kColumns = 24;
  const Case program =
      CauseProgram({testing::Tensor("x", DType::kFloat32, {kRows, kColumns})},
                   {MakeStep("amax", {"x"}, "s", {{"dim", testing::Integers({1})}, {"keepdim", Attr{true}}}),
                    MakeStep("div", {"x", "s"}, "y")});
  const CauseValues inputs = NormalInputs(program, 3);
  CauseValues values{{"s", TensorData::Zeros(DType::kFloat32, {kRows, 1})},
                     {"y", TensorData::Zeros(DType::kFloat32, {kRows, kColumns})}};
  int64_t unlike = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    double largest = -kInf;
    for (int64_t i = 0; i < kColumns; ++i) largest = std::max(largest, inputs.at("x").At(row * kColumns + i));
    values.at("s").Set(row, largest);
    const auto s = static_cast<float>(largest);
    for (int64_t i = 0; i < kColumns; ++i) {
      const auto x = static_cast<float>(inputs.at("x").At(row * kColumns + i));
      values.at("y").Set(row * kColumns + i, x * (1.0f / s));
      unlike += x * (1.0f / s) != x / s ? 1 : 0;
    }
  }
  ASSERT_GT(unlike, 0);
  const auto judged = CauseJudge(program, inputs, values).at("y");
  EXPECT_EQ(judged.form, "x * (1 / s)") << judged.label;
  EXPECT_EQ(judged.shown_count, unlike);
}

TEST(Causes, ElementsThatDifferTellFormsThatASampleDoesNot) {
  constexpr int64_t kCount = 60000;
  constexpr double kScale = -0.7;
  const Case program = CauseProgram(
      {testing::Tensor("p", DType::kBfloat16, {kCount}), testing::Tensor("v", DType::kBfloat16, {kCount}),
       testing::Tensor("d", DType::kBfloat16, {kCount})},
      {MakeStep("addcdiv", {"p", "v", "d"}, "y", {{"value", Attr{kScale}}})});
  const CauseValues inputs = NormalInputs(program, 3);
  TensorData scaled = TensorData::Zeros(DType::kBfloat16, {kCount}), ratio = scaled;
  std::vector<int64_t> differ;
  for (int64_t i = 0; i < kCount; ++i) {
    const auto p = static_cast<float>(inputs.at("p").At(i)), v = static_cast<float>(inputs.at("v").At(i)),
               d = static_cast<float>(inputs.at("d").At(i)), c = static_cast<float>(kScale);
    const float first = c * v, second = v / d;
    const float one = first / d, two = c * second;
    scaled.Set(i, B16(F32(static_cast<double>(p) + one)));
    ratio.Set(i, B16(F32(static_cast<double>(p) + two)));
    if (std::isfinite(scaled.At(i)) && scaled.At(i) != ratio.At(i)) differ.push_back(i);
  }
  ASSERT_FALSE(differ.empty());
  ASSERT_LT(differ.size(), 64u);
  for (const auto& [data, form] :
       {std::pair{&scaled, "p + v * -0.7 / d"}, std::pair{&ratio, "p + v / d * -0.7"}}) {
    const CauseValues values{{"y", *data}};
    OracleCounts counts;
    auto judged = CauseJudge(program, inputs, values);
    EXPECT_EQ(judged.at("y").form, "") << "a sample does not tell";
    TellForms(program, inputs, values, {{"y", differ}}, CausePieces(), &counts, &judged);
    const std::string& told = judged.at("y").form;
    // Steps that are not rounded one by one give it too: the form is named, or said to be one of several.
    EXPECT_TRUE(told.find(form) != std::string::npos || told.find("other forms") != std::string::npos)
        << told << "; " << judged.at("y").label;
  }
}

TEST(Causes, AProductThatIsAddedUnroundedIsContracted) {
  constexpr int64_t kCount = 96;
  const Case program = CauseProgram(
      {testing::Tensor("x", DType::kFloat32, {kCount}), testing::Tensor("d", DType::kFloat32, {kCount})},
      {MakeStep("div", {"x", "d"}, "q"), MakeStep("mul", {"q", "d"}, "m"), MakeStep("sub", {"x", "m"}, "r")});
  CauseValues inputs = NormalInputs(program, 3);
  TensorData once = TensorData::Zeros(DType::kFloat32, {kCount}), twice = once;
  for (int64_t i = 0; i < kCount; ++i) {
    inputs.at("d").Set(i, F32(1 + std::fabs(inputs.at("d").At(i))));
    const auto x = static_cast<float>(inputs.at("x").At(i)), d = static_cast<float>(inputs.at("d").At(i));
    const float q = x / d, m = q * d;
    once.Set(i,
             F32(static_cast<double>(x) -
                 static_cast<double>(q) * static_cast<double>(d)));  // exact in float64 before it is rounded
    twice.Set(i, x - m);
  }
  OracleCounts counts;
  const auto found = JudgeAsAsked(program, inputs, "r", once, CausePieces(), &counts);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->on_the_way.at("m"), ElementsAre("contracted"));
  EXPECT_FALSE(found->on_the_way.contains("q")) << "what is divided is rounded in any case";
  EXPECT_EQ(DescribeOnTheWay(found->on_the_way, false), "contracts `m` (it is not rounded before the sum)");
  EXPECT_FALSE(JudgeAsAsked(program, inputs, "r", twice, CausePieces(), &counts));
}

TEST(Causes, AGradientThatPassesAMaskIsRoundedAsItIsAddedUp) {
  constexpr int64_t kCount = 300;
  Case program;
  program.id = "mask";
  program.tensors = {testing::Tensor("a", DType::kBfloat16, {kCount}, true),
                     testing::Tensor("b", DType::kBfloat16, {kCount}),
                     testing::Tensor("c", DType::kBfloat16, {kCount})};
  program.program = {MakeStep("mul", {"a", "b"}, "first"),
                     MakeStep("mul", {"a", "c"}, "second"),
                     MakeStep("add", {"first", "second"}, "both"),
                     MakeStep("add", {"both", "a"}, "moved"),
                     MakeStep("relu", {"moved"}, "kept"),
                     MakeStep("sum", {"kept"}, "loss"),
                     MakeStep("backward", {"loss"}, "")};
  program.observe = {"a.grad"};
  const CauseValues inputs = NormalInputs(program, 3);
  TensorData eager = TensorData::Zeros(DType::kBfloat16, {kCount}), fused = eager;
  for (int64_t i = 0; i < kCount; ++i) {
    const double a = inputs.at("a").At(i), b = inputs.at("b").At(i), c = inputs.at("c").At(i);
    const double moved = B16(B16(B16(a * b) + B16(a * c)) + a);
    eager.Set(i, moved > 0 ? B16(B16(1 + c) + b) : 0);
    fused.Set(i, moved > 0 ? B16(1 + b + c) : 0);
  }
  ASSERT_FALSE(eager == fused);
  const auto oracle = OpenCaseOracle(program, inputs);
  ASSERT_TRUE(oracle);
  const auto value = [&](const TensorData& data) {
    return ValueResult{.dtype = DType::kBfloat16,
                       .shape = {kCount},
                       .classification = ClassifyValue(**oracle, "a.grad", data)};
  };
  const ValueResult rounds = value(eager), keeps = value(fused);
  const auto& cuts = rounds.classification.cuts;
  EXPECT_EQ(cuts.at("partial(a.grad)"), testing::Mids({"bfloat16"})) << rounds.classification.label;
  const auto deeds = FindDeeds(program, "a.grad", rounds, keeps);
  ASSERT_TRUE(deeds) << rounds.classification.label << " / " << keeps.classification.label;
  EXPECT_EQ(deeds->a.singular, "rounds `a.grad` to bfloat16 after each contribution that is added to it");
  EXPECT_TRUE(deeds->b.Nothing());
}

TEST(Causes, ANanBeginsInTheStepThatOverflowed) {
  const Case program =
      CauseProgram({testing::Tensor("x", DType::kFloat16, {2, 2})},
                   {MakeStep("mul", {"x", "x"}, "y"),
                    MakeStep("amax", {"y"}, "s", {{"dim", testing::Integers({1})}, {"keepdim", Attr{true}}}),
                    MakeStep("div", {"y", "s"}, "r")});
  const auto of = [](Shape shape, const std::vector<double>& numbers) {
    TensorData data = TensorData::Zeros(DType::kFloat16, std::move(shape));
    for (size_t i = 0; i < numbers.size(); ++i) data.Set(static_cast<int64_t>(i), numbers[i]);
    return data;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const CauseValues inputs{{"x", of({2, 2}, {2, 3, 300, 1})}},
      values{{"y", of({2, 2}, {4, 9, kInf, 1})},
             {"s", of({2, 1}, {9, kInf})},
             {"r", of({2, 2}, {0.4443359375, 1, nan, 0})}};
  const auto whole = OpenCaseOracle(program, inputs);
  ASSERT_TRUE(whole);
  const auto lost = FindNonFinite(**whole, "r", values.at("r"));
  ASSERT_TRUE(lost);
  EXPECT_EQ(DescribeNonFinite(*lost), "r[1,0] is nan, exact 1 (1 of 4 elements are not finite)");
  const auto births = FindBirths(program, inputs, values, "r", CausePieces());
  ASSERT_EQ(births.size(), 2u);
  EXPECT_EQ(DescribeNonFinite(births[0]),
            "y[1,0] is inf, exact 90000 of 300 and 300, beyond 65504, the largest float16 (1 of 4 elements "
            "are not finite)");
  EXPECT_EQ(DescribeNonFinite(births[1]),
            "r[1,0] is nan, without an exact value of inf and inf (1 of 4 elements are not finite)");
  EXPECT_EQ(births[1].op, "div");
  const auto spread = SpreadFrom(program, values, "y");
  ASSERT_EQ(spread.size(), 3u);
  EXPECT_EQ(spread[1].step, "s");
  EXPECT_EQ(spread[1].count, 1);
  EXPECT_EQ(spread[1].elements, 2);
  const auto later = SpreadFrom(program, values, "s");
  ASSERT_EQ(later.size(), 2u) << "y does not rest on s";
  EXPECT_EQ(later[0].step, "s");
  EXPECT_FALSE(FindNonFinite(**whole, "y", of({2, 2}, {4, 9, 65504, 1})));
  // What is infinite in exact arithmetic too is no loss: x / 0.
  const auto divided =
      CauseProgram({testing::Tensor("x", DType::kFloat16, {1})}, {CauseOfNumber("div", "x", 0, "r")});
  const auto oracle = OpenCaseOracle(divided, {{"x", of({1}, {1})}});
  ASSERT_TRUE(oracle);
  EXPECT_FALSE(FindNonFinite(**oracle, "r", of({1}, {kInf})));
  EXPECT_TRUE(
      FindBirths(divided, {{"x", of({1}, {1})}}, {{"r", of({1}, {kInf})}}, "r", CausePieces()).empty());
}

TEST(Causes, ANanBeginsWhereNoOperandIsOne) {
  const auto of = [](Shape shape, const std::vector<double>& numbers) {
    TensorData data = TensorData::Zeros(DType::kFloat16, std::move(shape));
    for (size_t i = 0; i < numbers.size(); ++i) data.Set(static_cast<int64_t>(i), numbers[i]);
    return data;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Case program = CauseProgram(
      {testing::Tensor("x", DType::kFloat16, {4}), testing::Tensor("z", DType::kFloat16, {4})},
      {MakeStep("div", {"x", "z"}, "q"), MakeStep("sub", {"q", "q"}, "d"), MakeStep("add", {"d", "x"}, "y")});
  // A NaN of an input is nobody's; 1 / 0 is infinite in exact arithmetic too; 0 / 0 begins in q, inf - inf in d.
  const CauseValues inputs{{"x", of({4}, {nan, 1, 0, 1})}, {"z", of({4}, {1, 0, 0, 2})}},
      values{{"q", of({4}, {nan, kInf, nan, 0.5})},
             {"d", of({4}, {nan, nan, nan, 0})},
             {"y", of({4}, {nan, nan, nan, 1})}};
  const auto births = FindBirths(program, inputs, values, "y", CausePieces());
  ASSERT_EQ(births.size(), 1u) << "the first of each kind";
  EXPECT_EQ(births[0].value, "q");
  EXPECT_EQ(births[0].first, (std::vector<int64_t>{2}));
  EXPECT_EQ(births[0].operands, (std::vector<double>{0, 0}));
  EXPECT_FALSE(births[0].exact);
  CauseValues from_infinity = values;
  from_infinity.at("q") = of({4}, {nan, kInf, 1, 0.5});
  const auto later = FindBirths(program, inputs, from_infinity, "y", CausePieces());
  ASSERT_EQ(later.size(), 1u);
  EXPECT_EQ(later[0].value, "d");
  EXPECT_EQ(later[0].first, (std::vector<int64_t>{1}));
  // A sum that reads a NaN forces one, wherever it stands in it.
  const Case sum = CauseProgram({testing::Tensor("x", DType::kFloat16, {2, 2})},
                                {MakeStep("sum", {"x"}, "t", {{"dim", testing::Integers({1})}})});
  const TensorData forced = of({2}, {nan, 3}), read = of({2, 2}, {nan, 1, 1, 2});
  EXPECT_TRUE(FindBirths(sum, {{"x", read}}, {{"t", forced}}, "t", CausePieces()).empty());
  const auto opposed =
      FindBirths(sum, {{"x", of({2, 2}, {kInf, -kInf, 1, 2})}}, {{"t", forced}}, "t", CausePieces());
  ASSERT_EQ(opposed.size(), 1u) << "inf - inf inside of a sum";
  EXPECT_TRUE(opposed[0].operands.empty());
}

TEST(Causes, FormsAreSaidAsFormulas) {
  const Step alpha = MakeStep("add", {"x", "y"}, "s", {{"alpha", Attr{3.0}}});
  const auto forms = FormsOfLastBits(alpha);
  ASSERT_EQ(forms.size(), 1u);
  EXPECT_EQ(DescribeForm(alpha, forms[0]), "x + y * 3, contracted: the product is not rounded");
  EXPECT_TRUE(IsContracted(forms[0][0].as));
  const Step root = MakeStep("rsqrt", {"x"}, "r");
  EXPECT_EQ(DescribeForm(root, OtherForms(root).front()), "1 / sqrt(x)");
}

}  // namespace
}  // namespace ulpscope
