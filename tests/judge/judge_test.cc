// Judging a case from its observation: expectations, deviations, taints, program order, repro lines, report
// order.
#include "harness/judge/judge.h"

#include <gtest/gtest.h>

#include "harness/base/text.h"
#include "harness/judge/expect.h"
#include "harness/words/backend_name.h"
#include "tests/judge/make.h"
#include "tests/support/cases.h"

namespace ulpscope {
namespace {

using testing::Classify;
using testing::Completed;
using testing::MakeCase;
using testing::Model;
using testing::Raised;
using testing::Tensor;

const std::vector<double> kNumbers{1, 2, 3, 4};

Observation Product() { return Completed({{"product", Tensor(DType::kFloat32, {2, 2}, kNumbers)}}); }

JudgeContext Torch213() {
  JudgeContext context;
  context.versions = {{"torch", "2.13.0+cpu"}};
  context.date = "2026-11-20";
  return context;
}

CaseResult JudgeProduct(const Case& c, const Classification& classification,
                        const JudgeContext& context = Torch213()) {
  return JudgeCase(c, "torch-inductor", Product(), {{"product", classification}}, context);
}

TEST(Judge, NoContractAndNoExpectationPassesAndShowsTheClass) {
  const CaseResult result = JudgeProduct(MakeCase({"product"}), Classify({Model("float32", "none")}));
  EXPECT_EQ(result.status, Status::kPass);
  EXPECT_EQ(result.reason, "");
  EXPECT_EQ(result.values.at("product").contract, ContractVerdict::kConforms);
  EXPECT_EQ(result.values.at("product").classification.models.size(), 1u);
  EXPECT_EQ(result.repro, "ulpscope run seeds/matmul_out/as_posted -b torch-inductor --seed 0");
}

Case Expecting(Expectation expectation) {
  Case c = MakeCase({"product"});
  c.expect["torch-inductor"] = {std::move(expectation)};
  return c;
}

Expectation ExpectMid(DemandWords words) {
  Expectation expectation;
  expectation.values["product"] = {.dtype = "float32", .facets = {{"mid", std::move(words)}}};
  return expectation;
}

TEST(Judge, ExpectationMetOrChanged) {
  const auto unrounded = Classify({Model("float32", "none"), Model("float64", "none")});
  EXPECT_EQ(JudgeProduct(Expecting(ExpectMid({"none"})), unrounded).status, Status::kPass);
  const CaseResult changed = JudgeProduct(Expecting(ExpectMid({"bfloat16"})), unrounded);
  EXPECT_EQ(changed.status, Status::kFail);
  EXPECT_EQ(changed.reason, "changed: expected product mid bfloat16, observed none");
  const auto open = Classify({Model("float32", "none"), Model("float32", "bfloat16")});
  EXPECT_EQ(JudgeProduct(Expecting(ExpectMid({"none"})), open).reason,
            "changed: expected product mid none, observed none or bfloat16");
  EXPECT_EQ(JudgeProduct(Expecting(ExpectMid({"none"})), Classify({})).reason,
            "changed: expected product mid none, observed unmodelled")
      << "an empty list of words meets nothing";
}

TEST(Judge, ExpectationOfOutcomes) {
  Expectation raises;
  raises.raised = RaisedMatch{.error_class = "RuntimeError", .match = "Expected out tensor"};
  const Case c = Expecting(raises);
  EXPECT_EQ(JudgeCase(c, "torch-inductor", Raised("RuntimeError", testing::kRefusal), {}, Torch213()).status,
            Status::kPass);
  EXPECT_EQ(JudgeCase(c, "torch-inductor", Raised("RuntimeError", "other"), {}, Torch213()).reason,
            "changed: expected to raise RuntimeError matching /Expected out tensor/, observed raised "
            "RuntimeError \"other\"");
  EXPECT_EQ(JudgeProduct(c, Classify({Model("float32", "none")})).reason,
            "changed: expected to raise RuntimeError matching /Expected out tensor/, observed completed");
  Observation unsupported;
  unsupported.outcome = {.kind = OutcomeKind::kUnsupported, .error_class = {}, .text = "no out="};
  EXPECT_EQ(JudgeCase(c, "torch-inductor", unsupported, {}, Torch213()).status, Status::kSkip)
      << "the table: SKIP comes first";
  Expectation cannot;
  cannot.unsupported = "out";
  EXPECT_EQ(JudgeCase(Expecting(cannot), "torch-inductor", unsupported, {}, Torch213()).status,
            Status::kSkip);
  EXPECT_EQ(JudgeProduct(Expecting(cannot), Classify({Model("float32", "none")})).status, Status::kFail);
  EXPECT_EQ(
      JudgeCase(Expecting(ExpectMid({"none"})), "torch-inductor", Raised("E", "x"), {}, Torch213()).reason,
      "changed: expected completed, observed raised E \"x\"");
}

TEST(Judge, ExpectedCountsOfCasts) {
  Expectation none;
  none.casts = {{.stage = "lazy_ir", .from = "bfloat16", .to = "float32", .count = 0}};
  Observation observation = Product();
  const auto reason = [&](const Expectation& expectation) {
    return JudgeCase(Expecting(expectation), "torch-inductor", observation, {}, Torch213()).reason;
  };
  EXPECT_EQ(
      reason(none),
      "changed: expected 0 casts from bfloat16 to float32 in lazy_ir, observed no such stage in its trace")
      << "nothing counted is no zero";
  observation.trace = {{.id = 0, .stage = "lazy_ir", .op = "aten::mm"}};
  EXPECT_EQ(reason(none), "");
  const Cast up{.from = "bfloat16",
                .to = "float32",
                .shape = {2},
                .bytes = 8,
                .under = "xla::cast",
                .stage = "lazy_ir"};
  Cast down = up, elsewhere = up;
  std::swap(down.from, down.to);
  elsewhere.stage = "hlo_optimized";
  observation.casts = {down, elsewhere};
  EXPECT_EQ(reason(none), "") << "the other way, or in another stage";
  observation.casts.push_back(up);
  EXPECT_EQ(reason(none), "changed: expected 0 casts from bfloat16 to float32 in lazy_ir, observed 1");
  Expectation any;
  any.casts = {{.stage = "lazy_ir", .from = {}, .to = {}, .count = 3}};
  EXPECT_EQ(reason(any), "changed: expected 3 casts from any dtype to any dtype in lazy_ir, observed 2");
  any.casts[0].count = 2;
  EXPECT_EQ(reason(any), "");
}

TEST(Judge, ExpectedDtypesAndObservations) {
  Expectation expectation;
  expectation.observations["w.grad_metadata_dtype"] = "bfloat16";
  const Case c = Expecting(expectation);
  Observation observation = Product();
  EXPECT_EQ(JudgeCase(c, "torch-inductor", observation, {}, Torch213()).reason,
            "changed: expected w.grad_metadata_dtype bfloat16, observed nothing");
  observation.observations["w.grad_metadata_dtype"] = "bfloat16";
  EXPECT_EQ(JudgeCase(c, "torch-inductor", observation, {}, Torch213()).status, Status::kPass);
  Expectation narrow;
  narrow.values["product"] = {.dtype = "bfloat16", .facets = {}};
  EXPECT_EQ(JudgeProduct(Expecting(narrow), Classify({Model("float32", "none")})).reason,
            "changed: expected product bfloat16, observed float32");
}

TEST(Judge, FirstExpectationWhoseVersionsMatch) {
  Expectation old = ExpectMid({"bfloat16"});
  old.versions = "torch<2.13";
  Expectation now = ExpectMid({"none"});
  now.versions = "torch>=2.13,<2.16";
  Expectation any = ExpectMid({"float16"});
  Case c = MakeCase({"product"});
  c.expect["torch-inductor"] = {old, now, any};
  const auto unrounded = Classify({Model("float32", "none")});
  EXPECT_EQ(JudgeProduct(c, unrounded).status, Status::kPass);
  JudgeContext context = Torch213();
  context.versions["torch"] = "2.12.1";
  EXPECT_EQ(JudgeProduct(c, unrounded, context).reason,
            "changed: expected product mid bfloat16, observed none");
  context.versions["torch"] = "2.16.0";
  EXPECT_EQ(JudgeProduct(c, unrounded, context).reason,
            "changed: expected product mid float16, observed none");
  c.expect["torch-inductor"][0].versions = "torch<<2";
  EXPECT_EQ(JudgeProduct(c, unrounded).status, Status::kFail)
      << "unreadable conditions are said, never passed over";
}

TEST(Judge, AnEnvironmentIsAVersionOfTheSameBackend) {
  Case c = MakeCase({"product"});
  c.expect["torch-inductor"] = {ExpectMid({"bfloat16"})};
  const auto judge = [&](const std::string& backend, const std::string& torch) {
    JudgeContext context = Torch213();
    context.versions["torch"] = torch;
    return JudgeCase(c, backend, Product(), {{"product", Classify({Model("float32", "none")})}}, context)
        .status;
  };
  EXPECT_EQ(judge("torch-inductor:env=later", "2.15.0"), Status::kFail);
  EXPECT_EQ(judge("torch-inductor:env=later,threads=2", "2.15.0"), Status::kPass) << "other knobs";
  c.expect["torch-inductor"][0].versions = "torch<2.14";
  EXPECT_EQ(judge("torch-inductor:env=later", "2.15.0"), Status::kPass);
  EXPECT_EQ(judge("torch-inductor:env=later", "2.13.0"), Status::kFail);
  c.expect["torch-inductor:env=later"] = {ExpectMid({"none"})};
  EXPECT_EQ(judge("torch-inductor:env=later", "2.13.0"), Status::kPass) << "what names it comes first";
}

TEST(Judge, ExpectationsBelongToOneBackendString) {
  Case c = MakeCase({"product"});
  c.expect["torch-inductor@cpu:b=2,a=1"] = {ExpectMid({"bfloat16"})};
  EXPECT_EQ(JudgeProduct(c, Classify({Model("float32", "none")})).status, Status::kPass)
      << "other knobs, another backend";
  const auto judge = [&](const std::string& backend) {
    return JudgeCase(c, backend, Product(), {{"product", Classify({Model("float32", "none")})}}, Torch213())
        .status;
  };
  EXPECT_EQ(judge("torch-inductor:a=1,b=2"), Status::kFail);
  EXPECT_EQ(judge("torch-inductor@cuda:a=1,b=2"), Status::kPass);
  EXPECT_EQ(CanonicalBackend("emulated@cpu:threads=2,model=in=x:tf32_rne,y:tf32_rne;acc=float32"),
            "emulated:threads=2,model=in=x:tf32_rne,y:tf32_rne;acc=float32");
}

Case Strict() {
  Case c = MakeCase({"product"});
  c.contract.accept_any = false;
  c.contract.values["product"] = {.dtype = "float32", .facets = {{"mid", {"none"}}}};
  return c;
}

TEST(Judge, ValuesOfOneBackendAreComparedInBitsAndInClass) {
  const auto judged = [](Contract contract, std::vector<double> other, const Classification& its) {
    Case c = testing::MakeCase();
    c.program.push_back(testing::MakeStep("exp", {"x"}, "other"));
    c.observe = {"product", "other"};
    c.contract = std::move(contract);
    const auto observation =
        testing::Completed({{"product", testing::Tensor(DType::kFloat32, {2, 2}, {1, 2, 3, 4})},
                            {"other", testing::Tensor(DType::kFloat32, {2, 2}, std::move(other))}});
    return JudgeCase(c, "a", observation,
                     {{"product", Classify({Model("float32", "none")}, "in float32")}, {"other", its}}, {});
  };
  Contract equal, same;
  equal.equal = same.same_class = {"product", "other"};
  const Classification wide = Classify({Model("float32", "none")}, "in float32"),
                       narrow = Classify({Model("bfloat16", "none")}, "in bfloat16"),
                       either = Classify({Model("float32", "none"), Model("bfloat16", "none")}, "in either");
  const CaseResult right = judged(equal, {1, 2, 3, 4}, narrow);
  EXPECT_EQ(right.status, Status::kPass) << right.reason;
  EXPECT_TRUE(right.demanded);
  EXPECT_EQ(
      judged(equal, {1, 2, 3, 4 + 0x1p-21}, wide).reason,
      "product and other are not equal: 1 of 4 elements differ by up to 1 ulp, the worst at [1,1]: 4 against "
      "4.00000048");
  const std::string worst = judged(equal, {1 + 0x1p-23, 2, 3, 4 + 0x1p-19}, wide).reason;
  EXPECT_NE(worst.find("2 of 4 elements differ by up to 4 ulp, the worst at [1,1]: "), std::string::npos)
      << worst;
  EXPECT_EQ(judged(same, {1, 2, 3, 5}, wide).status, Status::kPass) << "other bits, one class";
  EXPECT_EQ(judged(same, {1, 2, 3, 4}, narrow).reason,
            "product and other are not of one class: product is in float32; other is in bfloat16");
  EXPECT_EQ(judged(same, {1, 2, 3, 4}, narrow).status, Status::kFail);
  EXPECT_EQ(judged(same, {1, 2, 3, 4}, either).status, Status::kInconclusive);
  EXPECT_EQ(judged(same, {1, 2, 3, 4}, Classify({})).status, Status::kUnmodelled);
  equal.equal.emplace_back("absent");
  EXPECT_EQ(judged(equal, {1, 2, 3, 4}, wide).status, Status::kFail);
}

TEST(Judge, ContractVerdictsBecomeStatuses) {
  const auto bad = Classify({Model("float32", "bfloat16")}, "rounded through bfloat16");
  EXPECT_EQ(JudgeProduct(Strict(), bad).reason,
            "product violates its contract (dtype float32, mid none): rounded through bfloat16");
  EXPECT_EQ(JudgeProduct(Strict(), bad).status, Status::kFail);
  EXPECT_EQ(JudgeProduct(Strict(), Classify({})).status, Status::kUnmodelled);
  const CaseResult likely =
      JudgeProduct(Strict(), Classify({Model("float32", "bfloat16")},
                                      {Model("float32", "bfloat16"), Model("bfloat16", "none")},
                                      "rounded through bfloat16"));
  EXPECT_EQ(likely.status, Status::kUnmodelled) << "a likelihood accuses nobody";
  EXPECT_EQ(
      likely.reason,
      "product is rounded through bfloat16, which the contract (dtype float32, mid none) does not allow; not "
      "proved: one model that it allows lies within its bounds, and fits worse");
  Classification short_of_bits = Classify({});
  short_of_bits.says = {{RemarkKind::kBits, "at most 22 significant bits in 256 results"}};
  EXPECT_EQ(JudgeProduct(Strict(), short_of_bits).reason,
            "no precision model explains product (the contract says dtype float32, mid none): at most 22 "
            "significant bits in "
            "256 results");
  const CaseResult open =
      JudgeProduct(Strict(), Classify({Model("float32", "none"), Model("float32", "bfloat16")}));
  EXPECT_EQ(open.status, Status::kInconclusive);
  EXPECT_NE(open.reason.find("fill {probe: fuse}"), std::string::npos)
      << "it names the inputs that would settle it";
  EXPECT_EQ(open.reason.find("swamp"), std::string::npos) << "the accumulators agree";
  EXPECT_EQ(JudgeCase(Strict(), "b", Raised("RuntimeError", "no"), {}, {}).status, Status::kFail);
  EXPECT_EQ(JudgeCase(Strict(), "b", Completed({}), {}, {}).reason,
            "product does not exist, the contract says dtype float32, mid none");
}

TEST(Judge, DeviationsAreLiveForTheirCaseBackendVersionAndDate) {
  const auto bad = Classify({Model("float32", "bfloat16")});
  const auto good = Classify({Model("float32", "none")});
  Deviation entry;
  entry.case_id = "seeds/matmul_out/as_posted";
  entry.backend = "torch-inductor";
  entry.value = "product";
  entry.versions = "torch>=2.13,<2.14";
  entry.expires = "2026-11-20";
  const auto judge = [&](const Classification& classification, const std::string& date) {
    const std::vector<Deviation> entries{entry};
    JudgeContext context = Torch213();
    context.date = date;
    context.deviations = entries;
    return JudgeProduct(Strict(), classification, context).status;
  };
  EXPECT_EQ(judge(bad, "2026-11-20"), Status::kXfail) << "the last day counts";
  EXPECT_EQ(judge(bad, "2026-11-21"), Status::kFail) << "expired";
  EXPECT_EQ(judge(good, "2026-11-20"), Status::kXpass);
  EXPECT_EQ(judge(good, "2026-11-21"), Status::kPass);
  entry.versions = "torch<2.13";
  EXPECT_EQ(judge(bad, "2026-11-20"), Status::kFail);
  EXPECT_EQ(judge(good, "2026-11-20"), Status::kPass);
  entry.versions = "";
  entry.backend = "torch-eager";
  EXPECT_EQ(judge(bad, "2026-11-20"), Status::kFail);
}

TEST(Judge, TaintsAreControlBitsThreadsAndUnwrittenElements) {
  Observation observation = Product();
  observation.fp_before = FpEnvironment{.mxcsr = 0x1f80, .subnormals_kept = true, .threads = 1};
  observation.fp_after = FpEnvironment{.mxcsr = 0x1fa0, .subnormals_kept = true, .threads = 1};
  EXPECT_EQ(FindTaint(observation), "") << "the inexact flag is no change";
  observation.fp_after->mxcsr = 0x9fc0;
  EXPECT_EQ(FindTaint(observation), "MXCSR changed from 0x1f80 to 0x9fc0 FTZ DAZ");
  observation.fp_after = FpEnvironment{.mxcsr = 0x1f80, .subnormals_kept = false, .threads = 2};
  EXPECT_EQ(FindTaint(observation), "subnormals are flushed now; the thread count changed from 1 to 2");
  observation.knobs_asked["flush_denormal"] = "on";
  EXPECT_EQ(FindTaint(observation), "") << "it was asked for, and the runner found nothing else";
  observation.tainted = "before the case: 7 threads instead of 1";
  EXPECT_EQ(FindTaint(observation), "before the case: 7 threads instead of 1");
  observation.tainted.clear();
  observation.fp_after = observation.fp_before;
  observation.unwritten = {"product"};
  EXPECT_EQ(FindTaint(observation), "elements never written: product");
  EXPECT_EQ(JudgeCase(MakeCase(), "b", observation, {}, {}).status, Status::kTainted);
}

TEST(Judge, ProgramOrder) {
  Case c = MakeCase({"w", "w.grad", "result", "x.grad", "product"});
  TensorSpec w;
  w.name = "w";
  c.tensors.push_back(w);
  EXPECT_EQ(ProgramOrder(c), (std::vector<std::string>{"product", "result", "w.grad", "x.grad", "w"}));
  Step scope;
  scope.op = "autocast";
  scope.steps = c.program;
  c.program = {scope};
  EXPECT_EQ(ProgramOrder(c).front(), "product") << "inside a scope too";
}

TEST(Judge, ReproLinesAreOneShellCommand) {
  EXPECT_EQ(ReproLine("a/b[k=64]", "emulated:model=in=x:tf32;acc=blockfma(8,24,rz)", {}),
            "ulpscope run 'a/b[k=64]' -b 'emulated:model=in=x:tf32;acc=blockfma(8,24,rz)' --seed 0");
  EXPECT_EQ(ShellQuote("it's"), "'it'\\''s'");
  EXPECT_EQ(ShellQuote(""), "''");
}

TEST(Judge, NotReachedAndHarnessFaults) {
  EXPECT_EQ(NotReachedResult(MakeCase(), "b", "interrupted", {}).status, Status::kNotRun);
  EXPECT_EQ(NotReachedResult(MakeCase(), "b", "interrupted", {}).reason, "interrupted");
  EXPECT_EQ(HarnessFaultResult(MakeCase(), "b", Product(), "oracle broke", {}).status, Status::kHarness);
}

TEST(BuildReport, OrderIsByIdThenByTheBackendsOfTheRun) {
  const auto result = [](const std::string& id, const std::string& backend) {
    CaseResult made;
    made.id = id;
    made.backend = backend;
    return made;
  };
  RunFacts facts;
  facts.backends = {"torch", "jax"};
  const RunReport report = BuildReport(
      facts, {result("b", "jax"), result("a", "jax"), result("b", "torch"), result("a", "torch")}, {});
  std::vector<std::string> order;
  for (const auto& r : report.results) order.push_back(r.id + r.backend);
  EXPECT_EQ(order, (std::vector<std::string>{"atorch", "ajax", "btorch", "bjax"}));
}

}  // namespace
}  // namespace ulpscope
