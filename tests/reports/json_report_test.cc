// report.json: golden, schema, determinism.
#include "reports/json_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <clocale>

#include "harness/base/build_info.h"
#include "reports/console.h"
#include "reports/decisive.h"
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
  EXPECT_GT(planted([](json& d) { d["schema"] = "ulpscope.report/1"; }), 0u);
  EXPECT_GT(planted([](json& d) { d["results"][0]["status"] = "OK"; }), 0u);
  EXPECT_GT(planted([](json& d) { d["results"][0]["extra"] = 1; }), 0u);
  EXPECT_GT(planted([](json& d) { d["counts"]["GOOD"] = 1; }), 0u);
  EXPECT_GT(planted([](json& d) { d["results"][1]["values"]["product"]["max_ulp"] = "huge"; }), 0u);
  EXPECT_GT(planted([](json& d) { d["results"][1]["values"]["product"]["models"][0] = "float32"; }), 0u);
  EXPECT_GT(planted([](json& d) { d["models"][0] = "float32"; }), 0u);
  EXPECT_GT(planted([](json& d) { d["exclusions"][0].erase("why"); }), 0u);
  EXPECT_GT(planted([](json& d) { d["results"][1]["values"]["product"]["excluded"][0] = json::object(); }),
            0u);
  EXPECT_GT(planted([](json& d) { d["results"][1]["values"]["product"]["facets"].erase("mid"); }), 0u);
  EXPECT_GT(planted([](json& d) { d["divergences"][0]["backends"] = json::array(); }), 0u);
}

TEST(JsonReport, StablePartOfTheInterface) {
  const json d = json::parse(WriteJson(SampleReport()));
  EXPECT_EQ(d["schema"], "ulpscope.report/3");
  EXPECT_EQ(d["run"]["environment"]["OPENBLAS_CORETYPE"], nullptr);
  EXPECT_EQ(d["counts"]["PASS"], 2);
  EXPECT_EQ(d["counts"]["XPASS"], 0);
  const json& product = d["results"][1]["values"]["product"];
  EXPECT_EQ(product["max_ulp"], "inf");
  EXPECT_EQ(d["models"][product["models"][0].get<size_t>()],
            "in=as_is;prod=exact;acc=float32;mid=bfloat16;out=float32_rne");
  EXPECT_EQ(product["models_proved"].size(), 2u);
  EXPECT_EQ(d["exclusions"][product["excluded"][0].get<size_t>()]["element"], json({0, 3, 0, 0}));
  EXPECT_EQ(product["facets"]["mid"], json({"bfloat16"}));
  EXPECT_EQ(d["results"][1]["observations"]["peak_bytes"], 12345);
  EXPECT_EQ(d["results"][1]["observations"]["w.grad_metadata_dtype"], "bfloat16");
  EXPECT_EQ(d["results"][1]["casts"][0]["bytes"], 896);
  EXPECT_EQ(d["divergences"][1]["kind"], "precision");
}

TEST(JsonReport, WhatSeveralExcludeStandsOnce) {
  CaseResult mine = testing::Result("a", Status::kPass, "");
  mine.value_order = {"y"};
  mine.values["y"] = testing::Value({testing::Model("float64", "none")});
  Exclusion exclusion;
  exclusion.model = testing::Model("float32", "none");
  exclusion.why = "not float32";
  mine.values["y"].classification.excluded = {exclusion};
  CaseResult same = mine, other = mine;
  same.backend = "the same bits";
  other.backend = "another element";
  other.values["y"].classification.excluded[0].element = {1};
  RunReport report;
  report.results = {mine, same, other};
  const json d = json::parse(WriteJson(report));
  EXPECT_EQ(d["exclusions"].size(), 2u);
  for (const auto& [result, index] : {std::pair{0, 0}, {1, 0}, {2, 1}})
    EXPECT_EQ(d["results"][static_cast<size_t>(result)]["values"]["y"]["excluded"], json({index}));
}

/// A classification that excludes models of the accumulators `acc`, each at an element of its own.
Classification Excluding(const std::vector<std::string>& acc) {
  Classification classification = testing::Value({testing::Model("float64", "none")}).classification;
  for (const auto& word : acc) {
    Exclusion exclusion;
    exclusion.model = testing::Model(word, "none");
    exclusion.element = {static_cast<int64_t>(classification.excluded.size())};
    exclusion.why = "not " + word;
    classification.excluded.push_back(exclusion);
  }
  return classification;
}

std::vector<std::string> Written(const RunReport& report) {
  const json d = json::parse(WriteJson(report));
  std::vector<std::string> names;
  for (const json& index : d["results"][0]["values"]["y"]["excluded"]) {
    const std::string name = d["models"][d["exclusions"][index.get<size_t>()]["model"].get<size_t>()];
    names.push_back(name.substr(name.find("acc=") + 4, name.find(";mid") - name.find("acc=") - 4));
  }
  return names;
}

