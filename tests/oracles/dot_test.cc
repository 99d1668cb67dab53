// Sums of one dot product: block units, split operands, summation trees, and what probes conclude of odd
// kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <random>

#include "harness/judge/classify.h"
#include "harness/model/conforming.h"
#include "oracles/dot/bank.h"
#include "oracles/dot/trees.h"
#include "oracles/oracle.h"
#include "tests/support/cases.h"
#include "tests/support/models.h"

namespace ulpscope {
namespace {

DotModel Model(const std::string& acc, DType in, const std::string& out, const std::string& in_word = "as_is",
               const std::string& mid = "none") {
  PrecisionModel name;
  if (in_word != "as_is") name.in["*"] = testing::In(in_word);
  name.acc = testing::Acc(acc);
  name.mid = testing::Mid(mid);
  name.out = testing::Out(out);
  return DotModelOf(name, in);
}

using Dot = std::function<double(std::span<const double>, std::span<const double>)>;

/// Everything that is concluded of `dot` from probes and the decode.
std::vector<PrecisionModel> Survivors(const Dot& dot, DType in, DType out, int64_t k,
                                      BlockDecode* decode = nullptr) {
  std::vector<double> a(static_cast<size_t>(k)), b(a);
  const auto run = [&](const ProbeDot& probe) {
    for (const ProbeTerm& term : probe.terms) {
      a[static_cast<size_t>(term.position)] = term.a;
      b[static_cast<size_t>(term.position)] = term.b;
    }
    const double y = dot(a, b);
    for (const ProbeTerm& term : probe.terms)
      a[static_cast<size_t>(term.position)] = b[static_cast<size_t>(term.position)] = 0;
    return y;
  };
  const DotBank bank(in, out);
  std::vector<ProbeGroup> groups;
  for (const auto& family : ProbeFamilies()) {
    for (auto& group : ProbeGroups(family, in, k)) {
      if (family != "mask" && family != "fuse") groups.push_back(std::move(group));
    }
  }
  std::vector<GroupOutputs> outputs;
  for (const ProbeGroup& group : groups) {
    GroupOutputs given{.group = &group, .outputs = {}, .same_coordinate = SameCoordinate::kYes};
    for (const ProbeDot& member : group.members) given.outputs.push_back(run(member));
    outputs.push_back(std::move(given));
  }
  std::vector<char> alive(bank.models().size(), 1);
  EXPECT_EQ(bank.Exclude(outputs, &alive, nullptr), static_cast<int64_t>(groups.size()));
  const BlockDecode decoded = DecodeBlocks(in, k, [&](std::span<const ProbeDot> dots) {
    std::vector<double> all;
    for (const ProbeDot& probe : dots) all.push_back(run(probe));
    return all;
  });
  bank.Exclude(decoded, k, &alive);
  if (decode != nullptr) *decode = decoded;
  std::vector<PrecisionModel> left;
  for (size_t i = 0; i < alive.size(); ++i) {
    if (alive[i]) left.push_back(bank.models()[i].name);
  }
  return left;
}

TEST(BlockStep, CutsAtTheLargestExponentAndRoundsOnce) {
  const AccSpec a100 = *ParseAcc("blockfma(8,24,rz)"), v100 = *ParseAcc("blockfma(4,23,rz)");
  const auto sum = [](const AccSpec& acc, double start, std::vector<double> products) {
    std::vector<SumTerm> terms;
    for (const double p : products) terms.push_back(TermOf(p, 1));
    return BlockStep(acc, start, terms);
  };
  // Fasi, Higham, Mikaitis, Pranesh 2021: one extra bit keeps 2^-24 beside 1, and four of them make 2^-22;
  // none keeps nothing.
  EXPECT_EQ(sum(a100, 1, {0x1p-24, 0x1p-24, 0x1p-24, 0x1p-24}), 1 + 0x1p-22);
  EXPECT_EQ(sum(v100, 1, {0x1p-24, 0x1p-24, 0x1p-24, 0x1p-24}), 1.0);
  EXPECT_EQ(sum(a100, 1, {0x1p-25, 0x1p-25, 0x1p-25, 0x1p-25}), 1.0);
  EXPECT_EQ(sum(a100, 2, {0x1p-23, 0x1p-24}), 2.0);      // truncation, positive
  EXPECT_EQ(sum(a100, -2, {-0x1p-23, -0x1p-24}), -2.0);  // and negative
  EXPECT_EQ(sum(a100, 0, {0x1p30, 1, -0x1p30}), 0.0);
  EXPECT_EQ(sum(*ParseAcc("blockfma(4,23,rne_float16)"), 0, {1, 1, 0x1.8p-9}), 2 + 0x1p-8);
  // The exponent of a product is the sum of its operands' exponents: 1.5 * 1.5 = 2.25 is aligned at 0.
  std::vector<SumTerm> terms{TermOf(1.5, 1.5), TermOf(0x1p-24, 1)};
  EXPECT_EQ(BlockStep(a100, 0, terms),
            RoundTo({.hi = 2.25 + 0x1p-24, .lo = 0}, Binary32(), Rounding::kTowardZero));
  EXPECT_TRUE(std::isnan(sum(a100, 0, {kInf, -kInf})));
}

TEST(SplitOperands, PassesAddUpToWhatTheirNamesSay) {
  const double a = 0x1.fedcbap0, b = -0x1.234566p0;  // 24 bits each
  const auto passes = [&](const char* word) {
    const RoundSpec in = *ParseIn(word);
    const Products products = Multiply(in, in, RoundSpec{}, a, b);
    double sum = 0;
    for (int i = 0; i < products.count; ++i)
      sum += products.value[static_cast<size_t>(i)].hi + products.value[static_cast<size_t>(i)].lo;
    return std::pair(products.count, sum);
  };
  EXPECT_EQ(passes("bf16x9"), std::pair(9, a * b));
  EXPECT_EQ(passes("bf16x3").first, 3);
  EXPECT_EQ(passes("bf16x6").first, 6);
  EXPECT_EQ(passes("tf32x3").first, 3);
  const double x3 = std::fabs(passes("bf16x3").second - a * b),
               x6 = std::fabs(passes("bf16x6").second - a * b);
  EXPECT_GT(x3, 0x1p-19);
  EXPECT_LT(x3, 0x1p-14);
  EXPECT_GT(x6, 0);
  EXPECT_LT(x6, 0x1p-21);
}

/// No order of the family, and no random tree, gives what the listed structures do not.
TEST(SumTrees, HoldEveryOrderOfTheFamily) {
  std::mt19937_64 random(7);
  const auto draw = [&](int bits) {
    return std::ldexp(static_cast<double>(random() % (1u << bits)) + 1,
                      static_cast<int>(random() % 20) - 10) *
           (random() % 2 == 0 ? 1 : -1);
  };
  int64_t checked = 0;
  for (const auto& word : AccWords()) {
    const AccSpec acc = *ParseAcc(word);
    if (acc.exact()) continue;
    for (int round = 0; round < 60; ++round) {
      const int count = 2 + static_cast<int>(random() % 2);
      std::vector<SumTerm> terms, padded(16, SumTerm{.value = {}, .exponent = -4000});
      for (int i = 0; i < count; ++i) terms.push_back(TermOf(draw(11), draw(11)));
      for (int i = 0; i < count; ++i) padded[static_cast<size_t>(i * 5)] = terms[static_cast<size_t>(i)];
      std::vector<double> listed;
      SumTrees::For(acc, count)->Evaluate(terms, &listed);
      for (const SumOrder& order : SumOrders(AddendOrders::kNone)) {
        const double sum = SumInOrder(acc, order, padded, nullptr).hi;
        const bool known = std::any_of(listed.begin(), listed.end(), [&](double value) {
          return value == sum || (std::isnan(value) && std::isnan(sum));
        });
        EXPECT_TRUE(known) << word << " in " << order.name << " gives " << sum;
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 10000);
}

TEST(Decode, BlocksTreesAndShortWindows) {
  BlockDecode decode;
  const DotModel h100 = Model("blockfma(16,25,rz)", DType::kFloat16, "float16_rne");
  const auto kernel = [](const DotModel& model, const SumOrder& order) {
    return [&model, &order](auto a, auto b) { return EmulateDot(model, order, a, b); };
  };
  const auto& orders = SumOrders(AddendOrders::kNone);
  Survivors(kernel(h100, orders[3]), DType::kFloat16, DType::kFloat16, 64, &decode);
  EXPECT_EQ(decode.kind, BlockDecode::Kind::kFused);
  EXPECT_EQ(decode.n, 16);
  EXPECT_EQ(decode.fraction, 25);
  EXPECT_EQ(decode.mode, Rounding::kTowardZero);
  const DotModel plain = Model("float32", DType::kFloat16, "float32_rne");
  Survivors(kernel(plain, orders[7]), DType::kFloat16, DType::kFloat32, 64, &decode);
  EXPECT_EQ(decode.kind, BlockDecode::Kind::kNotFused);
  Survivors(kernel(h100, orders[0]), DType::kFloat16, DType::kFloat16, 8, &decode);
  EXPECT_EQ(decode.n, 8);
  EXPECT_TRUE(decode.n_is_least) << "eight products cannot show that sixteen would join";
  Survivors(kernel(h100, orders[0]), DType::kFloat16, DType::kFloat16, 2, &decode);
  EXPECT_EQ(decode.kind, BlockDecode::Kind::kUnclear);
}

TEST(RoundToOdd, ComesBackUnderItsNameInEveryOrder) {
  const DType in = DType::kBfloat16, out = DType::kFloat32;
  for (const char* acc : {"float32_odd", "float32_odd+ftz"}) {
    const DotModel model = Model(acc, in, "float32_rne");
    EXPECT_TRUE(IsConforming(model.name, *FormatOf(out), kDotProduct))
        << "as wide as float32, as float32_rz is";
    for (const SumOrder& order : SumOrders(AddendOrders::kNone)) {
      const auto left =
          Survivors([&](auto a, auto b) { return EmulateDot(model, order, a, b); }, in, out, 24);
      const bool there = std::any_of(left.begin(), left.end(), [&](const PrecisionModel& other) {
        return AccWord(other.acc) == acc && other.in.empty();
      });
      EXPECT_TRUE(there) << acc;
      for (const PrecisionModel& other : left)
        EXPECT_TRUE(AccWord(other.acc).starts_with("float32_odd")) << other.Name();
    }
  }
}

TEST(OddKernels, NeverConform) {
  std::mt19937_64 random(3);
  const std::vector<std::pair<const char*, Dot>> kernels{
      {"not a number", [](auto, auto) { return std::nan(""); }},
      {"infinite", [](auto, auto) { return kInf; }},
      {"zero", [](auto, auto) { return 0.0; }},
      {"not deterministic",
       [&](auto, auto) { return static_cast<double>(static_cast<float>(random() % 1000)); }},
      {"overflows early", [](auto a, auto b) {
         double sum = 0;
         for (size_t k = 0; k < a.size(); ++k) sum = RoundTo(sum + a[k] * b[k], Binary16());
         return std::fabs(sum) > 1000 ? std::copysign(kInf, sum) : sum;
       }}};
  for (const auto& [name, dot] : kernels) {
    EXPECT_TRUE(Survivors(dot, DType::kBfloat16, DType::kFloat32, 64).empty()) << name;
  }
}

Classification Classify(const Shape& x, const Shape& y, const std::string& fill) {
  Case c;
  c.id = "test/edge";
  c.tensors = {testing::Tensor("x", DType::kFloat32, x), testing::Tensor("y", DType::kFloat32, y)};
  c.program = {testing::MakeStep("matmul", {"x", "y"}, "product")};
  c.observe = {"product"};
  auto inputs = testing::NormalInputs(c, 5);
  if (fill == "zeros") {
    for (auto& [tensor, data] : inputs) data = TensorData::Zeros(data.dtype, data.shape);
  }
  PrecisionModel model;
  auto values = EmulateProgram(c, inputs, model, "sequential");
  TensorData& product = values->at("product");
  if (fill == "nan") {
    for (int64_t i = 0; i < product.size(); ++i) product.Set(i, std::nan(""));
  }
  auto oracle = OpenCaseOracle(c, inputs);
  return ClassifyValue(**oracle, "product", product);
}

TEST(OddData, HasADefinedAnswer) {
  const Classification none = Classify({4, 0}, {0, 4}, "normal");  // K = 0: sums of nothing
  EXPECT_EQ(none.kind, ClassificationKind::kExactOnly) << none.label;
  EXPECT_EQ(none.checked, 16);
  const Classification empty = Classify({0, 4}, {4, 4}, "normal");  // M = 0: no element
  EXPECT_EQ(empty.kind, ClassificationKind::kNoReference);
  EXPECT_EQ(empty.checked, 0);
  const Classification zeros = Classify({4, 8}, {8, 4}, "zeros");
  EXPECT_EQ(zeros.kind, ClassificationKind::kExactOnly) << zeros.label;
  const Classification nan = Classify({4, 8}, {8, 4}, "nan");
  EXPECT_EQ(nan.kind, ClassificationKind::kUnmodelled) << nan.label;
  const Classification single = Classify({16, 1}, {1, 16}, "normal");
  EXPECT_EQ(single.kind, ClassificationKind::kIndistinguishable);
  // One product shows nothing of the accumulator: whatever it is, the output is rounded alike.
  EXPECT_THAT(WordsOf(single.facets.acc), ::testing::ElementsAre("exact")) << single.label;
  EXPECT_THAT(WordsOf(single.facets.prod, ProdWord), ::testing::ElementsAre("exact")) << single.label;
  const auto same = WordsOf(single.as_exact.acc);
  EXPECT_THAT(same, ::testing::IsSupersetOf({"float32", "float64", "compensated"}));
  EXPECT_THAT(same, ::testing::Not(::testing::Contains("bfloat16")));
  EXPECT_THAT(WordsOf(single.as_exact.prod, ProdWord), ::testing::ElementsAre("float32"));
}

TEST(Significands, ThatAreTooShortForAnyOrderAreSeenInsideEveryBound) {
  Case c;
  c.id = "test/short";
  c.tensors = {testing::Tensor("x", DType::kBfloat16, {16, 64}),
               testing::Tensor("y", DType::kBfloat16, {64, 16})};
  c.program = {testing::MakeStep("matmul", {"x", "y"}, "product", {{"out_dtype", testing::Text("float32")}})};
  c.observe = {"product"};
  const auto inputs = testing::NormalInputs(c, 7);
  const auto oracle = OpenCaseOracle(c, inputs);
  ASSERT_TRUE(oracle) << oracle.error().Text();
  PrecisionModel model;
  model.acc = testing::Acc("float32");
  for (const std::string order : {"sequential", "pairwise"}) {
    TensorData product = EmulateProgram(c, inputs, model, order)->at("product");
    const Classification whole = ClassifyValue(**oracle, "product", product);
    EXPECT_TRUE(whole.fits) << order << ": " << whole.label;
    const FloatFormat p22 = *ParseMid("p22")->format;
    for (int64_t i = 0; i < product.size(); ++i) product.Set(i, RoundTo(product.At(i), p22));
    const Classification cut = ClassifyValue(**oracle, "product", product);
    for (const PrecisionModel& likely : cut.models) EXPECT_EQ(MidWord(likely.mid), "p22") << likely.Name();
    EXPECT_THAT(cut.label, ::testing::ContainsRegex("22 significant bits|p22")) << order;
  }
}

TEST(Mean, AQuotientByAPowerOfTwoLeavesNothingToTruncate) {
  for (const int64_t k : {64, 100}) {
    Case c;
    c.id = "test/mean";
    c.tensors = {testing::Tensor("x", DType::kFloat32, {4, k})};
    c.program = {testing::MakeStep("mean", {"x"}, "m", {{"dim", testing::Integer(1)}})};
    c.observe = {"m"};
    const auto oracle = OpenCaseOracle(c, testing::NormalInputs(c, 5));
    ASSERT_TRUE(oracle) << oracle.error().Text();
    bool float32 = false, truncated = false;
    for (const auto& hypothesis : (*oracle)->Bank("m", DType::kFloat32)) {
      const PrecisionModel& model = hypothesis->model();
      if (!model.in.empty() || AccWord(model.acc) != "float32" || MidWord(model.mid) != "none" ||
          !model.cuts.empty())
        continue;
      float32 = float32 || OutWord(model.out) == "float32_rne";
      truncated = truncated || OutWord(model.out) == "float32_rz";
    }
    EXPECT_TRUE(float32);
    EXPECT_EQ(truncated, k == 100);
  }
}

TEST(Sparse, ElementsAreHeldAgainstEveryTree) {
  // {2^20, 1, -2^20}: float32 keeps the 1 in every order; bfloat16 gives 0 or 1, which no bound of a float32
  // sum excludes.
  Case c;
  c.id = "test/swamp";
  c.tensors = {testing::Tensor("x", DType::kBfloat16, {1, 16}),
               testing::Tensor("y", DType::kBfloat16, {16, 1})};
  c.program = {testing::MakeStep("matmul", {"x", "y"}, "product", {{"out_dtype", testing::Text("float32")}})};
  c.observe = {"product"};
  auto inputs = testing::NormalInputs(c, 5);
  for (int64_t i = 0; i < 16; ++i) {
    inputs.at("x").Set(i, i == 0 ? 0x1p20 : i == 5 ? 1 : i == 9 ? -0x1p20 : 0);
    inputs.at("y").Set(i, 1);
  }
  auto oracle = OpenCaseOracle(c, inputs);
  ASSERT_TRUE(oracle) << oracle.error().Text();
  TensorData lost = TensorData::Zeros(DType::kFloat32, {1, 1});
  const Classification result = ClassifyValue(**oracle, "product", lost);
  for (const PrecisionModel& model : result.models_proved)
    EXPECT_FALSE(AccWord(model.acc) == "float32" && ProdWord(model.prod) == "exact") << model.Name();
  EXPECT_FALSE(result.models_proved.empty());
  lost.Set(0, 1);
  bool float32 = false;
  for (const PrecisionModel& model : ClassifyValue(**oracle, "product", lost).models_proved)
    float32 = float32 || AccWord(model.acc) == "float32";
  EXPECT_TRUE(float32);
}

}  // namespace
}  // namespace ulpscope
