// Which backends part, in what kind, in which groups, and what the sentence says.
#include "harness/judge/divergence.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <set>
#include <tuple>

#include "harness/judge/judge.h"
#include "harness/judge/sentence.h"
#include "tests/judge/make.h"
#include "tests/support/cases.h"
#include "tests/support/models.h"

namespace ulpscope {
namespace {

using testing::Classify;
using testing::Completed;
using testing::MakeCase;
using testing::Model;
using testing::Raised;
using testing::Tensor;
using enum DivergenceKind;

/// Runs of one case, kept alive for the comparison.
class Table {
 public:
  explicit Table(Case c) : case_(std::move(c)) {}

  Table& Add(const std::string& backend, Observation observation,
             const std::map<std::string, Classification>& classes = {}) {
    observations_.push_back(std::make_unique<Observation>(std::move(observation)));
    results_.push_back(
        std::make_unique<CaseResult>(JudgeCase(case_, backend, *observations_.back(), classes, {})));
    return *this;
  }
  /// A backend that completed with `product` in `dtype`.
  Table& Add(const std::string& backend, const Classification& product, std::vector<double> numbers,
             DType dtype = DType::kFloat32) {
    return Add(backend, Completed({{"product", Tensor(dtype, {2, 2}, numbers)}}), {{"product", product}});
  }
  CaseResult& Last() { return *results_.back(); }

  std::vector<Divergence> Find(const std::set<std::string>& known = {},
                               JudgedAs judged = JudgedAs::kWholeProgram) const {
    std::vector<Participant> participants;
    for (size_t i = 0; i < results_.size(); ++i)
      participants.push_back({results_[i].get(), observations_[i].get()});
    return FindDivergences(case_, participants, judged, known);
  }

 private:
  Case case_;
  std::vector<std::unique_ptr<Observation>> observations_;
  std::vector<std::unique_ptr<CaseResult>> results_;
};

using Groups = std::vector<std::vector<std::string>>;

const std::vector<double> kRounded{1, 2, 3, 4};
const std::vector<double> kUnrounded{1.0009765625, 2, 3, 4};

Classification ThroughBfloat16() {
  Classification c =
      Classify({Model("float32", "bfloat16")}, {Model("float32", "bfloat16"), Model("bfloat16", "none")},
               "accumulated in float32, rounded through bfloat16, stored float32");
  Exclusion exclusion;
  exclusion.model = Model("float32", "none");
  exclusion.element = {0, 1};
  exclusion.observed = 2;
  exclusion.low = 2.0009765625;
  exclusion.high = 2.001953125;
  exclusion.why = "float32 gives more bits";
  c.excluded = {exclusion};
  c.labelled = FormatOfWhat::kSums;
  return c;
}

Classification Float32() {
  Classification sums = Classify({Model("float32", "none")}, "accumulated in float32, stored float32");
  sums.any_order = 0x1p-22;
  sums.labelled = FormatOfWhat::kSums;
  return sums;
}

std::vector<Divergence> OfKind(const std::vector<Divergence>& all, DivergenceKind kind) {
  std::vector<Divergence> some;
  for (const auto& divergence : all) {
    if (divergence.kind == kind) some.push_back(divergence);
  }
  return some;
}

TEST(Divergence, MatmulIntoFloat32AsPosted) {
  Table table(MakeCase());
  table.Add("torch-eager", Raised("RuntimeError", testing::kRefusal))
      .Add("torch-aot-eager", ThroughBfloat16(), kRounded)
      .Add("torch-inductor", Float32(), kUnrounded);
  const auto found = table.Find();
  ASSERT_EQ(found.size(), 3u) << "two of kind outcome, one of kind precision, nothing else";
  EXPECT_EQ(found[0].kind, kOutcome);
  EXPECT_EQ(found[0].backends, (Groups{{"torch-eager"}, {"torch-aot-eager"}}));
  EXPECT_EQ(found[0].value, "");
  EXPECT_EQ(found[0].sentence,
            "torch-eager raises RuntimeError (\"Expected out tensor to have dtype c10::BFloat16, but got "
            "float instead\"); torch-aot-eager returns `product` as float32 (accumulated in float32, rounded "
            "through bfloat16, stored float32).");
  EXPECT_EQ(found[1].kind, kOutcome);
  EXPECT_EQ(found[1].backends, (Groups{{"torch-eager"}, {"torch-inductor"}}));
  EXPECT_EQ(found[2].kind, kPrecision);
  EXPECT_EQ(found[2].value, "product");
  EXPECT_EQ(found[2].basis, "proved");
  EXPECT_EQ(found[2].sentence,
            "torch-aot-eager rounds `product` to bfloat16 before the float32 buffer; torch-inductor does "
            "not: `product[0,0]` is 1 on torch-aot-eager and 1.0009766 on torch-inductor.");
}

TEST(Divergence, BackendsOfOneClassFormAGroup) {
  Table table(MakeCase());
  table.Add("torch-eager", Raised("RuntimeError", "no"))
      .Add("torch-traced", Raised("TorchError", "no"))
      .Add("torch-aot-eager", ThroughBfloat16(), kRounded)
      .Add("torch-inductor", Float32(), kUnrounded)
      .Add("openblas", Float32(), kUnrounded);
  const auto found = table.Find();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].backends, (Groups{{"torch-eager", "torch-traced"}, {"torch-aot-eager"}}));
  EXPECT_EQ(found[1].backends, (Groups{{"torch-eager", "torch-traced"}, {"torch-inductor", "openblas"}}));
  EXPECT_EQ(found[2].backends, (Groups{{"torch-aot-eager"}, {"torch-inductor", "openblas"}}));
  EXPECT_NE(found[2].sentence.find("torch-inductor and openblas do not: `product[0,0]` is "),
            std::string::npos)
      << found[2].sentence;
}

TEST(Divergence, OutDtypeOneByOne) {
  const auto narrow = Classify({Model("float32", "none", "bfloat16_rne")});
  Table table(MakeCase());
  table.Add("torch-eager", Raised("NotImplementedError", "no"))
      .Add("torch-inductor", narrow, kRounded, DType::kBfloat16);
  auto found = table.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, kOutcome);
  table.Add("jax", Float32(), kUnrounded);
  found = table.Find();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(OfKind(found, kOutcome).size(), 2u);
  const auto dtypes = OfKind(found, kDtype);
  ASSERT_EQ(dtypes.size(), 1u) << "and no precision divergence: the dtype says it";
  EXPECT_EQ(dtypes[0].backends, (Groups{{"torch-inductor"}, {"jax"}}));
  EXPECT_EQ(dtypes[0].sentence,
            "torch-inductor gives `product` as bfloat16; jax gives `product` as float32.");
}

TEST(Divergence, OverlappingSetsDoNotPartAndOverlapIsNotTransitive) {
  const auto both = Classify({Model("float32", "none"), Model("float32", "bfloat16")});
  Table table(MakeCase());
  table.Add("wide", both, {9, 9, 9, 9})
      .Add("rounds", ThroughBfloat16(), kRounded)
      .Add("keeps", Float32(), kUnrounded);
  const auto precision = OfKind(table.Find(), kPrecision);
  ASSERT_EQ(precision.size(), 1u);
  EXPECT_EQ(precision[0].backends, (Groups{{"rounds"}, {"keeps"}})) << "`wide` parts from nobody";
}

TEST(Divergence, LikelyWhenOnlyTheLikelihoodParts) {
  const auto likely =
      Classify({Model("bfloat16", "none")}, {Model("float32", "none"), Model("bfloat16", "none")});
  Table table(MakeCase());
  table.Add("a", likely, kRounded).Add("b", Float32(), kUnrounded);
  const auto found = table.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].basis, "likely");
  EXPECT_EQ(found[0].sentence,
            "a likely accumulates `product` in bfloat16; b likely does not: `product[0,0]` is 1 on a and "
            "1.0009766 on b.");
}

TEST(Divergence, FirstValueInProgramOrderLaterOnesInAlso) {
  Case c = MakeCase({"result", "product"});
  const auto run = [](const Classification& classification, const std::vector<double>& numbers) {
    return std::pair(
        Completed({{"product", Tensor(DType::kFloat32, {2, 2}, numbers)},
                   {"result", Tensor(DType::kFloat32, {2, 2}, numbers)}}),
        std::map<std::string, Classification>{{"product", classification}, {"result", classification}});
  };
  Table table(c);
  const auto [a, a_classes] = run(ThroughBfloat16(), kRounded);
  const auto [b, b_classes] = run(Float32(), kUnrounded);
  table.Add("a", a, a_classes).Add("b", b, b_classes);
  const auto found = table.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].value, "product");
  EXPECT_EQ(found[0].also, std::vector<std::string>{"result"});
}

