// divergence_kind.patch: whole numbers that differ by one are a kind of their own, from the judge to the report.
#include <gtest/gtest.h>

#include "harness/base/build_info.h"
#include "harness/judge/divergence.h"
#include "harness/judge/judge.h"
#include "reports/json_report.h"
#include "tests/golden_file.h"
#include "tests/judge/make.h"
#include "tests/reports/json_schema.h"

namespace ulpscope {
namespace {

/// Divergences of two backends that give these whole numbers.
std::vector<Divergence> Between(const std::vector<double>& a, const std::vector<double>& b) {
  const Case c = testing::MakeCase();
  Classification integers;
  integers.kind = ClassificationKind::kNotFloating;
  const Observation observed[] = {
      testing::Completed({{"product", testing::Tensor(DType::kInt64, {2, 2}, a)}}),
      testing::Completed({{"product", testing::Tensor(DType::kInt64, {2, 2}, b)}})};
  const CaseResult results[] = {JudgeCase(c, "a", observed[0], {{"product", integers}}, {}),
                                JudgeCase(c, "b", observed[1], {{"product", integers}}, {})};
  const Participant participants[] = {{&results[0], &observed[0]}, {&results[1], &observed[1]}};
  return FindDivergences(c, participants, JudgedAs::kWholeProgram);
}

TEST(OffByOne, IsFoundAndReported) {
  const auto found = Between({1, 2, 3, 4}, {1, 2, 3, 5});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(Name(found[0].kind), "off_by_one");
  EXPECT_EQ(found[0].sentence, "a and b differ by one in `product` (1 of 4 elements).");
  RunReport report;
  report.divergences = found;
  const auto document = nlohmann::json::parse(WriteJson(report));
  EXPECT_EQ(document["divergences"][0]["kind"], "off_by_one");
  testing::SchemaValidator schema(
      nlohmann::json::parse(testing::ReadAll(SourceDir() + "/reports/report.schema.json")));
  EXPECT_EQ(schema.Validate(document), std::vector<std::string>{});
}

TEST(OffByOne, IsNotWhatDiffersByMore) {
  const auto found = Between({1, 2, 3, 4}, {1, 2, 3, 6});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(Name(found[0].kind), "value");
}

}  // namespace
}  // namespace ulpscope
