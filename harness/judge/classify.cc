// Hard evidence, then likelihood.
#include "harness/judge/classify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/judge/chunks.h"
#include "harness/judge/label.h"
#include "harness/judge/likelihood.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

constexpr size_t kMostExclusions = 64;

/// A fixed sample, the same for every backend and run: runs of neighbours along the last axis, spread by an
/// integer hash. Runs, because neighbours share a row's sums, and a row of a normalisation is evaluated
/// whole.
std::vector<int64_t> ElementsToCheck(const Shape& shape, int64_t most) {
  const int64_t count = ElementCount(shape);
  std::vector<int64_t> elements;
  if (count <= most) {
    for (int64_t i = 0; i < count; ++i) elements.push_back(i);
    return elements;
  }
  constexpr int64_t kRun = 256;
  const int64_t length = std::min<int64_t>(shape.back(), kRun),
                runs = count / shape.back() * (shape.back() / length);
  std::set<int64_t> chosen;
  uint64_t state = 0x9E3779B97F4A7C15u;
  while (static_cast<int64_t>(chosen.size()) < std::min(runs, most / length)) {
    state += 0x9E3779B97F4A7C15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    chosen.insert(static_cast<int64_t>((z ^ (z >> 31)) % static_cast<uint64_t>(runs)));
  }
  for (const int64_t run : chosen) {
    const int64_t per_row = shape.back() / length;
    const int64_t first = run / per_row * shape.back() + run % per_row * length;
    for (int64_t i = 0; i < length; ++i) elements.push_back(first + i);
  }
  return elements;
}

struct Trial {
  std::unique_ptr<Hypothesis> hypothesis;
  bool survived = true;
  size_t passed = 0;  ///< elements checked before it fell
  Exclusion exclusion;
  LikelihoodResult match;
  double probe = 0;  ///< the law on a few elements
  double log_likelihood = 0;
  double fit = 0;
};

class Classifier {
 public:
  Classifier(const CaseOracle& oracle, const std::string& value, const TensorData& observed,
             const ClassifyOptions& options)
      : oracle_(oracle), value_(value), observed_(observed), options_(options) {}

  Classification Run() {
    result_.elements = observed_.size();
    if (!IsFloating(observed_.dtype)) {
      result_.kind = ClassificationKind::kNotFloating;
      result_.label = "not a floating-point value";
      return result_;
    }
    const auto shape = oracle_.Describe(value_);
    if (!shape) return NoReference(shape.error().message);
    if (shape->shape != observed_.shape) {
      return NoReference("the observed shape " + Describe(observed_.dtype, observed_.shape) +
                         " is not the program's " + Describe(observed_.dtype, shape->shape));
    }
    shape_ = *shape;
    MeasureErrors();
    if (elements_.empty()) return NoReference("no element of this value has a finite exact reference");
    TryAll(oracle_.Bank(value_, observed_.dtype));
    const auto survived = [](const Trial& trial) { return trial.survived; };
    if (std::none_of(trials_.begin(), trials_.end(), survived))
      TryAll(oracle_.FlushingBank(value_, observed_.dtype));
    Conclude();
    return result_;
  }

 private:
  Classification NoReference(const std::string& why) {
    result_.kind = ClassificationKind::kNoReference;
    result_.notes.push_back(why);
    result_.label = "no reference";
    return result_;
  }