// a alone rounds the one step, b alone the other: three groups in pairs, and two things to be said.
TEST(Divergence, WhatOneBackendDoesAndTwoDoNotIsOneFinding) {
  Case c = MakeCase();
  c.program = {testing::MakeStep("exp", {"x"}, "product"), testing::MakeStep("exp", {"x"}, "result")};
  c.observe = {"product", "result"};
  Table table(c);
  for (const auto& [backend, rounds] : {std::pair{"a", "product"}, {"b", "result"}, {"c", ""}}) {
    std::map<std::string, TensorData> values;
    std::map<std::string, Classification> classes;
    for (const char* value : {"product", "result"}) {
      const bool here = std::string_view(rounds) == value;
      values[value] = Tensor(DType::kFloat32, {2, 2}, here ? kRounded : kUnrounded);
      classes[value] = here ? ThroughBfloat16() : Float32();
    }
    table.Add(backend, Completed(std::move(values)), classes);
  }
  const auto found = OfKind(table.Find({}, JudgedAs::kStepByStep), kPrecision);
  ASSERT_EQ(found.size(), 2u);
  for (const Divergence& each : found) {
    const bool first = each.value == "product";
    const std::string who = first ? "a" : "b", others = first ? "b and c" : "a and c";
    EXPECT_TRUE(each.sentence.starts_with(who + " ")) << each.sentence;
    EXPECT_NE(each.sentence.find("; " + others + " do not"), std::string::npos) << each.sentence;
  }
}

TEST(Divergence, OrderIsSameClassOtherBits) {
  Table table(MakeCase());
  table.Add("a", Float32(), {1, 2, 3, 4})
      .Add("b", Float32(), {1, 2 + 0x1p-22, 3, 4})
      .Add("c", Float32(), {1, 2, 3, 4});
  const auto found = table.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, kOrder);
  EXPECT_EQ(found[0].backends, (Groups{{"a", "c"}, {"b"}}));
  EXPECT_NE(found[0].sentence.find("1 of 4 elements, by up to 1 ulp"), std::string::npos)
      << found[0].sentence;
  EXPECT_EQ(found[0].size.most, 1);
  EXPECT_EQ(found[0].size.largest, 0x1p-22);
  EXPECT_EQ(found[0].size.scale, 4);
  EXPECT_EQ(found[0].bound, 0x1p-23) << "each on its side of the exact value, as a share of 4";
  EXPECT_EQ(found[0].basis, "likely") << "which order gives the bits of either is not known";
}

TEST(Divergence, SumsFurtherApartThanTheirOrdersAreNoMatterOfOrder) {
  Table table(MakeCase());
  table.Add("a", Float32(), {1, 2, 3, 4}).Add("b", Float32(), {1, 2 + 0x1p-20, 3, 4});
  const auto found = table.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, kValue);
  EXPECT_EQ(found[0].size.most, 1);
}

TEST(Divergence, LastBitsAreAFewUnitsOfTheLargestValueAndNoMore) {
  const auto kind = [](DType dtype, double apart) {
    Classification function = Classify({Model("exact", "none")}, "stored, rounded once");
    Table table(MakeCase());
    table.Add("a", function, {0, 1, 2, 3}, dtype).Add("b", function, {0, 1 + apart, 2, 3}, dtype);
    const auto found = table.Find();
    EXPECT_EQ(found.size(), 1u);
    return found.at(0).kind;
  };
  // 8 units of float32 at 3 as a share of it are 24 * 2^-23; one of bfloat16 is 3 * 2^-7.
  EXPECT_EQ(kind(DType::kFloat32, 24 * 0x1p-23), kBits);
  EXPECT_EQ(kind(DType::kFloat32, 25 * 0x1p-23), kValue);
  EXPECT_EQ(kind(DType::kBfloat16, 3 * 0x1p-7), kBits);
  EXPECT_EQ(kind(DType::kBfloat16, 4 * 0x1p-7), kValue);
}

TEST(Divergence, OneThatMayBeWideBesideOneThatIsNotIsNoMatterOfOrder) {
  // ones(3000) summed in float16 one after the other: 2048, where a wide sum gives 3000, as some order in float16 does too.
  const auto half = Model("float16", "none", "float16_rne"), wide = Model("float32", "none", "float16_rne");
  const std::string label = "accumulated in a format that these inputs do not determine, stored float16";
  Classification open = Classify({half, wide}, label), narrow = Classify({half}, label);
  open.any_order = narrow.any_order = 1000;
  open.labelled = narrow.labelled = FormatOfWhat::kSums;
  Table table(MakeCase());
  table.Add("wide", open, {3000, 3000, 3000, 3000}, DType::kFloat16)
      .Add("half", narrow, {2048, 2048, 2048, 2048}, DType::kFloat16);
  const auto found = table.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, kValue) << found[0].sentence;
}

TEST(Divergence, AValueThatNothingExplainsBesideOneThatIsExplainedIsAFinding) {
  Classification unmodelled =
      Classify({}, {Model("float64", "none"), Model("float32", "none")}, "unmodelled");
  unmodelled.kind = ClassificationKind::kUnmodelled;
  unmodelled.fits = false;
  Table table(MakeCase());
  table.Add("a", Float32(), {1, 2, 3, 4}).Add("b", unmodelled, {1.5, 3, 4.5, 6});
  const auto found = table.Find();
  ASSERT_EQ(found.size(), 1u) << "half of their size apart";
  EXPECT_EQ(found[0].kind, kPrecision);
  EXPECT_EQ(found[0].size.most, 4);
}

TEST(Divergence, AnOperandReadInAnotherFormatPartsFromOneReadAsItIs) {
  Classification plain = Classify({Model("exact", "none")}, "stored float32, rounded once"), narrow = plain;
  narrow.reads = {{"y", {"bfloat16"}}};
  Table table(MakeCase());
  table.Add("a", plain, {1, 2, 3, 4}).Add("b", narrow, {1, 2.015625, 3, 4});
  const auto found = table.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, kPrecision);
  EXPECT_NE(found[0].sentence.find("b likely reads `y` as bfloat16"), std::string::npos) << found[0].sentence;
}

TEST(Divergence, WhatIsShownOfOneThatNothingExplainsIsNotSaidOfAnother) {
  const auto unmodelled = [](RemarkKind kind, const std::string& text) {
    Classification one = Classify({}, {}, "unmodelled");
    one.kind = ClassificationKind::kUnmodelled;
    one.fits = false;
    one.says = {{kind, text}};
    return one;
  };
  Table table(MakeCase());
  table.Add("wide", Float32(), {1, 2, 3, 4})
      .Add("drop", unmodelled(RemarkKind::kChange, "as if the last 1 of 64 products were missing"),
           {1, 2, 2.5, 4})
      .Add("zeros", unmodelled(RemarkKind::kLost, "4 results are zero"), {0, 0, 0, 0});
  const auto found = OfKind(table.Find(), kPrecision);
  ASSERT_EQ(found.size(), 2u);
  for (const Divergence& each : found) {
    const bool drops = each.sentence.find("products were missing") != std::string::npos;
    EXPECT_EQ(drops, each.sentence.find("drop ") != std::string::npos) << each.sentence;
    EXPECT_EQ(drops, each.sentence.find("zeros ") == std::string::npos) << each.sentence;
  }
  EXPECT_EQ(OfKind(table.Find(), kValue).size(), 1u) << "drop and zeros differ too";
}

TEST(Divergence, OfTwoFunctionsTheOneThatIsCorrectlyRoundedIsNamed) {
  const auto said = [](double left, double right, const std::string& piece = "step") {
    Case c = MakeCase();
    c.program = {testing::MakeStep("exp", {"x"}, "product")};
    Table table(c);
    for (const auto& [backend, ulp] : {std::pair{"a", left}, std::pair{"b", right}}) {
      Classification function = Classify({Model("float32", "none")}, "stored float32");
      function.piece = piece;
      function.max_ulp = ulp;
      table.Add(backend, function, {1, 1 + ulp * 0x1p-18, 3, 4});
    }
    const auto found = table.Find({}, JudgedAs::kStepByStep);
    std::string all;
    for (const auto& each : found) all += fmt::format("[{}] {}", Name(each.kind), each.sentence);
    return all;
  };
  EXPECT_TRUE(said(0.5, 0.75).ends_with("; a has it correctly rounded, b up to 0.75 ulp off."))
      << said(0.5, 0.75);
  EXPECT_TRUE(said(0.5, 0.75).starts_with("[bits]"));
  EXPECT_TRUE(said(0.75, 0.5).ends_with("; b has it correctly rounded, a up to 0.75 ulp off."));
  EXPECT_TRUE(
      said(0.7, 0.75).ends_with("; neither is correctly rounded: a is up to 0.7 ulp off, b up to 0.75 ulp."))
      << said(0.7, 0.75);
  EXPECT_TRUE(said(0.5, 0.4).ends_with("; no cause was found."));
  EXPECT_TRUE(said(0.5, 0.75, "step s<p").ends_with("; no cause was found."));
}

