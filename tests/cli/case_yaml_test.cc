// Cases written back as YAML: every case of the suite, and the awkward ones.
#include "harness/workspace/case_yaml.h"

#include <gtest/gtest.h>

#include "harness/base/build_info.h"
#include "harness/casefile/load.h"
#include "harness/casefile/prove.h"
#include "harness/record/observation_json.h"

namespace ulpscope {
namespace {

TEST(CaseYaml, EveryCaseOfTheSuiteComesBackAsTheSameComputation) {
  const LoadResult suite = LoadCases({}, SourceDir() + "/cases", {});
  ASSERT_TRUE(suite.errors.empty());
  ASSERT_GT(suite.cases.size(), 30u);
  for (const Case& test_case : suite.cases) {
    const auto yaml = WriteCaseYaml(test_case, "torch-eager");
    ASSERT_TRUE(yaml) << test_case.id << ": " << yaml.error().Text();
    const auto whole = WriteCaseYaml(test_case, kEveryBackend);
    ASSERT_TRUE(whole) << test_case.id;
    EXPECT_EQ(LoadCaseText(*whole, "again", "again", {}).cases.at(0).expect.size(), test_case.expect.size());
    const LoadResult again = LoadCaseText(*yaml, "again", "again", {});
    ASSERT_EQ(again.cases.size(), 1u) << *yaml;
    EXPECT_EQ(CaseDigest(again.cases[0]), CaseDigest(test_case)) << test_case.id;
    EXPECT_EQ(again.cases[0].contract.accept_any, test_case.contract.accept_any) << test_case.id;
    EXPECT_EQ(again.cases[0].contract.values.size(), test_case.contract.values.size()) << test_case.id;
    EXPECT_EQ(again.cases[0].expect.contains("torch-eager"), test_case.expect.contains("torch-eager"))
        << test_case.id;
  }
}

TEST(CaseYaml, AwkwardTextAndNumbers) {
  const char* text = R"(
about: "quotes \" and \\ and: colons # hashes"
cases:
  - name: odd
    tensors:
      x: {dtype: float32, shape: [2, 3], layout: {transpose: [0, 1]}, fill: {values: [1, 1/3, -0x1.8p0, 1e-5, 2.50, nan]}}
      y: {dtype: bfloat16, shape: [2, 3], fill: {full: {value: bits:0x3f80}}}
    program:
      - {op: mul, of: [x, 2], as: twice}
      - {op: mul, of: [twice, 2.0], as: again}
      - {op: mul, of: [again, 1e-3], as: small}
      - {op: "aten::addcmul", of: [small, x, y], value: -1, mode: "true", as: done}
    observe: [done]
    contract: {status: specified, accept: {done: {dtype: float32, in: {x: [as_is]}, mid: [none]}, raised: {class: E, match: "a \"b\" c\\."}}}
    expect:
      torch-eager: [{versions: "torch>=2.9,<3", unsupported: "no \"such\" op"}]
)";
  const LoadResult loaded = LoadCaseText(text, "odd", "odd", {});
  ASSERT_TRUE(loaded.errors.empty()) << loaded.errors.front().Text();
  const auto yaml = WriteCaseYaml(loaded.cases.front(), "torch-eager");
  ASSERT_TRUE(yaml) << yaml.error().Text();
  const Case again = LoadCaseText(*yaml, "again", "again", {}).cases.at(0);
  EXPECT_EQ(again.about, loaded.cases[0].about);
  EXPECT_EQ(again.contract.raised->match, "a \"b\" c\\.");
  EXPECT_EQ(again.contract.values.at("done").facets, loaded.cases[0].contract.values.at("done").facets);
  EXPECT_EQ(again.expect.at("torch-eager").at(0).unsupported, "no \"such\" op");
}

TEST(CaseYaml, AStepKeepsWhereItComesFrom) {
  const char* text = R"(
about: "captured"
cases:
  - name: own
    tensors: {x: {dtype: float32, shape: [2], fill: {values: [1, 2]}}}
    program:
      - {op: mul, of: [x, x], as: a, at: {module: "layers.0, odd", file: src/model.py, line: 7}}
      - {op: no_grad, steps: [{op: mul, of: [a, x], as: b, at: {file: model.py, line: 9}}]}
      - {op: mul, of: [b, x], as: c, at: {module: layers.1}}
      - {op: mul, of: [c, x], as: d}
    observe: [d]
)";
  const LoadResult loaded = LoadCaseText(text, "own", "own", {});
  ASSERT_TRUE(loaded.errors.empty()) << loaded.errors.front().Text();
  const Case& test_case = loaded.cases.front();
  ASSERT_EQ(test_case.program[0].at.line, 7);
  const auto yaml = WriteCaseYaml(test_case, kEveryBackend);
  ASSERT_TRUE(yaml) << yaml.error().Text();
  const Case again = LoadCaseText(*yaml, "again", "again", {}).cases.at(0);
  for (const size_t i : {0, 2, 3}) EXPECT_EQ(again.program[i].at, test_case.program[i].at) << *yaml;
  EXPECT_EQ(again.program[1].steps.at(0).at, test_case.program[1].steps.at(0).at) << *yaml;
  EXPECT_EQ(StepYaml(test_case.program[1]), "{op: no_grad, steps: [{op: mul, of: [a, x], as: b}]}")
      << "a derivation has it on a line of its own";
}

