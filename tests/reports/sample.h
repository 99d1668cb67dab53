// A small run made by hand: one case on four backends with every kind of cell, hostile text, and non-finite
// numbers.
#pragma once

#include <limits>
#include <string>

#include "harness/model/run_report.h"
#include "tests/support/models.h"

namespace ulpscope::testing {

inline ValueResult Value(std::vector<PrecisionModel> models, DType dtype = DType::kFloat32) {
  ValueResult value;
  value.dtype = dtype;
  value.shape = {32, 7, 1, 1};
  value.contract = ContractVerdict::kConforms;
  Classification& c = value.classification;
  c.kind = models.size() == 1 ? ClassificationKind::kIdentified : ClassificationKind::kIndistinguishable;
  if (models.empty()) c.kind = ClassificationKind::kUnmodelled;
  for (const auto& model : models) {
    AddOnce(&c.facets.prod, model.prod);
    AddOnce(&c.facets.acc, model.acc);
    AddOnce(&c.facets.mid, model.mid);
    AddOnce(&c.facets.out, model.out);
    for (const auto& [operand, in] : model.in) AddOnce(&c.facets_in[operand], in);
  }
  c.models = models;
  c.models_proved = std::move(models);
  c.elements = c.checked = 224;
  c.max_ulp = 0.5;
  c.models_tried = 20;
  c.label = "accumulated in float32, stored float32";
  c.labelled = FormatOfWhat::kSums;
  return value;
}

inline CaseResult Result(const std::string& backend, Status status, const std::string& reason) {
  CaseResult result;
  result.id = "seeds/matmul_out/as_posted";
  result.backend = backend;
  result.status = status;
  result.reason = reason;
  result.repro = "ulpscope run seeds/matmul_out/as_posted -b " + backend + " --seed 0";
  return result;
}

/// One step of four explains three quarters of the difference, nothing the rest; a setting was tried.
inline Ledger SampleLedger(const std::string& id, const std::string& sentence) {
  Ledger ledger;
  ledger.case_id = id;
  ledger.value = "result";
  ledger.backends = {{"torch-aot-eager"}, {"openblas"}};
  ledger.carrier = "emulated";
  ledger.shape = {32, 7};
  ledger.elements = 224;
  ledger.differing = 63;
  ledger.rms = 0.25;
  ledger.atol = 1;
  ledger.rtol = std::numeric_limits<double>::infinity();
  ledger.steps = 4;
  ledger.entries = {{.step = "product",
                     .share = 0.75,
                     .moved = 60,
                     .rms = 0.2,
                     .largest = 1,
                     .causes = {{.backend = "torch-aot-eager",
                                 .kind = DivergenceKind::kPrecision,
                                 .is_explained = true,
                                 .sentence = sentence}}},
                    {.step = "<b>\x1b[2J", .share = 0.25, .moved = 3, .rms = 0.1, .largest = 0.5}};
  ledger.nearness = Nearness{
      .elements = 224,
      .scale = 8,
      .first =
          {.rms = 0.3, .median = 0.1, .largest = 1, .largest_ulp = 2, .worst = 10, .observed = 3, .exact = 2},
      .second = {.rms = 0.1,
                 .median = 0.05,
                 .largest = 0.5,
                 .largest_ulp = 1,
                 .worst = 0,
                 .observed = 1,
                 .exact = 1.5},
      .nearer = Nearness::Side::kSecond};
  ledger.remedies = {
      {.backend = "torch-aot-eager", .setting = "mkldnn=off", .source = "its manual", .differing = 0}};
  return ledger;
}

inline ErrorBudget SampleBudget(const std::string& id) {
  ErrorBudget budget;
  budget.case_id = id;
  budget.value = "result";
  budget.backends = {"torch-aot-eager"};
  budget.elements = budget.of = 224;
  budget.rms = 0.3;
  budget.precision = 1e-30;
  budget.steps = 4;
  budget.together = 2;
  budget.entries = {{.step = "product",
                     .share = 0.75,
                     .rms = 0.25,
                     .moved = 60,
                     .at = {.module = "model.norm", .file = "llama.py", .line = 67},
                     .layers = 1},
                    {.step = "<b>\x1b[2J", .share = -0.5, .rms = 0.2, .moved = 3},
                    {.step = "", .share = 0.25, .rms = 0.1, .moved = 2},
                    {.step = "result", .share = 0.5, .rms = 0.1, .moved = 224}};
  budget.in_float32 = StepInFloat32{.step = "product", .before = 0.3, .after = 0.125, .lowers = true};
  return budget;
}

inline RunReport SampleReport() {
  RunReport report;
  report.versions = {{"torch-eager", {{"torch", "2.13.0+cpu"}}}, {"openblas", {{"openblas", "0.3.21"}}}};
  report.environment = {{"OPENBLAS_CORETYPE", std::nullopt}, {"XLA_USE_BF16", "1"}};
  report.not_installed = {{"torch-xla", "not part of this version"}};
  report.id = "20261120T225337Z-1a2b3c";
  report.started = "2026-11-20T22:53:37Z";
  report.durations_s = {{"run", 112.4}};

  CaseResult eager = Result("torch-eager", Status::kPass, "");
  eager.outcome = {.kind = OutcomeKind::kRaised,
                   .error_class = "RuntimeError",
                   .text = "Expected out tensor to have dtype c10::BFloat16\nsecond line"};
  report.results.push_back(eager);

  CaseResult aot =
      Result("torch-aot-eager", Status::kFail, "changed: expected product mid none, observed bfloat16");
  aot.value_order = {"product", "result"};
  aot.values["product"] = Value({Model("float32", "bfloat16")});
  aot.values["result"] = Value({Model("float32", "bfloat16")});
  aot.values["product"].bits = aot.values["result"].bits = "00000000000000aa";
  Classification& product = aot.values["product"].classification;
  product.models_proved.push_back(Model("bfloat16", "none"));
  product.rests_on_likelihood = true;
  product.max_ulp = std::numeric_limits<double>::infinity();
  Exclusion exclusion;
  exclusion.model = Model("float32", "none");
  exclusion.element = {0, 3, 0, 0};
  exclusion.observed = 0x1.2ap+1;
  exclusion.reference = 0x1.2a4p+1;
  exclusion.low = 0x1.2a3p+1;
  exclusion.high = std::numeric_limits<double>::infinity();
  exclusion.why = "float32 keeps more bits";
  product.excluded = {exclusion};
  aot.observations = {{"peak_bytes", "12345"}, {"w.grad_metadata_dtype", "bfloat16"}};
  aot.knobs_effective = {{"threads", "1"}};
  Cast cast;
  cast.from = "bfloat16";
  cast.to = "float32";
  cast.shape = {32, 7, 1, 1};
  cast.bytes = 896;
  cast.under = "aten::copy_";
  cast.stage = "aot_forward";
  aot.casts = {cast};
  aot.durations_ms = {{"run", 1.5}};
  report.results.push_back(aot);

  CaseResult blas = Result("openblas", Status::kPass, "");
  blas.value_order = {"product", "result"};
  blas.values["product"] = Value({Model("float32", "none"), Model("float64", "none")});
  blas.values["result"] = Value({Model("float32", "none")});
  blas.values["product"].bits = blas.values["result"].bits = "00000000000000bb";
  report.results.push_back(blas);

  // A hostile adapter: escape sequences, a bidirectional override, broken UTF-8, XML.
  CaseResult hostile = Result("custom", Status::kCrash,
                              "ended by \x1b[2J\x1b]0;title\x07<b a=\"1\">&]]> \xe2\x80\xae \xff\x01");
  hostile.outcome = {.kind = OutcomeKind::kCrashed, .error_class = "SIGSEGV", .text = "\x1b[31mred"};
  report.results.push_back(hostile);

  CaseResult jax = Result("jax", Status::kSkip, "no out= in JAX");
  jax.outcome = {.kind = OutcomeKind::kUnsupported, .error_class = {}, .text = "no out= in JAX"};
  report.results.push_back(jax);

  Divergence outcome;
  outcome.case_id = eager.id;
  outcome.kind = DivergenceKind::kOutcome;
  outcome.backends = {{"torch-eager"}, {"torch-aot-eager"}};
  outcome.basis = "proved";
  outcome.sentence =
      "torch-eager raises RuntimeError (\"Expected out tensor to have dtype c10::BFloat16\"); "
      "torch-aot-eager returns `product` as float32.";
  outcome.summary = "raises RuntimeError (\"Expected out tensor to have dtype c10::BFloat16\")";
  Divergence precision = outcome;
  precision.kind = DivergenceKind::kPrecision;
  precision.backends = {{"torch-aot-eager"}, {"openblas"}};
  precision.value = "product";
  precision.also = {"result"};
  precision.sentence =
      "torch-aot-eager rounds `product` to bfloat16 before the float32 buffer; openblas does not: "
      "`product[0,3,0,0]` is 2.328125 on torch-aot-eager and 2.3300781 on openblas.";
  precision.summary = "rounds a value to bfloat16 before the float32 buffer";
  Divergence order = precision;
  order.kind = DivergenceKind::kOrder;
  report.divergences = {outcome, precision, order};
  report.ledgers = {SampleLedger(eager.id, precision.sentence)};
  report.budgets = {SampleBudget(eager.id)};

  KnobEffect acts;
  acts.backend = "torch-aot-eager";
  acts.knob = "mkldnn";
  acts.asked = "off";
  acts.effective = {"off"};
  acts.read_back = KnobEffect::ReadBack::kAsAsked;
  acts.effect = KnobEffect::Effect::kActs;
  acts.cases = acts.compared = 3;
  acts.acted = 2;
  acts.base = "unset";
  acts.base_effective = {"on"};
  acts.first_case = "knobs/products/bfloat16";
  acts.what = "bits of product: 2 of 4096, at most 1 ulp";
  KnobEffect lies = acts;
  lies.knob = "deterministic";
  lies.asked = "on";
  lies.effective = {"off"};
  lies.read_back = KnobEffect::ReadBack::kDiffers;
  lies.effect = KnobEffect::Effect::kNoEffect;
  lies.acted = 0;
  lies.first_case = lies.what = "";
  KnobEffect refused = lies;
  refused.backend = "custom";
  refused.knob = "mode\x1b[2J";
  refused.effective = {};
  refused.read_back = KnobEffect::ReadBack::kNotRead;
  refused.effect = KnobEffect::Effect::kRefused;
  refused.compared = 0;
  refused.first_case = "knobs/products/float32";
  refused.what = "knob mode=on: expected one of a b";
  report.knobs = {acts, lies, refused};
  return report;
}

}  // namespace ulpscope::testing
