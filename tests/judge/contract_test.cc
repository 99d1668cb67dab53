// Contracts on the joint set of proved models, and on outcomes.
#include "harness/judge/contract.h"

#include <gtest/gtest.h>

#include <bit>

#include "harness/base/pattern.h"
#include "harness/judge/classify.h"
#include "harness/words/facets.h"
#include "oracles/oracle.h"
#include "tests/judge/make.h"
#include "tests/support/cases.h"
#include "tests/support/models.h"

namespace ulpscope {
namespace {

using testing::Classify;
using testing::MakeCase;
using testing::Model;
using testing::Value;
using enum ContractVerdict;

Case WithDemand(ValueDemand demand) {
  Case c = MakeCase();
  c.contract.accept_any = false;
  c.contract.values["product"] = std::move(demand);
  return c;
}

const ValueDemand kFloat32Unrounded{.dtype = "float32",
                                    .facets = {{"acc", {"float32", "float64"}}, {"mid", {"none"}}}};

TEST(Contract, AcceptAnyConformsForEveryClass) {
  const Case c = MakeCase();
  EXPECT_EQ(JudgeContract(c, "product", Value(Classify({}))), kConforms);
  EXPECT_EQ(JudgeContract(c, "product", Value(Classify({Model("bfloat16", "none")}))), kConforms);
  EXPECT_EQ(JudgeOutcome(c, testing::Raised("RuntimeError", "no").outcome, {}), kConforms);
}

TEST(Contract, ConformsOnlyWhenEveryProvedModelIsInside) {
  const Case c = WithDemand(kFloat32Unrounded);
  EXPECT_EQ(JudgeContract(c, "product", Value(Classify({Model("float32", "none")}))), kConforms);
  EXPECT_EQ(
      JudgeContract(c, "product", Value(Classify({Model("float32", "none"), Model("float64", "none")}))),
      kConforms);
  EXPECT_EQ(JudgeContract(c, "product", Value(Classify({Model("float32", "bfloat16")}))), kViolates);
  EXPECT_EQ(
      JudgeContract(c, "product", Value(Classify({Model("float32", "none"), Model("float32", "bfloat16")}))),
      kUndetermined);
  EXPECT_EQ(JudgeContract(c, "result", Value(Classify({Model("bfloat16", "none")}))), kNotJudged);
}

TEST(Contract, WhatGivesTheSameBitsWhateverTheOperandsIsWhatWasAskedFor) {
  Classification one_term = Classify({Model("exact", "none")});
  const Case c = WithDemand(kFloat32Unrounded),
             narrow = WithDemand({.dtype = {}, .facets = {{"acc", {"bfloat16"}}}});
  EXPECT_EQ(JudgeContract(c, "product", Value(one_term)), kViolates) << "of many terms";
  one_term.as_exact.acc = testing::Accs({"float32", "compensated"});
  EXPECT_EQ(JudgeContract(c, "product", Value(one_term)), kConforms);
  EXPECT_EQ(JudgeContract(narrow, "product", Value(one_term)), kViolates);
}

// One product and a bias, which a bfloat16 accumulator that begins with the bias rounds once, as the store does.
TEST(Contract, WhatIsAddedOnceMayBeRoundedByTheStore) {
  const Case c = WithDemand({.dtype = {}, .facets = {{"acc", {"at_least_float32"}}, {"mid", {"none"}}}});
  Classification added_once =
      Classify({Model("float32", "none"), Model("exact", "none"), Model("bfloat16", "none")});
  EXPECT_EQ(JudgeContract(c, "product", Value(added_once)), kUndetermined) << "of many terms";
  added_once.as_exact.acc_once = testing::Accs({"bfloat16"});
  EXPECT_EQ(JudgeContract(c, "product", Value(added_once)), kConforms);
  Classification rounded_twice = Classify({Model("float32", "none"), Model("bfloat16", "none")});
  rounded_twice.as_exact = added_once.as_exact;
  EXPECT_EQ(JudgeContract(c, "product", Value(rounded_twice)), kUndetermined)
      << "an exact sum would be another one";
  Classification stored =
      Classify({Model("float32", "none"), Model("exact", "none"), Model("bfloat16", "bfloat16")});
  stored.as_exact = added_once.as_exact;
  EXPECT_EQ(JudgeContract(c, "product", Value(stored)), kUndetermined);
}

TEST(Contract, TheSetIsJointNotFacetByFacet) {
  // Each facet's words overlap with what is allowed, yet neither model conforms: facet by facet this would be
  // undetermined.
  const Case c = WithDemand(kFloat32Unrounded);
  EXPECT_EQ(
      JudgeContract(c, "product", Value(Classify({Model("float32", "bfloat16"), Model("bfloat16", "none")}))),
      kViolates);
}

TEST(Contract, AWiderSumThroughFloat32IsAsGoodAsAFloat32Sum) {
  ValueDemand demand;
  demand.facets = {{"acc", {"at_least_float32"}}, {"mid", {"none"}}};
  const auto verdict = [&](PrecisionModel model, const std::string& out) {
    model.out = testing::Out(out);
    return JudgeFacets(demand, Classify({model}));
  };
  EXPECT_EQ(verdict(Model("float64", "float32"), "bfloat16_rne"), kConforms);
  EXPECT_EQ(verdict(Model("float64", "float32"), "float64_rne"), kViolates) << "the store would hold more";
  EXPECT_EQ(verdict(Model("float64", "bfloat16"), "float16_rne"), kViolates);
  EXPECT_EQ(verdict(Model("bfloat16", "float32"), "bfloat16_rne"), kViolates);
  demand.facets["acc"] = {"float64"};
  EXPECT_EQ(verdict(Model("float64", "float32"), "bfloat16_rne"), kViolates) << "no float32 sum is allowed";
}

TEST(Contract, Tf32BeforeFloat16IsAsGoodAsNothingWhereNothingIsNotExcluded) {
  ValueDemand demand;
  demand.facets = {{"acc", {"at_least_float32"}}, {"mid", {"none"}}};
  const auto model = [](const std::string& mid, const std::string& out) {
    PrecisionModel made = Model("float32", mid);
    made.out = testing::Out(out);
    return made;
  };
  const PrecisionModel plain = model("none", "float16_rne");
  EXPECT_EQ(JudgeFacets(demand, Classify({plain, model("tf32", "float16_rne"), model("tf32", "float16_rz")})),
            kConforms);
  EXPECT_EQ(JudgeFacets(demand, Classify({model("tf32", "float16_rne")})), kViolates)
      << "subnormals showed it";
  EXPECT_EQ(JudgeFacets(demand, Classify({model("none", "bfloat16_rne"), model("tf32", "bfloat16_rne")})),
            kUndetermined)
      << "bfloat16 has fewer bits than tf32: rounded twice";
}

TEST(Contract, AMisfitNeverConforms) {
  const Case c = WithDemand(kFloat32Unrounded);
  auto left_over = Classify({Model("float32", "none")});
  left_over.fits = false;
  EXPECT_EQ(JudgeContract(c, "product", Value(left_over)), kUndetermined);
  left_over.models.clear();
  left_over.kind = ClassificationKind::kUnmodelled;
  EXPECT_EQ(JudgeContract(c, "product", Value(left_over)), kUnmodelled) << "not excluded is not explained";
  auto excluded = Classify({}, {Model("float32", "bfloat16")});
  excluded.kind = ClassificationKind::kUnmodelled;
  EXPECT_EQ(JudgeContract(c, "product", Value(excluded)), kViolates) << "nothing that is allowed is left";
}

TEST(Contract, LikelihoodDecidesNothing) {
  const Case c = WithDemand(kFloat32Unrounded);
  const auto likely_bad =
      Classify({Model("float32", "bfloat16")}, {Model("float32", "bfloat16"), Model("float32", "none")});
  EXPECT_EQ(JudgeContract(c, "product", Value(likely_bad)), kUnmodelled)
      << "what is allowed was not excluded, and explains nothing";
  const auto likely_good =
      Classify({Model("float32", "none")}, {Model("float32", "bfloat16"), Model("float32", "none")});
  EXPECT_EQ(JudgeContract(c, "product", Value(likely_good)), kUndetermined);
}

TEST(Contract, DtypeIsJudgedBeforeTheClass) {
  const Case c = WithDemand(kFloat32Unrounded);
  EXPECT_EQ(JudgeContract(c, "product", Value(Classify({Model("float32", "none")}), DType::kBfloat16)),
            kViolates);
  const Case only_dtype = WithDemand({.dtype = "float32", .facets = {}});
  EXPECT_EQ(JudgeContract(only_dtype, "product", Value(Classify({}))), kConforms);
  EXPECT_EQ(JudgeContract(only_dtype, "product", Value(Classify({}), DType::kFloat16)), kViolates);
}

TEST(Contract, NothingKnownIsNeverConforming) {
  const Case c = WithDemand(kFloat32Unrounded);
  EXPECT_EQ(JudgeContract(c, "product", Value(Classify({}))), kUnmodelled);
  Classification no_reference;
  EXPECT_EQ(JudgeContract(c, "product", Value(no_reference)), kUndetermined);
  Classification exact = Classify({Model("float32", "none"), Model("bfloat16", "none")});
  exact.kind = ClassificationKind::kExactOnly;
  EXPECT_EQ(JudgeContract(c, "product", Value(exact)), kUndetermined);
}

TEST(Contract, NobodyHasToAskForTheProgramsShape) {
  Classification wrong;
  wrong.kind = ClassificationKind::kWrongShape;
  Case c = MakeCase();
  EXPECT_EQ(JudgeContract(c, "product", Value(wrong)), kViolates);
  c.contract.accept_any = true;
  EXPECT_EQ(JudgeContract(c, "product", Value(wrong)), kViolates) << "any precision, but of this program";
}

TEST(Contract, InputsPerOperandAndTogether) {
  PrecisionModel y_rounded = Model("float32", "none");
  y_rounded.in["y"] = testing::In("bfloat16_rne");
  const auto value = Value(Classify({y_rounded}));
  const auto judge = [&](const std::string& key, DemandWords words) {
    return JudgeContract(WithDemand({.dtype = {}, .facets = {{key, std::move(words)}}}), "product", value);
  };
  EXPECT_EQ(judge("in.y", {"bfloat16_rne"}), kConforms);
  EXPECT_EQ(judge("in.y", {"as_is"}), kViolates);
  EXPECT_EQ(judge("in.x", {"as_is"}), kConforms);
  EXPECT_EQ(judge("in.x", {"bfloat16_rne"}), kViolates);
  EXPECT_EQ(judge("in", {"as_is"}), kViolates);
  EXPECT_EQ(judge("in", {"bfloat16_rne"}), kViolates) << "x is read as it is";
  EXPECT_EQ(judge("in", {"as_is", "bfloat16_rne"}), kConforms);
}

TEST(Contract, Cuts) {
  PrecisionModel cut = Model("float32", "none");
  cut.cuts = testing::Cuts({{"product", "bfloat16"}});
  const auto value = Value(Classify({cut}));
  EXPECT_EQ(
      JudgeContract(WithDemand({.dtype = {}, .facets = {{"cuts.product", {"none"}}}}), "product", value),
      kViolates);
  EXPECT_EQ(
      JudgeContract(WithDemand({.dtype = {}, .facets = {{"cuts.product", {"bfloat16"}}}}), "product", value),
      kConforms);
}

TEST(Contract, RaisingViolatesUnlessListed) {
  Case c = WithDemand(kFloat32Unrounded);
  const Outcome raised = testing::Raised("RuntimeError", testing::kRefusal).outcome;
  EXPECT_EQ(JudgeOutcome(c, raised, {}), kViolates);
  c.contract.raised = RaisedMatch{.error_class = "RuntimeError", .match = "Expected out .* dtype"};
  EXPECT_EQ(JudgeOutcome(c, raised, {}), kConforms);
  EXPECT_EQ(JudgeOutcome(c, testing::Raised("TypeError", testing::kRefusal).outcome, {}), kViolates);
  EXPECT_EQ(JudgeOutcome(c, testing::Raised("RuntimeError", "something else").outcome, {}), kViolates);
  EXPECT_EQ(JudgeOutcome(c, Outcome{}, {"product"}), kConforms)
      << "values are demanded too, so completing is allowed";
  EXPECT_EQ(JudgeOutcome(c, Outcome{}, {}), kViolates) << "the demanded value does not exist";
  c.contract.values.clear();
  EXPECT_EQ(JudgeOutcome(c, Outcome{}, {"product"}), kViolates) << "a refusal is demanded";
  EXPECT_EQ(JudgeOutcome(c, {.kind = OutcomeKind::kCrashed, .error_class = {}, .text = {}}, {}), kNotJudged);
}

TEST(Contract, PatternsCannotThrowOrExhaustTheStack) {
  EXPECT_FALSE(SearchPattern("(", "anything"));
  EXPECT_FALSE(SearchPattern("x$", std::string(1 << 20, 'a')));
  EXPECT_TRUE(SearchPattern("^a+", std::string(1 << 20, 'a')));
  EXPECT_FALSE(IsPattern("("));
  EXPECT_TRUE(IsPattern("^a+"));
}

float Truncated(double value) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(static_cast<float>(value)) & 0xffffe000U);
}

