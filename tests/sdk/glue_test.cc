// Glue: rounding exactly once, promotion, aliases, and what it refuses.
#include "backends/sdk/glue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "backends/sdk/exact.h"
#include "harness/words/promotion.h"

namespace ulpscope::sdk {
namespace {

using testing::HasSubstr;
__extension__ typedef __int128 Wide;

TensorData Tensor(DType dtype, Shape shape, const std::vector<double>& values) {
  TensorData tensor = TensorData::Zeros(dtype, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i) tensor.Set(static_cast<int64_t>(i), values[i]);
  return tensor;
}

std::vector<double> Values(const TensorData& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.size(); ++i) values.push_back(tensor.At(i));
  return values;
}

RunReply RunGlue(const Json& steps, const TensorMap& inputs, const std::vector<std::string>& observe) {
  Json tensors = Json::array();
  for (const auto& [name, tensor] : inputs) {
    tensors.push_back({{"name", name}, {"dtype", std::string(Name(tensor.dtype))}, {"shape", tensor.shape}});
  }
  const auto program = ParseProgram({{"tensors", tensors}, {"steps", steps}, {"observe", observe}});
  EXPECT_TRUE(program) << program.error().message;
  RunRequest request;
  request.program = *program;
  request.inputs = inputs;
  request.poison = true;
  request.trace = true;
  return RunWithGlue(request, [](const Step&, GlueContext&) { return std::nullopt; });
}

TensorData Only(const Json& step, const TensorMap& inputs) {
  Json named = step;
  named["as"] = "result";
  const RunReply reply = RunGlue(Json::array({named}), inputs, {"result"});
  EXPECT_EQ(reply.outcome, Outcome::kCompleted) << reply.text;
  return reply.outcome == Outcome::kCompleted ? reply.tensors.at("result") : TensorData{};
}

TEST(Glue, RoundsAnAdditionOnce) {
  // 1 + 2^-8 + 2^-60: through binary64 the tie would go to even, 1; the exact sum lies above it.
  const TensorMap inputs = {{"a", Tensor(DType::kFloat64, {1}, {1 + 0x1p-8})},
                            {"b", Tensor(DType::kFloat64, {1}, {0x1p-60})}};
  const RunReply reply =
      RunGlue({{{"op", "empty"}, {"as", "r"}, {"attrs", {{"shape", {1}}, {"dtype", "bfloat16"}}}},
               {{"op", "add"}, {"of", {"a", "b"}}, {"as", "s"}}},
              inputs, {"s", "r"});
  EXPECT_EQ(reply.tensors.at("s").At(0), 1 + 0x1p-8);
  EXPECT_EQ(CountPoisoned(reply.tensors.at("r")), 1);
  const TensorData narrow = Only({{"op", "add"}, {"of", {"x", {{"scalar", 0x1p-60}}}}},
                                 {{"x", Tensor(DType::kFloat32, {1}, {1 + 0x1p-23})}});
  EXPECT_EQ(narrow.At(0), 1 + 0x1p-23);
  // float16: 2048 + 1 is a tie (to 2048); 2048 + 1.0009765625 is above it.
  EXPECT_EQ(
      Only({{"op", "add"}, {"of", {"x", "y"}}}, {{"x", Tensor(DType::kFloat16, {2}, {2048, 2048})},
                                                 {"y", Tensor(DType::kFloat16, {2}, {1, 1.0009765625})}}),
      Tensor(DType::kFloat16, {2}, {2048, 2050}));
}

TEST(Glue, MultiplicationByAPythonScalarDoesNotRoundTheScalarFirst) {
  const TensorData x = Tensor(DType::kBfloat16, {1}, {3});
  const double expected = RoundTo(ExactProduct(3, 0.1), Bfloat16());
  EXPECT_EQ(Only({{"op", "mul"}, {"of", {"x", {{"scalar", 0.1}}}}}, {{"x", x}}).At(0), expected);
  int differs = 0;  // the same with a rounded scalar must differ somewhere, or this test shows nothing
  for (int i = 1; i < 128; ++i) {
    differs += RoundTo(ExactProduct(i, 0.1), Bfloat16()) != RoundTo(i * RoundTo(0.1, Bfloat16()), Bfloat16());
  }
  EXPECT_GT(differs, 10);
}

TEST(Glue, QuotientsAndRootsAreRoundedOnce) {
  std::mt19937_64 random(1);
  int checked = 0;
  for (int i = 0; i < 20000; ++i) {
    const float a = std::ldexp(static_cast<float>(random() >> 40), static_cast<int>(random() % 40) - 20) + 1;
    const float b = static_cast<float>(random() >> 40) + 1;
    // Hardware float division and square root are correctly rounded: an independent answer.
    ASSERT_EQ(RoundTo(Quotient(a, b), Binary32()), a / b);
    ASSERT_EQ(RoundTo(SquareRoot(a), Binary32()), std::sqrt(a));
    // rsqrt: 1/y^2 at the midpoints around y must enclose a, judged in 64-bit significands.
    const double y = RoundTo(ReciprocalSquareRoot(a), Binary32());
    const long double half = static_cast<long double>(Ulp(y, Binary32())) / 2;
    ASSERT_LE((y - half) * (y - half) * a, 1.0L);
    ASSERT_GE((y + half) * (y + half) * a, 1.0L);
    ++checked;
  }
  EXPECT_EQ(checked, 20000);
  EXPECT_EQ(ReciprocalSquareRoot(4).hi, 0.5);
  EXPECT_EQ(ReciprocalSquareRoot(4).lo, 0);
}

TEST(Glue, SumsAreExactWhateverTheOrder) {
  std::mt19937_64 random(2);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<double> terms;
    Wide exact = 0;  // in units of 2^-60
    for (int i = 0; i < 50; ++i) {
      const auto mantissa = static_cast<int64_t>(random() >> 20) - (int64_t{1} << 43);
      const int shift = static_cast<int>(random() % 60);
      exact += static_cast<Wide>(mantissa) << shift;
      terms.push_back(std::ldexp(static_cast<double>(mantissa), shift - 60));
    }
    if (trial % 3 == 0) terms.push_back(-terms[0]), exact -= static_cast<Wide>(std::ldexp(terms[0], 60));
    const TwoDoubles sum = ExactSum(terms);
    const auto rest = static_cast<double>(exact - static_cast<Wide>(std::ldexp(sum.hi, 60)));
    ASSERT_LE(std::fabs(std::ldexp(rest, -60)), Ulp(sum.hi, Binary64()) / 2) << trial;
    ASSERT_EQ(sum.lo < 0, rest < 0) << trial;
    ASSERT_EQ(sum.lo == 0, rest == 0) << trial;
  }
  const std::vector<double> swamped = {0x1p60, 1, -0x1p60};
  EXPECT_EQ(ExactSum(swamped).hi, 1);
  const std::vector<double> tie = {1, 0x1p-53, 0x1p-120};
  EXPECT_EQ(ExactSum(tie).hi, 1 + 0x1p-52);
  const std::vector<double> infinite = {1, HUGE_VAL};
  EXPECT_EQ(ExactSum(infinite).hi, HUGE_VAL);
}

