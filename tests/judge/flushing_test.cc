// Subnormals that a product drops: each way of dropping them comes back under its own name, and only where it
// shows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "harness/judge/classify.h"
#include "oracles/models.h"
#include "oracles/oracle.h"
#include "tests/support/cases.h"

namespace ulpscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

/// Products of bfloat16 operands around 2^low_a and 2^low_b, with a few binades to either side.
struct Sizes {
  int a = 0, b = 0;
};

Case FlushedProduct() {
  Case c = testing::MatmulCase(DType::kBfloat16, DType::kBfloat16, 12, 24, 12);
  c.program[0].attrs["out_dtype"] = testing::Text("float32");
  return c;
}

std::map<std::string, TensorData> FlushedInputs(const Case& c, Sizes sizes) {
  auto inputs = testing::NormalInputs(c, 7);
  for (auto& [name, tensor] : inputs) {
    for (int64_t i = 0; i < tensor.size(); ++i) {
      const int exponent = (name == "a" ? sizes.a : sizes.b) + static_cast<int>(i * 7 % 12) - 6;
      tensor.Set(i, RoundTo(std::ldexp(tensor.At(i), exponent), Bfloat16()));
    }
  }
  return inputs;
}

Classification Classify(const Case& c, const std::map<std::string, TensorData>& inputs,
                        const std::string& model) {
  const auto parsed = ParsePrecisionModel(model);
  EXPECT_TRUE(parsed) << model;
  const auto values = EmulateProgram(c, inputs, *parsed, "odd_first_pairs");
  EXPECT_TRUE(values);
  const auto oracle = OpenCaseOracle(c, inputs);
  EXPECT_TRUE(oracle);
  return ClassifyValue(**oracle, "product", values->at("product"));
}

constexpr Sizes kSubnormalOperands{.a = -128, .b = 20};
constexpr Sizes kSubnormalSums{.a = -66, .b = -66};
constexpr Sizes kBoth{.a = -128, .b = 3};
constexpr const char* kTail = ";mid=none;out=float32_rne";
const std::string kDaz = "in=a:as_is+daz,b:as_is+daz;prod=exact;acc=";

TEST(Flushing, OperandsAndSumsAreNamedApart) {
  const Case c = FlushedProduct();
  for (const auto& [sizes, in, acc] :
       {std::tuple{kSubnormalOperands, "as_is+daz", "float32"},
        std::tuple{kSubnormalSums, "as_is", "float32+ftz"}, std::tuple{kBoth, "as_is+daz", "float32+ftz"}}) {
    const std::string model = (std::string(in) == "as_is" ? "in=as_is;prod=exact;acc=" : kDaz) + acc + kTail;
    const Classification found = Classify(c, FlushedInputs(c, sizes), model);
    ASSERT_EQ(found.checked, 144) << model;
    ASSERT_FALSE(found.models.empty()) << model << ": " << found.label;
    EXPECT_THAT(WordsOf(found.facets_in.at("a"), InWord), ::testing::Contains(in)) << model;
    EXPECT_THAT(WordsOf(found.facets.acc), ::testing::Contains(acc)) << model;
    // What would explain the numbers without dropping anything is gone.
    for (const PrecisionModel& rival : found.models_proved) {
      EXPECT_TRUE(rival.Name().find("+daz") != std::string::npos ||
                  rival.Name().find("+ftz") != std::string::npos)
          << rival.Name();
    }
  }
}

TEST(Flushing, ATellingProductNamesBoth) {
  const Case c = FlushedProduct();
  const Classification found = Classify(c, FlushedInputs(c, kBoth), kDaz + "float32+ftz" + kTail);
  EXPECT_THAT(WordsOf(found.facets_in.at("a"), InWord), ElementsAre("as_is+daz"));
  EXPECT_THAT(WordsOf(found.facets.acc), ElementsAre("float32+ftz"));
  EXPECT_THAT(found.label, HasSubstr("subnormals of operand a taken as zero"));
}

