// cause.patch: zeros of another sign are a cause of a difference.
#include <gtest/gtest.h>

#include "harness/judge/parting.h"
#include "tests/judge/make.h"

namespace ulpscope {
namespace {

TEST(SignsOfZeros, AreACause) {
  Classification one = testing::Classify({testing::Model("float32", "none")});
  Classification other = one;
  one.wrong_zeros = 2;
  const auto found = FindDeeds(testing::MakeCase(), "product", testing::Value(one), testing::Value(other));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->a.singular, "gives zeros of product the sign of their first operand");
  EXPECT_TRUE(found->b.Nothing());
  EXPECT_FALSE(FindDeeds(testing::MakeCase(), "product", testing::Value(one), testing::Value(one)));
}

}  // namespace
}  // namespace ulpscope
