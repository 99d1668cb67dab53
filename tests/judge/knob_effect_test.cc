// What asking for a knob changed: who is compared with whom, what counts as an effect, and what is said
// without one.
#include "harness/judge/knob_effect.h"

#include <gtest/gtest.h>

#include <memory>

#include "harness/judge/judge.h"
#include "tests/judge/make.h"

namespace ulpscope {
namespace {

using testing::Completed;
using testing::MakeCase;
using testing::Raised;
using testing::Tensor;
using Effect = KnobEffect::Effect;
using ReadBack = KnobEffect::ReadBack;
using Knobs = std::map<std::string, std::string>;

const std::vector<double> kKnobNumbers{1, 2, 3, 4};
const std::vector<double> kOtherBit{1 + 0x1p-23, 2, 3, 4};

Observation WithKnobs(Observation observation, Knobs asked, Knobs effective) {
  observation.knobs_asked = std::move(asked);
  observation.knobs_effective = std::move(effective);
  return observation;
}

Observation ProductOf(const std::vector<double>& numbers, Knobs asked, Knobs effective,
                      DType dtype = DType::kFloat32) {
  return WithKnobs(Completed({{"product", Tensor(dtype, {2, 2}, numbers)}}), std::move(asked),
                   std::move(effective));
}

Observation Refused(std::string reason, Knobs asked) {
  Observation observation;
  observation.outcome = {.kind = OutcomeKind::kUnsupported, .error_class = "", .text = std::move(reason)};
  return WithKnobs(std::move(observation), std::move(asked), {});
}

/// A run of cases, kept alive for the comparison.
class KnobTable {
 public:
  KnobTable& Case(const std::string& id) {
    case_ = MakeCase({"product"});
    case_.id = id;
    cases_.emplace_back();
    return *this;
  }
  KnobTable& Add(const std::string& backend, Observation observation) {
    if (cases_.empty()) Case("knobs/one");
    observations_.push_back(std::make_unique<Observation>(std::move(observation)));
    results_.push_back(
        std::make_unique<CaseResult>(JudgeCase(case_, backend, *observations_.back(), {}, {})));
    cases_.back().push_back({results_.back().get(), observations_.back().get()});
    backends_.push_back(backend);
    return *this;
  }
  KnobTable& Offer(const std::string& backend, const std::string& knob, std::vector<std::string> values) {
    offered_[backend][knob] = std::move(values);
    return *this;
  }
  std::vector<KnobEffect> Find() const {
    std::vector<KnobComparison> all;
    for (const auto& participants : cases_) {
      for (auto& one : CompareKnobs(participants, offered_)) all.push_back(std::move(one));
    }
    return SumUpKnobs(all, backends_);
  }
  KnobEffect One() const {
    const auto all = Find();
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? KnobEffect() : all.front();
  }