TEST(Divergence, SpecialValuesAreNotNumbers) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto kinds = [&](std::vector<double> left, std::vector<double> right) {
    Table table(MakeCase());
    table.Add("a", Float32(), std::move(left)).Add("b", Float32(), std::move(right));
    std::vector<DivergenceKind> found;
    for (const auto& divergence : table.Find()) found.push_back(divergence.kind);
    return found;
  };
  using Kinds = std::vector<DivergenceKind>;
  EXPECT_EQ(kinds({0.0, 1, 2, 3}, {-0.0, 1, 2, 3}), Kinds{kSpecial});
  EXPECT_EQ(kinds({nan, 1, 2, 3}, {1, 1, 2, 3}), Kinds{kSpecial});
  EXPECT_EQ(kinds({inf, 1, 2, 3}, {-inf, 1, 2, 3}), Kinds{kSpecial});
  EXPECT_EQ(kinds({inf, 1, 2, 3}, {7, 1, 2, 3}), Kinds{kSpecial});
  EXPECT_EQ(kinds({nan, inf, 2, 3}, {nan, inf, 2, 3}), Kinds{});
  EXPECT_EQ(kinds({nan, 1, 2, 3}, {1, 1, 2, 3 + 0x1p-22}), (Kinds{kOrder, kSpecial}));
  EXPECT_EQ(kinds({nan, 1, 2, 3}, {1, 1, 2, 4}), (Kinds{kValue, kSpecial}));
}

TEST(Divergence, WhatIsKnownOfOneFunctionHoldsOfAllWithItsBits) {
  const auto said = [](std::vector<double> second) {
    Case c = MakeCase();
    c.program = {testing::MakeStep("sqrt", {"x"}, "product")};
    Table table(c);
    const auto add = [&](const std::string& backend, double ulp, std::vector<double> numbers) {
      Classification function = Classify({Model("float32", "none")}, "stored float32");
      function.piece = "step";
      function.max_ulp = ulp;
      table.Add(backend, function, std::move(numbers));
    };
    add("a", 0.74, {1, 2, 3, 4});
    add("b", 0.74, std::move(second));
    add("c", 0.5, {1, 2, 3, 4 + 0x1p-21});
    return OfKind(table.Find({}, JudgedAs::kStepByStep), kBits).back().sentence;
  };
  EXPECT_TRUE(said({1, 2, 3, 4}).ends_with("; c has it correctly rounded, a and b up to 0.74 ulp off."))
      << said({1, 2, 3, 4});
}

TEST(Divergence, OverflowIsSaidWithItsCountThoughOperandsDiffer) {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  // square = x * x, the sum of squares, and `product` of that: the operands of the last differ in number alone.
  const auto said = [](const std::string& op, std::vector<double> mine, std::vector<double> other,
                       std::vector<double> sum = {1, 2, 3, 4}) {
    Case c = MakeCase({"product", "sum"});
    c.program = {testing::MakeStep("square", {"x"}, "sum"), testing::MakeStep(op, {"sum"}, "product")};
    Table table(c);
    const auto add = [&](const std::string& backend, std::vector<double> first, std::vector<double> numbers) {
      table.Add(backend,
                Completed({{"sum", Tensor(DType::kFloat16, {2, 2}, first)},
                           {"product", Tensor(DType::kFloat16, {2, 2}, numbers)}}),
                {{"sum", Float32()}, {"product", Float32()}});
    };
    add("a", std::move(sum), std::move(mine));
    add("b", {1, 2, 3, 5}, std::move(other));
    const auto found = OfKind(table.Find({}, JudgedAs::kStepByStep), kSpecial);
    std::string all;
    for (const auto& each : found) all += each.value + "|" + each.sentence;
    return all;
  };
  EXPECT_EQ(said("sqrt", {1, inf, inf, 4}, {1, 300, 301, 4}),
            "product|a overflows to inf in `product` (2 of 4 elements, first `product[0,1]` is inf on a and "
            "300 on b); b does not there.");
  EXPECT_EQ(said("sqrt", {1, 300, 301, 4}, {1, inf, 301, 4}),
            "product|b overflows to inf in `product` (1 of 4 elements, first `product[0,1]` is inf on b and "
            "300 on a); a does not there.");
  EXPECT_EQ(said("reciprocal", {inf, 2, 3, 4}, {9, 2, 3, 4}),
            "product|a gives inf in `product` (1 of 4 elements, first `product[0,0]` is inf on a and 9 on "
            "b); b does not there.")
      << "a quotient is infinite of zero too";
  EXPECT_EQ(said("log2", {-inf, 2, 3, 4}, {-9, 2, 3, 4}),
            "product|a gives inf in `product` (1 of 4 elements, first `product[0,0]` is -inf on a and -9 on "
            "b); b does not there.");
  EXPECT_EQ(said("sqrt", {nan, 2, inf, 4}, {9, inf, 3, 4}),
            "product|a overflows to inf and gives NaN in `product` (1 and 1 of 4 elements, first "
            "`product[0,0]` is nan on a and 9 on b); b overflows to inf in `product` (1 of 4 elements, first "
            "`product[0,1]` is inf on b and 2 on a).");
  EXPECT_EQ(said("sqrt", {1, 0.0, 3, 4}, {1, -0.0, 3, 4}), "")
      << "a sign of zero follows from other operands";
  EXPECT_EQ(said("sqrt", {1, 2, 3, inf}, {1, 2, 3, 4}, {1, 2, 3, inf}),
            "sum|a overflows to inf in `sum` (1 of 4 elements, first `sum[1,1]` is inf on a and 5 on b); b "
            "does not there.")
      << "what was infinite before is told where it became so";
}

TEST(Divergence, ValuesAreIntegersAndWhatNoModelExplains) {
  Classification integers;
  integers.kind = ClassificationKind::kNotFloating;
  Table table(MakeCase());
  table.Add("a", integers, {1, 2, 3, 4}, DType::kInt64).Add("b", integers, {1, 2, 3, 5}, DType::kInt64);
  auto found = table.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, kValue);
  EXPECT_EQ(found[0].sentence,
            "a differs from b in `product` (1 of 4 elements, e.g. `product[1,1]` is 4 on a and 5 on b).");
  Table unmodelled(MakeCase());
  unmodelled.Add("a", Classify({}), kRounded).Add("b", Classify({}), kUnrounded);
  found = unmodelled.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, kValue) << "nothing is known of either class";
  Table one(MakeCase());
  one.Add("a", Classify({}), kRounded).Add("b", Float32(), kUnrounded);
  found = one.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, kPrecision);
  EXPECT_EQ(found[0].sentence,
            "a computes `product` in a way that is not explained (up to 0.5 ulp from the exact value); b "
            "computes `product` with sums in float32: `product[0,0]` is 1 on a and 1.0009766 on b.");
}

TEST(Divergence, HowFarWhatIsNotExplainedLies) {
  const auto said = [](double ulp, double absolute) {
    Classification unmodelled = Classify({});
    unmodelled.max_ulp = ulp;
    unmodelled.max_abs = absolute;
    Table table(MakeCase());
    table.Add("a", unmodelled, kRounded).Add("b", Float32(), kUnrounded);
    const std::string sentence = table.Find().front().sentence, before = "not explained";
    return sentence.substr(sentence.find(before) + before.size(),
                           sentence.find(';') - sentence.find(before) - before.size());
  };
  EXPECT_EQ(said(5.5, 0.0072), " (up to 5.5 ulp from the exact value)");
  EXPECT_EQ(said(3806, 1.5e-7), " (up to 3806 ulp and 1.5e-07 from the exact value)")
      << "small results, small errors";
  EXPECT_EQ(said(4e37, 0.0096), " (up to 0.0096 from the exact value)") << "an exact zero";
  EXPECT_EQ(said(std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()), "");
}

TEST(Divergence, FiguresHoldOfAllWhomASentenceNames) {
  const auto table = [](std::vector<double> second) {
    auto made = std::make_unique<Table>(MakeCase());
    made->Add("a", Classify({}), {1, 2, 3, 4})
        .Add("b", Classify({}), std::move(second))
        .Add("c", Classify({}), {1.5, 2, 3, 8});
    return made;
  };
  // What is told of a and b elsewhere is not told again. The first and the last element lie equally far from those of c; a and b have
  // the same last one.
  auto found = table({1.25, 2, 3.5, 4})->Find({"a", "b"});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].backends, (Groups{{"a", "b"}, {"c"}}));
  EXPECT_NE(found[0].sentence.find("(2 to 3 of 4 elements"), std::string::npos) << found[0].sentence;
  EXPECT_NE(found[0].sentence.find("e.g. `product[1,1]` is 4 on a and 8 on c)"), std::string::npos)
      << found[0].sentence;
  // No element shows both: whose it is is said.
  found = table({1.25, 2, 3, 4.5})->Find({"a", "b"});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].sentence.find("e.g. `product[0,0]` is 1 on a and 1.5 on c)"), std::string::npos)
      << found[0].sentence;
}

