// What was rounded on the way to one value, where nothing but that value was observed: programs computed by hand here, with some of
// their roundings left out.
#include "harness/judge/asked.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
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

TEST(Asked, NamesTheStepThatReadsAValueUnroundedWhereOthersReadItRounded) {
  const Program program(kAskedCount);
  const auto found = program.Judge(program.Result({"p for s", "s"}));
  ASSERT_TRUE(found);
  EXPECT_THAT(found->on_the_way,
              UnorderedElementsAre(Pair("p", ElementsAre("split", "result")),
                                   Pair("s", ElementsAre("rounded")), Pair("t", ElementsAre("unrounded"))));
}

TEST(Asked, ANormThatSumsRegistersAndScalesWhatItStoredIsNamedSo) {
  constexpr int64_t kRows = 64, kColumns = 8;
  Case program;
  program.id = "norm~opened";
  program.companion_of = "norm";
  for (const char* name : {"x", "y"})
    program.tensors.push_back(testing::Tensor(name, DType::kBfloat16, {kRows, kColumns}));
  program.program = {
      MakeStep("add", {"x", "y"}, "h"),
      MakeStep("cast", {"h"}, "wide", {{"dtype", testing::Text("float32")}}),
      MakeStep("mul", {"wide", "wide"}, "square"),
      MakeStep("mean", {"square"}, "variance", {{"dim", testing::Integer(-1)}, {"keepdim", Attr{true}}}),
      MakeStep("rsqrt", {"variance"}, "scale"),
      MakeStep("mul", {"wide", "scale"}, "normed"),
      MakeStep("cast", {"normed"}, "out", {{"dtype", testing::Text("bfloat16")}})};
  for (const Step& step : program.program) program.observe.push_back(step.as);
  const auto inputs = NormalInputs(program, 5);
  const auto computed = [&](bool sums_rounded, bool scales_rounded) {
    TensorData out = TensorData::Zeros(DType::kBfloat16, {kRows, kColumns});
    for (int64_t row = 0; row < kRows; ++row) {
      float h[kColumns], sum = 0;
      for (int64_t k = 0; k < kColumns; ++k) {
        const int64_t i = row * kColumns + k;
        h[k] = static_cast<float>(inputs.at("x").At(i)) + static_cast<float>(inputs.at("y").At(i));
        const auto read = sums_rounded ? static_cast<float>(RoundTo(h[k], Bfloat16())) : h[k];
        sum += read * read;
      }
      const float scale = 1 / std::sqrt(sum / kColumns);
      for (int64_t k = 0; k < kColumns; ++k) {
        const auto read = scales_rounded ? static_cast<float>(RoundTo(h[k], Bfloat16())) : h[k];
        out.Set(row * kColumns + k, RoundTo(read * scale, Bfloat16()));
      }
    }
    return out;
  };
  const auto judge = [&](const TensorData& observed) {
    OracleCounts counts;
    return JudgeAsAsked(
        program, inputs, "out", observed,
        [](const Case& piece, std::map<std::string, TensorData> in, const PieceOptions& options) {
          return OpenCaseOracle(piece, std::move(in),
                                {.unrounded = options.unrounded, .as_written = options.as_written});
        },
        &counts);
  };
  const auto found = judge(computed(false, true));
  ASSERT_TRUE(found);
  EXPECT_THAT(found->on_the_way.at("h"), ElementsAre("split", "square"));
  EXPECT_EQ(DescribeOnTheWay(found->on_the_way, false),
            "reads `h` unrounded in `square` and rounded elsewhere");
  const auto whole = judge(computed(false, false));
  ASSERT_TRUE(whole);
  EXPECT_THAT(whole->on_the_way.at("h"), ElementsAre("unrounded"));
  EXPECT_FALSE(judge(computed(true, true)));
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
  EXPECT_EQ(DescribeOnTheWay(found->on_the_way, false), "does not round `p` or `t`");
}

TEST(Asked, SentencesNameTheShorterList) {
  const auto say = [](std::map<std::string, std::vector<std::string>> on_the_way) {
    return DescribeOnTheWay(on_the_way, false);
  };
  EXPECT_EQ(say({{"a", {"unrounded"}}, {"b", {"unrounded", "rounded"}}}), "rounds no intermediate");
  EXPECT_EQ(say({{"a", {"unrounded"}}, {"b", {"rounded"}}}), "rounds no intermediate but `b`");
  EXPECT_EQ(say({{"a", {"unrounded"}}, {"b", {"rounded"}}, {"c", {"rounded"}}}), "does not round `a`");
  EXPECT_EQ(say({{"a", {"rounded", "unrounded"}}, {"b", {"unrounded", "rounded"}}}),
            "does not round every intermediate that the program rounds");
  EXPECT_EQ(DescribeOnTheWay({{"a", {"unrounded"}}}, true), "round no intermediate");
}

}  // namespace
}  // namespace ulpscope