/// y = a @ b in float32, in order; b truncated to tf32 as it is read. The bank has no such pair of operands.
struct OneOperandTruncated {
  Case program;
  std::map<std::string, TensorData> inputs;
  TensorData y = TensorData::Zeros(DType::kFloat32, {16, 16});

  OneOperandTruncated() {
    program.id = "pair";
    program.tensors = {testing::Tensor("a", DType::kFloat32, {16, 64}),
                       testing::Tensor("b", DType::kFloat32, {64, 16})};
    program.program = {testing::MakeStep("matmul", {"a", "b"}, "y")};
    program.observe = {"y"};
    inputs = testing::NormalInputs(program, 4);
    for (int64_t i = 0; i < 16; ++i) {
      for (int64_t j = 0; j < 16; ++j) {
        float sum = 0;
        for (int64_t k = 0; k < 64; ++k)
          sum += static_cast<float>(inputs.at("a").At(i * 64 + k)) * Truncated(inputs.at("b").At(k * 16 + j));
        y.Set(i * 16 + j, sum);
      }
    }
  }

  ContractVerdict Judge(const ValueDemand& demand, bool named) const {
    const auto oracle = OpenCaseOracle(program, inputs);
    ClassifyOptions options;
    if (named) options.named = RoundingsNamed(demand, (*oracle)->Describe("y")->operands);
    return JudgeFacets(demand, ClassifyValue(**oracle, "y", y, options));
  }
};

