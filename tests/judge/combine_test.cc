// What companions add to a classification.
#include "harness/judge/combine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/judge/judge.h"
#include "tests/judge/make.h"
#include "tests/support/models.h"

namespace ulpscope {
namespace {

using testing::Classify;
using ::testing::HasSubstr;
using testing::MakeCase;
using testing::Tensor;

PrecisionModel Acc(const std::string& word) {
  PrecisionModel model;
  model.acc = testing::Acc(word);
  return model;
}

const PrecisionModel kWide = Acc("float32"), kNarrow = Acc("bfloat16"), kWider = Acc("float64");

Case Demanding(const std::string& acc) {
  Case c = MakeCase({"result"});
  c.contract.accept_any = false;
  c.contract.prove = true;
  c.contract.values["result"].facets["acc"] = {acc};
  return c;
}

class Joining : public ::testing::Test {
 protected:
  void Add(const std::string& name, Classification one) {
    found_.push_back({{"result", std::move(one)}});
    observations_.push_back(testing::Completed({{"result", Tensor(stored_, {2, 2}, {1, 2, 3, 4})}}));
    names_.push_back(name);
  }

  /// The verdict of a case with this classification of its own.
  ContractVerdict Verdict(const Case& c, const Classification& own) {
    const Observation observation = testing::Completed({{"result", Tensor(stored_, {2, 2}, {1, 2, 3, 4})}});
    std::vector<CompanionRun> runs;
    for (size_t i = 0; i < names_.size(); ++i)
      runs.push_back(
          {.name = names_[i], .observation = &observations_[i], .taint = {}, .classifications = &found_[i]});
    proof_ = JoinCompanions(c, observation, {{"result", own}}, runs);
    JudgeContext context;
    context.proof = &proof_;
    result_ = JudgeCase(c, "jax", observation, proof_.values, context);
    return result_.values.at("result").contract;
  }

