// What was rounded on the way to one value, where nothing but that value was observed: programs computed by hand here, with some of
// their roundings left out.
#include "harness/judge/asked.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "harness/num/float_format.h"
#include "oracles/oracle.h"
#include "tests/support/cases.h"

namespace ulpscope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::MakeStep;
using testing::NormalInputs;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

using Rounded = std::set<std::string>;

/// p = x * y, s = p + z, t = s * x, result = t + p, in bfloat16; `middle` stands between s and t.
struct Program {
  Case program;
  std::map<std::string, TensorData> inputs;

  explicit Program(int64_t count, const std::string& middle = "") {
    program.id = "asked~opened";
    program.companion_of = "asked";
    for (const char* name : {"x", "y", "z"})
      program.tensors.push_back(testing::Tensor(name, DType::kBfloat16, {count}));
    program.program = {MakeStep("mul", {"x", "y"}, "p"), MakeStep("add", {"p", "z"}, "s")};
    if (!middle.empty()) program.program.push_back(MakeStep(middle, {"s"}, "m"));
    program.program.push_back(MakeStep("mul", {middle.empty() ? "s" : "m", "x"}, "t"));
    program.program.push_back(MakeStep("add", {"t", "p"}, "result"));
    for (const Step& step : program.program) program.observe.push_back(step.as);
    inputs = NormalInputs(program, 11);
  }

  double In(const char* name, int64_t i) const { return inputs.at(name).At(i); }

  /// The result where the values of `rounded` are rounded before they are read; "p for s": for that use alone.
  TensorData Result(const Rounded& rounded) const {
    const auto read = [&](double value, const std::string& name) {
      return rounded.contains(name) ? RoundTo(value, Bfloat16()) : value;
    };
    TensorData result = TensorData::Zeros(DType::kBfloat16, inputs.at("x").shape);
    for (int64_t i = 0; i < result.size(); ++i) {
      const float p = static_cast<float>(In("x", i)) * static_cast<float>(In("y", i));
      const double p_for_s = rounded.contains("p for s") ? RoundTo(p, Bfloat16()) : read(p, "p");
      const float s = static_cast<float>(p_for_s) + static_cast<float>(In("z", i));
      const float t = static_cast<float>(read(s, "s")) * static_cast<float>(In("x", i));
      const float sum = static_cast<float>(read(t, "t")) + static_cast<float>(read(p, "p"));
      result.Set(i, RoundTo(sum, Bfloat16()));
    }
    return result;
  }

  std::optional<Classification> Judge(const TensorData& observed) const {
    OracleCounts counts;
    return JudgeAsAsked(
        program, inputs, "result", observed,
        [](const Case& piece, std::map<std::string, TensorData> in, const PieceOptions& options) {
          return OpenCaseOracle(piece, std::move(in),
                                {.unrounded = options.unrounded, .as_written = options.as_written});
        },
        &counts);
  }
};

constexpr int64_t kAskedCount = 512;

TEST(Asked, EachSetOfRoundingsIsFound) {
  const Program program(kAskedCount);
  const std::vector<std::string> names{"p", "s", "t"};
  int checked = 0;
  for (size_t bits = 0; bits < 7; ++bits) {  // 7 is what is written
    Rounded rounded;
    for (size_t i = 0; i < names.size(); ++i) {
      if ((bits >> i & 1) != 0) rounded.insert(names[i]);
    }
    const auto found = program.Judge(program.Result(rounded));
    ASSERT_TRUE(found) << bits;
    EXPECT_EQ(found->piece, "asked");
    EXPECT_TRUE(found->rests_on_likelihood);
    for (const auto& name : names) {
      EXPECT_THAT(found->on_the_way.at(name), ElementsAre(rounded.contains(name) ? "rounded" : "unrounded"))
          << name << " in " << bits;
      ++checked;
    }
  }
  EXPECT_EQ(checked, 21);
}

TEST(Asked, TheProgramAsItIsWrittenHasNothingToTell) {
  const Program program(kAskedCount);
  EXPECT_FALSE(program.Judge(program.Result({"p", "s", "t"})));
}

TEST(Asked, AValueRoundedForOneUseIsBothRoundedAndNot) {
  const Program program(kAskedCount);
  const auto found = program.Judge(program.Result({"p for s", "s"}));
  ASSERT_TRUE(found);
  EXPECT_THAT(found->on_the_way,
              UnorderedElementsAre(Pair("p", UnorderedElementsAre("rounded", "unrounded")),
                                   Pair("s", ElementsAre("rounded")), Pair("t", ElementsAre("unrounded"))));
}

TEST(Asked, WhatOnlyMostResultsFollowAccusesNobody) {
  const Program program(kAskedCount);
  TensorData observed = program.Result({});
  for (int64_t i = 0; i < observed.size(); i += 10) observed.Set(i, observed.At(i) * 1.25);
  EXPECT_FALSE(program.Judge(observed));
}

TEST(Asked, AFewElementsTellNothing) {
  const Program program(20);
  EXPECT_FALSE(program.Judge(program.Result({})));
}

TEST(Asked, RoundingsThatGiveTheSameAreLeftOpen) {
  // The negative of a rounded number is the rounded negative.
  const Program program(kAskedCount, "neg");
  TensorData observed = program.Result({});
  {
    const Program plain(kAskedCount);
    for (int64_t i = 0; i < observed.size(); ++i) {
      const float p = static_cast<float>(plain.In("x", i)) * static_cast<float>(plain.In("y", i));
      const auto m = static_cast<float>(RoundTo(-(p + static_cast<float>(plain.In("z", i))), Bfloat16()));
      observed.Set(i, RoundTo(m * static_cast<float>(plain.In("x", i)) + p, Bfloat16()));
    }
  }
  const auto found = program.Judge(observed);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->on_the_way.at("s"), UnorderedElementsAre("rounded", "unrounded"));
  EXPECT_THAT(found->on_the_way.at("m"), UnorderedElementsAre("rounded", "unrounded"));
  EXPECT_THAT(found->on_the_way.at("p"), ElementsAre("unrounded"));
  EXPECT_EQ(DescribeOnTheWay(found->on_the_way, false), "does not round p or t on the way");
}

TEST(Asked, SentencesNameTheShorterList) {
  const auto say = [](std::map<std::string, std::vector<std::string>> on_the_way) {
    return DescribeOnTheWay(on_the_way, false);
  };
  EXPECT_EQ(say({{"a", {"unrounded"}}, {"b", {"unrounded", "rounded"}}}), "rounds nothing on the way");
  EXPECT_EQ(say({{"a", {"unrounded"}}, {"b", {"rounded"}}}), "rounds nothing but b on the way");
  EXPECT_EQ(say({{"a", {"unrounded"}}, {"b", {"rounded"}}, {"c", {"rounded"}}}),
            "does not round a on the way");
  EXPECT_EQ(say({{"a", {"rounded", "unrounded"}}, {"b", {"unrounded", "rounded"}}}),
            "does not round all that is written on the way");
  EXPECT_EQ(DescribeOnTheWay({{"a", {"unrounded"}}}, true), "round nothing on the way");
}

}  // namespace
}  // namespace ulpscope