TEST(Divergence, TheElementShownIsTheOneFurthestApart) {
  const auto said = [](const Classification& class_a, const Classification& class_b,
                       const std::vector<double>& a, const std::vector<double>& b) {
    Table table(MakeCase());
    table.Add("a", class_a, a).Add("b", class_b, b);
    const auto found = table.Find();
    return found.size() == 1 ? found[0].sentence : "not one divergence";
  };
  const double u = 0x1p-23;
  const std::string order = said(Float32(), Float32(), {1, 1, 1, 1}, {1 + u, 1 + 5 * u, 1, 1 + 2 * u});
  EXPECT_NE(order.find("3 of 4 elements, by up to 5 ulp, e.g. `product[0,1]` is "), std::string::npos)
      << order;
  // A larger difference of larger numbers is a smaller one in units in the last place.
  const std::string value =
      said(Classify({}), Classify({}), {1024, 1, 1, 1}, {1024 + 1024 * u, 1, 1 + 9 * u, 1});
  EXPECT_NE(value.find("by up to 9 ulp, e.g. `product[1,0]` is "), std::string::npos) << value;
  const std::string unexplained = said(Classify({}), Float32(), {1, 1, 1, 1}, {1 + u, 1 + u, 1, 1 + 7 * u});
  EXPECT_NE(unexplained.find("`product[1,1]` is "), std::string::npos) << unexplained;
}

TEST(Divergence, TheElementShownIsOfTheBackendThatIsFurthestOff) {
  Table table(MakeCase());
  table.Add("a", Classify({}), {1, 2, 3, 4})
      .Add("b", Classify({}), {1, 2, 3.5, 4})
      .Add("c", Classify({}), {1.25, 2, 3, 4});
  const auto found = table.Find({"a", "b"});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].backends, (Groups{{"a", "b"}, {"c"}}));
  // 3.5 against 3 is 0.5 * 2^22 ulp, 1 against 1.25 is 0.25 * 2^23, and both have 1.
  EXPECT_NE(found[0].sentence.find("by up to 2.1e+06 ulp, e.g. `product[0,0]` is 1 on a and 1.25 on c)"),
            std::string::npos)
      << found[0].sentence;
  Table further(MakeCase());
  further.Add("a", Classify({}), {1, 2, 3, 4})
      .Add("b", Classify({}), {1, 2, 3.75, 4})
      .Add("c", Classify({}), {1.25, 2, 3, 4});
  const auto other = further.Find({"a", "b"});
  ASSERT_EQ(other.size(), 1u);
  EXPECT_NE(other[0].sentence.find("e.g. `product[1,0]` is 3.75 on b and 3 on c)"), std::string::npos)
      << other[0].sentence;
}

TEST(Divergence, AWitnessProvesWhereAModelIsExcluded) {
  // [0,1] is the element that a sum in float32 cannot have given; others lie further apart.
  Table table(MakeCase());
  table.Add("a", ThroughBfloat16(), kRounded).Add("b", Float32(), {1.5, 2.0009765625, 3, 4});
  const std::string sentence = table.Find().at(0).sentence;
  EXPECT_NE(sentence.find("`product[0,1]` is 2 on a and 2.0009766 on b"), std::string::npos) << sentence;
}

TEST(Divergence, AWitnessDiffersInTheStepAndNotInWhatItRead) {
  Table table(MakeCase());
  Classification narrow = Float32(), plain = Float32();
  narrow.reads = {{"x", {"bfloat16"}}};
  plain.reads = {{"x", {"stored"}}};
  const auto ran = [](std::vector<double> x, std::vector<double> product) {
    return Completed(
        {{"x", Tensor(DType::kFloat32, {2, 2}, x)}, {"product", Tensor(DType::kFloat32, {2, 2}, product)}});
  };
  table.Add("a", ran({1, 2, 3, 4}, {1, 2, 3, 4}), {{"x", Float32()}, {"product", narrow}})
      .Add("b", ran({9, 2, 3, 4}, {9, 2, 3, 8}), {{"x", Float32()}, {"product", plain}});
  for (const Divergence& each : table.Find()) {
    if (each.value != "product") continue;
    EXPECT_NE(each.sentence.find("`product[1,1]` is 4 on a and 8 on b"), std::string::npos) << each.sentence;
  }
  EXPECT_FALSE(table.Find().empty());
}

TEST(Divergence, AStepsClassSaysNothingOfWhatItRead) {
  // Each of one step, from operands that are not known here: not the same class with other bits.
  Classification step = Float32();
  step.piece = "step";
  Table table(MakeCase());
  table.Add("a", step, {1, 2, 3, 4}).Add("b", step, {1, 2, 3, 5});
  const auto found = table.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, kValue) << found[0].sentence;
}

/// What `a` is told of its steps of `product`, against a plain float32 one.
std::string SentenceOf(const std::vector<PrecisionModel>& models) {
  Table table(MakeCase());
  table.Add("a", Classify(models), kRounded).Add("b", Classify({Model("float32", "none")}), kUnrounded);
  const auto found = table.Find();
  return found.empty() ? "" : found[0].sentence.substr(0, found[0].sentence.find(';'));
}

/// Both round inside the op, each in several ways that these inputs do not tell apart: that the sums of one are known to be wide is no
/// contrast, since the other's may be.
TEST(Divergence, KnownSumsOfOneSideAreNotWhatPartsTwoThatRoundInside) {
  const auto inside = [](const testing::Named& cuts, const std::string& acc) {
    PrecisionModel model = Model(acc, "bfloat16", "bfloat16_rne");
    model.cuts = testing::Cuts(cuts);
    return model;
  };
  const std::string bf16 = "bfloat16", exp = "product.exp", total = "product.total",
                    log = "product.log_total", shifted = "product.shifted";
  Table table(MakeCase());
  table
      .Add("a",
           Classify({inside({{exp, bf16}, {log, bf16}, {shifted, bf16}, {total, bf16}}, "float64"),
                     inside({{exp, bf16}, {log, bf16}, {shifted, bf16}, {total, bf16}}, "float32"),
                     inside({{log, bf16}, {shifted, bf16}}, "float16")}),
           {1, 2, 3, 4}, DType::kBfloat16)
      .Add("b",
           Classify({inside({{log, bf16}, {total, bf16}}, "float64"),
                     inside({{log, bf16}, {total, bf16}}, "float32"),
                     inside({{log, bf16}, {shifted, bf16}, {total, bf16}}, "float32")}),
           {1, 2, 3, 5}, DType::kBfloat16);
  const auto found = table.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].sentence.starts_with(
      "a computes `product` with at least one of its steps rounded to bfloat16; b does the same, and the "
      "results of the two sides differ for a reason that was not found"))
      << found[0].sentence;
}

TEST(Divergence, StepsInsideAnOpAreSaidByWhatAllModelsShare) {
  const auto inside = [](const testing::Named& cuts, const std::string& acc = "float32") {
    PrecisionModel model = Model(acc, cuts.empty() ? "none" : "bfloat16");
    model.cuts = testing::Cuts(cuts);
    return model;
  };
  const std::string exp = "product.exp_in_denominator", total = "product.total";
  EXPECT_EQ(SentenceOf({inside({{exp, "bfloat16"}})}),
            "a rounds the exp in the denominator inside `product` to bfloat16");
  EXPECT_EQ(SentenceOf({inside({{exp, "bfloat16"}, {total, "bfloat16"}})}),
            "a rounds each step of `product` to bfloat16");
  EXPECT_EQ(SentenceOf({inside({{exp, "bfloat16"}, {total, "bfloat16"}, {"product.shifted", "none"}})}),
            "a rounds the exp in the denominator and total inside `product` to bfloat16");
  // That one alone is no model's.
  EXPECT_EQ(SentenceOf({inside({{exp, "bfloat16"}, {total, "bfloat16"}, {"product.shifted", "none"}}),
                        inside({{exp, "bfloat16"}, {total, "none"}, {"product.shifted", "bfloat16"}})}),
            "a rounds the exp in the denominator and other steps inside `product` to bfloat16");
  // A step, or every one of them: no facet has a single word, and all models have bfloat16.
  EXPECT_EQ(SentenceOf({inside({{exp, "bfloat16"}}), inside({{total, "bfloat16"}}), inside({}, "bfloat16")}),
            "a rounds at least one step of `product` to bfloat16");
}

TEST(Divergence, WhatMayBeReadAsStoredIsNoDeed) {
  Table table(MakeCase());
  Classification narrow = Float32(), plain = Float32();
  narrow.reads = {{"x", {"bfloat16"}}};
  plain.reads = {{"x", {"stored", "unrounded"}}};
  table.Add("a", narrow, kRounded).Add("b", plain, kUnrounded);
  const auto found = table.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].sentence.substr(0, found[0].sentence.find(':')),
            "a likely reads `x` as bfloat16 when computing `product`; b likely does not");
}

