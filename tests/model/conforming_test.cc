// The part of the definition of a conforming computation that each question leaves, and what it adds.
#include "harness/model/conforming.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "harness/num/float_format.h"
#include "tests/support/models.h"

namespace ulpscope {
namespace {

using testing::Model;

PrecisionModel Reading(const std::string& operand, const std::string& word) {
  PrecisionModel model = Model("float32", "none");
  model.in = testing::Ins({{operand, word}});
  return model;
}

PrecisionModel Multiplying(const std::string& word) {
  PrecisionModel model = Model("float32", "none");
  model.prod = testing::Prod(word);
  return model;
}

PrecisionModel Rounding(const std::string& step, const std::string& word) {
  PrecisionModel model = Model("float32", "none");
  model.cuts = testing::Cuts({{step, word}});
  return model;
}

/// Models that differ from float32 throughout in one thing, by what that is.
const std::map<std::string, PrecisionModel>& Models() {
  static const std::map<std::string, PrecisionModel> models{
      {"float32", Model("float32", "none")},
      {"exact", Model("exact", "none")},
      {"float64", Model("float64", "none")},
      {"cut", Model("float32_rz", "none")},
      {"unit", Model("blockfma(8,24,rz)", "none")},
      {"narrow", Model("bfloat16", "none")},
      {"through float32", Model("float64", "float32")},
      {"through 26 bits", Model("float64", "p26")},
      {"through bfloat16", Model("float32", "bfloat16")},
      {"truncating store", Model("float32", "none", "float32_rz")},
      {"neighbour", Model("float32", "none", "float32_faithful")},
      {"flushing store", Model("float32", "none", "float32_rne+ftz")},
      {"daz", Reading("x", "as_is+daz")},
      {"narrow operand", Reading("x", "bfloat16_rne")},
      {"narrow number", Reading("scalar.mul", "bfloat16_rne")},
      {"number in float32", Reading("scalar.mul", "float32_rne")},
      {"products in float32", Multiplying("float32")},
      {"products in 24 bits", Multiplying("p24")},
      {"products in bfloat16", Multiplying("bfloat16")},
      {"step in float32", Rounding("h", "float32")},
      {"step in bfloat16", Rounding("h", "bfloat16")},
  };
  return models;
}

/// The names of those that conform, each behind a comma.
std::string Conforming(const FloatFormat& result, const Conformance& what) {
  std::string names;
  for (const auto& [name, model] : Models()) names += IsConforming(model, result, what) ? "," + name : "";
  return names;
}

TEST(Conforming, TheDefinition) {
  EXPECT_EQ(Conforming(Binary32(), {}),
            ",cut,exact,float32,float64,products in float32,through float32,unit");
}

TEST(Conforming, EachQuestionDiffersByWhatItSays) {
  EXPECT_EQ(Conforming(Binary32(), kRequested),
            ",exact,float32,float64,step in bfloat16,step in float32,through 26 bits,through float32");
  EXPECT_EQ(
      Conforming(Binary32(), kWritten),
      ",cut,exact,float32,float64,number in float32,products in float32,step in float32,through float32");
  EXPECT_EQ(Conforming(Binary32(), kDotProduct),
            ",cut,daz,exact,float32,float64,products in float32,through float32,unit");
  EXPECT_EQ(Conforming(Binary32(), kUpToStore),
            ",cut,exact,float32,float64,flushing store,neighbour,products in float32,through float32,"
            "truncating store,unit");
  EXPECT_EQ(Conforming(Binary32(), kSumAndStore),
            ",cut,exact,float32,float64,flushing store,neighbour,products in float32,unit");
  EXPECT_EQ(Conforming(Binary32(), kFloat32Throughout), ",exact,float32");
  EXPECT_EQ(Conforming(Binary32(), kFloat32Sums), ",float32,flushing store,neighbour,truncating store");
  EXPECT_EQ(Conforming(Binary32(), kNarrowSum), ",narrow");
}

TEST(Conforming, AWiderResultAsksForMoreAndANarrowNumberForLess) {
  EXPECT_EQ(Conforming(Binary64(), {}), ",exact,float64,through float32");
  EXPECT_EQ(Conforming(Binary64(), kRequested), ",exact,float64");
  EXPECT_FALSE(IsConforming(Models().at("products in float32"), Binary64(), kWritten));
  EXPECT_TRUE(IsConforming(Models().at("narrow number"), Bfloat16(), kWritten));
  EXPECT_FALSE(IsConforming(Models().at("narrow number"), Binary16(), kWritten));
  EXPECT_FALSE(IsConforming(Models().at("narrow operand"), Bfloat16(), kWritten)) << "a tensor is no number";
  EXPECT_FALSE(IsConforming(Reading("scalar.mul", "float16_rne"), Bfloat16(), kWritten))
      << "of a smaller range";
}

}  // namespace
}  // namespace ulpscope
