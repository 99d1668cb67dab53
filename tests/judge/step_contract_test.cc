// Which step stands for a value in a contract, and when none may.
#include "harness/judge/step_contract.h"

#include <gtest/gtest.h>

#include "harness/judge/contract.h"
#include "tests/judge/make.h"
#include "tests/support/models.h"

namespace ulpscope {
namespace {

PrecisionModel Sum(const std::string& acc) {
  PrecisionModel model;
  model.acc = testing::Acc(acc);
  return model;
}

class StandIn : public ::testing::Test {
 protected:
  StandIn() {
    const auto linear = [](const char* of, const char* weight, const char* as) {
      Step step;
      step.op = "linear";
      step.of = {{.name = of, .scalar = {}}, {.name = weight, .scalar = {}}};
      step.as = as;
      return step;
    };
    case_.program = {linear("x", "w", "h"), linear("h", "v", "y")};
    demand_.facets["acc"] = {"at_least_float32"};
    for (const char* name : {"h", "y"}) {
      steps_[name] = testing::Classify({Sum("float32"), Sum("float64")});
      steps_[name].fits = true;
    }
    steps_["y"].reads["h"] = {"stored"};
  }

  std::optional<ContractVerdict> Verdict() const {
    const auto found = StandInFromSteps(case_, "y", demand_, steps_);
    return found ? std::optional(JudgeFacets(demand_, *found)) : std::nullopt;
  }

  Case case_;
  ValueDemand demand_;
  std::map<std::string, Classification> steps_;
};

TEST_F(StandIn, StepsThatAllConformConform) { EXPECT_EQ(Verdict(), ContractVerdict::kConforms); }

TEST_F(StandIn, TheStepThatViolatesStandsForTheValue) {
  steps_["h"] = testing::Classify({Sum("float16")});
  EXPECT_EQ(Verdict(), ContractVerdict::kViolates);
  EXPECT_EQ(StandInFromSteps(case_, "y", demand_, steps_)->piece, "steps h");
}

TEST_F(StandIn, WhatWasHeldAgainstAFewModelsConfirmsNothing) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"unrounded"}, {"bfloat16"}, {"stored", "unrounded"}}) {
    steps_["y"].reads["h"] = words;
    EXPECT_EQ(Verdict(), std::nullopt) << words.front();
  }
  steps_["y"].reads["h"] = {"stored"};
  steps_["h"].cuts["h.product"] = testing::Mids({"bfloat16"});
  EXPECT_EQ(Verdict(), std::nullopt);
  // Nor does it excuse.
  steps_["y"] = testing::Classify({Sum("float16")});
  EXPECT_EQ(Verdict(), ContractVerdict::kViolates);
}

TEST_F(StandIn, QuestionsToTheWholeAreNotAskedOfSteps) {
  for (const char* facet : {"out", "in.x", "cuts.h"}) {
    ValueDemand whole = demand_;
    whole.facets[facet] = {"none"};
    EXPECT_FALSE(StandInFromSteps(case_, "y", whole, steps_)) << facet;
  }
}

}  // namespace
}  // namespace ulpscope