TEST(Glue, ReducesOverAxes) {
  const TensorMap inputs = {{"a", Tensor(DType::kBfloat16, {2, 3}, {1, 2, 3, 4, 5, 6})}};
  EXPECT_EQ(Only({{"op", "sum"}, {"of", {"a"}}}, inputs), Tensor(DType::kBfloat16, {}, {21}));
  EXPECT_EQ(Only({{"op", "sum"}, {"of", {"a"}}, {"attrs", {{"dim", 0}}}}, inputs),
            Tensor(DType::kBfloat16, {3}, {5, 7, 9}));
  EXPECT_EQ(Only({{"op", "mean"},
                  {"of", {"a"}},
                  {"attrs", {{"dim", {-1}}, {"keepdim", true}, {"dtype", "float32"}}}},
                 inputs),
            Tensor(DType::kFloat32, {2, 1}, {2, 5}));
}

TEST(Glue, Views) {
  const TensorMap inputs = {{"a", Tensor(DType::kFloat32, {2, 3}, {1, 2, 3, 4, 5, 6})}};
  EXPECT_EQ(Only({{"op", "t"}, {"of", {"a"}}}, inputs), Tensor(DType::kFloat32, {3, 2}, {1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(Only({{"op", "transpose"}, {"of", {"a"}}, {"attrs", {{"dim0", 0}, {"dim1", -1}}}}, inputs).shape,
            (Shape{3, 2}));
  EXPECT_EQ(Only({{"op", "reshape"}, {"of", {"a"}}, {"attrs", {{"shape", {3, -1}}}}}, inputs),
            Tensor(DType::kFloat32, {3, 2}, {1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(Only({{"op", "select"}, {"of", {"a"}}, {"attrs", {{"dim", 1}, {"index", 2}}}}, inputs),
            Tensor(DType::kFloat32, {2}, {3, 6}));
  EXPECT_EQ(Only({{"op", "unsqueeze"}, {"of", {"a"}}, {"attrs", {{"dim", -1}}}}, inputs).shape,
            (Shape{2, 3, 1}));
  EXPECT_EQ(Only({{"op", "expand"}, {"of", {"a"}}, {"attrs", {{"shape", {2, -1, 3}}}}}, inputs),
            Tensor(DType::kFloat32, {2, 2, 3}, {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(Permuted(inputs.at("a"), {1, 0}).At(1), 4);
}

TEST(Glue, CastsRoundOnceAndAreWrittenDown) {
  const TensorMap inputs = {{"a", Tensor(DType::kFloat64, {2}, {1 + 0x1p-8 + 0x1p-40, 300.7})}};
  const RunReply reply =
      RunGlue({{{"op", "cast"}, {"of", {"a"}}, {"as", "b"}, {"attrs", {{"dtype", "bfloat16"}}}},
               {{"op", "cast"}, {"of", {"a"}}, {"as", "c"}, {"attrs", {{"dtype", "int8"}}}}},
              inputs, {"b", "c"});
  EXPECT_EQ(reply.tensors.at("b").At(0), 1.0078125);  // through float32 it would be 1
  EXPECT_EQ(reply.tensors.at("c").At(1), 44);         // 300 mod 256
  ASSERT_EQ(reply.casts.size(), 2U);
  EXPECT_EQ(reply.casts[0].from, "float64");
  EXPECT_EQ(reply.casts[0].to, "bfloat16");
  EXPECT_EQ(reply.casts[0].bytes, 4);
  EXPECT_EQ(reply.casts[0].stage, "glue");
  TensorData wide = TensorData::Zeros(DType::kInt64, {1});
  const int64_t value = (int64_t{1} << 24 << 30) + (int64_t{1} << 29 << 17) + 1;  // tie of bfloat16 plus one
  std::memcpy(wide.bytes.data(), &value, 8);
  EXPECT_EQ(RoundedCopy(wide, DType::kBfloat16).At(0),
            RoundTo(TwoDoubles{static_cast<double>(value - 1), 1}, Bfloat16()));
}

TEST(Glue, SaysWhatKindEachStepIs) {
  const RunReply reply =
      RunGlue({{{"op", "t"}, {"of", {"a"}}, {"as", "turned"}},
               {{"op", "cast"}, {"of", {"turned"}}, {"as", "b"}, {"attrs", {{"dtype", "bfloat16"}}}},
               {{"op", "neg"}, {"of", {"b"}}, {"as", "c"}}},
              {{"a", Tensor(DType::kFloat32, {2, 1}, {1, 2})}}, {"c"});
  std::vector<std::pair<std::string, TraceKind>> kinds;
  for (const TraceNode& node : reply.nodes) kinds.emplace_back(node.op, node.kind);
  using enum TraceKind;
  EXPECT_THAT(kinds, testing::ElementsAre(std::pair("program", kCompute), std::pair("t", kMove),
                                          std::pair("cast", kConvert), std::pair("cast", kConvert),
                                          std::pair("neg", kCompute)));
  EXPECT_EQ(reply.nodes[3].parent, 2) << "the conversion that the step asks for";
}

TEST(Glue, OutWritesIntoTheBufferThatEveryAliasSees) {
  const TensorMap inputs = {{"a", Tensor(DType::kBfloat16, {1}, {1.5})},
                            {"c", Tensor(DType::kFloat32, {1}, {0})}};
  const RunReply reply = RunGlue({{{"op", "add"}, {"of", {"a", "a"}}, {"out", "c"}, {"as", "first"}},
                                  {{"op", "mul"}, {"of", {"a", "c"}}, {"out", "c"}, {"as", "second"}}},
                                 inputs, {"first", "second", "c"});
  ASSERT_EQ(reply.outcome, Outcome::kCompleted) << reply.text;
  for (const char* name : {"first", "second", "c"})
    EXPECT_EQ(Values(reply.tensors.at(name)), std::vector<double>{4.5}) << name;
  EXPECT_EQ(reply.tensors.at("first").dtype, DType::kFloat32);
}

TEST(Glue, RefusesToWriteToAViewedBuffer) {
  const TensorMap inputs = {{"c", Tensor(DType::kFloat32, {2, 2}, {0, 0, 0, 0})}};
  const RunReply reply =
      RunGlue({{{"op", "t"}, {"of", {"c"}}, {"as", "v"}}, {{"op", "add"}, {"of", {"v", "v"}}, {"out", "c"}}},
              inputs, {"v"});
  EXPECT_EQ(reply.outcome, Outcome::kUnsupported);
  EXPECT_THAT(reply.text, HasSubstr("view"));
}

TEST(Glue, SetDataReplacesWhatTheNameHolds) {
  const TensorMap inputs = {{"w", Tensor(DType::kFloat32, {1}, {1.00390625})},
                            {"v", Tensor(DType::kFloat64, {1}, {7})}};
  const RunReply reply = RunGlue(
      {{{"op", "set_data"}, {"of", {"w"}}, {"attrs", {{"to", {{"cast", "bfloat16"}}}}}}}, inputs, {"w"});
  EXPECT_EQ(reply.tensors.at("w"), Tensor(DType::kBfloat16, {1}, {1}));
  const RunReply value =
      RunGlue({{{"op", "set_data"}, {"of", {"w"}}, {"attrs", {{"to", {{"value", "v"}}}}}}}, inputs, {"w"});
  EXPECT_EQ(value.tensors.at("w"), inputs.at("v"));
}

TEST(Glue, SaysWhatItCannotDo) {
  const TensorMap inputs = {{"a", Tensor(DType::kFloat32, {2}, {1, 2})},
                            {"b", Tensor(DType::kFloat32, {3}, {1, 2, 3})}};
  const auto text = [&](const Json& step) {
    const RunReply reply = RunGlue(Json::array({step}), inputs, {"a"});
    EXPECT_NE(reply.outcome, Outcome::kCompleted) << step;
    return reply.text;
  };
  EXPECT_THAT(text({{"op", "backward"}, {"of", {"a"}}}), HasSubstr("no autograd"));
  EXPECT_THAT(text({{"op", "autocast"}, {"steps", Json::array()}}), HasSubstr("autocast"));
  EXPECT_THAT(text({{"op", "add"}, {"of", {"a", "b"}}}), HasSubstr("broadcast"));
  EXPECT_THAT(text({{"op", "reshape"}, {"of", {"a"}}, {"attrs", {{"shape", {3}}}}}), HasSubstr("elements"));
  EXPECT_THAT(text({{"op", "exp"}, {"of", {"a"}}}), HasSubstr("'exp'"));
  EXPECT_EQ(RunGlue(Json::array(), inputs, {"a.grad"}).outcome, Outcome::kUnsupported);
}

// torch.result_type of PyTorch 2.13 over every pair of our dtypes and ranks, in the order of AllDTypeNames,
// is checked against the framework itself in tests/adapters; here the rows that a reader can check by
// thought.
TEST(Promotion, FollowsPyTorch) {
  using enum DType;
  using enum OperandRank;
  EXPECT_EQ(Promote(kBfloat16, kFloat16), kFloat32);
  EXPECT_EQ(Promote(kUint8, kInt8), kInt16);
  EXPECT_EQ(Promote(kInt64, kFloat16), kFloat16);
  EXPECT_EQ(Promote(kBool, kUint8), kUint8);
  EXPECT_EQ(Promote(kFloat8E4m3fn, kFloat32), std::nullopt);
  const auto of = [](std::vector<PromotionOperand> operands) { return ResultType(operands); };
  EXPECT_EQ(of({{kBfloat16, kTensor}, {kFloat64, kZeroDim}}), kBfloat16);
  EXPECT_EQ(of({{kInt32, kTensor}, {kFloat64, kScalar}}), kFloat32);
  EXPECT_EQ(of({{kInt32, kTensor}, {kFloat64, kZeroDim}}), kFloat64);
  EXPECT_EQ(of({{kBool, kTensor}, {kInt64, kScalar}}), kInt64);
  EXPECT_EQ(of({}), std::nullopt);
}

}  // namespace
}  // namespace ulpscope::sdk