TEST(Divergence, ObservedDtypesAndMissingValuesPartInDtype) {
  Case c = MakeCase({"product", "w.grad_metadata_dtype"});
  Observation a = Completed({});
  Observation b = Completed({});
  a.observations["w.grad_metadata_dtype"] = "bfloat16";
  b.observations["w.grad_metadata_dtype"] = "float32";
  Table table(c);
  table.Add("a", a).Add("b", b);
  const auto found = table.Find();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, kDtype);
  EXPECT_EQ(found[0].sentence,
            "a gives `w.grad_metadata_dtype` as bfloat16; b gives `w.grad_metadata_dtype` as float32.");
  Observation none = b;
  none.observations["w.grad_metadata_dtype"] = "none";
  Table without(c);
  without.Add("a", a).Add("jax", none);
  EXPECT_TRUE(without.Find().empty()) << "a backend without such a thing parts from nobody";
  Table missing(MakeCase());
  missing.Add("a", Float32(), kRounded).Add("b", Completed({}));
  ASSERT_EQ(missing.Find().size(), 1u);
  EXPECT_EQ(missing.Find()[0].sentence, "a gives `product` as float32; b gives no `product`.");
  Table shapes(MakeCase());
  shapes.Add("a", Float32(), kRounded)
      .Add("b", Completed({{"product", Tensor(DType::kFloat32, {4}, kRounded)}}), {{"product", Float32()}});
  ASSERT_EQ(shapes.Find().size(), 1u);
  EXPECT_EQ(shapes.Find()[0].sentence,
            "a gives `product` as float32[2, 2]; b gives `product` as float32[4].");
}

/// Of the whole of a value, as it is dispatched.
Cast Widening() {
  Cast cast;
  cast.from = "bfloat16";
  cast.to = "float32";
  cast.shape = {2, 2};
  cast.under = "aten::copy_";
  cast.stage = "dispatch";
  return cast;
}

TEST(Divergence, CastsOnlyWithTheSameBitsAndAStageInCommon) {
  const auto traced = [](std::vector<double> numbers, std::vector<Cast> casts) {
    Observation observation = Completed({{"product", Tensor(DType::kFloat32, {2, 2}, numbers)}});
    observation.casts = std::move(casts);
    return observation;
  };
  const Cast up = Widening();
  Cast down = up;
  std::swap(down.from, down.to);
  const auto count = [&](const Observation& a, const Observation& b) {
    Table table(MakeCase());
    table.Add("a", a, {{"product", Float32()}}).Add("b", b, {{"product", Float32()}});
    return OfKind(table.Find(), kCasts);
  };
  EXPECT_EQ(count(traced(kRounded, {up}), traced(kRounded, {up})).size(), 0u);
  const auto found = count(traced(kRounded, {up, down}), traced(kRounded, {up}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].stages, std::vector<std::string>{"dispatch"});
  EXPECT_EQ(found[0].sentence,
            "The results agree bit by bit, but in the dispatch stage a converts a tensor of shape [2,2] from "
            "float32 to bfloat16 in `aten::copy_`; b does not.");
  EXPECT_EQ(count(traced(kRounded, {up, down}), traced(kUnrounded, {up})).size(), 0u) << "other bits";
  Cast elsewhere = up;
  elsewhere.stage = "hlo";
  EXPECT_EQ(count(traced(kRounded, {up}), traced(kRounded, {elsewhere, elsewhere})).size(), 0u)
      << "no stage in common";
  const auto twice = count(traced(kRounded, {up, up}), traced(kRounded, {up}));
  ASSERT_EQ(twice.size(), 1u);
  EXPECT_EQ(twice[0].sentence,
            "The results agree bit by bit, but in the dispatch stage a converts a tensor of shape [2,2] from "
            "bfloat16 to float32 in `aten::copy_`; b does so less often.");
  Cast under_more = up;
  under_more.under = "aten::add";
  const auto once = count(traced(kRounded, {up, under_more, under_more}), traced(kRounded, {up, under_more}));
  ASSERT_EQ(once.size(), 1u);
  EXPECT_EQ(once[0].sentence,
            "The results agree bit by bit, but in the dispatch stage a converts a tensor of shape [2,2] from "
            "bfloat16 to float32 in `aten::add`; b does so less often.")
      << "under aten::copy_ both do";
  const auto beside = [](Observation observation, const std::string& what) {
    observation.untraced = {"before the compiled region: " + what};
    return observation;
  };
  EXPECT_EQ(count(traced(kRounded, {up, down}), beside(traced(kRounded, {up}), "set_data w")).size(), 0u)
      << "of b the trace has another part of the program";
  EXPECT_EQ(count(beside(traced(kRounded, {up, down}), "clone w"), beside(traced(kRounded, {up}), "clone w"))
                .size(),
            1u);
}

TEST(Divergence, CastsAreToldOfThoseWhoHaveTheStage) {
  const Cast up = Widening();
  Cast elsewhere = up;
  elsewhere.stage = "hlo";
  Cast down = up;
  std::swap(down.from, down.to);
  Table table(MakeCase());
  for (const auto& [backend, casts] : std::map<std::string, std::vector<Cast>>{
           {"a", {up, down}}, {"b", {elsewhere}}, {"c", {up}}, {"d", {elsewhere}}}) {
    Observation observation = Completed({{"product", Tensor(DType::kFloat32, {2, 2}, kRounded)}});
    observation.casts = casts;
    table.Add(backend, observation, {{"product", Float32()}});
  }
  const auto found = OfKind(table.Find(), kCasts);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].backends, (Groups{{"a"}, {"c"}})) << found[0].sentence;
}

TEST(Divergence, EachWayToRaiseIsTold) {
  Table table(MakeCase());
  table.Add("a", Raised("RuntimeError", "dtypes differ"))
      .Add("b", Float32(), kRounded)
      .Add("c", Raised("ValueError", "mixed types"))
      .Add("d", Raised("RuntimeError", "dtypes differ"));
  const auto found = OfKind(table.Find(), kOutcome);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].sentence.starts_with(
      "a and d raise RuntimeError (\"dtypes differ\"), c raises ValueError (\"mixed types\"); b returns"))
      << found[0].sentence;
}

TEST(Divergence, BesideWhatIsWrittenStandsAnElementInWhichTheTwoDiffer) {
  Classification narrow = ThroughBfloat16();
  narrow.shown_by = {0, 3};
  narrow.as_written = {1.5, 4.5};
  narrow.shown_count = 2;
  narrow.shown_of = 4;
  const auto sentence = [&](std::vector<double> other) {
    Table table(MakeCase());
    table.Add("a", narrow, kRounded).Add("b", Float32(), std::move(other));
    return table.Find().at(0).sentence;
  };
  EXPECT_NE(sentence({1, 2, 3, 4.5}).find("`product[1,1]` is 4, expected 4.5 (2 of 4 elements)"),
            std::string::npos)
      << "both have 1 at [0,0]: " << sentence({1, 2, 3, 4.5});
  EXPECT_NE(sentence({5, 2, 3, 5}).find("`product[0,0]` is 1, expected 1.5 (2 of 4 elements)"),
            std::string::npos)
      << "0.5 is more of 1 than of 4: " << sentence({5, 2, 3, 5});
  narrow.as_written = {1.125, 5};
  EXPECT_NE(sentence({5, 2, 3, 5}).find("`product[1,1]` is 4, expected 5 (2 of 4 elements)"),
            std::string::npos)
      << "the one furthest from what is written: " << sentence({5, 2, 3, 5});
  narrow.as_written = {1.5, 4.5};
  EXPECT_EQ(sentence({1, 2.5, 3, 4}).find("as written"), std::string::npos)
      << "of no element that is known do they differ: " << sentence({1, 2.5, 3, 4});
}

TEST(Divergence, WhatIsComputedInANarrowFormatIsRoundedToItStepByStep) {
  const auto inside = [](const std::string& acc, const std::string& exp) {
    PrecisionModel model = Model(acc, exp == "none" ? "none" : "bfloat16");
    model.cuts = testing::Cuts({{"product.exp", exp}, {"product.total", exp}});
    return model;
  };
  Table table(MakeCase());
  table.Add("a", Classify({inside("float32", "bfloat16")}), kRounded)
      .Add("b", Classify({inside("bfloat16", "none")}), kUnrounded);
  const std::string sentence = table.Find().at(0).sentence;
  EXPECT_EQ(sentence.find("does not"), std::string::npos) << sentence;
}

TEST(Divergence, ADifferenceThatAnOperandHasAlreadyNeedsNoReason) {
  Case c = MakeCase();
  c.program = {testing::MakeStep("matmul", {"x", "y"}, "product"),
               testing::MakeStep("add", {"product", "bias"}, "result")};
  const Classification sum = Classify({Model("exact", "none")}, "stored float32, rounded once");
  const auto said = [&](std::vector<double> product, std::vector<double> result) {
    Table table(c);
    const auto add = [&](const char* backend, std::vector<double> first, std::vector<double> second) {
      table.Add(backend,
                Completed({{"product", Tensor(DType::kFloat32, {2, 2}, first)},
                           {"result", Tensor(DType::kFloat32, {2, 2}, second)}}),
                {{"product", Float32()}, {"result", sum}});
    };
    add("a", {1, 2, 3, 4}, {1, 2, 3, 4});
    add("b", std::move(product), std::move(result));
    for (const Divergence& each : table.Find()) {
      if (each.value == "result" && each.kind == kBits) return each.sentence;
    }
    return std::string();
  };
  const std::string from = "; its operand `product` differs there already.";
  constexpr double kNext = 0x1p-21;
  const std::string there = said({1, 2, 3, 4 + kNext}, {1, 2, 3, 4 + kNext});
  EXPECT_TRUE(there.ends_with(from)) << there;
  for (const auto& elsewhere :
       {said({1, 2, 3, 4 + kNext}, {1, 2, 3 + kNext, 4 + kNext}), said({1, 2, 3, 4}, {1, 2, 3, 4 + kNext})}) {
    EXPECT_FALSE(elsewhere.empty());
    EXPECT_EQ(elsewhere.find("differs there already"), std::string::npos) << elsewhere;
  }
}