TEST(JsonReport, OnlyDecisiveExclusionsAreWritten) {
  using Names = std::vector<std::string>;
  const Names all{"p10", "bfloat16", "float16", "float32", "p16", "p17"};
  CaseResult mine = testing::Result("a", Status::kPass, "");
  mine.value_order = {"y"};
  mine.values["y"] = testing::Value({testing::Model("float64", "none")});
  mine.values["y"].classification = Excluding(all);
  CaseResult other = testing::Result("b", Status::kPass, "");
  other.values["y"] = testing::Value({testing::Model("p16", "none")});
  RunReport report;
  report.results = {mine, other};
  EXPECT_EQ(Written(report), (Names{"p10", "float32"})) << "the nearest, and float32 throughout";
  report.results[0].cited.emplace("y", report.results[0].values["y"].classification.excluded[2]);
  EXPECT_EQ(Written(report), (Names{"p10", "float16", "float32"})) << "and the one that the reason cites";
  Divergence parts;
  parts.case_id = mine.id;
  parts.kind = DivergenceKind::kPrecision;
  parts.backends = {{"b"}, {"a"}};
  parts.value = "x";
  parts.also = {"y"};
  report.divergences = {parts};
  EXPECT_EQ(Written(report), (Names{"p10", "float16", "float32", "p16"})) << "and what parts it from b";
  report.results[0].values["y"].classification.excluded[5].why = "on the auxiliary input swamp: not p17";
  report.results[0].values["y"].classification.excluded[5].further_input = "swamp";
  EXPECT_EQ(Written(report), (Names{"p10", "float16", "float32", "p16", "p17"}));
  const std::string text = WriteJson(report);
  const json parsed = json::parse(text);  // outlives the loop over a part of it
  for (const json& exclusion : parsed["exclusions"])
    EXPECT_EQ(exclusion.value("further_input", ""),
              exclusion["why"] == "on the auxiliary input swamp: not p17" ? "swamp" : "");
  EXPECT_EQ(parsed["results"][0]["values"]["y"]["excluded_count"], all.size());
  // The others need not stay in memory; a witness may be asked of any divergence, so that the rival's first one stays.
  report.divergences.clear();
  const std::string console = WriteConsole(report, {}), without = WriteJson(report);
  KeepShownExclusions(report.divergences, &report.results);
  EXPECT_EQ(report.results[0].values["y"].classification.excluded.size(), all.size() - 1);
  EXPECT_EQ(WriteJson(report), without);
  EXPECT_EQ(WriteConsole(report, {}), console);
  report.divergences = {parts};
  EXPECT_EQ(WriteJson(report), text);
}

TEST(JsonReport, EqualCastsAreCounted) {
  RunReport report = SampleReport();
  auto& casts = report.results[1].casts;
  casts.push_back(casts[0]);
  casts.push_back(casts[0]);
  casts[1].to = "float16";
  const json d = json::parse(WriteJson(report));
  const json& written = d["results"][1]["casts"];
  ASSERT_EQ(written.size(), 2u);
  EXPECT_EQ(written[0]["count"], 2);
  EXPECT_FALSE(written[1].contains("count"));
  SchemaValidator validator(Schema());
  EXPECT_EQ(validator.Validate(d), std::vector<std::string>{});
}

TEST(JsonReport, ModelsAreNamedOnceAndLongListsAreCounted) {
  RunReport report;
  for (const char* backend : {"a", "b", "c"}) {
    CaseResult result = testing::Result(backend, Status::kPass, "");
    result.value_order = {"y"};
    std::vector<PrecisionModel> models;
    for (int i = 0; i < 300; ++i) {
      const int n = 2 + i / 30, bits = 8 + i % 30;
      models.push_back(
          testing::Model("blockfma(" + std::to_string(n) + "," + std::to_string(bits) + ",rz)", "none"));
    }
    result.values["y"] = testing::Value(models);
    result.values["y"].classification.models.resize(2);
    report.results.push_back(result);
  }
  const json d = json::parse(WriteJson(report));
  EXPECT_EQ(d["models"].size(), 64u);
  const json& value = d["results"][2]["values"]["y"];
  EXPECT_EQ(value["models"], json({0, 1}));
  EXPECT_FALSE(value.contains("models_count"));
  EXPECT_EQ(value["models_proved"].size(), 64u);
  EXPECT_EQ(value["models_proved_count"], 300);
  SchemaValidator validator(Schema());
  EXPECT_EQ(validator.Validate(d), std::vector<std::string>{});
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
