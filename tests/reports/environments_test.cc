// A report taken apart by environment: whose columns are whose, and what is compared with what.
#include "reports/environments.h"

#include <gtest/gtest.h>

#include "tests/reports/sample.h"

namespace ulpscope {
namespace {

using testing::SampleReport;
using TextList = std::vector<std::string>;

/// The sample's columns, and the same in an environment "later", in which one class is another.
RunReport TwoEnvironments() {
  RunReport report = SampleReport();
  const RunReport plain = report;
  for (CaseResult result : plain.results) {
    if (result.backend == "torch-eager") result.status = Status::kFail;
    result.backend += ":env=later";
    report.results.push_back(result);
  }
  for (Divergence divergence : plain.divergences) {
    for (auto& group : divergence.backends) {
      for (auto& backend : group) backend += ":env=later";
    }
    report.divergences.push_back(divergence);
  }
  for (const auto& [backend, packages] : plain.versions) {
    auto& later = report.versions[backend + ":env=later"] = packages;
    for (auto& [package, version] : later) version += ".1";
  }
  return report;
}

TEST(Environments, AreReadFromTheNamesOfTheColumns) {
  EXPECT_EQ(EnvironmentsOf(SampleReport()), TextList{"default"});
  EXPECT_EQ(EnvironmentsOf(TwoEnvironments()), (TextList{"default", "later"}));
  RunReport report = TwoEnvironments();
  report.results.front().backend = "jax:env=earlier,threads=2";
  EXPECT_EQ(EnvironmentsOf(report), (TextList{"default", "earlier", "later"}));
  EXPECT_EQ(OfEnvironment(report, "earlier").results.at(0).backend, "jax:threads=2");
}

TEST(Environments, EachPartIsTheRunOfThatEnvironmentAlone) {
  const RunReport plain = SampleReport(), both = TwoEnvironments();
  for (const char* name : {"default", "later"}) {
    const RunReport part = OfEnvironment(both, name);
    ASSERT_EQ(part.results.size(), plain.results.size()) << name;
    for (size_t i = 0; i < part.results.size(); ++i)
      EXPECT_EQ(part.results[i].backend, plain.results[i].backend) << name;
    ASSERT_EQ(part.divergences.size(), plain.divergences.size()) << name;
    EXPECT_EQ(part.versions.size(), plain.versions.size()) << name;
  }
  RunReport across = both;  // one between environments belongs to neither
  for (Divergence& divergence : across.divergences)
    divergence.backends = {{"torch-eager"}, {"torch-eager:env=later"}};
  EXPECT_TRUE(OfEnvironment(across, "default").divergences.empty());
  EXPECT_TRUE(OfEnvironment(across, "later").divergences.empty());
}

TEST(Environments, OnlyWhatBothHaveIsCompared) {
  EXPECT_TRUE(CompareEnvironments(SampleReport()).empty());
  RunReport report = TwoEnvironments();
  CaseResult alone = report.results.front();
  alone.backend = "openblas";
  report.results.push_back(alone);
  const auto diffs = CompareEnvironments(report);
  ASSERT_EQ(diffs.size(), 1u);
  EXPECT_EQ(diffs[0].before + " " + diffs[0].after, "default later");
  EXPECT_EQ(diffs[0].diff.compared, SampleReport().results.size());
  EXPECT_TRUE(diffs[0].diff.only_before.empty());
  EXPECT_TRUE(HasWorse(diffs[0].diff));
  EXPECT_FALSE(diffs[0].diff.versions.empty());
  ASSERT_FALSE(diffs[0].diff.changes.empty());
  EXPECT_EQ(diffs[0].diff.changes[0].backend, "torch-eager");
}

}  // namespace
}  // namespace ulpscope
