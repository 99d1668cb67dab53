// report.json: golden, schema, determinism.
#include "reports/json_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <clocale>

#include "harness/base/build_info.h"
#include "tests/golden_file.h"
#include "tests/reports/json_schema.h"
#include "tests/reports/sample.h"

namespace ulpscope {
namespace {

using nlohmann::json;
using testing::SampleReport;
using testing::SchemaValidator;

json Schema() { return json::parse(testing::ReadAll(SourceDir() + "/reports/report.schema.json")); }

TEST(JsonReport, Golden) { testing::ExpectGolden("report.json", WriteJson(SampleReport())); }

TEST(JsonReport, FitsItsSchema) {
  SchemaValidator validator(Schema());
  EXPECT_EQ(validator.Validate(json::parse(WriteJson(SampleReport()))), std::vector<std::string>{});
  EXPECT_GT(validator.checks(), 200) << "how much was checked";
  EXPECT_EQ(validator.Validate(json::parse(WriteJson(RunReport{}))), std::vector<std::string>{});
}

TEST(JsonReport, TheValidatorFindsPlantedFaults) {
  const auto planted = [](auto plant) {
    json document = json::parse(WriteJson(SampleReport()));
    plant(document);
    SchemaValidator validator(Schema());
    return validator.Validate(document).size();
  };
  EXPECT_EQ(planted([](json&) {}), 0u);
  EXPECT_GT(planted([](json& d) { d.erase("counts"); }), 0u);
  EXPECT_GT(planted([](json& d) { d["schema"] = "ulpscope.report/2"; }), 0u);
  EXPECT_GT(planted([](json& d) { d["results"][0]["status"] = "OK"; }), 0u);
  EXPECT_GT(planted([](json& d) { d["results"][0]["extra"] = 1; }), 0u);
  EXPECT_GT(planted([](json& d) { d["counts"]["GOOD"] = 1; }), 0u);
  EXPECT_GT(planted([](json& d) { d["results"][1]["values"]["product"]["max_ulp"] = "huge"; }), 0u);
  EXPECT_GT(planted([](json& d) { d["results"][1]["values"]["product"]["models"][0] = "float32"; }), 0u);
  EXPECT_GT(planted([](json& d) { d["results"][1]["values"]["product"]["facets"].erase("mid"); }), 0u);
  EXPECT_GT(planted([](json& d) { d["divergences"][0]["backends"] = json::array(); }), 0u);
}

TEST(JsonReport, StablePartOfTheInterface) {
  const json d = json::parse(WriteJson(SampleReport()));
  EXPECT_EQ(d["schema"], "ulpscope.report/1");
  EXPECT_EQ(d["run"]["environment"]["OPENBLAS_CORETYPE"], nullptr);
  EXPECT_EQ(d["counts"]["PASS"], 2);
  EXPECT_EQ(d["counts"]["XPASS"], 0);
  const json& product = d["results"][1]["values"]["product"];
  EXPECT_EQ(product["max_ulp"], "inf");
  EXPECT_EQ(product["models"][0], "in=as_is;prod=exact;acc=float32;mid=bfloat16;out=float32_rne");
  EXPECT_EQ(product["models_proved"].size(), 2u);
  EXPECT_EQ(product["excluded"][0]["element"], json({0, 3, 0, 0}));
  EXPECT_EQ(product["facets"]["mid"], json({"bfloat16"}));
  EXPECT_EQ(d["results"][1]["observations"]["peak_bytes"], 12345);
  EXPECT_EQ(d["results"][1]["observations"]["w.grad_metadata_dtype"], "bfloat16");
  EXPECT_EQ(d["results"][1]["casts"][0]["bytes"], 896);
  EXPECT_EQ(d["divergences"][1]["kind"], "precision");
}

TEST(JsonReport, OnlyVolatileDiffersBetweenEqualRuns) {
  RunReport other = SampleReport();
  other.id = "other";
  other.started = "2027-01-01T00:00:00Z";
  other.durations_s["run"] = 7;
  other.results[1].durations_ms["run"] = 99;
  json a = json::parse(WriteJson(SampleReport()));
  json b = json::parse(WriteJson(other));
  EXPECT_NE(a, b);
  a.erase("volatile");
  b.erase("volatile");
  EXPECT_EQ(a, b);
}

TEST(JsonReport, BytesDoNotDependOnTheLocale) {
  const std::string before = WriteJson(SampleReport());
  const char* set = nullptr;
  for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"}) {
    if (set = std::setlocale(LC_ALL, name); set != nullptr) break;
  }
  ASSERT_NE(set, nullptr);
  EXPECT_EQ(WriteJson(SampleReport()), before);
  std::setlocale(LC_ALL, "C");
}

TEST(JsonReport, NotRunHasNoOutcome) {
  RunReport report;
  report.results.push_back(testing::Result("b", Status::kNotRun, "interrupted"));
  EXPECT_FALSE(json::parse(WriteJson(report))["results"][0].contains("outcome"));
}

}  // namespace
}  // namespace ulpscope
