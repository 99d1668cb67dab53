// Every row of the status table, and the order of the rows.
#include "harness/judge/status.h"

#include <gtest/gtest.h>

#include <functional>

namespace ulpscope {
namespace {

using enum Status;

struct Row {
  Status status;
  std::function<void(StatusFacts&)> cause;
  std::string says;
};

Deviation Entry(const std::string& value) {
  Deviation deviation;
  deviation.value = value;
  deviation.reason = "mid rounding";
  deviation.link = "issue 7";
  return deviation;
}

/// The table from the top: each row with something that makes it match, and a word that its reason must hold.
std::vector<Row> Rows() {
  const auto outcome = [](OutcomeKind kind, const std::string& error_class, const std::string& text) {
    return
        [=](StatusFacts& facts) { facts.outcome = {.kind = kind, .error_class = error_class, .text = text}; };
  };
  return {
      {kHarness, [](StatusFacts& f) { f.harness_fault = "the oracle gave no reference"; },
       "the oracle gave no reference"},
      {kProtocol, outcome(OutcomeKind::kProtocolBroken, "", "short frame"), "short frame"},
      {kCrash, outcome(OutcomeKind::kCrashed, "SIGSEGV", ""), "SIGSEGV"},
      {kTimeout, outcome(OutcomeKind::kTimedOut, "", "no answer in 5 s"), "5 s"},
      {kOom, outcome(OutcomeKind::kOutOfMemory, "", ""), "memory"},
      {kTainted, [](StatusFacts& f) { f.taint = "MXCSR changed"; }, "MXCSR"},
      {kNotRun,
       [](StatusFacts& f) {
         f.reach = StatusFacts::Reach::kNotReached;
         f.outcome.text = "interrupted";
       },
       "interrupted"},
      {kSkip, outcome(OutcomeKind::kUnsupported, "", "no out="), "no out="},
      {kNondet, [](StatusFacts& f) { f.nondeterministic["product"] = 3; }, "product by up to 3 ulp"},
      {kFail, [](StatusFacts& f) { f.violations = {{.value = "product", .sentence = "product violates"}}; },
       "product violates"},
      {kXpass, [](StatusFacts& f) { f.live_deviations = {Entry("result")}; }, "remove the entry"},
      {kFail, [](StatusFacts& f) { f.unmet_expectation = "changed: expected a, observed b"; },
       "changed: expected a"},
      {kUnmodelled,
       [](StatusFacts& f) { f.unmodelled = {{.value = "result", .sentence = "no model explains result"}}; },
       "no model"},
      {kInconclusive,
       [](StatusFacts& f) { f.undetermined = {{.value = "result", .sentence = "cannot tell"}}; },
       "cannot tell"},
      {kPass, [](StatusFacts&) {}, ""},
  };
}

TEST(StatusTable, EveryRowAlone) {
  for (const Row& row : Rows()) {
    StatusFacts facts;
    row.cause(facts);
    const StatusReason verdict = DecideStatus(facts);
    EXPECT_EQ(Name(verdict.status), Name(row.status));
    EXPECT_NE(verdict.reason.find(row.says), std::string::npos) << verdict.reason;
    EXPECT_EQ(verdict.reason.empty(), row.status == kPass);
  }
}

TEST(StatusTable, TheValuesAreThoseOfTheReason) {
  StatusFacts facts;
  facts.undetermined = {{.value = "open", .sentence = "cannot tell"}};
  EXPECT_EQ(DecideStatus(facts).values, std::vector<std::string>{"open"});
  facts.unmet_expectation = "changed";
  facts.unmet_value = "expected";
  EXPECT_EQ(DecideStatus(facts).values, std::vector<std::string>{"expected"});
  facts.violations = {{.value = "", .sentence = "completed"}, {.value = "wrong", .sentence = "violates"}};
  EXPECT_EQ(DecideStatus(facts).values, std::vector<std::string>{"wrong"}) << "the outcome has no row";
  facts.harness_fault = "ours";
  EXPECT_TRUE(DecideStatus(facts).values.empty());
}

TEST(StatusTable, FirstMatchWins) {
  const auto rows = Rows();
  int pairs = 0;
  for (size_t first = 0; first < rows.size(); ++first) {
    for (size_t second = first + 1; second < rows.size(); ++second) {
      StatusFacts facts;
      rows[second].cause(facts);
      rows[first].cause(facts);  // last, since two rows may set the one outcome
      EXPECT_EQ(Name(DecideStatus(facts).status), Name(rows[first].status))
          << "against " << Name(rows[second].status);
      ++pairs;
    }
  }
  EXPECT_EQ(pairs, 15 * 14 / 2);
}

TEST(StatusTable, XfailOnlyWhenEveryViolationIsCovered) {
  StatusFacts facts;
  facts.violations = {{.value = "product", .sentence = "product violates"}};
  facts.live_deviations = {Entry("product")};
  EXPECT_EQ(DecideStatus(facts).status, kXfail);
  EXPECT_NE(DecideStatus(facts).reason.find("issue 7"), std::string::npos);
  facts.violations.push_back({.value = "result", .sentence = "result violates"});
  EXPECT_EQ(DecideStatus(facts).status, kFail);
  facts.live_deviations.push_back(Entry("result"));
  EXPECT_EQ(DecideStatus(facts).status, kXfail);
}

}  // namespace
}  // namespace ulpscope
