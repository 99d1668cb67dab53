// Lint, the skeleton of a new case, and the deviations file.
#include "harness/casefile/lint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/base/build_info.h"
#include "harness/casefile/deviations.h"
#include "harness/casefile/load.h"
#include "harness/casefile/new_case.h"
#include "harness/casefile/width.h"

namespace ulpscope {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

Case ParsedCase(const std::string& text) {
  const LoadResult result = LoadCaseText(text, "f.yaml", "f", Vocabulary{});
  for (const Error& error : result.errors) ADD_FAILURE() << error.Text();
  return result.cases.empty() ? Case{} : result.cases[0];
}

std::vector<std::string> Warnings(const std::string& text) {
  std::vector<std::string> texts;
  for (const Error& warning : Lint(ParsedCase(text))) texts.push_back(warning.Text());
  return texts;
}

/// A product of K terms with one fill, and what is demanded of it.
std::string Product(const std::string& k, const std::string& fill, const std::string& demand) {
  return "cases:\n  - name: c\n    tags: [ci]\n    tensors:\n      x: {dtype: bfloat16, shape: [16, " + k +
         "], fill: " + fill + "}\n      w: {dtype: float32, shape: [" + k + ", 16], fill: " + fill +
         "}\n    program: [{op: mm, of: [x, w], as: r}]\n    observe: [r]\n    contract: {status: de_facto, "
         "accept: {r: " +
         demand + "}}\n";
}

TEST(Lint, AGoodCaseIsSilent) {
  EXPECT_THAT(Warnings(Product("64", "normal", "{acc: [float32], mid: [none], in: {w: bfloat16_rne}}")),
              IsEmpty());
  EXPECT_THAT(Warnings(NewCaseTemplate("example")), IsEmpty());
}

TEST(Lint, AnOpThatTheDispatcherDoesNotHave) {
  const auto program = [](const std::string& op) {
    return "cases:\n  - name: c\n    tags: [ci]\n    tensors:\n      x: {dtype: float32, shape: [4, 4], "
           "fill: normal}\n"
           "    program: [{op: \"" +
           op + "\", of: [x], as: r}]\n    observe: [r]\n";
  };
  EXPECT_THAT(
      Warnings(program("aten::softmx.int")),
      ElementsAre(AllOf(HasSubstr("found aten::softmx.int"), HasSubstr("did you mean 'aten::softmax'?"))));
  EXPECT_THAT(Warnings(program("aten::no_op_is_called_anything_like_this")),
              ElementsAre(Not(HasSubstr("did you mean"))));
  for (const char* op : {"aten::softmax.int", "aten::flip", "aten::mul_.Tensor", "aten::__and__.Tensor"})
    EXPECT_THAT(Warnings(program(op)), IsEmpty()) << op;
}

TEST(Lint, DataTooPoorToTellModelsApart) {
  // Integers below 2 in 4 terms: sums up to 4 fit any format.
  EXPECT_THAT(
      Warnings(Product("4", "{integers: {low: 0, high: 1}}", "{acc: [float32]}")),
      ElementsAre(HasSubstr("every precision gives the same bits; found exact results of at most 4 bits")));
  // 4 + 4 bits of product and 6 of the sum: bfloat16 parts, float32 and float64 do not.
  EXPECT_THAT(Warnings(Product("64", "{integers: {low: -8, high: 8}}", "{acc: [float32]}")),
              ElementsAre(HasSubstr("do not distinguish float32 from float64")));
  EXPECT_THAT(Warnings(Product("64", "{integers: {low: -8, high: 8}}", "{acc: [float32, float64]}")),
              IsEmpty());
  EXPECT_THAT(Warnings(Product("64", "ones", "{mid: [none]}")), ElementsAre(HasSubstr("every precision")));
  EXPECT_THAT(Warnings(Product("1", "normal", "{acc: [float32]}")), ElementsAre(HasSubstr("K = 1")));
}

std::string Narrow(const std::string& x, const std::string& w, const std::string& acc) {
  return "cases:\n  - name: c\n    tags: [ci]\n    tensors:\n      x: {dtype: bfloat16, shape: [16, 64], "
         "fill: " +
         x + "}\n      w: {dtype: bfloat16, shape: [64, 16], fill: " + w +
         "}\n    program: [{op: mm, of: [x, w], as: r}]\n    observe: [r]\n    contract: {status: de_facto, "
         "accept: {r: {acc: " +
         acc + "}}}\n";
}

TEST(Lint, NarrowStoresHideAccumulatorsAndTheProbesThatShowThemAreNamed) {
  EXPECT_THAT(Warnings(Narrow("normal", "normal", "[float32]")), ElementsAre(HasSubstr("{probe: swamp}")));
  EXPECT_THAT(Warnings(Narrow("normal", "normal", "[at_least_float32]")), IsEmpty());
  EXPECT_THAT(Warnings(Narrow("normal", "normal", "[bfloat16]")), IsEmpty());
  const std::string part = "holds only a part of probe pair; found 16 of its ";
  EXPECT_THAT(Warnings(Narrow("{probe: pair}", "{probe: {name: pair, role: b}}", "[at_least_float32]")),
              ElementsAre(HasSubstr(part), HasSubstr(part)));
  EXPECT_THAT(Warnings(Narrow("{probe: pair}", "normal", "[at_least_float32]")),
              ElementsAre(HasSubstr(part), HasSubstr("a tensor with {probe: {name: pair, role: b}}")));
}

TEST(Lint, OperandsThatFitAlready) {
  EXPECT_THAT(Warnings(Product("64", "normal", "{in: {x: bfloat16_rne}}")),
              ElementsAre(HasSubstr("operand 'x' fits that format already; found bfloat16")));
  EXPECT_THAT(Warnings(Product("64", "normal", "{in: [as_is, bfloat16_rne]}")), IsEmpty());
}

TEST(Lint, TagsSourcesUnusedValuesAndAliases) {
  const auto warnings = Warnings(R"(
cases:
  - name: c
    tensors: {x: {dtype: float32, shape: [4, 4], fill: normal}}
    program:
      - {op: empty, shape: [4, 4], dtype: float32, as: buffer}
      - {op: mm, of: [x, x], out: buffer, as: product}
      - {op: neg, of: [x], as: nothing}
      - {op: sum, of: [product], as: total}
    observe: [product, buffer, total]
    contract: {status: documented, accept: {total: {mid: [none]}}}
)");
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("no tier"), HasSubstr("documented nowhere"),
                                    HasSubstr("f.yaml:8:9: value 'nothing' is never used"),
                                    HasSubstr("'product' and 'buffer' are one buffer"),
                                    HasSubstr("few outputs; found 1 elements")));
}

