// Fast computations have to give the same as step-by-step ones: sums in the lanes of the processor, and
// enclosures from plain sums.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "oracles/dot/many_sums.h"
#include "oracles/dot/sum.h"
#include "oracles/emulated.h"
#include "oracles/enclosure.h"
#include "oracles/evaluate.h"
#include "oracles/expand.h"
#include "oracles/hypothesis.h"
#include "oracles/oracle.h"
#include "tests/support/cases.h"

namespace ulpscope {
namespace {

/// Factors over all of float32, zeros and infinities among them, or near to one another.
double DrawFactor(std::mt19937_64* random, bool wild) {
  if (!wild) return static_cast<float>(std::normal_distribution<double>()(*random));
  if ((*random)() % 16 == 0) return 0;
  if ((*random)() % 256 == 0) return (*random)() % 2 == 0 ? kInf : -kInf;
  const auto bits = static_cast<uint32_t>((*random)());
  const auto value = std::bit_cast<float>(bits);
  return std::isnan(value) ? 1 : value;
}

struct LanesRow {
  const char *acc, *prod;
};

class Lanes : public ::testing::TestWithParam<LanesRow> {};

TEST_P(Lanes, GiveWhatStepsGive) {
  const AccSpec acc = *ParseAcc(GetParam().acc);
  const RoundSpec prod = *ParseProd(GetParam().prod);
  if (!ManySums::Can(acc, prod)) GTEST_SKIP() << "this processor has no such steps";
  std::mt19937_64 random(7);
  int64_t compared = 0, special = 0;
  for (const bool wild : {false, true}) {
    for (const size_t terms : {1u, 2u, 3u, 7u, 8u, 33u, 100u}) {
      for (const size_t elements : {1u, 8u, 9u, 37u}) {
        for (const size_t passes : {1u, 3u}) {
          ManySums many(elements, passes, terms);
          std::vector<std::vector<std::vector<SumTerm>>> all(elements);
          for (size_t i = 0; i < elements; ++i) {
            all[i].resize(passes);
            for (size_t pass = 0; pass < passes; ++pass) {
              for (size_t k = 0; k < terms; ++k) {
                const double a = DrawFactor(&random, wild), b = DrawFactor(&random, wild);
                ASSERT_TRUE(many.Set(i, pass, k, a, b));
                SumTerm term = TermOf(a, b);
                if (prod.format != nullptr) term.value = {.hi = prod.Apply(term.value), .lo = 0};
                all[i][pass].push_back(term);
              }
            }
          }
          for (const SumOrder& order : SumOrders(AddendOrders::kNone)) {
            const auto sums = many.Sum(acc, prod, order);
            ASSERT_EQ(sums.size(), elements);
            for (size_t i = 0; i < elements; ++i) {
              const double expected = EmulatedArithmetic::SumPasses(acc, order, all[i], nullptr).hi;
              if (std::isnan(expected)) {
                EXPECT_TRUE(std::isnan(sums[i]));
              } else {
                ASSERT_EQ(sums[i], expected) << order.name << " of " << terms << " terms, element " << i;
              }
              ++compared;
              special += std::isfinite(expected) ? 0 : 1;
            }
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 10000);
  EXPECT_GT(special, 100);
}

INSTANTIATE_TEST_SUITE_P(Sums, Lanes,
                         ::testing::Values(LanesRow{"float32", "exact"}, LanesRow{"float32", "float32"},
                                           LanesRow{"float32_rz", "exact"}));

TEST(Lanes, RefuseWhatTheyDoNotCompute) {
  for (const char* acc : {"float64", "bfloat16", "float16_via_float32", "blockfma(8,24,rz)", "compensated",
                          "float32+ftz", "split_k(bfloat16,float32)", "exact"})
    EXPECT_FALSE(ManySums::Can(*ParseAcc(acc), RoundSpec{})) << acc;
  EXPECT_FALSE(ManySums::Can(*ParseAcc("float32"), *ParseProd("bfloat16")));
  EXPECT_FALSE(ManySums::Can(*ParseAcc("float32_rz"), *ParseProd("float32")));
  EXPECT_FALSE(ManySums(1, 1, 1).Set(0, 0, 0, 1 + 0x1p-30, 1));
}

Case Transposed() {
  Case c;
  c.id = "test/transposed";
  c.tensors = {testing::Tensor("a", DType::kFloat32, {2, 5, 70}),
               testing::Tensor("b", DType::kFloat32, {2, 19, 70})};
  c.program = {testing::MakeStep("transpose", {"b"}, "t",
                                 {{"dim0", testing::Integer(1)}, {"dim1", testing::Integer(2)}}),
               testing::MakeStep("matmul", {"a", "t"}, "product")};
  c.observe = {"product"};
  return c;
}

struct EnclosedRow {
  const char* name;
  Case c;
};

class Enclosed : public ::testing::TestWithParam<EnclosedRow> {};

/// Every interval of every model, once from plain sums and once from exact ones.
TEST_P(Enclosed, PlainSumsLeaveEveryIntervalAsItIs) {
  const Case& c = GetParam().c;
  auto inputs = testing::NormalInputs(c, 3);
  // A zero, an infinity and a large number have their own ways.
  TensorData& first = inputs.begin()->second;
  first.Set(0, 0);
  first.Set(first.size() - 1, RoundTo(0x1p120, *FormatOf(first.dtype)));
  first.Set(first.size() / 2, kInf);
  auto plan = Lower(c);
  ASSERT_TRUE(plan);
  const int node = plan->values.at("product");
  const ValuePath path = PathOf(*plan, node);
  EvaluationCache quick(*plan, inputs), exact(*plan, inputs);
  exact.raw.assign(exact.raw.size(), false);
  int64_t compared = 0, plain = 0;
  const DType stored = plan->nodes[static_cast<size_t>(node)].dtype;
  for (const Choice& choice : EnumerateChoices(*plan, path, stored)) {
    const Binding binding = BindingOf(*plan, path, choice);
    Evaluator<EnclosureArithmetic> fast(*plan, inputs, EnclosureArithmetic(&binding, &quick));
    Evaluator<EnclosureArithmetic> slow(*plan, inputs, EnclosureArithmetic(&binding, &exact));
    for (int64_t i = 0; i < plan->size(node); i += 3) {
      const Interval x = fast.At(node, i), y = slow.At(node, i);
      const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
      ASSERT_TRUE(same(x.lo, y.lo) && same(x.hi, y.hi) && x.special == y.special)
          << ModelOf(*plan, path, choice).Name() << " element " << i << ": [" << x.lo << ", " << x.hi
          << "] and [" << y.lo << ", " << y.hi << "]";
      ++compared;
    }
    const auto sums = quick.Plain(path.root, binding);
    for (int64_t i = 0; i < plan->size(path.root); ++i) plain += sums && sums->At(i) != nullptr ? 1 : 0;
  }
  EXPECT_GT(compared, 1000);
  EXPECT_GT(plain, 1000);
}

TEST_P(Enclosed, WhatSurelyHoldsIsHeld) {
  const Case& c = GetParam().c;
  auto oracle = OpenCaseOracle(c, testing::NormalInputs(c, 5));
  ASSERT_TRUE(oracle);
  const DType stored = (*oracle)->Describe("product")->declared;
  const FloatFormat& format = *FormatOf(stored);
  const auto shape = (*oracle)->Describe("product")->shape;
  int64_t sure = 0, not_sure = 0;
  for (const auto& model : (*oracle)->Bank("product", stored)) {
    for (int64_t i = 0; i < ElementCount(shape); i += 5) {
      const double exact = (*oracle)->References("product", std::span(&i, 1)).front().hi;
      const Interval range = model->Enclose(i);
      for (const double share : {0.0, 0.5, 0.9, 0.999, 0.99999999, 1.0, 1.01}) {
        for (const double end : {range.lo, range.hi}) {
          const double value = model->Store(RoundTo(exact + share * (end - exact), format));
          if (RoundTo(value, format) != value || model->Store(value) != value) continue;
          if (!model->SurelyHolds(i, value)) {
            ++not_sure;
            continue;
          }
          ++sure;
          ASSERT_TRUE(range.Holds(value)) << model->model().Name() << " " << value;
          ASSERT_TRUE(model->Possible(i).empty());
        }
      }
    }
    model->Forget();
  }
  EXPECT_GT(sure, 1000);
  EXPECT_GT(not_sure, 1000);
}

INSTANTIATE_TEST_SUITE_P(
    Products, Enclosed,
    ::testing::Values(
        EnclosedRow{"float32", testing::MatmulCase(DType::kFloat32, DType::kFloat32, 9, 65, 11)},
        EnclosedRow{"bfloat16", testing::MatmulCase(DType::kBfloat16, DType::kBfloat16, 4, 200, 9)},
        EnclosedRow{"float64", testing::MatmulCase(DType::kFloat64, DType::kFloat64, 3, 40, 8)},
        EnclosedRow{"short", testing::MatmulCase(DType::kFloat32, DType::kFloat32, 5, 6, 17)},
        EnclosedRow{"transposed", Transposed()}),
    [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace ulpscope
