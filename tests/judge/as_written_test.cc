// What is written beside what was computed: an inner rounding shows in the elements that one rounding gives otherwise.
#include "harness/judge/as_written.h"

#include <gtest/gtest.h>

#include "harness/judge/classify.h"
#include "harness/num/float_format.h"
#include "oracles/oracle.h"
#include "tests/support/cases.h"

namespace ulpscope {
namespace {

constexpr int64_t kWrittenRows = 8, kWrittenTerms = 32, kWrittenColumns = 16;

/// linear with a bias, all of it in bfloat16.
struct Linear {
  Case program;
  std::map<std::string, TensorData> inputs;
  TensorData once = TensorData::Zeros(DType::kBfloat16, {kWrittenRows, kWrittenColumns}), twice = once;

  Linear() {
    program.id = "linear";
    program.tensors = {testing::Tensor("x", DType::kBfloat16, {kWrittenRows, kWrittenTerms}),
                       testing::Tensor("w", DType::kBfloat16, {kWrittenColumns, kWrittenTerms}),
                       testing::Tensor("b", DType::kBfloat16, {kWrittenColumns})};
    program.program = {testing::MakeStep("linear", {"x", "w", "b"}, "y")};
    program.observe = {"y"};
    inputs = testing::NormalInputs(program, 7);
    for (int64_t i = 0; i < kWrittenRows * kWrittenColumns; ++i) {
      float sum = 0;
      for (int64_t k = 0; k < kWrittenTerms; ++k)
        sum += static_cast<float>(inputs.at("x").At(i / kWrittenColumns * kWrittenTerms + k) *
                                  inputs.at("w").At(i % kWrittenColumns * kWrittenTerms + k));
      const auto bias = static_cast<float>(inputs.at("b").At(i % kWrittenColumns));
      once.Set(i, RoundTo(sum + bias, Bfloat16()));
      twice.Set(i, RoundTo(static_cast<float>(RoundTo(sum, Bfloat16())) + bias, Bfloat16()));
    }
  }
};

TEST(AsWritten, ARoundedProductShowsWhereOneRoundingGivesSomethingElse) {
  const Linear linear;
  const auto written = OpenCaseOracle(linear.program, linear.inputs, {.as_written = true});
  ASSERT_TRUE(written);
  Classification rounded;
  ShowAsWritten(**written, "y", linear.twice, &rounded);
  int64_t differ = 0;
  for (int64_t i = 0; i < linear.once.size(); ++i) differ += linear.once.At(i) != linear.twice.At(i) ? 1 : 0;
  ASSERT_GT(differ, 0);
  EXPECT_EQ(rounded.shown_count, differ);
  EXPECT_EQ(rounded.shown_of, linear.once.size());
  ASSERT_EQ(rounded.shown_by.size(), rounded.as_written.size());
  for (size_t k = 0; k < rounded.shown_by.size(); ++k)
    EXPECT_EQ(rounded.as_written[k], linear.once.At(rounded.shown_by[k]));
  Classification plain;
  ShowAsWritten(**written, "y", linear.once, &plain);
  EXPECT_EQ(plain.shown_count, 0);
}

TEST(AsWritten, WhatMayBeWrittenIsNotShown) {
  const Linear linear;
  const auto oracle = OpenCaseOracle(linear.program, linear.inputs);
  ASSERT_TRUE(oracle);
  EXPECT_TRUE(IsAsWritten(ClassifyValue(**oracle, "y", linear.once)));
  EXPECT_FALSE(IsAsWritten(ClassifyValue(**oracle, "y", linear.twice)));
}

/// What every kernel does with a Python number and a 16-bit tensor is as it is written: the number as a double or in float32, and the
/// product rounded once, or by way of float32.
TEST(AsWritten, ANumberInFloat32IsAsWritten) {
  Case c;
  c.id = "scaled";
  c.tensors = {testing::Tensor("x", DType::kBfloat16, {64, 64})};
  c.program = {testing::MakeStep("mul", {"x"}, "y")};
  c.program[0].of.push_back({.name = {}, .scalar = Attr{1.1}});
  c.observe = {"y"};
  const auto inputs = testing::NormalInputs(c, 3);
  const auto written = OpenCaseOracle(c, inputs, {.as_written = true});
  ASSERT_TRUE(written);
  TensorData once = TensorData::Zeros(DType::kBfloat16, {64, 64}), twice = once, narrow = once;
  int64_t differ = 0;
  for (int64_t i = 0; i < once.size(); ++i) {
    const double x = inputs.at("x").At(i);
    once.Set(i, RoundTo(x * 1.1, Bfloat16()));
    twice.Set(i, RoundTo(static_cast<float>(x) * 1.1f, Bfloat16()));
    narrow.Set(i, RoundTo(x * RoundTo(1.1, Bfloat16()), Bfloat16()));
    differ += once.At(i) != twice.At(i) ? 1 : 0;
  }
  EXPECT_GT(differ, 0) << "the two are not told apart here";
  const auto misses = [&](const TensorData& observed) {
    Classification found;
    ShowAsWritten(**written, "y", observed, &found);
    EXPECT_EQ(found.shown_of, observed.size());
    return found.shown_count;
  };
  EXPECT_EQ(misses(once), 0);
  EXPECT_EQ(misses(twice), 0);
  EXPECT_GT(misses(narrow), 500);
}

}  // namespace
}  // namespace ulpscope