TEST(Lint, TheShippedCasesAreFollowed) {
  const LoadResult result = LoadCases({}, std::filesystem::path(SourceDir()) / "cases", Vocabulary{});
  size_t followed = 0;
  for (const Case& one : result.cases) {
    for (const auto& [name, facts] : FollowWidths(one)) followed += facts.bits && facts.shape ? 1 : 0;
    for (const Error& warning : Lint(one)) std::printf("%s: %s\n", one.id.c_str(), warning.Text().c_str());
  }
  EXPECT_GE(followed, 50u);
}

TEST(Widths, ThroughSumsProductsAndViews) {
  const Case one = ParsedCase(R"(
cases:
  - name: c
    tensors:
      a: {dtype: float32, shape: [2, 3], fill: {values: [1, 2, 3, 0.5, 0, -4]}}
      b: {dtype: float32, shape: [3], fill: {values: [1, -1, 8]}}
    program:
      - {op: mul, of: [a, b], as: m}
      - {op: t, of: [m], as: mt}
      - {op: sum, of: [mt], dim: 0, as: s}
      - {op: add, of: [s, 0.25], as: r}
    observe: [r]
)");
  const auto facts = FollowWidths(one);
  EXPECT_EQ(facts.at("a").bits->low, -1);  // 0.5
  EXPECT_EQ(facts.at("a").bits->high, 3);  // 4
  EXPECT_EQ(facts.at("m").bits->low, -1);
  EXPECT_EQ(facts.at("m").bits->high, 7);
  EXPECT_THAT(*facts.at("mt").shape, ElementsAre(3, 2));
  EXPECT_EQ(facts.at("s").bits->high, 9);  // three terms: two bits more
  EXPECT_EQ(facts.at("s").longest_sum, 3);
  EXPECT_EQ(facts.at("r").bits->low, -2);
  EXPECT_THAT(*facts.at("r").shape, ElementsAre(2));
}

