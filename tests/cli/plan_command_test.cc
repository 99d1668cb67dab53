// ulpscope plan: what was frozen is what every machine runs, or it is refused; parts are cut by what cases took.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "harness/cli/select.h"
#include "tests/support/program.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class PlanCommand : public ::testing::Test {
 protected:
  PlanCommand() { WriteCases("neg"); }

  void WriteCases(const std::string& op) const {
    std::ofstream file(dir_ / "mine.yaml");
    file << "cases:\n";
    for (int i = 0; i < 5; ++i) {
      file
          << "  - name: product_" << i << "\n    tensors:\n      x: {dtype: bfloat16, shape: [3, " << 4 + i
          << "], fill: normal}\n      y: {dtype: bfloat16, shape: [" << 4 + i
          << ", 2], fill: normal}\n    program:\n      - {op: matmul, of: [x, y], as: product}\n      - {op: "
          << op << ", of: [product], as: result}\n    observe: [product, result]\n";
    }
  }

  testing::ProgramOutcome Run(const std::string& arguments) const {
    return testing::RunProgram(dir_, arguments);
  }
  nlohmann::json Stable(const std::string& run) const {
    auto report = nlohmann::json::parse(testing::ReadAll((dir_ / run / "report.json").string()));
    report.erase("volatile");
    return report;
  }
  void Refused(const std::string& why) const {
    const auto outcome = Run("run --plan plan.json -q -o never");
    EXPECT_EQ(outcome.code, 4) << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr(why));
    EXPECT_FALSE(fs::exists(dir_ / "never"));
  }

  static constexpr const char* kWhat =
      "mine.yaml -b emulated,openblas -k 'not product_3' --seed 7 --repeat 3";
  const testing::TestFolder folder_;
  const fs::path dir_ = folder_.path();
};

TEST_F(PlanCommand, PartsOfAPlanAreTheRunThatItSays) {
  ASSERT_EQ(Run(std::string("run -q -o single ") + kWhat).code, 0);
  const auto planned = Run(std::string("plan -o plan.json --durations single ") + kWhat);
  ASSERT_EQ(planned.code, 0) << planned.err;
  EXPECT_EQ(Run(std::string("plan -o again.json ") + kWhat).out.substr(8), planned.out.substr(8));
  for (const char* part : {"1", "2", "3"})
    ASSERT_EQ(Run(std::string("run --plan plan.json -q --shard ") + part + "/3 -o p" + part).code, 0);
  EXPECT_EQ(Run("merge p3 p1 p2 -q -o whole").code, 0);
  EXPECT_EQ(Stable("whole"), Stable("single"));
  EXPECT_EQ(Run("run --plan plan.json -q -o alone").code, 0);
  EXPECT_EQ(Stable("alone"), Stable("single"));
  EXPECT_EQ(Run("merge p1 alone -q -o both").code, 0) << "and is part of the same plan";
}

TEST_F(PlanCommand, WhatIsNotWhatWasFrozenIsRefused) {
  ASSERT_EQ(Run(std::string("plan -o plan.json ") + kWhat).code, 0);
  EXPECT_EQ(Run("run --plan plan.json -q -b emulated -o never").code, 4) << "a plan says everything";
  const std::string text = testing::ReadAll((dir_ / "plan.json").string());
  auto edited = nlohmann::json::parse(text);
  edited["selection"]["seed"] = 8;
  std::ofstream(dir_ / "plan.json") << edited.dump();
  Refused("was edited");
  std::ofstream(dir_ / "plan.json") << "{}";
  Refused("is no plan");
  std::ofstream(dir_ / "plan.json") << text;
  WriteCases("abs");
  Refused("case mine/product_0 is not what it was when the plan was made");
  fs::remove(dir_ / "mine.yaml");
  Refused("mine.yaml");
}

TEST(TakeShardByTime, PartsTakeAboutAsLongAndHoldEveryCaseOnce) {
  std::vector<Case> cases(12);
  std::map<std::string, double> times;
  double all = 0, longest = 0;
  for (int i = 0; i < 12; ++i) {
    cases[static_cast<size_t>(i)].id = "c/" + std::to_string(i);
    if (i < 11) all += times["c/" + std::to_string(i)] = (i * 37) % 11 + 1;  // the last has never been run
  }
  all += all / 11;
  std::multiset<std::string> seen;
  for (size_t part = 1; part <= 4; ++part) {
    double load = 0;
    for (const Case& one : TakeShard(cases, {.index = part, .count = 4}, times)) {
      seen.insert(one.id);
      load += times.contains(one.id) ? times[one.id] : all / 12;
    }
    longest = std::max(longest, load);
  }
  EXPECT_EQ(seen.size(), 12u);
  EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), 12u);
  EXPECT_LT(longest, 1.25 * all / 4);
}

}  // namespace
}  // namespace ulpscope