TEST(Divergence, BackendsWithTheSameBitsShareWhatIsNotExplained) {
  Case c = MakeCase({"product"});
  c.program = {testing::MakeStep("exp", {"x"}, "product")};
  Table table(c);
  table.Add("a", Classify({}), kRounded).Add("b", Float32(), kUnrounded).Add("c", Classify({}), kRounded);
  const auto found = OfKind(table.Find({}, JudgedAs::kStepByStep), kPrecision);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].backends, (Groups{{"a", "c"}, {"b"}}));
  EXPECT_TRUE(found[0].sentence.starts_with("a and c compute `product` in a way that is not explained"))
      << found[0].sentence;
}

TEST(Divergence, WhatIsNotRoundedOnTheWayIsNotAsItIsWritten) {
  PrecisionModel model = Model("exact", "none");
  model.cuts = testing::Cuts({{"product", "none"}});
  PrecisionModel wide = model;
  wide.mid = testing::Mid("float32");
  const auto said = [](const Classification& classification) {
    return DescribeClass(MakeCase(), "result", testing::Value(classification));
  };
  EXPECT_EQ(said(Classify({model, wide})), "without rounding `product`");
}

/// What two backends say of a step `product` and of a second one, `result`, which both make of it by `op`.
std::vector<Divergence> OfTwoSteps(const std::string& op, const std::vector<std::string>& operands,
                                   const std::vector<double>& result) {
  Case c = MakeCase();
  c.program = {testing::MakeStep("matmul", {"x", "y"}, "product"), testing::MakeStep(op, operands, "result")};
  Table table(c);
  for (const auto& [backend, rounds] : {std::pair{"a", true}, {"b", false}}) {
    const Classification step = rounds ? ThroughBfloat16() : Float32();
    table.Add(backend,
              Completed({{"product", Tensor(DType::kFloat32, {2, 2}, rounds ? kRounded : kUnrounded)},
                         {"result", Tensor(DType::kFloat32, {2, 2}, rounds ? result : kUnrounded)}}),
              {{"product", step}, {"result", step}});
  }
  return OfKind(table.Find({}, JudgedAs::kStepByStep), kPrecision);
}

TEST(Divergence, AViewOfWhatWasToldTellsNothing) {
  const auto view = OfTwoSteps("transpose", {"product"}, {1, 3, 2, 4});
  ASSERT_EQ(view.size(), 1u);
  EXPECT_EQ(view[0].value, "product");
  EXPECT_TRUE(view[0].also.empty());
  const auto computed = OfTwoSteps("neg", {"product"}, {1, 3, 2, 4});
  ASSERT_EQ(computed.size(), 1u);
  EXPECT_EQ(computed[0].also, std::vector<std::string>{"result"}) << "a step that computes is reported";
}

TEST(Divergence, AnotherOperandIsAnotherCause) {
  Case c = MakeCase();
  c.program = {testing::MakeStep("exp", {"x"}, "first"), testing::MakeStep("exp", {"y"}, "second"),
               testing::MakeStep("neg", {"first"}, "product"),
               testing::MakeStep("neg", {"second"}, "result")};
  const auto count = [&](const std::string& operand) {
    Table table(c);
    for (const auto& [backend, word, last] : {std::tuple{"a", "unrounded", 5.0}, {"b", "stored", 4.0}}) {
      std::map<std::string, Classification> classes;
      std::map<std::string, TensorData> values;
      for (const auto& [value, read] :
           {std::pair<std::string, std::string>{"product", "first"}, {"result", operand}}) {
        classes[value] = Classify({Model("exact", "none")});
        classes[value].piece = "step";
        classes[value].reads[read] = {word};
        values[value] = Tensor(DType::kFloat32, {2, 2}, {1, 2, 3, last});
      }
      table.Add(backend, Completed(std::move(values)), classes);
    }
    return OfKind(table.Find({}, JudgedAs::kStepByStep), kPrecision).size();
  };
  EXPECT_EQ(count("second"), 2u) << "product from the unrounded first, result from the unrounded second";
  EXPECT_EQ(count("first"), 1u) << "both from the unrounded first";
}

TEST(Divergence, ATruncatedStoreIsNotAsItIsWritten) {
  Case c = MakeCase();
  c.program = {testing::MakeStep("mul", {"x"}, "product")};
  c.program[0].of.push_back({.name = {}, .scalar = Attr{0.998}});
  const auto model = [](const std::string& number, const std::string& out) {
    PrecisionModel made = Model("exact", "none", out);
    if (!number.empty()) made.in["scalar.mul"] = testing::In(number);
    return made;
  };
  const auto said = [&](std::vector<PrecisionModel> models) {
    Classification classification = Classify(models);
    classification.facets_in["scalar.mul"] = {testing::In("as_is"), testing::In("bfloat16_rne")};
    return DescribeClass(c, "product", testing::Value(classification, DType::kBfloat16));
  };
  const PrecisionModel cut = model("", "bfloat16_rz"), narrow = model("bfloat16_rne", "bfloat16_rne");
  EXPECT_EQ(said({cut, narrow}), "with 0.998 rounded to bfloat16, or `product` rounded towards zero");
  EXPECT_EQ(said({cut, model("float16_rne", "bfloat16_rne"), narrow}),
            "with roundings that these inputs do not distinguish");
  EXPECT_EQ(said({model("", "bfloat16_rne"), narrow}), "as expected, as far as these inputs show");
}

TEST(Divergence, SkippedAndBrokenBackendsTakeNoPart) {
  Observation unsupported;
  unsupported.outcome.kind = OutcomeKind::kUnsupported;
  Observation hung;
  hung.outcome.kind = OutcomeKind::kTimedOut;
  Observation tainted = Completed({{"product", Tensor(DType::kFloat32, {2, 2}, kRounded)}});
  tainted.unwritten = {"product"};
  Table table(MakeCase());
  table.Add("skips", unsupported)
      .Add("hangs", hung)
      .Add("taints", tainted, {{"product", ThroughBfloat16()}})
      .Add("b", Float32(), kUnrounded);
  EXPECT_TRUE(table.Find().empty());
  Observation crashed;
  crashed.outcome = {.kind = OutcomeKind::kCrashed, .error_class = "SIGSEGV", .text = {}};
  table.Add("crashes", crashed);
  ASSERT_EQ(table.Find().size(), 1u) << "a crash is an outcome";
}

std::vector<Cast> Pair(const std::string& stage) {
  Cast down;
  down.from = "float32";
  down.to = "bfloat16";
  down.shape = {4, 1};
  down.stage = stage;
  Cast up = down;
  std::swap(up.from, up.to);
  up.shape = {2, 2};
  return {down, up};
}

/// A product stored as `stored`, shown through a reshape and converted to float32, as one stage names it; the
/// parameters are nodes 1 and 2 of the stage, the conversion is its node 5.
std::vector<TraceNode> ProductTrace(const std::string& stage, int64_t first, const std::string& stored) {
  const TraceTensor narrow{"bfloat16", {2, 2}}, product{stored, {2, 2}}, shown{stored, {4, 1}},
      wide{"float32", {4, 1}};
  return {{.id = first, .stage = stage, .op = "graph 1"},
          {.id = first + 1,
           .parent = first,
           .stage = stage,
           .kind = TraceKind::kInput,
           .op = "parameter",
           .outputs = {narrow}},
          {.id = first + 2,
           .parent = first,
           .stage = stage,
           .kind = TraceKind::kInput,
           .op = "parameter",
           .outputs = {narrow}},
          {.id = first + 3,
           .parent = first,
           .stage = stage,
           .kind = TraceKind::kProduct,
           .op = "dot",
           .from = {first + 1, first + 2},
           .inputs = {narrow, narrow},
           .outputs = {product}},
          {.id = first + 4,
           .parent = first,
           .stage = stage,
           .kind = TraceKind::kMove,
           .op = "aten::_unsafe_view",
           .from = {first + 3},
           .inputs = {product},
           .outputs = {shown}},
          {.id = first + 5,
           .parent = first,
           .stage = stage,
           .kind = TraceKind::kConvert,
           .op = "convert",
           .from = {first + 4},
           .inputs = {shown},
           .outputs = {wide}}};
}