TEST(NewCase, LoadsAsItStands) {
  const Case one = ParsedCase(NewCaseTemplate("my_case"));
  EXPECT_EQ(one.id, "f/my_case");
  EXPECT_THAT(one.observe, ElementsAre("product", "result"));
}

const Vocabulary kBackends{.backends = {"torch-eager", "jax"}};

DeviationsResult Deviations(std::string_view text) {
  return LoadDeviationsText(text, "deviations.yaml", kBackends);
}

TEST(Deviations, OneFlowMapPerLine) {
  const auto result = Deviations(R"(# a comment
- {case: seeds/a/b, backend: torch-eager, value: product, versions: "torch>=2.13,<2.14", found: mid=bfloat16, reason: known, link: "https://example.org/1", expires: 2026-12-31}
- {case: "seeds/a/b[k=1]", backend: "torch-eager@cuda:threads=2", found: raised, reason: known}
)");
  ASSERT_THAT(result.errors, IsEmpty()) << result.errors[0].Text();
  ASSERT_THAT(result.deviations, SizeIs(2));
  EXPECT_EQ(result.deviations[0].case_id, "seeds/a/b");
  EXPECT_EQ(result.deviations[0].versions, "torch>=2.13,<2.14");
  EXPECT_EQ(result.deviations[0].expires, "2026-12-31");
  EXPECT_EQ(result.deviations[0].pos.line, 2);
  EXPECT_EQ(result.deviations[1].case_id, "seeds/a/b[k=1]");
  EXPECT_EQ(result.deviations[1].value, "");
}

TEST(Deviations, EmptyFilesHoldNone) {
  for (const char* text : {"", "# nothing deviates\n", "[]\n"}) {
    EXPECT_THAT(Deviations(text).errors, IsEmpty()) << text;
    EXPECT_THAT(Deviations(text).deviations, IsEmpty()) << text;
  }
  EXPECT_THAT(LoadDeviations("/no/such/file.yaml", kBackends).errors, IsEmpty());
  EXPECT_THAT(
      LoadDeviations(std::filesystem::path(SourceDir()) / "cases/deviations.yaml", Vocabulary{}).errors,
      IsEmpty());
}

TEST(Deviations, AreReadStrictly) {
  const std::string good = "- {case: a, backend: jax, found: f, reason: r}\n";
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"- {case: a, backend: jax, found: f}\n", "missing key 'reason'"},
      {"- {case: a, backend: jaxx, found: f, reason: r}\n", "unknown backend"},
      {"- {case: a, backend: jax, found: f, reason: r, expire: 2026-01-01}\n", "(did you mean 'expires'?)"},
      {"- {case: a, backend: jax, found: f, reason: r, expires: 2026-13-01}\n",
       "found '2026-13-01', expected a date"},
      {"- {case: a, backend: jax, found: f, reason: r, versions: 2.13}\n", "wrong value for 'versions'"},
      {"- case: a\n  backend: jax\n  found: f\n  reason: r\n", "does not have a line of its own"},
      {"[{case: a, backend: jax, found: f, reason: r}, {case: b, backend: jax, found: f, reason: r}]\n",
       "does not have a line of its own"},
      {good + good, "deviations.yaml:2:3: duplicate deviation"},
      {"deviations: []\n", "found a map"},
  };
  for (const auto& [text, message] : wrong) {
    const auto result = Deviations(text);
    EXPECT_THAT(result.deviations, IsEmpty()) << text;
    ASSERT_FALSE(result.errors.empty()) << text;
    EXPECT_THAT(result.errors[0].Text(), HasSubstr(message));
  }
}

}  // namespace
}  // namespace ulpscope
