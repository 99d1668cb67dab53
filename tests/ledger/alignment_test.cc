// The step in which two programs differ, on exact values that are written out.
#include "harness/ledger/alignment.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace ulpscope {
namespace {

ProgramValue Value(const std::string& name, const std::string& op, const std::vector<std::string>& operands,
                   const std::vector<double>& numbers, DType dtype = DType::kFloat32) {
  ProgramValue value{.name = name, .op = op, .operands = operands, .dtype = dtype};
  value.shape = {static_cast<int64_t>(numbers.size())};
  for (size_t i = 0; i < numbers.size(); ++i) {
    value.elements.push_back(static_cast<int64_t>(i));
    value.references.push_back({.hi = numbers[i], .kind = ReferenceKind::kExact});
  }
  return value;
}

const ProgramValue kX = Value("x", "", {}, {1, 2, 4});
const std::vector<ResultPair> kResults = {{.f = "y", .g = "y"}};

TEST(Compare, WhatIsNotKnownCountsForBoth) {
  const Reference third{.hi = 1, .lo = 0x1p-67, .err = 0x1p-67, .kind = ReferenceKind::kCertified};
  const Reference whole{.hi = 1, .kind = ReferenceKind::kExact};
  EXPECT_EQ(Compare(third, whole, 0), Agreement::kEqual);
  EXPECT_EQ(Compare({.hi = 1, .lo = 0x1p-66, .err = 0x1p-67, .kind = ReferenceKind::kCertified}, whole, 0),
            Agreement::kDiffers);
  EXPECT_EQ(
      Compare({.hi = 1, .lo = 0x1p-66, .err = 0x1p-67, .kind = ReferenceKind::kCertified}, whole, 0x1p-67),
      Agreement::kEqual);
  EXPECT_EQ(Compare({.kind = ReferenceKind::kUndecided}, whole, 1), Agreement::kUndecided);
}

TEST(Compare, SpecialValuesAreEqualToThemselvesAlone) {
  const double infinity = std::numeric_limits<double>::infinity(),
               nan = std::numeric_limits<double>::quiet_NaN();
  const auto domain = [](double value) { return Reference{.hi = value, .kind = ReferenceKind::kDomain}; };
  EXPECT_EQ(Compare(domain(infinity), domain(infinity), 0), Agreement::kEqual);
  EXPECT_EQ(Compare(domain(infinity), domain(-infinity), 1), Agreement::kDiffers);
  EXPECT_EQ(Compare(domain(nan), domain(nan), 0), Agreement::kEqual);
  EXPECT_EQ(Compare(domain(nan), {.hi = 1, .kind = ReferenceKind::kExact}, infinity), Agreement::kDiffers);
}

TEST(Align, OfEqualValuesTheOneOfTheSameDtypeIsTaken) {
  const ExactProgram f = {kX, Value("wide", "cast", {"x"}, {1, 2, 4}, DType::kFloat64),
                          Value("y", "mul", {"wide"}, {2, 4, 8})};
  const ExactProgram g = {kX, Value("other", "cast", {"x"}, {1, 2, 4}, DType::kFloat64),
                          Value("y", "mul", {"x"}, {2, 4, 8}), Value("z", "mul", {"x"}, {2, 4, 7})};
  EXPECT_EQ(Align(g, f, kResults), (std::vector<int>{0, 1, 2, -1}));
}

TEST(Align, WhatIsInsideOfAnOpIsTakenLast) {
  ProgramValue inside = Value("y.var", "inside", {}, {2, 4, 8});
  inside.is_inside = true;
  const ProgramValue step = Value("v", "mul", {"x"}, {2, 4, 8}, DType::kFloat64);
  const ExactProgram g = {kX, Value("var", "mul", {"x"}, {2, 4, 8})};
  EXPECT_EQ(Align(g, {kX, inside, step}, {}), (std::vector<int>{0, 2}));
  EXPECT_EQ(Align(g, {kX, inside}, {}), (std::vector<int>{0, 1}));
}

TEST(FindParting, EqualResultsPartNowhereWhateverIsOnTheWay) {
  const ExactProgram f = {kX, Value("a", "mul", {"x"}, {2, 4, 8}), Value("y", "add", {"a", "x"}, {3, 6, 12})};
  const ExactProgram g = {kX, Value("b", "square", {"x"}, {1, 4, 16}), Value("y", "div", {"b"}, {3, 6, 12})};
  EXPECT_FALSE(FindParting(f, g, kResults).has_value());
}

TEST(FindParting, NamesTheStepWithKnownOperandsAndTheFirstElement) {
  const ExactProgram f = {kX, Value("a", "mul", {"x"}, {2, 4, 8}), Value("s", "add", {"a"}, {3, 5, 9}),
                          Value("y", "mul", {"s"}, {6, 10, 18})};
  const ExactProgram g = {kX, Value("a", "mul", {"x"}, {2, 4, 8}), Value("s", "add", {"a"}, {3, 6, 9}),
                          Value("y", "mul", {"s"}, {6, 12, 18})};
  const auto found = FindParting(f, g, kResults);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->step, "s");
  EXPECT_EQ(found->of_f, "s");
  EXPECT_EQ(found->element, 1);
  EXPECT_EQ(found->f.hi, 5);
  EXPECT_EQ(found->g.hi, 6);
}