TEST(Contract, WhatTheBankDoesNotListIsAskedAndNoViolation) {
  const OneOperandTruncated pair;
  const ValueDemand own{.dtype = {}, .facets = {{"in.a", {"as_is"}}, {"in.b", {"tf32_rz"}}}};
  EXPECT_EQ(pair.Judge(own, false), kViolates) << "the bank lists it now: this test asks nothing";
  const ContractVerdict verdict = pair.Judge(own, true);
  EXPECT_TRUE(verdict == kConforms || verdict == kUndetermined);
  const ValueDemand mirror{.dtype = {}, .facets = {{"in.a", {"tf32_rz"}}, {"in.b", {"as_is"}}}};
  EXPECT_EQ(pair.Judge(mirror, true), kViolates);
  const ValueDemand neither{.dtype = {}, .facets = {{"in", {"as_is"}}}};
  EXPECT_NE(pair.Judge(neither, true), kConforms);
}

/// One step of two float32 tensors, exactly computed and rounded once.
Classification OfOneStep(const std::string& op) {
  Case c;
  c.id = op;
  c.tensors = {testing::Tensor("x", DType::kFloat32, {64}), testing::Tensor("y", DType::kFloat32, {64})};
  c.program = {testing::MakeStep(op, {"x", "y"}, "s")};
  c.observe = {"s"};
  const auto inputs = testing::NormalInputs(c, 3);
  TensorData s = TensorData::Zeros(DType::kFloat32, {64});
  for (int64_t i = 0; i < 64; ++i) {
    const double x = inputs.at("x").At(i), y = inputs.at("y").At(i);
    s.Set(i, static_cast<float>(op == "add" ? x + y : op == "mul" ? x * y : x / y));
  }
  const auto oracle = OpenCaseOracle(c, inputs);
  return ClassifyValue(**oracle, "s", s);
}