 private:
  ulpscope::Case case_;
  std::vector<std::vector<Participant>> cases_;
  std::vector<std::string> backends_;
  OfferedKnobs offered_;
  std::vector<std::unique_ptr<Observation>> observations_;
  std::vector<std::unique_ptr<CaseResult>> results_;
};

TEST(KnobEffect, ALastBitIsAnEffect) {
  const KnobEffect effect =
      KnobTable()
          .Add("torch-eager", ProductOf(kKnobNumbers, {}, {{"mkldnn", "on"}}))
          .Add("torch-eager:mkldnn=off", ProductOf(kOtherBit, {{"mkldnn", "off"}}, {{"mkldnn", "off"}}))
          .One();
  EXPECT_EQ(effect.effect, Effect::kActs);
  EXPECT_EQ(effect.backend, "torch-eager");
  EXPECT_EQ(effect.knob + "=" + effect.asked, "mkldnn=off");
  EXPECT_EQ(effect.effective, std::vector<std::string>{"off"});
  EXPECT_EQ(effect.read_back, ReadBack::kAsAsked);
  EXPECT_EQ(effect.base, "unset");
  EXPECT_EQ(std::tuple(effect.cases, effect.compared, effect.acted), std::tuple(1, 1, 1));
  EXPECT_EQ(effect.first_case, "knobs/one");
  EXPECT_EQ(effect.what, "bits of product: 1 of 4, at most 1 ulp");
}

TEST(KnobEffect, WhatIsAcceptedAndDoesNothingIsSaid) {
  const KnobEffect effect = KnobTable()
                                .Add("b", ProductOf(kKnobNumbers, {}, {{"k", "off"}}))
                                .Add("b:k=on", ProductOf(kKnobNumbers, {{"k", "on"}}, {{"k", "on"}}))
                                .One();
  EXPECT_EQ(effect.effect, Effect::kNoEffect);
  EXPECT_EQ(effect.read_back, ReadBack::kAsAsked);
  EXPECT_EQ(std::tuple(effect.compared, effect.acted), std::tuple(1, 0));
  EXPECT_EQ(effect.first_case, "");
}

TEST(KnobEffect, AReadBackOtherThanAskedIsAFindingOfItsOwn) {
  const KnobEffect effect = KnobTable()
                                .Add("b", ProductOf(kKnobNumbers, {}, {{"k", "off"}}))
                                .Add("b:k=on", ProductOf(kOtherBit, {{"k", "on"}}, {{"k", "off"}}))
                                .One();
  EXPECT_EQ(effect.read_back, ReadBack::kDiffers);
  EXPECT_EQ(effect.effective, std::vector<std::string>{"off"});
  EXPECT_EQ(effect.effect, Effect::kActs) << "a lie about the value is no proof that it does nothing";
}

TEST(KnobEffect, TheValueThatStandsAnywayIsNoIgnoredKnob) {
  const KnobEffect effect =
      KnobTable()
          .Add("openblas", ProductOf(kKnobNumbers, {}, {{"openblas_coretype", "Zen"}}))
          .Add("openblas:openblas_coretype=zen",
               ProductOf(kKnobNumbers, {{"openblas_coretype", "zen"}}, {{"openblas_coretype", "Zen"}}))
          .One();
  EXPECT_EQ(effect.effect, Effect::kAsWithout);
  EXPECT_EQ(effect.read_back, ReadBack::kAsAsked) << "the case of letters is the library's";
}

TEST(KnobEffect, NotReadBackIsSaid) {
  const KnobEffect effect = KnobTable()
                                .Add("b", ProductOf(kKnobNumbers, {}, {}))
                                .Add("b:k=on", ProductOf(kKnobNumbers, {{"k", "on"}}, {}))
                                .One();
  EXPECT_EQ(effect.read_back, ReadBack::kNotRead);
  EXPECT_EQ(effect.effect, Effect::kNoEffect) << "not read back on either side is not the same value";
}

TEST(KnobEffect, ARefusalIsTheAnswer) {
  const KnobEffect effect = KnobTable()
                                .Add("b", ProductOf(kKnobNumbers, {}, {}))
                                .Add("b:k=odd", Refused("knob k=odd: expected one of off on", {{"k", "odd"}}))
                                .One();
  EXPECT_EQ(effect.effect, Effect::kRefused);
  EXPECT_EQ(effect.what, "knob k=odd: expected one of off on");
  EXPECT_EQ(effect.compared, 0);
}

TEST(KnobEffect, WithoutABaseNothingIsClaimed) {
  const KnobEffect alone =
      KnobTable().Add("b:k=on", ProductOf(kKnobNumbers, {{"k", "on"}}, {{"k", "on"}})).One();
  EXPECT_EQ(alone.effect, Effect::kNotCompared);
  EXPECT_EQ(std::tuple(alone.cases, alone.compared), std::tuple(1, 0));
  const KnobEffect unsupported = KnobTable()
                                     .Add("b", Refused("no such op", {}))
                                     .Add("b:k=on", Refused("no such op", {{"k", "on"}}))
                                     .One();
  EXPECT_EQ(unsupported.effect, Effect::kNotCompared) << "the case is refused, not the knob";
}

TEST(KnobEffect, ADefaultAskedForIsABase) {
  KnobTable table;
  table.Offer("b", "k", {"off", "on"})
      .Add("b:k=off", ProductOf(kKnobNumbers, {{"k", "off"}}, {{"k", "off"}}))
      .Add("b:k=on", ProductOf(kOtherBit, {{"k", "on"}}, {{"k", "on"}}));
  const auto effects = table.Find();
  ASSERT_EQ(effects.size(), 2u);
  EXPECT_EQ(effects[0].asked, "off");
  EXPECT_EQ(effects[0].effect, Effect::kNotCompared) << "on is not what off is measured by";
  EXPECT_EQ(effects[1].asked, "on");
  EXPECT_EQ(effects[1].effect, Effect::kActs);
  EXPECT_EQ(effects[1].base, "off");
}

TEST(KnobEffect, OneKnobApart) {
  KnobTable table;
  table.Add("b", ProductOf(kKnobNumbers, {}, {}))
      .Add("b:j=1", ProductOf(kKnobNumbers, {{"j", "1"}}, {}))
      .Add("b:j=1,k=on", ProductOf(kOtherBit, {{"j", "1"}, {"k", "on"}}, {}));
  const auto effects = table.Find();
  ASSERT_EQ(effects.size(), 3u);
  EXPECT_EQ(effects[0].backend + " " + effects[0].knob, "b j");
  EXPECT_EQ(effects[0].effect, Effect::kNoEffect);
  EXPECT_EQ(effects[1].backend + " " + effects[1].knob, "b:j=1 k");
  EXPECT_EQ(effects[1].effect, Effect::kActs);
  EXPECT_EQ(effects[2].backend + " " + effects[2].knob, "b:k=on j") << "b:k=on is not in the run";
  EXPECT_EQ(effects[2].effect, Effect::kNotCompared);
}

TEST(KnobEffect, OtherDevicesAndOtherBackendsAreNoBase) {
  const auto effects = KnobTable()
                           .Add("b@cuda:0", ProductOf(kKnobNumbers, {}, {}))
                           .Add("c", ProductOf(kKnobNumbers, {}, {}))
                           .Add("b:k=on", ProductOf(kOtherBit, {{"k", "on"}}, {}))
                           .Add("b@cuda:0:k=on", ProductOf(kOtherBit, {{"k", "on"}}, {}))
                           .Find();
  ASSERT_EQ(effects.size(), 2u);
  EXPECT_EQ(effects[0].backend, "b@cuda:0");
  EXPECT_EQ(effects[0].effect, Effect::kActs);
  EXPECT_EQ(effects[1].backend, "b");
  EXPECT_EQ(effects[1].effect, Effect::kNotCompared);
}

TEST(KnobEffect, TheStrongestDifferenceOfAllCasesIsShown) {
  Observation with_cast = ProductOf(kKnobNumbers, {{"k", "on"}}, {});
  with_cast.casts.push_back(
      {.from = "bfloat16", .to = "float32", .shape = {2, 2}, .under = "mm", .stage = "hlo"});
  KnobTable table;
  table.Case("knobs/graph")
      .Add("b", ProductOf(kKnobNumbers, {}, {}))
      .Add("b:k=on", with_cast)
      .Case("knobs/bits")
      .Add("b", ProductOf(kKnobNumbers, {}, {}))
      .Add("b:k=on", ProductOf(kOtherBit, {{"k", "on"}}, {}))
      .Case("knobs/raises")
      .Add("b", ProductOf(kKnobNumbers, {}, {}))
      .Add("b:k=on", WithKnobs(Raised("ValueError", "no\nsecond"), {{"k", "on"}}, {}))
      .Case("knobs/nothing")
      .Add("b", ProductOf(kKnobNumbers, {}, {}))
      .Add("b:k=on", ProductOf(kKnobNumbers, {{"k", "on"}}, {}));
  const KnobEffect effect = table.One();
  EXPECT_EQ(effect.effect, Effect::kActs);
  EXPECT_EQ(effect.first_case, "knobs/raises");
  EXPECT_EQ(effect.what, "outcome: raised ValueError (\"no\") instead of completed");
  EXPECT_EQ(std::tuple(effect.cases, effect.compared, effect.acted), std::tuple(4, 4, 2));
}

TEST(KnobEffect, ADifferenceOfTheTraceAloneIsNoEffectOnValues) {
  Observation with_cast = ProductOf(kKnobNumbers, {{"k", "on"}}, {{"k", "on"}});
  with_cast.casts.push_back(
      {.from = "bfloat16", .to = "float32", .shape = {2, 2}, .under = "mm", .stage = "hlo"});
  const KnobEffect effect =
      KnobTable().Add("b", ProductOf(kKnobNumbers, {}, {{"k", "off"}})).Add("b:k=on", with_cast).One();
  EXPECT_EQ(effect.effect, Effect::kTraceOnly);
  EXPECT_EQ(effect.what, "casts: 1 instead of 0 at stage hlo");
}

TEST(KnobEffect, AnotherDtypeComesBeforeOtherBits) {
  const KnobEffect effect =
      KnobTable()
          .Add("jax", ProductOf(kKnobNumbers, {}, {}, DType::kFloat64))
          .Add("jax:jax_enable_x64=false", ProductOf(kOtherBit, {{"jax_enable_x64", "false"}}, {}))
          .One();
  EXPECT_EQ(effect.what, "product is float32[2, 2] instead of float64[2, 2]");
}

TEST(KnobEffect, WhatDoesNotRepeatProvesNothing) {
  Observation wavers = ProductOf(kKnobNumbers, {}, {});
  wavers.nondeterministic["product"] = 1;
  Observation wavers_too = ProductOf(kOtherBit, {{"k", "on"}}, {});
  wavers_too.nondeterministic["product"] = 1;
  EXPECT_EQ(KnobTable().Add("b", wavers).Add("b:k=on", wavers_too).One().effect, Effect::kNoEffect);
  const KnobEffect settled =
      KnobTable().Add("b", wavers).Add("b:k=on", ProductOf(kOtherBit, {{"k", "on"}}, {})).One();
  EXPECT_EQ(settled.effect, Effect::kActs);
  EXPECT_EQ(settled.what, "product repeats with the same bits");
}

TEST(KnobEffect, WhatIsTaintedIsNotCompared) {
  Observation tainted = ProductOf(kOtherBit, {{"k", "on"}}, {{"k", "on"}});
  tainted.tainted = "after the case: rounding mode changed";
  const KnobEffect effect =
      KnobTable().Add("b", ProductOf(kKnobNumbers, {}, {})).Add("b:k=on", tainted).One();
  EXPECT_EQ(effect.effect, Effect::kNotCompared);
  EXPECT_NE(effect.what.find("rounding mode"), std::string::npos) << effect.what;
}

TEST(KnobEffect, WordsThatChooseWhoComputesAreNoKnobs) {
  EXPECT_TRUE(KnobTable()
                  .Add("emulated", ProductOf(kKnobNumbers, {}, {}))
                  .Add("emulated:model=x", ProductOf(kOtherBit, {{"model", "x"}}, {}))
                  .Find()
                  .empty());
}

TEST(KnobEffect, AKnobOfTheCaseIsNamed) {
  const KnobEffect effect = KnobTable().Add("jax", ProductOf(kKnobNumbers, {{"k", "false"}}, {})).One();
  EXPECT_EQ(effect.backend, "jax");
  EXPECT_EQ(effect.effect, Effect::kNotCompared);
}

}  // namespace
}  // namespace ulpscope