  /// Errors against the exact values; elements without a finite reference leave the evidence.
  void MeasureErrors() {
    const auto all = ElementsToCheck(observed_.shape, options_.most_elements);
    const auto references = oracle_.References(value_, all);
    const FloatFormat& format = *FormatOf(observed_.dtype);
    int64_t special = 0, undecided = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      const Reference& reference = references[i];
      const double stored = observed_.At(all[i]);
      if (reference.kind == ReferenceKind::kUndecided) {
        ++undecided;
        continue;
      }
      if (reference.kind == ReferenceKind::kDomain) {
        const bool same = (std::isnan(stored) && std::isnan(reference.hi)) || stored == reference.hi;
        if (!same) ++special;
        continue;
      }
      elements_.push_back(all[i]);
      stored_.push_back(stored);
      references_.push_back(reference);
      result_.max_ulp = std::max(
          result_.max_ulp, std::fabs(UlpError(stored, {.hi = reference.hi, .lo = reference.lo}, format)));
      const double error = std::fabs((stored - reference.hi) - reference.lo);
      result_.max_abs = std::max(result_.max_abs, std::isnan(error) ? kInf : error);
    }
    result_.checked = static_cast<int64_t>(elements_.size());
    if (special > 0)
      result_.notes.push_back(
          fmt::format("{} element(s) differ from the NaN or infinity that IEEE 754 gives", special));
    if (undecided > 0)
      result_.notes.push_back(fmt::format("{} element(s) are undecided by the oracle", undecided));
  }

  void Fall(Trial* trial, size_t i, Interval range, std::string why) {
    trial->survived = false;
    trial->passed = i;
    trial->exclusion.model = trial->hypothesis->model();
    trial->exclusion.element = Coordinates(elements_[i], observed_.shape);
    trial->exclusion.observed = stored_[i];
    trial->exclusion.reference = references_[i].hi;
    trial->exclusion.low = range.lo;
    trial->exclusion.high = range.hi;
    trial->exclusion.why = std::move(why);
  }

  void TryAll(std::vector<std::unique_ptr<Hypothesis>> hypotheses) {
    for (auto& hypothesis : hypotheses) {
      trials_.emplace_back();
      trials_.back().hypothesis = std::move(hypothesis);
      Try(&trials_.back());
      trials_.back().hypothesis->Forget();
    }
  }

  void Try(Trial* trial) {
    const Hypothesis& hypothesis = *trial->hypothesis;
    // Representability first: it needs no enclosure.
    for (size_t i = 0; i < elements_.size(); ++i) {
      const double again = hypothesis.Store(stored_[i]);
      if (again == stored_[i] || (std::isnan(again) && std::isnan(stored_[i]))) continue;
      Fall(trial, i, {.lo = again, .hi = again},
           fmt::format("{} is not a value that this model can store (nearest: {})", FormatNumber(stored_[i]),
                       FormatNumber(again)));
      return;
    }
    for (size_t i = 0; i < elements_.size(); ++i) {
      const Interval range = hypothesis.Enclose(elements_[i]);
      if (range.lo != range.hi) all_points_ = false;
      if (stored_[i] >= range.lo && stored_[i] <= range.hi) {
        if (range.lo == range.hi) continue;
        const std::vector<double> possible = hypothesis.Possible(elements_[i]);
        if (possible.empty() || std::binary_search(possible.begin(), possible.end(), stored_[i])) continue;
        Fall(trial, i, {.lo = possible.front(), .hi = possible.back()},
             fmt::format("observed {}; the {} results that this model's summation orders give here lie "
                         "between {} and {} without it (exact value {})",
                         FormatNumber(stored_[i]), possible.size(), FormatNumber(possible.front()),
                         FormatNumber(possible.back()), FormatNumber(references_[i].hi)));
        return;
      }
      if (std::isnan(stored_[i]) && range.lo == -kInf && range.hi == kInf) continue;
      const std::string bounds = range.lo == range.hi ? "exactly " + FormatNumber(range.lo)
                                                      : "between " + FormatNumber(range.lo) + " and " +
                                                            FormatNumber(range.hi) + " in any order";
      Fall(trial, i, range,
           fmt::format("observed {}, this model gives {} (exact value {})", FormatNumber(stored_[i]), bounds,
                       FormatNumber(references_[i].hi)));
      return;
    }
    trial->passed = elements_.size();
    if (const auto witness = ShowOneChunk(hypothesis, shape_.reduction_length, elements_, stored_))
      Fall(trial, witness->index, {.lo = stored_[witness->index], .hi = stored_[witness->index]},
           witness->why);
  }

  void Conclude() {
    std::set<PrecisionModel> tried, proved;
    for (const Trial& trial : trials_) {
      tried.insert(trial.hypothesis->model());
      if (trial.survived) proved.insert(trial.hypothesis->model());
    }
    result_.models_tried = static_cast<int64_t>(tried.size());
    result_.models_proved.assign(proved.begin(), proved.end());
    if (proved.empty()) {
      result_.kind = ClassificationKind::kUnmodelled;
    } else {
      const auto likely = Likely(proved);
      result_.models.assign(likely.begin(), likely.end());
      result_.rests_on_likelihood = likely.size() < proved.size();
      const bool nothing_fell = proved.size() == tried.size() && tried.size() > 1;
      result_.kind = nothing_fell && all_points_ ? ClassificationKind::kExactOnly
                     : likely.size() == 1        ? ClassificationKind::kIdentified
                                                 : ClassificationKind::kIndistinguishable;
    }
    KeepExclusions(proved);
    ProjectFacets(shape_, &result_);
    result_.label = LabelOf(shape_, observed_.dtype, result_);
  }

  std::set<PrecisionModel> Likely(const std::set<PrecisionModel>& proved) {
    if (proved.size() < 2 || options_.evidence == ClassifyOptions::Evidence::kHard) return proved;
    const int64_t budget =
        std::clamp<int64_t>(65536 / std::max<int64_t>(1, shape_.terms), 32, options_.likelihood_elements);
    std::vector<int64_t> elements;
    std::vector<double> stored;
    const size_t count = std::min(elements_.size(), static_cast<size_t>(budget));
    for (size_t i = 0; i < count; ++i) {
      const size_t pick = i * elements_.size() / count;
      elements.push_back(elements_[pick]);
      stored.push_back(stored_[pick]);
    }
    const double best = Weigh(elements, stored);
    std::set<PrecisionModel> likely;
    for (const Trial& trial : trials_) {
      const bool kept = trial.survived && std::isfinite(trial.log_likelihood) &&
                        trial.log_likelihood >= best - std::log(options_.keep_factor) &&
                        trial.fit >= options_.worst_fit;
      if (kept) likely.insert(trial.hypothesis->model());
    }
    for (const Trial& trial : trials_) {
      const PrecisionModel& model = trial.hypothesis->model();
      const auto acc = ParseAcc(model.acc);
      if (trial.survived && acc && acc->block > 0 && !likely.contains(model))
        KeepOrderWitness(*trial.hypothesis, elements, stored);
    }
    if (!likely.empty()) return likely;
    result_.notes.push_back(
        "no accumulation order of the known family explains these bits; the proved set stands");
    return proved;
  }

  /// A unit of another size is set aside by orders, not by a bound: the element that none of them gives says
  /// so.
  void KeepOrderWitness(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                        std::span<const double> stored) {
    std::vector<std::vector<double>> runs;
    for (size_t order = 0; order < hypothesis.orders().size(); ++order)
      runs.push_back(hypothesis.Simulate(static_cast<int>(order), elements));
    for (size_t i = 0; i < elements.size() && result_.excluded.size() < kMostExclusions; ++i) {
      double low = kInf, high = -kInf;
      bool given = false;
      for (const auto& run : runs) {
        const double value = hypothesis.Store(run[i]);
        given = given || value == stored[i];
        low = std::min(low, value);
        high = std::max(high, value);
      }
      if (given) continue;
      result_.excluded.push_back(
          {.model = hypothesis.model(),
           .element = Coordinates(elements[i], observed_.shape),
           .observed = stored[i],
           .reference = stored[i],
           .low = low,
           .high = high,
           .why = fmt::format("observed {}; none of {} summation orders of this unit gives it, they give {} "
                              "to {} (likelihood, not proof)",
                              FormatNumber(stored[i]), runs.size(), FormatNumber(low), FormatNumber(high))});
      return;
    }
  }

  /// Sets the log likelihood of every surviving trial that can matter and returns the best one. Exact matches
  /// first: they are cheap, and where there is one, a rival has to come near it. The others are weighed from
  /// the most promising down.
  double Weigh(std::span<const int64_t> elements, std::span<const double> stored) {
    double best = -kInf;
    std::vector<Trial*> rivals;
    for (Trial& trial : trials_) {
      if (!trial.survived) continue;
      trial.match = ExactMatch(*trial.hypothesis, elements, stored);
      trial.log_likelihood = trial.match.log_likelihood;
      best = std::max(best, trial.log_likelihood);
      if (trial.match.matches == 0 && !trial.hypothesis->order_free()) rivals.push_back(&trial);
    }
    const FitCheck fit = best > -kInf ? FitCheck::kSkip : FitCheck::kMeasure;
    for (Trial* trial : rivals) trial->probe = ProbeLaw(*trial->hypothesis, elements, stored);
    std::stable_sort(rivals.begin(), rivals.end(),
                     [](const Trial* a, const Trial* b) { return a->probe > b->probe; });
    const double keep = std::log(options_.keep_factor);
    for (Trial* trial : rivals) {
      if (trial->probe < best - keep - 4) continue;
      const LikelihoodResult likelihood = Likelihood(*trial->hypothesis, elements, stored, trial->match, fit);
      trial->log_likelihood = likelihood.log_likelihood;
      trial->fit = likelihood.fit;
      best = std::max(best, trial->log_likelihood);
    }
    return best;
  }

  static int Differences(const PrecisionModel& a, const PrecisionModel& b) {
    return (a.in != b.in) + (a.prod != b.prod) + (a.acc != b.acc) + (a.mid != b.mid || a.cuts != b.cuts) +
           (a.out != b.out);
  }

  /// One witness for each fallen neighbour of the surviving set: the models that differ from a survivor in
  /// one facet. With no survivor, for the models that explained the most elements.
  void KeepExclusions(const std::set<PrecisionModel>& proved) {
    std::map<PrecisionModel, const Trial*> fallen;
    for (const Trial& trial : trials_) {
      if (trial.survived || proved.contains(trial.hypothesis->model())) continue;
      const Trial*& kept = fallen[trial.hypothesis->model()];
      if (kept == nullptr || trial.passed > kept->passed) kept = &trial;
    }
    std::vector<const Trial*> rivals;
    for (const auto& [model, trial] : fallen) {
      const bool near = std::any_of(
          result_.models.begin(), result_.models.end(),
          [&, &rival = model](const PrecisionModel& survivor) { return Differences(rival, survivor) <= 1; });
      if (proved.empty() || near) rivals.push_back(trial);
    }
    if (proved.empty())
      std::stable_sort(rivals.begin(), rivals.end(),
                       [](const Trial* a, const Trial* b) { return a->passed > b->passed; });
    if (rivals.size() > kMostExclusions) rivals.resize(kMostExclusions);
    for (const Trial* trial : rivals) result_.excluded.push_back(trial->exclusion);
  }

  const CaseOracle& oracle_;
  const std::string& value_;
  const TensorData& observed_;
  const ClassifyOptions& options_;
  ValueShape shape_;
  Classification result_;
  std::vector<int64_t> elements_;
  std::vector<double> stored_;
  std::vector<Reference> references_;
  std::vector<Trial> trials_;
  bool all_points_ = true;
};

}  // namespace

Classification ClassifyValue(const CaseOracle& oracle, const std::string& value, const TensorData& observed,
                             const ClassifyOptions& options) {
  return Classifier(oracle, value, observed, options).Run();
}

std::map<std::string, Classification> ClassifyValues(const CaseOracle& oracle,
                                                     const std::map<std::string, TensorData>& observed,
                                                     const ClassifyOptions& options) {
  std::map<std::string, Classification> all;
  for (const auto& [value, data] : observed) all.emplace(value, ClassifyValue(oracle, value, data, options));
  return all;
}

}  // namespace ulpscope