TEST(Divergence, GraphThatStoresNarrowAndWidensAgainstNumbersThatWereNotRounded) {
  Cast up = Pair("hlo")[1];
  up.node = 5;
  Observation traced = Completed({{"product", Tensor(DType::kFloat32, {2, 2}, kUnrounded)}});
  traced.casts = {up};
  traced.trace = ProductTrace("hlo", 0, "bfloat16");
  const std::vector<TraceNode> optimized = ProductTrace("hlo_optimized", 10, "float32");
  traced.trace.insert(traced.trace.end(), optimized.begin(), optimized.end());
  const auto find = [](const Observation& observation, const Classification& classification) {
    Table table(MakeCase());
    table.Add("jax", observation, {{"product", classification}});
    return table.Find();
  };
  const auto found = find(traced, Float32());
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].kind, kGraphVsExecution);
  EXPECT_EQ(found[0].stages, (std::vector<std::string>{"hlo", "hlo_optimized"}));
  EXPECT_EQ(found[0].sentence,
            "The hlo stage of jax computes `product` in bfloat16, but what is executed does not: the results "
            "prove it (hlo -> hlo_optimized).");
  EXPECT_TRUE(find(traced, ThroughBfloat16()).empty()) << "the numbers were rounded";

  Observation same =
      traced;  // the later stage stores it narrow as well: lost between that one and the execution
  same.trace.resize(6);
  EXPECT_EQ(find(same, Float32()).at(0).stages, (std::vector<std::string>{"hlo", "execution"}));
  // Narrow values that the stage was given, or that it only moves, were not rounded there.
  Observation given = traced;
  given.trace[3].from = {};
  EXPECT_TRUE(find(given, Float32()).empty());
  Observation moved = traced;
  moved.trace[3].kind = TraceKind::kMove;
  EXPECT_TRUE(find(moved, Float32()).empty());
  Observation fused = traced;  // a parameter inside a fusion shows what the fusion was given
  fused.trace[3].kind = TraceKind::kMove;
  fused.trace[3].from = {1};
  EXPECT_TRUE(find(fused, Float32()).empty());
  fused.trace[3] = traced.trace[3];
  fused.trace[4].kind = TraceKind::kFusion;
  fused.trace.push_back({.id = 20,
                         .parent = 4,
                         .stage = "hlo",
                         .kind = TraceKind::kView,
                         .op = "bitcast",
                         .from = {2},
                         .outputs = traced.trace[4].outputs});
  EXPECT_TRUE(find(fused, Float32()).empty()) << "the fusion gives back a parameter";
  fused.trace.back().from = {3};
  EXPECT_EQ(find(fused, Float32()).size(), 1u) << "the fusion gives back the product";
  Observation operand = traced;  // goes into another product, by way of a view
  operand.trace.push_back(
      {.id = 20, .parent = 0, .stage = "hlo", .kind = TraceKind::kView, .op = "bitcast", .from = {5}});
  operand.trace.push_back(
      {.id = 21, .parent = 0, .stage = "hlo", .kind = TraceKind::kProduct, .op = "dot", .from = {20, 5}});
  EXPECT_TRUE(find(operand, Float32()).empty());
  operand.trace.back().kind = TraceKind::kCompute;
  EXPECT_EQ(find(operand, Float32()).size(), 1u);
  Observation wide = traced;
  wide.trace[3].outputs[0].dtype = "float32";
  EXPECT_TRUE(find(wide, Float32()).empty());
  Observation unlinked = traced;
  unlinked.casts[0].node = -1;
  EXPECT_TRUE(find(unlinked, Float32()).empty());
}

TEST(Divergence, GraphThatRoundsAgainstNumbersThatDoNot) {
  Observation traced = Completed({{"product", Tensor(DType::kFloat32, {2, 2}, kUnrounded)}});
  traced.casts = Pair("aot_forward");
  const std::vector<Cast> later = Pair("post_grad");
  traced.casts.insert(traced.casts.end(), later.begin(), later.end());
  Table alone(MakeCase());
  alone.Add("torch-inductor", traced, {{"product", Float32()}});
  ASSERT_EQ(alone.Find().size(), 1u);
  EXPECT_EQ(alone.Find()[0].kind, kGraphVsExecution);
  EXPECT_EQ(alone.Find()[0].backends, (Groups{{"torch-inductor"}}));
  EXPECT_EQ(alone.Find()[0].stages, (std::vector<std::string>{"post_grad", "execution"}));
  EXPECT_EQ(alone.Find()[0].sentence,
            "The post_grad stage of torch-inductor rounds `product` to bfloat16 and back, but what is "
            "executed does not: the results prove it (post_grad -> execution).");

  Table beside(MakeCase());
  beside.Add("torch-aot-eager", ThroughBfloat16(), kRounded)
      .Add("torch-inductor", traced, {{"product", Float32()}});
  ASSERT_EQ(beside.Find().size(), 1u) << "said in the sentence of the precision divergence, not twice";
  EXPECT_TRUE(beside.Find()[0].sentence.ends_with(
      "torch-inductor does not, although its post_grad stage rounds `product` to bfloat16 and back "
      "(post_grad -> execution): `product[0,0]` is 1 on torch-aot-eager and 1.0009766 on torch-inductor."))
      << beside.Find()[0].sentence;

  // Not found where the numbers do round, where a surviving model does, where there is no way back, or of
  // another size.
  const auto none = [&](const Classification& classification, std::vector<Cast> casts) {
    Observation observation = traced;
    observation.casts = std::move(casts);
    Table table(MakeCase());
    table.Add("b", observation, {{"product", classification}});
    return table.Find().empty();
  };
  EXPECT_TRUE(none(ThroughBfloat16(), Pair("post_grad")));
  EXPECT_TRUE(
      none(Classify({Model("float32", "none"), Model("bfloat16_via_float32", "none")}), Pair("post_grad")));
  EXPECT_TRUE(none(Float32(), {Pair("post_grad")[0]}));
  EXPECT_TRUE(none(Float32(), {Pair("post_grad")[1]}));
  std::vector<Cast> small = Pair("post_grad");
  small[0].shape = {2};
  EXPECT_TRUE(none(Float32(), small));
  EXPECT_FALSE(none(Float32(), Pair("post_grad")));
  Table likely(MakeCase());
  likely.Add("b", traced,
             {{"product",
               Classify({Model("float32", "none")}, {Model("float32", "none"), Model("bfloat16", "none")})}});
  ASSERT_EQ(likely.Find().size(), 1u);
  EXPECT_EQ(likely.Find()[0].basis, "likely");
}

TEST(Divergence, RoundingOnTheWayToTheSameFormat) {
  const auto at_every_step = Classify({Model("exact", "bfloat16", "bfloat16_rne")});
  const auto once =
      Classify({Model("exact", "none", "bfloat16_rne"), Model("exact", "float32", "bfloat16_rne")});
  Table table(MakeCase());
  table.Add("a", at_every_step, {1, 2, 3, 4}, DType::kBfloat16)
      .Add("b", once, {1, 2, 3, 5}, DType::kBfloat16);
  ASSERT_EQ(table.Find().size(), 1u);
  EXPECT_EQ(table.Find()[0].sentence,
            "a rounds an intermediate of `product` to bfloat16, before its bfloat16 output; b does not: "
            "`product[1,1]` is 4 on a and 5 on b.");
}

TEST(Divergence, AFormatThatIsNotKnownIsAnotherOneThanOneThatIs) {
  const auto narrow = Classify({Model("bfloat16", "none", "bfloat16_rne")});
  const auto wide =
      Classify({Model("float32", "none", "bfloat16_rne"), Model("float16", "none", "bfloat16_rne"),
                Model("blockfma(8,24,rz)", "none", "bfloat16_rne")});
  Table table(MakeCase());
  table.Add("a", wide, {1, 2, 3, 4}, DType::kBfloat16).Add("b", narrow, {1, 2, 3, 5}, DType::kBfloat16);
  ASSERT_EQ(table.Find().size(), 1u);
  EXPECT_EQ(table.Find()[0].sentence,
            "b accumulates `product` in bfloat16; a does not: `product[1,1]` is 5 on b and 4 on a.");
}

TEST(Divergence, StepsInsideAnOpHaveNoOrder) {
  // Written numbers explain the first, and numbers before their rounding both: the second reads those.
  const auto found = [](FormatOfWhat labelled) {
    Case c = MakeCase();
    c.program = {testing::MakeStep("elu", {"x"}, "hidden"),
                 testing::MakeStep("add", {"hidden", "x"}, "product")};
    Table table(c);
    const auto add = [&](const std::string& backend, const std::vector<std::string>& together, double last) {
      Classification step = Classify({Model("float32", "none", "float16_rne")}, "stored float16");
      step.labelled = labelled;
      step.piece = together.size() == 1 ? "steps hidden<product" : "step";
      step.together = together;
      step.reads["hidden"] = together.size() == 1 ? std::vector<std::string>{"unrounded"}
                                                  : std::vector<std::string>{"stored", "unrounded"};
      table.Add(backend, step, {1, 2, 3, last}, DType::kFloat16);
    };
    add("stores", {"", "hidden"}, 4);
    add("fuses", {"hidden"}, 5);
    return OfKind(table.Find({}, JudgedAs::kStepByStep), kPrecision);
  };
  const auto steps = found(FormatOfWhat::kSteps);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].sentence,
            "fuses likely computes `product` from the unrounded `hidden`; stores likely does not: "
            "`product[1,1]` is 5 on fuses and 4 on stores.");
  EXPECT_TRUE(found(FormatOfWhat::kSums).empty()) << "a sum may be taken in another order";
}

