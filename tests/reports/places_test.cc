// Where findings stand in the source that was captured: every report, and no other step's line.
#include "reports/places.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <pugixml.hpp>

#include "reports/annotations.h"
#include "reports/console.h"
#include "reports/explain.h"
#include "reports/html_report.h"
#include "reports/json_report.h"
#include "reports/junit_report.h"
#include "reports/markdown_report.h"
#include "tests/reports/sample.h"

namespace ulpscope {
namespace {

using testing::SampleReport;

SourceStep Placed(const std::string& module, const std::string& file, int64_t line, int64_t layers = 1) {
  return {.at = {.module = module, .file = file, .line = line}, .layers = layers};
}

/// The sample, captured: `product` and `result` come from one line of two layers, `bias` from another.
RunReport Captured() {
  RunReport report = SampleReport();
  report.places[report.results[0].id] = {.at = {.file = "cases/own.yaml", .line = 3, .column = 5},
                                         .lines = {{"product", 12}},
                                         .steps = {{"product", Placed("layers.0.mlp", "pkg/model.py", 77, 3)},
                                                   {"result", Placed("layers.2.mlp", "pkg/model.py", 77, 3)},
                                                   {"bias", Placed("head", "pkg/model.py", 91)}}};
  return report;
}

TEST(SourcePlaces, LayersOfOneLineAreOnePlaceWithTheHeaviestOfThem) {
  RunReport report = Captured();
  const Divergence& precision = report.divergences[1];
  ASSERT_EQ(precision.value, "product");
  EXPECT_EQ(PlaceTexts(SourcePlacesOf(report, precision)),
            std::vector<std::string>{"layers.*.mlp, model.py:77 in 2 of 3 layers, largest in layers.0.mlp"})
      << "product has 75 % of the ledger";
  report.ledgers[0].entries.push_back({.step = "result", .share = -0.9, .moved = 1});
  EXPECT_EQ(SourcePlacesOf(report, precision)[0].at.module, "layers.2.mlp");
  report.ledgers.clear();
  EXPECT_EQ(PlaceTexts(SourcePlacesOf(report, precision)),
            std::vector<std::string>{"layers.*.mlp, model.py:77 in 2 of 3 layers, first in layers.0.mlp"});
  Divergence both = precision;
  both.also = {"bias"};
  EXPECT_EQ(PlaceTexts(SourcePlacesOf(report, both)),
            (std::vector<std::string>{"layers.0.mlp, model.py:77 in 1 of 3 layers", "head, model.py:91"}));
  both.value = "elsewhere";
  both.also.clear();
  EXPECT_TRUE(SourcePlacesOf(report, both).empty());
  both = precision;
  both.case_id = "another";
  EXPECT_TRUE(SourcePlacesOf(report, both).empty()) << "a step of that name in another case";
}

TEST(SourcePlaces, OfManyLinesSomeAreNamed) {
  std::vector<SourcePlace> places;
  for (int64_t line = 1; line <= 5; ++line) {
    places.emplace_back();
    places.back().at = {.file = "m.py", .line = line};
  }
  EXPECT_EQ(PlacesText(places), "at m.py:1; m.py:2; and 3 more lines");
  places.resize(3);
  EXPECT_EQ(PlacesText(places), "at m.py:1; m.py:2; m.py:3");
  EXPECT_EQ(PlacesText({}), "");
}

TEST(SourcePlaces, AnnotationsPointAtTheSourceElseAtTheCase) {
  RunReport report = Captured();
  for (CaseResult& result : report.results) result.status_values = {"bias"};
  std::string text = WriteAnnotations(report);
  EXPECT_NE(text.find("::error file=pkg/model.py,line=91,title=FAIL "), std::string::npos) << text;
  EXPECT_NE(text.find("::warning file=pkg/model.py,line=77,title=precision "), std::string::npos) << text;
  EXPECT_NE(text.find("::warning file=cases/own.yaml,line=3,title=outcome "), std::string::npos)
      << "no step is named: " << text;
  report.places[report.results[0].id].steps.clear();
  text = WriteAnnotations(report);
  EXPECT_NE(text.find("::warning file=cases/own.yaml,line=12,title=precision "), std::string::npos) << text;
  report.places[report.results[0].id] = {.at = {}, .steps = {{"other", Placed("m", "m.py", 1)}}};
  EXPECT_EQ(WriteAnnotations(report).find("file="), std::string::npos) << "a case without a file";
}

TEST(SourcePlaces, JunitHasFileAndLineOfFailuresAndDivergences) {
  RunReport report = Captured();
  for (CaseResult& result : report.results) result.status_values = {"bias"};
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(WriteJunit(report).c_str()));
  std::map<std::string, std::string> found;
  for (const pugi::xml_node suite : document.child("testsuites").children()) {
    for (const pugi::xml_node test : suite.children("testcase"))
      found[std::string(suite.attribute("name").value()) + " " + test.attribute("name").value()] =
          std::string(test.attribute("file").value()) + ":" + test.attribute("line").value();
  }
  EXPECT_EQ(found["torch-aot-eager as_posted"], "pkg/model.py:91");
  EXPECT_EQ(found["divergences as_posted: precision of product, torch-aot-eager | openblas"],
            "pkg/model.py:77");
  EXPECT_EQ(found["divergences as_posted: outcome, torch-eager | torch-aot-eager"], ":");
  EXPECT_EQ(found["openblas as_posted"], ":") << "it passes";
}

TEST(SourcePlaces, EachReportSaysThemBesideTheFinding) {
  const RunReport report = Captured();
  const std::string place = "layers.*.mlp, model.py:77 in 2 of 3 layers, largest in layers.0.mlp";
  const std::string console = WriteConsole(report, {.columns = 200});
  EXPECT_NE(console.find("       at " + place + "\n"), std::string::npos) << console;
  EXPECT_NE(WriteHtml(report, {}).find("<span class=\"soft at\">at " + place + "</span>"), std::string::npos);
  std::string markdown = WriteMarkdown(report);
  std::erase(markdown, '\\');
  EXPECT_NE(markdown.find(" At " + place + "."), std::string::npos) << markdown;
  const auto parsed = nlohmann::json::parse(WriteJson(report));
  const nlohmann::json at = {{"module", "layers.0.mlp"}, {"file", "pkg/model.py"}, {"line", 77}};
  EXPECT_EQ(parsed["divergences"][1]["at"], at);
  EXPECT_EQ(parsed["divergences"][1]["places"], nlohmann::json{place});
  EXPECT_FALSE(parsed["divergences"][0].contains("at")) << "a refusal is of no step";
  bool any = false;
  for (const auto& finding : parsed["findings"]) {
    if (finding["kind"] != "precision") continue;
    any = true;
    EXPECT_EQ(finding["at"], at);
    EXPECT_EQ(finding["places"], nlohmann::json{place});
  }
  EXPECT_TRUE(any);
}

TEST(SourcePlaces, ADerivationHasThemBelowEachStep) {
  const RunReport report = Captured();
  const Explanation explanation{.about = "a product",
                                .source = {},
                                .program = {"{op: matmul, as: product}", "{op: add, as: sum}"},
                                .origins = {"at layers.0.mlp, model.py:77", ""}};
  for (const auto verbosity : {ConsoleOptions::Verbosity::kNormal, ConsoleOptions::Verbosity::kVerbose}) {
    const std::string text =
        WriteExplanation(report, report.results[1], explanation, {.columns = 160, .verbosity = verbosity});
    const size_t step = text.find("{op: matmul, as: product}\n"), next = text.find("{op: add, as: sum}\n");
    const size_t origin = text.find("at layers.0.mlp, model.py:77\n");
    ASSERT_NE(step, std::string::npos) << text;
    EXPECT_LT(step, origin) << text;
    EXPECT_LT(origin, next) << text;
    EXPECT_NE(text.find("layers.*.mlp, model.py:77 in 2 of 3 layers"), std::string::npos) << text;
  }
}

TEST(SourceSteps, CountModulesOfOneLineInWhateverLayerAndScope) {
  const auto step = [](const std::string& as, const std::string& module, int64_t line) {
    return Step{.op = "relu", .as = as, .at = {.module = module, .file = "m.py", .line = line}};
  };
  Step scope{.op = "autocast"};
  scope.steps = {step("b", "layers.1.mlp", 7), step("c", "layers.1.mlp", 8)};
  const auto placed = SourceSteps({step("a", "layers.0.mlp", 7), scope, Step{.op = "relu", .as = "d"}});
  ASSERT_EQ(placed.size(), 3u);
  EXPECT_EQ(placed.at("a").layers, 2);
  EXPECT_EQ(placed.at("b").layers, 2);
  EXPECT_EQ(placed.at("c").layers, 1) << "the line decides, not the module";
  EXPECT_EQ(placed.at("b").at.module, "layers.1.mlp");
}

}  // namespace
}  // namespace ulpscope
