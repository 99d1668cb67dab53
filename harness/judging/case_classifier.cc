// Classifying the values of one case.
#include "harness/judging/case_classifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "harness/base/text.h"
#include "harness/casefile/generate.h"
#include "harness/casefile/open.h"
#include "harness/casefile/prove.h"
#include "harness/judge/as_written.h"
#include "harness/judge/asked.h"
#include "harness/judge/contract.h"
#include "harness/judge/forms.h"
#include "harness/judge/local.h"
#include "harness/judge/sample.h"
#include "harness/ledger/nearer.h"

namespace ulpscope {
namespace {

/// The most terms of sums for judging several steps as one: a second or so, and minutes for a contract or expectation.
constexpr int64_t kJointWork = int64_t{1} << 28, kDemandedWork = int64_t{1} << 34;
/// The most terms for finding the plain program that gives the results of a value that was not judged as one.
constexpr int64_t kNaturalWork = int64_t{1} << 26;
/// Elements of a large program whose errors are measured, whatever the cost.
constexpr int64_t kFewestMeasured = 16;

/// If every result is exact, no intermediate rounding is visible. Otherwise some hundred ways to sum and to round are
/// tried, of which two differ in half of the results or more: 2^-32 times some hundred is once in ten millions.
bool TellsAlone(const Classification& fits, const TensorData& observed) {
  constexpr size_t kManyNumbers = 32;  // derived: above
  if (fits.reproduced < 1 || fits.checked < fits.elements) return false;
  if (fits.kind == ClassificationKind::kExactOnly) return fits.max_ulp == 0;
  std::set<double> numbers;
  for (int64_t i = 0; i < observed.size() && numbers.size() < kManyNumbers; ++i)
    numbers.insert(observed.At(i));
  return numbers.size() >= kManyNumbers;
}

void NoteFloatingCasts(const std::vector<Step>& steps, std::set<std::string>* names) {
  for (const Step& step : steps) {
    NoteFloatingCasts(step.steps, names);
    if (step.op != "cast") continue;
    if (const auto dtype = ReadDType(step, "dtype"); dtype && IsFloating(*dtype)) names->insert(step.as);
  }
}

}  // namespace

std::set<std::string> FloatingCasts(const Case& c) {
  std::set<std::string> casts;
  NoteFloatingCasts(c.program, &casts);
  return casts;
}

std::string_view Name(OracleEngine engine) { return engine == OracleEngine::kFast ? "fast" : "boost"; }

OracleCounts CaseClassifier::Counts() const {
  OracleCounts counts = pieces_;
  if (oracle_ != nullptr) counts += oracle_->Counts();
  return counts;
}

std::optional<Shape> CaseClassifier::ShapeOf(const std::string& value) {
  Open();
  if (oracle_ == nullptr) return std::nullopt;
  const auto described = oracle_->Describe(value);
  return described ? std::optional(described->shape) : std::nullopt;
}

Classified CaseClassifier::Classify(const Observation& observation) {
  if (!CanBeOpened(case_)) return ClassifyBits(observation.values);
  return ClassifyJointly(observation, DemandedValues(case_));
}

Classified CaseClassifier::ClassifyJointly(const Observation& observation,
                                           const std::set<std::string>& names) {
  std::map<std::string, TensorData> values;
  for (const auto& [name, tensor] : observation.values) {
    if (names.contains(name)) values.emplace(name, tensor);
  }
  return ClassifyBits(values);
}

void CaseClassifier::Open() {
  if (opened_) return;
  opened_ = true;
  auto inputs = MakeInputs(case_, seed_);
  if (!inputs) {
    no_inputs_ = "the inputs cannot be made: " + inputs.error().Text();
    return;
  }
  inputs_ = std::move(*inputs);
  if (IsOpened(case_)) {
    auto settled = WithDataSet(case_, std::move(inputs_));
    settled_ = std::move(settled.program);
    inputs_ = std::move(settled.inputs);
    return;
  }
  auto oracle = OpenCaseOracle(case_, inputs_, {.engine = engine_});
  if (oracle) {
    oracle_ = std::move(*oracle);
  } else {
    no_oracle_ = oracle.error().Text();
  }
}

OpenPiece CaseClassifier::PieceOracle() const {
  return [this](const Case& piece, std::map<std::string, TensorData> inputs, const PieceOptions& how) {
    return OpenCaseOracle(piece, std::move(inputs),
                          {.engine = engine_,
                           .unrounded = how.unrounded,
                           .natural = how.natural,
                           .as_written = how.as_written});
  };
}

std::map<std::string, Classification> CaseClassifier::StepByStep(
    const std::map<std::string, TensorData>& values) {
  return JudgeSteps(Program(), inputs_, values, PieceOracle(), &pieces_, looked_at_);
}

void CaseClassifier::LookAt(std::map<std::string, std::vector<int64_t>> elements,
                            const std::map<std::string, int64_t>& sizes) {
  looked_at_ = std::move(elements);
  beyond_sample_ = looked_at_;
  std::erase_if(beyond_sample_,
                [&](const auto& one) { return sizes.at(one.first) <= ClassifyOptions().most_elements; });
}

void CaseClassifier::NameForms(const Observation& observation, Classified* classified) {
  if (looked_at_.empty() || classified->values.empty()) return;
  const bool opened = IsOpened(case_);
  if (!opened && !IsOneStep(case_)) return;
  try {
    Open();
    if (!no_inputs_.empty() || (!opened && oracle_ == nullptr)) return;
    TellForms(opened ? Program() : case_, inputs_, observation.values, looked_at_, PieceOracle(), &pieces_,
              &classified->values);
  } catch (const std::exception& broken) {
    classified->fault = fmt::format("the oracle or the classifier broke: {}", broken.what());
  }
}

const ExactElements* CaseClassifier::ExactOf(const CaseOracle& oracle, const std::string& value,
                                             const Shape& of,
                                             std::map<std::string, ExactElements>* known) const {
  const auto shape = oracle.Describe(value);
  if (!shape || shape->shape != of) return nullptr;
  const auto [found, is_new] = known->try_emplace(value);
  if (is_new) {
    const int64_t most = shape->work_of_all <= kNaturalWork
                             ? ClassifyOptions().most_elements
                             : std::clamp(kNaturalWork / std::max<int64_t>(1, shape->work_of_one),
                                          kFewestMeasured, ClassifyOptions().most_elements);
    found->second.elements = ElementsToCheck(of, most);
    found->second.references = oracle.References(value, found->second.elements);
  }
  return &found->second;
}

const ExactElements* CaseClassifier::WholeOf(const std::string& value, const Shape& of) {
  Open();
  return oracle_ == nullptr ? nullptr : ExactOf(*oracle_, value, of, &whole_);
}

const ExactElements* CaseClassifier::UnroundedOf(const std::string& value, const Shape& of) {
  const std::set<std::string> casts = FloatingCasts(case_);
  if (casts.empty()) return WholeOf(value, of);
  Open();
  if (!unrounded_opened_ && no_inputs_.empty()) {
    unrounded_opened_ = true;
    if (auto oracle = OpenCaseOracle(case_, inputs_, {.engine = engine_, .unrounded = casts}))
      unrounded_oracle_ = std::move(*oracle);
  }
  return unrounded_oracle_ == nullptr ? nullptr : ExactOf(*unrounded_oracle_, value, of, &unrounded_);
}

void CaseClassifier::MeasureWhole(const std::string& value, const TensorData& observed,
                                  Classification* result) {
  if (!IsMeasured(result->kind) || !IsFloating(observed.dtype)) return;
  const ExactElements* exact = WholeOf(value, observed.shape);
  if (exact == nullptr) return;
  result->step_ulp = result->max_ulp;
  MeasureErrors(*exact, observed, result);
}

std::optional<Nearness> CaseClassifier::NearnessOf(const std::string& value, const TensorData& a,
                                                   const TensorData& b) {
  if (!IsFloating(a.dtype) || a.dtype != b.dtype || a.shape != b.shape) return std::nullopt;
  const ExactElements* exact = UnroundedOf(value, a.shape);
  if (exact == nullptr) return std::nullopt;
  return MeasureNearness(exact->elements, exact->references, a, b);
}

std::optional<NonFinite> CaseClassifier::FindNonFiniteValue(const std::string& value,
                                                            const TensorData& observed) {
  if (!HasNonFinite(observed)) return std::nullopt;
  Open();
  return oracle_ == nullptr ? std::nullopt : FindNonFinite(*oracle_, value, observed);
}

std::vector<NonFinite> CaseClassifier::FindBirthsOf(const std::string& value,
                                                    const std::map<std::string, TensorData>& values) {
  Open();
  if (!no_inputs_.empty()) return {};
  return FindBirths(Program(), inputs_, values, value, PieceOracle());
}

Classified CaseClassifier::ClassifyAsAsked(const Observation& observation,
                                           const std::set<std::string>& names) {
  Classified classified;
  Open();
  if (!no_inputs_.empty()) return classified;
  for (const auto& [name, tensor] : observation.values) {
    if (!names.contains(name) || !IsFloating(tensor.dtype)) continue;
    auto found = JudgeAsAsked(Program(), inputs_, name, tensor, PieceOracle(), &pieces_);
    if (found) classified.values.emplace(name, std::move(*found));
  }
  return classified;
}

void CaseClassifier::SayWhatFits(const std::map<std::string, TensorData>& values, ClassifyOptions options,
                                 Classified* classified) {
  std::unique_ptr<CaseOracle> natural;
  const std::set<std::string> demanded = DemandedValues(case_);
  for (auto& [name, found] : classified->values) {
    if (found.kind != ClassificationKind::kNotJudged) continue;
    if (natural == nullptr) {
      auto opened = OpenCaseOracle(case_, inputs_, {.engine = engine_, .unrounded = {}, .natural = true});
      if (!opened) return;
      natural = std::move(*opened);
    }
    options.search = false;
    options.most_work = kNaturalWork;
    const Classification fits = ClassifyValue(*natural, name, values.at(name), options);
    pieces_ += natural->Counts();
    if (!fits.fits || fits.reproduced < kNearlyAll) continue;
    if (TellsAlone(fits, values.at(name)) && !demanded.contains(name)) {
      Classification told = fits;
      told.rests_on_likelihood = told.kind != ClassificationKind::kExactOnly;
      told.notes.push_back(
          {RemarkKind::kModelsTried, "only the models that round each step as the program does were tried"});
      if (told.kind == ClassificationKind::kExactOnly) {
        told.label = fmt::format("exact: the exact value in {} of {} elements", told.checked, told.elements);
        told.labelled = FormatOfWhat::kNothing;
      }
      found = std::move(told);
      continue;
    }
    found.says.push_back({RemarkKind::kShare, fmt::format("{:.0f} % of the results are those of: {}",
                                                          100 * fits.reproduced, fits.label)});
    found.reproduced = fits.reproduced;
    found.label = JoinTexts(found.says);
    found.labelled = fits.labelled;
  }
}

void CaseClassifier::TryForms(const std::map<std::string, TensorData>& values, Classified* classified) {
  const std::set<std::string> demanded = DemandedValues(case_);
  const bool any = std::ranges::any_of(classified->values, [&](const auto& value) {
    return value.second.kind == ClassificationKind::kUnmodelled && !demanded.contains(value.first);
  });
  if (!any) return;
  for (auto& [name, found] : StepByStep(values)) {
    Classification& whole = classified->values[name];
    if (whole.kind != ClassificationKind::kUnmodelled || !found.fits || demanded.contains(name)) continue;
    whole = std::move(found);
    whole.piece.clear();
  }
}

void CaseClassifier::DoubtViolations(const std::map<std::string, TensorData>& values,
                                     Classified* classified) {
  const Step& step = case_.program.front();
  const auto demand = case_.contract.values.find(step.as);
  const auto value = classified->values.find(step.as);
  if (demand == case_.contract.values.end() || value == classified->values.end() ||
      OtherForms(step).empty() || JudgeFacets(demand->second, value->second) != ContractVerdict::kViolates)
    return;
  const auto steps = StepByStep(values);
  const auto form = steps.find(step.as);
  if (form == steps.end() || !form->second.fits || form->second.reproduced < kNearlyEvery ||
      JudgeFacets(demand->second, form->second) == ContractVerdict::kViolates)
    return;
  Classification& found = value->second;
  found.kind = ClassificationKind::kUnmodelled;
  found.fits = false;
  found.models.clear();
  found.models_proved.clear();
  found.says = {{RemarkKind::kShare, fmt::format("{:.0f} % of the results are those of: {}",
                                                 100 * form->second.reproduced, form->second.label)}};
  found.label = "unmodelled: " + found.says.front().text;
  found.labelled = form->second.labelled;
}

bool CaseClassifier::IsStepOfManyModels() const {
  // The result states its dtype; all models decide a facet.
  if (!IsOneStep(case_) || !case_.companion_of.empty() || SpeaksOfFacets(case_)) return false;
  const auto shape = oracle_->Describe(case_.program.front().as);
  return shape && shape->most_models >= kManyModels;
}

void CaseClassifier::ShowWritten(const std::map<std::string, TensorData>& values, Classified* classified) {
  for (auto& [name, found] : classified->values) {
    if (!IsMeasured(found.kind) || !found.as_written.empty() || IsAsWritten(found)) continue;
    auto written = OpenCaseOracle(case_, inputs_, {.engine = engine_, .as_written = true});
    if (!written) return;
    ShowAsWritten(**written, name, values.at(name), &found);
    pieces_ += (*written)->Counts();
  }
}

Classified CaseClassifier::ClassifyBits(const std::map<std::string, TensorData>& values) {
  if (values.empty()) return {};
  const auto known = std::ranges::find_if(done_, [&](const auto& one) { return one.first == values; });
  if (known != done_.end()) return known->second;
  Classified classified{.looked_at = beyond_sample_};
  try {
    Open();
    if (!no_inputs_.empty()) return {.fault = no_inputs_};
    if (IsOpened(case_)) {
      classified.values = StepByStep(values);
    } else if (oracle_ != nullptr) {
      using Evidence = ClassifyOptions::Evidence;
      // Auxiliary inputs exist to prove, so likelihood is not evaluated for them.
      ClassifyOptions options;
      options.evidence = case_.companion_of.empty() ? Evidence::kAll : Evidence::kHard;
      options.ordinary = IsOrdinary(case_);
      const bool one_step = IsOneStep(case_);
      if (!one_step) options.most_work = DemandedValues(case_).empty() ? kJointWork : kDemandedWork;
      const auto& demands = case_.companion_of.empty() ? case_.contract.values : case_.asked_of;
      if (IsStepOfManyModels()) classified.values = StepByStep(values);
      for (auto& [name, found] : classified.values) found.piece.clear();
      for (const auto& [name, data] : values) {
        if (classified.values.contains(name)) continue;
        ClassifyOptions own = options;
        if (const auto also = looked_at_.find(name); also != looked_at_.end()) own.also = also->second;
        const auto demand = demands.find(name);
        const auto shape = oracle_->Describe(name);
        if (demand != demands.end() && shape) own.named = RoundingsNamed(demand->second, shape->operands);
        Classification found = ClassifyValue(*oracle_, name, data, own);
        // Facets that a contract does not name may be anything. Only the output rounding has words outside the
        // candidate models that show in every result: they are tested if otherwise nothing allowed is left.
        if (demand != demands.end() && !demand->second.facets.contains("out") &&
            JudgeFacets(demand->second, found) == ContractVerdict::kViolates && IsMeasured(found.kind)) {
          own.any_store_of = &demand->second;
          found = ClassifyValue(*oracle_, name, data, own);
        }
        classified.values.emplace(name, std::move(found));
      }
      if (one_step) {
        TryForms(values, &classified);
        DoubtViolations(values, &classified);
        if (options.evidence == Evidence::kAll) ShowWritten(values, &classified);
      } else if (case_.companion_of.empty())
        SayWhatFits(values, options, &classified);
    } else {
      for (const auto& [name, tensor] : values) {
        Classification& unknown = classified.values[name];
        unknown.elements = tensor.size();
        unknown.notes = {{RemarkKind::kNoReference, "no reference: " + no_oracle_}};
        if (!IsFloating(tensor.dtype)) unknown.kind = ClassificationKind::kNotFloating;
      }
    }
  } catch (const std::exception& broken) {
    return {.fault = fmt::format("the oracle or the classifier broke: {}", broken.what())};
  }
  done_.emplace_back(values, classified);
  return classified;
}

}  // namespace ulpscope
