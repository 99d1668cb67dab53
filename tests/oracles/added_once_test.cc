// Sums of one term or two: which accumulators the store hides whatever the operands are, held against the roundings themselves.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <random>

#include "harness/base/find.h"
#include "harness/words/facets.h"
#include "oracles/oracle.h"
#include "tests/support/cases.h"

namespace ulpscope {
namespace {

using Words = std::vector<std::string>;

Words WordsAsExact(DType operand, DType store, bool product) {
  Case c;
  c.id = "test/once";
  const std::string out(Name(store));
  if (product) {
    c.tensors = {testing::Tensor("x", operand, {4, 1}), testing::Tensor("w", operand, {1, 4})};
    c.program = {testing::MakeStep("matmul", {"x", "w"}, "y", {{"out_dtype", testing::Text(out)}})};
  } else {
    c.tensors = {testing::Tensor("x", operand, {4, 2})};
    c.program = {testing::MakeStep("sum", {"x"}, "y",
                                   {{"dim", Attr{.value = int64_t{-1}}}, {"dtype", testing::Text(out)}})};
  }
  c.observe = {"y"};
  const auto oracle = OpenCaseOracle(c, testing::NormalInputs(c, 3));
  EXPECT_TRUE(oracle);
  const auto shape = (*oracle)->Describe("y");
  EXPECT_TRUE(shape);
  EXPECT_EQ(shape->declared, store);
  return WordsOf(shape->as_exact.acc);
}

/// The result of `word` on a sum that has one rounding to make, before the output rounding.
double Rounded(const std::string& word, double sum) {
  const AccSpec acc = *ParseAcc(word);
  if (acc.via_float32) sum = RoundTo(sum, Binary32());
  if (acc.format != nullptr) sum = RoundTo(sum, *acc.format, acc.rounding, acc.subnormals);
  for (const FloatFormat* format : {acc.partial, acc.combine}) {
    if (format != nullptr) sum = RoundTo(sum, *format);
  }
  return sum;
}

/// Numbers of `format` of all sizes that keep a binary64 sum or product of two exact; many near powers of two and ties.
std::vector<double> Numbers(const FloatFormat& format, std::mt19937_64* random) {
  std::vector<double> numbers;
  for (int i = 0; i < 400; ++i) {
    const int bits = 1 + static_cast<int>((*random)() % static_cast<uint64_t>(format.precision));
    const double most = std::ldexp(1.0, bits) - 1;
    const double significand = most - static_cast<double>((*random)() % 3 * ((*random)() % 2));
    const auto exponent = static_cast<int>((*random)() % 26) - 13;
    const double value = std::ldexp(std::max(significand, 1.0), exponent - bits);
    numbers.push_back(RoundTo((*random)() % 2 == 0 ? value : -value, format));
  }
  return numbers;
}

TEST(AddedOnce, TheStoreHidesWhatIsSaidToBeHidden) {
  std::mt19937_64 random(11);
  int64_t checked = 0, shown = 0, hidden = 0;
  for (const DType operand : {DType::kBfloat16, DType::kFloat16, DType::kFloat32}) {
    for (const DType store : {DType::kBfloat16, DType::kFloat16, DType::kFloat32}) {
      for (const bool product : {false, true}) {
        const Words words = WordsAsExact(operand, store, product);
        const FloatFormat &in = *FormatOf(operand), &out = *FormatOf(store);
        const auto numbers = Numbers(in, &random);
        for (const std::string& word : AccWords()) {
          const AccSpec acc = *ParseAcc(word);
          if (acc.exact() || acc.block > 0) continue;
          const bool same = Contains(words, word);
          int64_t differ = 0;
          for (const double a : numbers) {
            for (const double b : numbers) {
              // The sum of float32 numbers so far apart is no binary64 number.
              const double sum = product ? a * b : a + b;
              if (!product && operand == DType::kFloat32 && sum - a != b) continue;
              differ += RoundTo(Rounded(word, sum), out) == RoundTo(sum, out) ? 0 : 1;
              ++checked;
            }
          }
          if (same) {
            EXPECT_EQ(differ, 0) << word << " of " << (product ? "products" : "sums") << " of "
                                 << Name(operand) << " in " << Name(store);
          }
          hidden += same ? 1 : 0;
          shown += !same && differ > 0 ? 1 : 0;
        }
      }
    }
  }
  std::cout << checked << " sums and products; " << hidden << " accumulators are hidden, " << shown
            << " are not\n";
  EXPECT_GE(hidden, 60);
  EXPECT_GE(shown, 50);
}

TEST(AddedOnce, NamesTheOnesOfEachStore) {
  const Words sums = WordsAsExact(DType::kBfloat16, DType::kBfloat16, false);
  for (const char* word : {"float32", "float32_rz", "float64", "bfloat16", "bfloat16_via_float32"})
    EXPECT_TRUE(Contains(sums, word)) << word;
  // Another range, and another width.
  EXPECT_FALSE(Contains(sums, "float16"));
  const Words products = WordsAsExact(DType::kFloat16, DType::kFloat16, true);
  for (const char* word : {"float16", "float32", "blockfma(4,23,rz)", "blockfma(16,25,rne_float16)"})
    EXPECT_TRUE(Contains(products, word)) << word;
  // A float32 product has 48 bits.
  EXPECT_FALSE(Contains(WordsAsExact(DType::kFloat32, DType::kFloat16, true), "float32"));
}

}  // namespace
}  // namespace ulpscope
