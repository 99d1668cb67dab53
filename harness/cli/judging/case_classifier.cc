// Classifying the values of one case.
#include "harness/cli/judging/case_classifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "harness/base/text.h"
#include "harness/casefile/generate.h"
#include "harness/casefile/open.h"
#include "harness/judge/as_written.h"
#include "harness/judge/asked.h"
#include "harness/judge/contract.h"
#include "harness/judge/forms.h"
#include "harness/judge/local.h"

namespace ulpscope {
namespace {

/// Terms of sums that judging several steps as one may cost: a second or so where they are observed only, minutes where
/// a contract or an expectation asks.
constexpr int64_t kJointWork = int64_t{1} << 28, kDemandedWork = int64_t{1} << 34;
/// What it may cost to say which plain program gives the results of a value that was not judged as one.
constexpr int64_t kNaturalWork = int64_t{1} << 26;

}  // namespace

std::string_view Name(OracleEngine engine) { return engine == OracleEngine::kFast ? "fast" : "boost"; }

OracleCounts CaseClassifier::Counts() const {
  OracleCounts counts = pieces_;
  if (oracle_ != nullptr) counts += oracle_->Counts();
  return counts;
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
  if (IsOpened(case_)) return;
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
  return JudgeSteps(case_, inputs_, values, PieceOracle(), &pieces_);
}

Classified CaseClassifier::ClassifyAsAsked(const Observation& observation,
                                           const std::set<std::string>& names) {
  Classified classified;
  Open();
  if (!no_inputs_.empty()) return classified;
  for (const auto& [name, tensor] : observation.values) {
    if (!names.contains(name) || !IsFloating(tensor.dtype)) continue;
    auto found = JudgeAsAsked(case_, inputs_, name, tensor, PieceOracle(), &pieces_);
    if (found) classified.values.emplace(name, std::move(*found));
  }
  return classified;
}

void CaseClassifier::SayWhatFits(const std::map<std::string, TensorData>& values, ClassifyOptions options,
                                 Classified* classified) {
  std::unique_ptr<CaseOracle> natural;
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
    found.says.push_back(
        fmt::format("{:.0f} % of the results are those of: {}", 100 * fits.reproduced, fits.label));
    found.reproduced = fits.reproduced;
    found.label = Join(found.says, "; ");
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
  found.says = {fmt::format("{:.0f} % of the results are those of: {}", 100 * form->second.reproduced,
                            form->second.label)};
  found.label = "unmodelled: " + found.says.front();
}

bool CaseClassifier::IsStepOfManyModels() const {
  // A dtype that is expected is read off the result; a facet is decided by all models.
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
  Classified classified;
  try {
    Open();
    if (!no_inputs_.empty()) return {.fault = no_inputs_};
    if (IsOpened(case_)) {
      classified.values = StepByStep(values);
    } else if (oracle_ != nullptr) {
      using Evidence = ClassifyOptions::Evidence;
      // What companions are likely to say is not asked: they are there to prove.
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
        const auto demand = demands.find(name);
        const auto shape = oracle_->Describe(name);
        if (demand != demands.end() && shape) own.named = RoundingsNamed(demand->second, shape->operands);
        classified.values.emplace(name, ClassifyValue(*oracle_, name, data, own));
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
        unknown.notes = {"no reference: " + no_oracle_};
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