TEST(Divergence, StepsOfAnotherRunAreSaidAsThat) {
  const auto step = [](const std::string& value, Groups backends, std::vector<std::string> also,
                       const std::string& claim) {
    Divergence made;
    made.kind = kPrecision;
    made.value = value;
    made.backends = std::move(backends);
    made.also = std::move(also);
    made.claim = claim;
    made.sentence = claim + ": add[0] is 1 against 2.";
    return made;
  };
  Divergence result = step("y", {{"eager", "aot"}, {"inductor"}}, {}, "");
  const std::string kEffect =
                        " Observing all steps changes `y` on inductor (3 of 8 elements, by up to 2.5 ulp)",
                    kNoReason = kEffect + "; what it does without observation is unknown.";
  const TensorDifference difference{.elements = 8, .number = 3, .largest_ulp = 2.5};
  const auto told = [&](const std::vector<Divergence>& steps) {
    return ObservedStepsSentence(result, {{.backend = "inductor", .of = difference, .same_as = {}}}, &steps);
  };
  const Divergence add =
      step("add", {{"inductor"}, {"eager", "aot"}}, {"add_2"},
           "inductor likely computes add from the unrounded elu; eager and aot likely do not");
  EXPECT_EQ(told({add}),
            kEffect +
                "; there, inductor likely computes add from the unrounded elu; eager and aot likely do not; "
                "the same for `add_2`.");
  const std::vector<Divergence> steps{add};
  const std::vector<ObservedChange> same{{.backend = "inductor", .of = difference, .same_as = {"eager"}}};
  EXPECT_EQ(ObservedStepsSentence(result, same, &steps),
            " Observing all steps changes `y` on inductor (3 of 8 elements, by up to 2.5 ulp; it then equals "
            "eager); what it does without observation is unknown.")
      << "steps that lead to eager's bits are no reason to part from eager";
  EXPECT_EQ(ObservedStepsSentence(result, same, nullptr),
            " Observing all steps changes `y` on inductor (3 of 8 elements, by up to 2.5 ulp; it then equals "
            "eager).")
      << "a cause is known already";
  EXPECT_EQ(told({step("add", {{"eager"}, {"aot"}}, {}, "eager rounds add; aot does not.")}), kNoReason)
      << "no word of the one that changed";
  EXPECT_EQ(told({step("add", {{"jax"}, {"inductor"}}, {}, "jax rounds add; inductor does not.")}), kNoReason)
      << "nor of those that it differs from";
  EXPECT_EQ(told({step("add", {{"eager"}, {"inductor"}}, {}, "eager rounds add; inductor does not.")}),
            kNoReason)
      << "what another one does on the way is no reason of its own";
  EXPECT_EQ(told({}), kNoReason);
  EXPECT_TRUE(told({add, add, add, add}).ends_with("`add_2`. 2 more steps differ."))
      << told({add, add, add, add});
}

TEST(Divergence, StepsThatAreStoredOnTheWayHaveNames) {
  Case c = MakeCase();
  c.program = {testing::MakeStep("mul", {"x", "y"}, "scaled"),
               testing::MakeStep("add", {"scaled", "x"}, "added"),
               testing::MakeStep("sub", {"added", "y"}, "product")};
  const auto steps = [](const std::string& mid, const std::string& of_each) {
    Classification made = Classify({Model("exact", mid, "bfloat16_rne")});
    made.cuts = testing::CutSets({{"added", {of_each}}, {"scaled", {of_each}}});
    return made;
  };
  const auto said = [&](const Classification& a, const Classification& b) {
    Table table(c);
    table.Add("a", a, {1, 2, 3, 4}, DType::kBfloat16).Add("b", b, {1, 2, 3, 5}, DType::kBfloat16);
    return table.Find().front().sentence;
  };
  EXPECT_EQ(said(steps("bfloat16", "bfloat16"), steps("float32", "none")),
            "a rounds `scaled` and `added` to bfloat16 when computing `product`; b does not: `product[1,1]` "
            "is 4 on a and 5 on b.");
  EXPECT_EQ(said(Classify({Model("exact", "bfloat16", "bfloat16_rne")}),
                 Classify({Model("exact", "float32", "bfloat16_rne")})),
            "a rounds an intermediate of `product` to bfloat16, before its bfloat16 output; b does not: "
            "`product[1,1]` is 4 on a and 5 on b.")
      << "float32 is no rounding that a bfloat16 result shows";
}

TEST(Divergence, AnOperandThatIsRoundedIsNoRoundedResult) {
  Case c = MakeCase();
  c.program = {testing::MakeStep("mul", {"x", "y"}, "scaled"),
               testing::MakeStep("add", {"scaled", "x"}, "product")};
  const auto said = [&](const std::string& rounded) {
    Classification a = ThroughBfloat16(), b = Float32();
    a.cuts = testing::CutSets({{rounded, {"bfloat16"}}});
    Table table(c);
    table.Add("a", a, kRounded).Add("b", b, kUnrounded);
    return table.Find().front().sentence;
  };
  Classification b = Float32();
  EXPECT_TRUE(
      said("step7").starts_with("a rounds at least one intermediate of `product` to bfloat16; b does not: "))
      << said("step7");
  EXPECT_TRUE(
      said("product").starts_with("a rounds `product` to bfloat16 before the float32 result; b does not: "))
      << said("product");
  Classification named = ThroughBfloat16();
  named.cuts = testing::CutSets({{"scaled", {"bfloat16"}}});
  b.cuts = testing::CutSets({{"scaled", {"none"}}});
  Table table(c);
  table.Add("a", named, kRounded).Add("b", b, kUnrounded);
  EXPECT_TRUE(table.Find().front().sentence.starts_with(
      "a rounds `scaled` to bfloat16 when computing `product`; b does not: "))
      << table.Find().front().sentence;
}

TEST(Divergence, AFormatThatOneSideAloneRoundsToIsSaidWhereverItIs) {
  PrecisionModel inside = Model("float32", "none", "bfloat16_rne");
  inside.cuts = testing::Cuts({{"product.exp", "bfloat16"}});
  Classification narrow = Classify({Model("bfloat16", "none", "bfloat16_rne"), inside});
  narrow.cuts = testing::CutSets({{"product.exp", {"none", "bfloat16"}}});
  const auto said = [&](const Classification& other) {
    Table table(MakeCase());
    table.Add("a", narrow, {1, 2, 3, 4}, DType::kBfloat16).Add("b", other, {1, 2, 3, 5}, DType::kBfloat16);
    return table.Find().front().sentence;
  };
  const PrecisionModel wide = Model("float32", "none", "bfloat16_rne");
  PrecisionModel both = wide;
  both.acc = testing::Acc("float16");
  EXPECT_NE(said(Classify({both, wide})).find("does not"), std::string::npos) << said(Classify({both, wide}));
  EXPECT_EQ(said(Classify({Model("bfloat16", "none", "bfloat16_rne"), wide})).find("does not"),
            std::string::npos)
      << "it may do so too";
}

TEST(Divergence, ANumberIsSaidAsItIsWritten) {
  Case c = MakeCase();
  c.program = {testing::MakeStep("mul", {"x"}, "product")};
  Operand number;
  number.scalar = Attr{.value = 1.3};
  c.program[0].of.push_back(number);
  Classification once = Classify({Model("exact", "float32", "bfloat16_rne")});
  once.facets_in["scalar.mul"] = {testing::In("float32_rne")};
  Table table(c);
  table.Add("a", Classify({}), {1, 2, 3, 4}, DType::kBfloat16).Add("b", once, {1, 2, 3, 5}, DType::kBfloat16);
  EXPECT_NE(table.Find().front().sentence.find("b computes `product` with 1.3 rounded to float32, `product` "
                                               "rounded to float32 before its bfloat16 output: "),
            std::string::npos)
      << table.Find().front().sentence;
}

TEST(Divergence, RoundingOfOperandsAndCuts) {
  PrecisionModel rounded = Model("float32", "none");
  rounded.in["y"] = testing::In("bfloat16_rne");
  Table table(MakeCase());
  table.Add("a", Float32(), kUnrounded).Add("b", Classify({rounded}), kRounded);
  ASSERT_EQ(table.Find().size(), 1u);
  EXPECT_EQ(table.Find()[0].sentence,
            "b rounds operand `y` to bfloat16; a does not: `product[0,0]` is 1 on b and 1.0009766 on a.");
  PrecisionModel cut = Model("float32", "none");
  cut.cuts = testing::Cuts({{"hidden", "bfloat16"}});
  Classification with = Classify({cut});
  with.cuts["hidden"] = testing::Mids({"bfloat16"});
  Classification without = Float32();
  without.cuts["hidden"] = testing::Mids({"none"});
  Table cuts(MakeCase());
  cuts.Add("a", with, kRounded).Add("b", without, kUnrounded);
  ASSERT_EQ(cuts.Find().size(), 1u);
  EXPECT_EQ(cuts.Find()[0].sentence,
            "a rounds `hidden` to bfloat16 when computing `product`; b does not: `product[0,0]` is 1 on a "
            "and 1.0009766 on b.");
}

}  // namespace
}  // namespace ulpscope