TEST(FindParting, ADetourThatComesBackIsNoDifference) {
  // g subtracts and adds again before the step that differs.
  const ExactProgram f = {kX, Value("a", "mul", {"x"}, {2, 4, 8}), Value("y", "mul", {"a"}, {4, 8, 16})};
  const ExactProgram g = {kX, Value("less", "sub", {"x"}, {0, 1, 3}),
                          Value("b", "add", {"less", "x"}, {2, 4, 8}), Value("y", "mul", {"b"}, {4, 8, 15})};
  const auto found = FindParting(f, g, kResults);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->step, "y");
  EXPECT_EQ(found->element, 2);
}

TEST(FindParting, AStepThatTheOtherHasNotIsNamedAndALaterValueShown) {
  const ExactProgram f = {kX, Value("p", "exp", {"x"}, {3, 7, 54}), Value("y", "mul", {"p"}, {6, 14, 108})};
  const ExactProgram g = {kX, Value("scaled", "mul", {"x"}, {0.5, 1, 2}),
                          Value("p", "exp", {"scaled"}, {1.6, 2.7, 7}),
                          Value("y", "mul", {"p"}, {3.2, 5.4, 14})};
  const auto found = FindParting(f, g, kResults);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->step, "scaled");
  EXPECT_EQ(found->of_f, "");
  EXPECT_EQ(found->at_g, "p");
  EXPECT_EQ(found->f.hi, 3);
}

TEST(FindParting, AResultThatIsAnotherValueOfTheOtherIsTheDifference) {
  const ExactProgram f = {kX, Value("var", "mul", {"x"}, {4, 9, 16}), Value("y", "sqrt", {"var"}, {2, 3, 4})};
  const ExactProgram g = {kX, Value("y", "mul", {"x"}, {4, 9, 16})};
  const auto found = FindParting(f, g, kResults);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->step, "y");
  EXPECT_EQ(found->f.hi, 2);
  EXPECT_EQ(found->g.hi, 4);
}

TEST(FindParting, AViewOfWhatIsKnownIsKnown) {
  ProgramValue turned = Value("turned", "transpose", {"a"}, {8, 4, 2});
  turned.is_view = true;
  const ExactProgram f = {kX, Value("a", "mul", {"x"}, {2, 4, 8}), Value("y", "add", {"a"}, {3, 5, 9})};
  const ExactProgram g = {kX, Value("a", "mul", {"x"}, {2, 4, 8}), turned,
                          Value("y", "add", {"turned"}, {9, 5, 4})};
  const auto found = FindParting(f, g, kResults);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->step, "y");
}

}  // namespace
}  // namespace ulpscope