TEST(Contract, WhatHasNoSumMeetsAnyAccumulator) {
  for (const char* op : {"add", "mul", "div"}) {
    const Classification found = OfOneStep(op);
    const auto judge = [&](const char* facet, const char* word) {
      return JudgeFacets({.dtype = {}, .facets = {{facet, {word}}}}, found);
    };
    for (const char* word : {"float32", "bfloat16", "float32_class", "blockfma", "p12", "at_least_float32"})
      EXPECT_EQ(judge("acc", word), kConforms) << op << " " << word;
    EXPECT_EQ(judge("prod", "bfloat16"), kConforms) << op;
    EXPECT_EQ(judge("mid", "bfloat16"), kViolates) << op << ": that would show";
    EXPECT_EQ(judge("out", "float32_rz"), kViolates) << op;
  }
}

TEST(Contract, WhatIsLeftOpenIsNamed) {
  PrecisionModel away = Model("float32", "none");
  away.out = testing::Out("float32_rna");
  PrecisionModel narrow = Model("bfloat16", "none");
  narrow.in["y"] = testing::In("tf32_rne");
  const ValueDemand demand{
      .dtype = {}, .facets = {{"acc", {"at_least_float32"}}, {"in", {"as_is"}}, {"out", {"float32_rne"}}}};
  EXPECT_EQ(LeftOpen(demand, Classify({Model("float32", "none"), away})), "out float32_rna");
  EXPECT_EQ(LeftOpen(demand, Classify({Model("float32", "none"), away, narrow})),
            "acc bfloat16; in tf32_rne of y; out float32_rna");
  EXPECT_EQ(LeftOpen(demand, Classify({Model("float32", "none")})), "");
}