TEST(Flushing, NothingIsSaidOfAnOperandWithoutSubnormals) {
  const Case c = FlushedProduct();
  const auto inputs = FlushedInputs(c, kSubnormalOperands);
  for (const char* truth :
       {"in=a:as_is+daz,b:as_is+daz;prod=exact;acc=float32", "in=a:as_is+daz;prod=exact;acc=float32"}) {
    const Classification found = Classify(c, inputs, std::string(truth) + kTail);
    EXPECT_THAT(WordsOf(found.facets_in.at("a"), InWord), ElementsAre("as_is+daz")) << truth;
    EXPECT_THAT(WordsOf(found.facets_in.at("b"), InWord),
                ::testing::UnorderedElementsAre("as_is", "as_is+daz"))
        << truth;
    EXPECT_THAT(found.label, HasSubstr("subnormals of operand a taken as zero"));
    EXPECT_THAT(found.label, Not(HasSubstr("operand b")));
  }
}

TEST(Flushing, OneOperandsSubnormalsAreToldFromBoth) {
  const Case c = FlushedProduct();
  auto inputs = testing::NormalInputs(c, 7);
  // By turns a term reads a subnormal number of a, one of b, and none; all are as large.
  for (auto& [name, tensor] : inputs) {
    for (int64_t i = 0; i < tensor.size(); ++i) {
      const int64_t term = name == "a" ? i % 24 : i / 12;
      const bool small = term % 3 == (name == "a" ? 0 : 1);
      const int exponent = term % 3 == 2 ? -54 : small ? -128 : 20;
      tensor.Set(i, RoundTo(std::ldexp(tensor.At(i), exponent), Bfloat16()));
    }
  }
  const std::string end = std::string(";prod=exact;acc=float32") + kTail;
  const Classification one = Classify(c, inputs, "in=b:as_is+daz" + end);
  EXPECT_THAT(WordsOf(one.facets_in.at("a"), InWord), ElementsAre("as_is")) << one.label;
  EXPECT_THAT(WordsOf(one.facets_in.at("b"), InWord), ElementsAre("as_is+daz")) << one.label;
  const Classification both = Classify(c, inputs, "in=a:as_is+daz,b:as_is+daz" + end);
  EXPECT_THAT(WordsOf(both.facets_in.at("a"), InWord), ElementsAre("as_is+daz")) << both.label;
  EXPECT_THAT(WordsOf(both.facets_in.at("b"), InWord), ElementsAre("as_is+daz")) << both.label;
}

TEST(Flushing, NumbersThatKeepTheirSubnormalsAreNotSuspected) {
  const Case c = FlushedProduct();
  for (const Sizes sizes : {kSubnormalOperands, kSubnormalSums, kBoth, Sizes{.a = 0, .b = 0}}) {
    const Classification found =
        Classify(c, FlushedInputs(c, sizes), std::string("in=as_is;prod=exact;acc=float32") + kTail);
    ASSERT_FALSE(found.models.empty());
    for (const PrecisionModel& model : found.models)
      EXPECT_THAT(model.Name(), Not(::testing::ContainsRegex("[+](daz|ftz)")));
  }
}

TEST(Flushing, IsAskedBesideNarrowFormatsThatLeaveZerosToo) {
  // Nothing but zeros: float16 operands explain them as well as dropped subnormals do.
  Case c = testing::MatmulCase(DType::kFloat32, DType::kFloat32, 12, 24, 12);
  auto inputs = testing::NormalInputs(c, 7);
  TensorData& a = inputs.at("a");
  for (int64_t i = 0; i < a.size(); ++i) a.Set(i, std::copysign(0x1p-130, a.At(i)));
  const Classification found =
      Classify(c, inputs, "in=a:as_is+daz,b:as_is+daz;prod=exact;acc=float32;mid=none;out=float32_rne");
  EXPECT_THAT(WordsOf(found.facets_in.at("a"), InWord), ::testing::Contains("as_is+daz"));
  EXPECT_THAT(WordsOf(found.facets_in.at("a"), InWord),
              ::testing::Contains(::testing::StartsWith("float16")));
}

TEST(Flushing, WhatNoModelExplainsStaysUnmodelled) {
  const Case c = FlushedProduct();
  const auto inputs = FlushedInputs(c, kSubnormalOperands);
  const auto parsed = ParsePrecisionModel(kDaz + "float32+ftz" + kTail);
  auto values = *EmulateProgram(c, inputs, *parsed, "sequential");
  TensorData& product = values.at("product");
  product.Set(5, product.At(5) == 0 ? 0x1p-100 : product.At(5) * 1.5);
  const auto oracle = OpenCaseOracle(c, inputs);
  EXPECT_EQ(ClassifyValue(**oracle, "product", product).kind, ClassificationKind::kUnmodelled);
}

}  // namespace
}  // namespace ulpscope
