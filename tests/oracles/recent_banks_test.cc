// The candidate models of a program are made once for all cases that run it on other inputs, and for none
// with another program.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "oracles/oracle.h"
#include "tests/support/cases.h"

namespace ulpscope {
namespace {

Case DotProduct(DType dtype, int64_t length) {
  Case c;
  c.tensors = {testing::Tensor("a", dtype, {length}), testing::Tensor("b", dtype, {length})};
  c.program = {testing::MakeStep("matmul", {"a", "b"}, "y")};
  c.observe = {"y"};
  return c;
}

/// Addresses and names of a value's candidate models.
struct Seen {
  std::set<const PrecisionModel*> places;
  std::set<std::string> names;
};

Seen BankOfOpened(const Case& c, uint64_t seed, DType observed) {
  const auto oracle = OpenCaseOracle(c, testing::NormalInputs(c, seed));
  EXPECT_TRUE(oracle);
  Seen seen;
  for (const auto& hypothesis : (*oracle)->Bank("y", observed)) {
    seen.places.insert(&hypothesis->model());
    seen.names.insert(hypothesis->model().Name());
  }
  EXPECT_GT(seen.places.size(), 20u);
  return seen;
}

TEST(RecentBanks, OneProgramHasOneBankWhateverItsInputs) {
  Case c = DotProduct(DType::kFloat32, 8);
  const Seen first = BankOfOpened(c, 1, DType::kFloat32);
  c.id = "another/case";
  EXPECT_EQ(BankOfOpened(c, 2, DType::kFloat32).places, first.places);
}

TEST(RecentBanks, HowManyElementsAndWhereTheyLieIsNoMatter) {
  const auto product = [](int64_t m, int64_t k, int64_t n, const char* op) {
    Case c;
    c.tensors = {
        testing::Tensor("a", DType::kBfloat16, {m, k}),
        testing::Tensor("b", DType::kBfloat16, op == std::string("linear") ? Shape{n, k} : Shape{k, n})};
    c.program = {testing::MakeStep(op, {"a", "b"}, "y")};
    c.observe = {"y"};
    return BankOfOpened(c, 1, DType::kBfloat16);
  };
  const Seen first = product(3, 24, 5, "matmul");
  EXPECT_EQ(product(7, 24, 2, "matmul").places, first.places);
  EXPECT_NE(product(3, 200, 5, "matmul").names, first.names) << "long sums are split";
  EXPECT_EQ(product(3, 24, 5, "linear").names, first.names);
}

TEST(RecentBanks, AnotherProgramHasItsOwn) {
  const Seen first = BankOfOpened(DotProduct(DType::kFloat32, 8), 1, DType::kFloat32);
  const Seen stored = BankOfOpened(DotProduct(DType::kFloat32, 8), 1, DType::kBfloat16);
  const Seen narrow = BankOfOpened(DotProduct(DType::kBfloat16, 8), 1, DType::kFloat32);
  const Seen longer = BankOfOpened(DotProduct(DType::kFloat32, 9), 1, DType::kFloat32);
  EXPECT_NE(stored.names, first.names);
  EXPECT_NE(narrow.names, first.names);
  EXPECT_NE(longer.places, first.places);
  // Candidate models whose place others took are made anew, and are the same.
  for (int64_t length = 10; length < 40; ++length)
    BankOfOpened(DotProduct(DType::kFloat32, length), 1, DType::kFloat32);
  EXPECT_EQ(BankOfOpened(DotProduct(DType::kFloat32, 8), 3, DType::kFloat32).names, first.names);
}

}  // namespace
}  // namespace ulpscope