TEST(CaseYaml, ManyValuesStandOnManyLines) {
  std::string values;
  for (int i = 0; i < 12000; ++i) values += (i == 0 ? "" : ",\n        ") + std::to_string(i) + ".125";
  const std::string text =
      "about: \"many\"\ncases:\n  - name: many\n    tensors:\n      x: {dtype: float32, shape: [12000], "
      "fill: {values: [" +
      values +
      "]}}\n    program:\n      - {op: mul, of: [x, x], as: y}\n"
      "    observe: [y]\n";
  const LoadResult loaded = LoadCaseText(text, "many", "many", {});
  ASSERT_TRUE(loaded.errors.empty()) << loaded.errors.front().Text();
  const auto yaml = WriteCaseYaml(loaded.cases.at(0), kEveryBackend);
  ASSERT_TRUE(yaml) << yaml.error().Text();
  const LoadResult again = LoadCaseText(*yaml, "again", "again", {});
  ASSERT_EQ(again.cases.size(), 1u);
  EXPECT_EQ(CaseDigest(again.cases[0]), CaseDigest(loaded.cases[0]));
}

TEST(CaseYaml, CompanionsBecomeCasesOfTheirOwn) {
  const LoadResult loaded = LoadCaseText(R"(
cases:
  - name: odd
    sweep: {k: [200]}
    tensors:
      x: {dtype: bfloat16, shape: [4, $k], fill: normal}
      w: {dtype: bfloat16, shape: [4, $k], fill: normal}
    program: [{op: linear, of: [x, w], as: y}]
    observe: [y]
    contract: {status: de_facto, prove: true, accept: {y: {acc: [at_least_float32]}}}
)",
                                         "odd", "odd", {});
  ASSERT_TRUE(loaded.errors.empty()) << loaded.errors.front().Text();
  const auto yaml = WriteCaseYaml(loaded.cases[0], "jax");
  ASSERT_TRUE(yaml);
  EXPECT_TRUE(LoadCaseText(*yaml, "again", "again", {}).cases.at(0).contract.prove);
  const auto companions = CompanionsOf(loaded.cases[0]);
  ASSERT_GT(companions.size(), 4u);
  for (const Companion& companion : companions) {
    const auto text = WriteCaseYaml(companion.test_case, "jax");
    ASSERT_TRUE(text) << text.error().Text();
    const LoadResult again = LoadCaseText(*text, "again", "again", {});
    ASSERT_EQ(again.cases.size(), 1u) << *text;
    EXPECT_EQ(CaseDigest(again.cases[0]), CaseDigest(companion.test_case));
    EXPECT_EQ(again.cases[0].id, "again/odd+" + companion.name);
  }
}

}  // namespace
}  // namespace ulpscope