TEST(Contract, SumsBehindANarrowerStepInsideAreNotProved) {
  PrecisionModel total = Model("float32", "bfloat16");
  total.cuts = testing::Cuts({{"product.total", "bfloat16"}});
  const Case open = WithDemand({.dtype = {}, .facets = {{"acc", {"at_least_float32"}}}}),
             allowed =
                 WithDemand({.dtype = {}, .facets = {{"acc", {"at_least_float32"}}, {"mid", {"bfloat16"}}}});
  EXPECT_EQ(JudgeContract(open, "product", Value(Classify({total}))), kUndetermined);
  EXPECT_EQ(HidesSums("product", open.contract.values.at("product"), Classify({total})),
            "the total (bfloat16)");
  EXPECT_EQ(JudgeContract(allowed, "product", Value(Classify({total}))), kConforms);
  EXPECT_EQ(JudgeContract(open, "product", Value(Classify({total, Model("float32", "none")}))), kConforms)
      << "what rounds nothing inside explains it as well";
  PrecisionModel program = Model("float32", "bfloat16");
  program.cuts = testing::Cuts({{"hidden", "bfloat16"}});
  EXPECT_EQ(JudgeContract(open, "product", Value(Classify({program}))), kConforms)
      << "a value of the program";
}

TEST(Contract, NamedRoundingsAreEveryCombination) {
  const std::vector<std::string> operands{"a", "b", "scalar.mul"};
  const auto wide = RoundingsNamed({.dtype = {}, .facets = {{"acc", {"at_least_float32"}}}}, operands);
  ASSERT_EQ(wide.size(), 2) << "a class holds what the bank does not list";
  EXPECT_EQ(AccWord(wide[1].acc), "split_k(float32,float64)");
  const auto named = RoundingsNamed({.dtype = {},
                                     .facets = {{"acc", {"float32", "split_k(bfloat16,float32)"}},
                                                {"in", {"as_is", "bfloat16_rne"}},
                                                {"mid", {"none"}}}},
                                    operands);
  ASSERT_EQ(named.size(), 4);
  EXPECT_EQ(AccWord(named.back().acc), "split_k(bfloat16,float32)");
  EXPECT_EQ(named.back().in, testing::Ins({{"a", "bfloat16_rne"}, {"b", "bfloat16_rne"}}));
}

}  // namespace
}  // namespace ulpscope
