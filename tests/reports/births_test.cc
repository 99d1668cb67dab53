// Where infinities and NaNs begin: what several backends share is one finding, in words and as data.
#include "reports/births.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "harness/base/build_info.h"
#include "reports/json_report.h"
#include "tests/golden_file.h"
#include "tests/reports/json_schema.h"
#include "tests/reports/sample.h"

namespace ulpscope {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

NonFiniteBirth Quotient() {
  NonFiniteBirth birth;
  birth.what = "NaN";
  birth.values = {"y", "z"};
  birth.op = "div";
  birth.born = {.value = "q", .at = {3, 1}, .observed = kNan, .exact = std::nullopt};
  birth.operands = {0, 0};
  birth.dtype = DType::kFloat16;
  birth.spread = {{.step = "q", .count = 1, .elements = 8}, {.step = "y", .count = 4, .elements = 8}};
  return birth;
}

/// Three backends that completed one case, with that birth on the first `count` of them, and one that was not reached.
RunReport ReportWith(size_t count) {
  RunReport report;
  for (const char* backend : {"a", "b", "c", "late"}) {
    report.results.push_back(testing::Result(backend, Status::kPass, ""));
    if (report.results.size() <= count) report.results.back().not_finite = {Quotient()};
  }
  report.results.back().status = Status::kNotRun;
  return report;
}

TEST(Births, ThoseOfAllBackendsAreOne) {
  const RunReport all = ReportWith(3);
  const auto shared = SharedBirthsOf(all);
  ASSERT_EQ(shared.size(), 1u);
  EXPECT_TRUE(shared[0].everywhere) << "one that was not reached says nothing against it";
  EXPECT_EQ(BirthSentence(all, shared[0]),
            "NaN of y, z begins in step q (div, 0 / 0 at [3,1]) on all 3 backends; there is no exact value. "
            "Not finite: 1 of 8 elements of q, 4 of 8 of y.");
  const RunReport two = ReportWith(2);
  EXPECT_FALSE(SharedBirthsOf(two)[0].everywhere);
  EXPECT_NE(BirthSentence(two, SharedBirthsOf(two)[0]).find("at [3,1]) on a and b;"), std::string::npos);
  RunReport other = ReportWith(3);
  other.results[1].not_finite[0].born.at = {3, 0};
  EXPECT_EQ(SharedBirthsOf(other).size(), 2u) << "another element is another birth";
}

TEST(Births, ADivergenceOfSpecialValuesSaysThemToo) {
  RunReport report = ReportWith(2);
  EXPECT_FALSE(SharedBirthsOf(report)[0].diverges);
  Divergence divergence;
  divergence.case_id = report.results[0].id;
  divergence.kind = DivergenceKind::kSpecial;
  divergence.value = "x";
  report.divergences = {divergence};
  EXPECT_FALSE(SharedBirthsOf(report)[0].diverges) << "of another value";
  report.divergences[0].also = {"z"};
  EXPECT_TRUE(SharedBirthsOf(report)[0].diverges);
  report.divergences[0].case_id = "another";
  EXPECT_FALSE(SharedBirthsOf(report)[0].diverges);
}

TEST(Births, AnOverflowSaysTheRangeAndWhatTheProgramWouldGive) {
  NonFiniteBirth birth = Quotient();
  birth.what = "inf";
  birth.op = "exp";
  birth.operands = {12};
  birth.born.exact = 162754.75;
  birth.end = SpecialElement{.value = "y", .at = {0}, .observed = kNan, .exact = 0.5};
  EXPECT_EQ(BirthSentence(birth, ""),
            "inf of y, z begins in step q (exp, exp(12) at [3,1]); the exact value there is 162754.75, "
            "beyond 65504, "
            "the largest float16, and y[0] is exactly 0.5. Not finite: 1 of 8 elements of q, 4 of 8 of y.");
  birth.op.clear();
  birth.born = *birth.end;
  EXPECT_EQ(BirthSentence(birth, " on a").find("inf of y, z at [0] on a; the exact value there is 0.5. "),
            0u);
  for (int i = 0; i < 9; ++i)
    birth.spread.push_back({.step = "s" + std::to_string(i), .count = 1, .elements = 2});
  const std::string text = BirthSentence(birth, "");
  EXPECT_NE(text.find("of 6 more steps, 1 of 2 of s8."), std::string::npos) << text;
}

TEST(Births, AreDataOfTheReport) {
  RunReport report = ReportWith(3);
  report.results[0].not_finite[0].end =
      SpecialElement{.value = "y", .at = {0, 1}, .observed = kNan, .exact = 2};
  report.limit = TimeLimit{.minutes = 0.5, .left_out = {"1 of 4 results not run"}};
  report.places[report.results[0].id] = {
      .at = {}, .steps = {{"q", {.at = {.module = "m", .file = "m.py", .line = 4}}}}};
  const auto json = nlohmann::json::parse(WriteJson(report));
  testing::SchemaValidator validator(
      nlohmann::json::parse(testing::ReadAll(SourceDir() + "/reports/report.schema.json")));
  EXPECT_EQ(validator.Validate(json), std::vector<std::string>{});
  ASSERT_EQ(json["not_finite"].size(), 2u) << "of which one knows what the program would give";
  const auto& birth = json["not_finite"][1];
  EXPECT_EQ(birth["backends"], (nlohmann::json{"b", "c"}));
  EXPECT_EQ(birth["step"], "q");
  EXPECT_EQ(birth["element"], (nlohmann::json{3, 1}));
  EXPECT_EQ(birth["operands"], (nlohmann::json{0.0, 0.0}));
  EXPECT_TRUE(birth["exact"].is_null());
  EXPECT_EQ(birth["observed"], "nan");
  EXPECT_EQ(birth["spread"][1], (nlohmann::json{{"step", "y"}, {"elements", 4}, {"of", 8}}));
  EXPECT_EQ(birth["at"]["line"], 4);
  EXPECT_EQ(json["not_finite"][0]["end"]["exact"], 2);
  EXPECT_EQ(json["results"][1]["not_finite"][0]["op"], "div");
  EXPECT_EQ(json["run"]["limit"]["left_out"], nlohmann::json{"1 of 4 results not run"});
  EXPECT_EQ(ExitCode(report, Interruption::kNone), 6);
}

}  // namespace
}  // namespace ulpscope