  DType stored_ = DType::kFloat32;
  std::vector<std::string> names_;
  std::vector<Observation> observations_;
  std::vector<std::map<std::string, Classification>> found_;
  Proof proof_;
  CaseResult result_;
};

TEST_F(Joining, ACompanionThatKillsARivalDecides) {
  const Case c = Demanding("float32");
  const Classification own = Classify({kWide, kNarrow});
  EXPECT_EQ(Verdict(c, own), ContractVerdict::kUndetermined);
  Add("cancel", Classify({kWide, kWider}));
  EXPECT_EQ(Verdict(c, own), ContractVerdict::kConforms);
  EXPECT_EQ(result_.status, Status::kPass);
  const Classification& joined = result_.values.at("result").classification;
  EXPECT_EQ(joined.models_proved, std::vector<PrecisionModel>{kWide});
  EXPECT_EQ(joined.kind, ClassificationKind::kIdentified);
  EXPECT_EQ(joined.facets.acc, testing::Accs({"float32"}));
  EXPECT_THAT(joined.label, HasSubstr("float32"));
  ASSERT_EQ(result_.proved_on.size(), 1u);
  EXPECT_EQ(ProvedOnSentence(result_.proved_on), "judged on 1 auxiliary input too: cancel");
}

TEST_F(Joining, SetsThatExcludeEachOtherAreUnmodelledAndNeverTheBases) {
  Add("cancel", Classify({kWider}));
  EXPECT_EQ(Verdict(Demanding("at_least_float32"), Classify({kWide})), ContractVerdict::kUnmodelled);
  EXPECT_TRUE(result_.values.at("result").classification.models_proved.empty());
  EXPECT_TRUE(result_.values.at("result").classification.models.empty());
  EXPECT_THAT(result_.reason, HasSubstr("auxiliary input cancel"));
}

TEST_F(Joining, InputsWithoutSubnormalsDoNotExcludeFlushing) {
  PrecisionModel flushing = Acc("float32+ftz");
  flushing.in["a"] = testing::In("as_is+daz");
  const Classification own = Classify({flushing, kNarrow});
  Add("cancel", Classify({kWide}));
  Case c = Demanding("at_least_float32");
  c.contract.values.at("result").facets.at("acc").emplace_back("float32+ftz");
  EXPECT_EQ(Verdict(c, own), ContractVerdict::kConforms);
  EXPECT_EQ(result_.values.at("result").classification.models_proved, std::vector<PrecisionModel>{flushing});
}

TEST_F(Joining, ThreeSetsNeedOneModelInCommon) {
  Add("single", Classify({kWide, kNarrow}));
  Add("swamp", Classify({kNarrow, kWider}));
  // Each two of the three meet; no model is in all.
  EXPECT_EQ(Verdict(Demanding("at_least_float32"), Classify({kWide, kWider})), ContractVerdict::kUnmodelled);
}

TEST_F(Joining, SumsThatNoneGivesConformWhereTheyErrAsLittleAsFloat32) {
  Classification finer = Classify({});
  finer.kind = ClassificationKind::kUnmodelled;
  finer.within = 0.25;
  Add("swamp", finer);
  EXPECT_EQ(Verdict(Demanding("at_least_float32"), Classify({kWide, kWider, kNarrow})),
            ContractVerdict::kConforms);
  const Classification& joined = result_.values.at("result").classification;
  EXPECT_EQ(joined.models_proved, (std::vector<PrecisionModel>{kWide, kWider}));
  EXPECT_TRUE(joined.rests_on_likelihood);
  EXPECT_THAT(
      joined.label,
      HasSubstr("no listed sum gives the auxiliary input swamp, with errors 0.25 times those of float32"));
  EXPECT_NE(Verdict(Demanding("float32"), Classify({kWide, kWider})), ContractVerdict::kConforms);
  EXPECT_NE(Verdict(Demanding("float32"), Classify({kWide})), ContractVerdict::kConforms)
      << "float32 is what the auxiliary input excludes";
  EXPECT_NE(Verdict(Demanding("at_least_float32"), Classify({kNarrow})), ContractVerdict::kConforms);
  finer.within = 0;
  Add("cancel", finer);
  EXPECT_EQ(Verdict(Demanding("at_least_float32"), Classify({kWide, kWider})), ContractVerdict::kUnmodelled);
}

TEST_F(Joining, WhatIsLeftBesideNoneOfTheListedSumsIsNoProofWhereErrorsAreFloat32s) {
  Classification left = Classify({kNarrow});
  left.within = 1.1;
  Add("cancel", left);
  EXPECT_EQ(Verdict(Demanding("at_least_float32"), Classify({kWide, kWider, kNarrow})),
            ContractVerdict::kUndetermined)
      << "a class holds sums that no bank lists";
  EXPECT_EQ(result_.values.at("result").classification.models_proved.size(), 3u);
  EXPECT_EQ(Verdict(Demanding("at_least_float32"), Classify({kWide, kWider})), ContractVerdict::kConforms);
  EXPECT_EQ(Verdict(Demanding("bfloat16"), Classify({kWide, kWider})), ContractVerdict::kViolates)
      << "no wide sum is what this asks for";
  left.within = 2;
  Add("swamp", left);
  EXPECT_EQ(Verdict(Demanding("at_least_float32"), Classify({kWide, kWider, kNarrow})),
            ContractVerdict::kUnmodelled)
      << "a unit off, as a compensated sum may be: neither float32 nor proof against it";
  left.within = 0;
  Add("half", left);
  EXPECT_EQ(Verdict(Demanding("at_least_float32"), Classify({kWide, kWider, kNarrow})),
            ContractVerdict::kViolates)
      << "larger errors: the listed orders are all that there is";
}

/// What hides in a narrow store errs as float32 does, whatever it is.
TEST_F(Joining, BehindANarrowStoreErrorsTellWhereTheyShowThroughIt) {
  stored_ = DType::kBfloat16;
  const Case c = Demanding("at_least_float32");
  const Classification own = Classify({kWide, kWider, kNarrow});
  Classification finer = Classify({});
  finer.kind = ClassificationKind::kUnmodelled;
  finer.within = 0.75;
  finer.within_sums = true;
  Add("swamp", finer);
  Classification hidden = Classify({kWider});
  hidden.within = 1;
  Add("wide", hidden);
  EXPECT_EQ(Verdict(c, own), ContractVerdict::kConforms);
  EXPECT_NE(Verdict(Demanding("float32"), own), ContractVerdict::kConforms);
  found_[0].at("result").within_sums = false;
  EXPECT_EQ(Verdict(c, own), ContractVerdict::kUnmodelled) << "the errors of swamp are its store's";
  found_[0].at("result").within_sums = true;
  found_[1].at("result").models = found_[1].at("result").models_proved = {kNarrow};
  EXPECT_NE(Verdict(c, own), ContractVerdict::kConforms) << "a narrow sum alone gives the other input";
}

/// Nothing explains the case's own data; they err as float32 sums do, or less, and float32 is not excluded.
TEST_F(Joining, WhatNoListedSumGivesIsDecidedByTheFurtherInputs) {
  Classification own = Classify({}, {kWide, kWider, kNarrow});
  own.kind = ClassificationKind::kUnmodelled;
  own.within = 0.01;
  const Case c = Demanding("at_least_float32");
  EXPECT_EQ(Verdict(c, own), ContractVerdict::kUnmodelled) << "without auxiliary inputs nothing decides";
  Add("cancel", Classify({kWide, kWider}));
  EXPECT_EQ(Verdict(c, own), ContractVerdict::kConforms);
  EXPECT_THAT(result_.values.at("result").classification.label,
              HasSubstr("no listed sum gives these results, with errors 0.01 times those of float32"));
  EXPECT_EQ(Verdict(Demanding("float32"), own), ContractVerdict::kUndetermined) << "between two sums";
  own.within = 0.78;
  own.within_forms = true;
  EXPECT_EQ(Verdict(c, own), ContractVerdict::kConforms);
  EXPECT_THAT(result_.values.at("result").classification.label,
              HasSubstr("with errors 0.78 times those of float32 in other forms of a mean"));
  own.within = 2;
  EXPECT_EQ(Verdict(c, own), ContractVerdict::kUnmodelled) << "more than float32 errs by";
  own.within = 0.01;
  own.models_proved = {kWider, kNarrow};
  EXPECT_EQ(Verdict(c, own), ContractVerdict::kUnmodelled) << "float32 is excluded";
  own.models_proved = {kWide, kWider, kNarrow};
  Add("swamp", Classify({kNarrow}));
  EXPECT_NE(Verdict(c, own), ContractVerdict::kConforms) << "a auxiliary input leaves a narrow sum alone";
}

TEST_F(Joining, SumsInSoManyBitsWereNotAskedOfCompanions) {
  // No bank lists them: that a companion does not name them excludes nothing, and leaves no one reading alone.
  const PrecisionModel in_23_bits = Acc("p23");
  PrecisionModel rounded = Acc("float32");
  rounded.mid = testing::Mid("p23");
  Classification companion = Classify({rounded});
  Add("single", companion);
  EXPECT_EQ(Verdict(Demanding("at_least_float32"), Classify({in_23_bits, rounded})),
            ContractVerdict::kUndetermined);
  EXPECT_EQ(result_.values.at("result").classification.models_proved,
            (std::vector<PrecisionModel>{in_23_bits, rounded}));
}

TEST_F(Joining, ACompanionThatViolatesAloneIsEnough) {
  Classification bad = Classify({kNarrow});
  bad.excluded.push_back({.model = kWide,
                          .element = {0, 1},
                          .observed = 1,
                          .reference = 2,
                          .low = 2,
                          .high = 2,
                          .why = "observed 1"});
  Add("cancel", bad);
  EXPECT_EQ(Verdict(Demanding("float32"), Classify({kWide})), ContractVerdict::kViolates)
      << "a kernel that changes with its data";
  EXPECT_EQ(result_.status, Status::kFail);
  EXPECT_THAT(result_.reason, HasSubstr("on the auxiliary input cancel: observed 1"));
}

TEST_F(Joining, AnUnmodelledCompanionMakesItUnmodelled) {
  Add("cancel", Classify({}));
  EXPECT_EQ(Verdict(Demanding("float32"), Classify({kWide})), ContractVerdict::kUnmodelled);
  EXPECT_EQ(result_.status, Status::kUnmodelled);
}

TEST_F(Joining, ACompanionThatDidNotCompleteProvesNothing) {
  const Classification own = Classify({kWide, kNarrow});
  Add("cancel", Classify({kWide}));
  observations_[0].outcome = {.kind = OutcomeKind::kCrashed, .error_class = "SIGSEGV", .text = ""};
  EXPECT_EQ(Verdict(Demanding("float32"), own), ContractVerdict::kUndetermined);
  EXPECT_EQ(ProvedOnSentence(result_.proved_on),
            "judged on 1 auxiliary input too: cancel (crashed SIGSEGV: it proves nothing)");
  observations_[0].outcome = {};
  observations_[0].nondeterministic["result"] = 3;
  EXPECT_EQ(Verdict(Demanding("float32"), own), ContractVerdict::kUndetermined);
  EXPECT_EQ(result_.proved_on[0].left_out, "repeated runs differ");
}

TEST_F(Joining, WithoutAReferenceNothingChanges) {
  Classification none;
  none.kind = ClassificationKind::kNoReference;
  const Classification own = Classify({kWide, kNarrow});
  Add("cancel", none);
  EXPECT_EQ(Verdict(Demanding("float32"), own), ContractVerdict::kUndetermined);
  EXPECT_EQ(result_.values.at("result").classification.models_proved, own.models_proved);
  names_.clear();
  Add("swamp", Classify({kWide}));
  found_.erase(found_.begin());
  observations_.erase(observations_.begin());
  EXPECT_EQ(Verdict(Demanding("float32"), none), ContractVerdict::kUndetermined);
}

TEST_F(Joining, WhatExplainsTheOwnDataHasToSurviveTheCompanions) {
  const Classification own = Classify({kNarrow}, {kWide, kWider, kNarrow});
  Add("cancel", Classify({kWide, kWider}));
  Verdict(Demanding("float32"), own);
  const Classification& joined = result_.values.at("result").classification;
  EXPECT_TRUE(joined.models.empty())
      << "what explains the case's own data is excluded, and what is left explains nothing";
  EXPECT_EQ(joined.kind, ClassificationKind::kUnmodelled);
  EXPECT_FALSE(joined.fits);
}

}  // namespace
}  // namespace ulpscope
