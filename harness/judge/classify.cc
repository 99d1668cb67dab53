// Hard evidence, then likelihood.
#include "harness/judge/classify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/base/text.h"
#include "harness/judge/chunks.h"
#include "harness/judge/flushing.h"
#include "harness/judge/label.h"
#include "harness/judge/likelihood.h"
#include "harness/judge/sample.h"
#include "harness/judge/where.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

constexpr size_t kMostExclusions = 64;

constexpr size_t kSearchElements = 16;
/// Elements that every model is held against, less where sums are long, and those of a search for the least bits.
constexpr int64_t kFirstElements = 512, kFirstTerms = int64_t{1} << 17, kRestTerms = int64_t{1} << 24;
constexpr size_t kFloorElements = 64;
/// Products of the elements that orders which gave the whole sample are held against.
constexpr int64_t kMatchTerms = int64_t{1} << 18;

struct Trial {
  std::unique_ptr<Hypothesis> hypothesis;
  bool survived = true;
  size_t passed = 0;  ///< elements checked before it fell
  Exclusion exclusion;
  LikelihoodResult match;
  double probe = 0;  ///< the law on a few elements
  double log_likelihood = 0;
  double fit = 0;
  Residuals residuals;
};

std::string Times(double ratio) {
  return ratio < 10    ? fmt::format("{:.1f}", ratio)
         : ratio < 1e5 ? fmt::format("{:.0f}", ratio)
                       : fmt::format("{:.0e}", ratio);
}

class Classifier {
 public:
  /// `only`: elements to judge instead of all; null for all.
  Classifier(const CaseOracle& oracle, const std::string& value, const TensorData& observed,
             const ClassifyOptions& options, const std::vector<int64_t>* only = nullptr)
      : oracle_(oracle), value_(value), observed_(observed), options_(options), only_(only) {}

  Classification Run() {
    result_.elements = observed_.size();
    const auto shape = oracle_.Describe(value_);
    if (shape && shape->shape != observed_.shape) return WrongShape(shape->shape);
    if (!IsFloating(observed_.dtype)) {
      result_.kind = ClassificationKind::kNotFloating;
      result_.label = "not a floating-point value";
      return result_;
    }
    if (!shape) return NoReference(shape.error().message);
    shape_ = *shape;
    MeasureErrors();
    if (elements_.empty()) return NoReference("no element of this value has a finite exact reference");
    // To list a model costs about as much as some thousand terms.
    constexpr int64_t kTermsOfOne = 2048;
    spent_ = shape_.most_models * kTermsOfOne;
    if (TooMuch()) return NotJudged();
    spent_ = 0;
    TryAll(oracle_.Bank(value_, observed_.dtype));
    spent_ += WorkOfLikelihood();
    const auto survived = [](const Trial& trial) { return trial.survived; };
    if (options_.search && !GaveUp() &&
        (std::none_of(trials_.begin(), trials_.end(), survived) || AnyVanished()))
      TryFlushing();
    if (GaveUp()) return NotJudged();
    Conclude();
    return GaveUp() ? NotJudged() : result_;
  }

 private:
  Classification NoReference(const std::string& why) {
    result_.kind = ClassificationKind::kNoReference;
    result_.notes.push_back(why);
    result_.label = "no reference";
    return result_;
  }

  Classification WrongShape(const std::vector<int64_t>& due) {
    result_.kind = ClassificationKind::kWrongShape;
    result_.label = fmt::format("of shape {}, where the program has {}",
                                Describe(observed_.dtype, observed_.shape), Describe(observed_.dtype, due));
    result_.says = {result_.label};
    return result_;
  }

  /// What keeps its subnormals and is not excluded is not suspected of dropping them.
  void TryFlushing() {
    const std::set<PrecisionModel> keep = Survivors();
    TryAll(oracle_.FlushingBank(value_, observed_.dtype));
    std::erase_if(trials_, [&](const Trial& trial) {
      const PrecisionModel& model = trial.hypothesis->model();
      const PrecisionModel plain = WithoutFlushing(model);
      return trial.survived && plain != model && keep.contains(plain);
    });
  }

  /// A zero where the exact value is a number of the format, as flushing leaves it. Narrow formats of a small range leave it too:
  /// both are asked.
  bool AnyVanished() const {
    const FloatFormat& format = *FormatOf(observed_.dtype);
    for (size_t i = 0; i < stored_.size(); ++i) {
      if (stored_[i] == 0 && RoundTo(references_[i].hi, format) != 0) return true;
    }
    return false;
  }

  /// What enclosing `elements` elements costs one model.
  int64_t WorkOf(size_t elements) const {
    return std::min(static_cast<int64_t>(elements) * shape_.work_of_one, shape_.work_of_all);
  }

  int64_t WorkOfOrders(const Hypothesis& hypothesis, size_t elements) const {
    return static_cast<int64_t>(hypothesis.orders().size()) * WorkOf(elements);
  }

  /// At least this: a few elements in some orders for each model that is left.
  int64_t WorkOfLikelihood() const {
    constexpr int64_t kOrders = 16, kElements = 4;
    const auto left =
        std::count_if(trials_.begin(), trials_.end(), [](const Trial& trial) { return trial.survived; });
    return HardOnly() ? 0 : left * kOrders * WorkOf(kElements);
  }

  /// One op has few models, however long its sums are.
  bool TooMuch() const {
    return options_.most_work > 0 && shape_.cut_points.size() > 1 && spent_ > options_.most_work;
  }

  bool GaveUp() const { return stopped_ || TooMuch(); }

  /// From a part of the models, at a sixteenth of what they would all cost: twice too much.
  bool WillBeTooMuch(size_t models) {
    constexpr size_t kPart = 16, kBetween = 64;
    if (trials_.size() % kBetween != 0) return false;
    if (trials_.size() * kPart < models || options_.most_work <= 0 || shape_.cut_points.size() < 2)
      return false;
    const double all = static_cast<double>(spent_ + WorkOfLikelihood()) * static_cast<double>(models) /
                       static_cast<double>(trials_.size());
    stopped_ = stopped_ || all > 2 * static_cast<double>(options_.most_work);
    return stopped_;
  }

  Classification NotJudged() {
    result_.kind = ClassificationKind::kNotJudged;
    result_.says = {
        fmt::format("not judged as one: too many models of {} roundings on the way and of their sums",
                    shape_.cut_points.size())};
    result_.label = LabelOf(shape_, observed_.dtype, result_);
    return result_;
  }

  /// Errors against the exact values; elements without a finite reference leave the evidence.
  void MeasureErrors() {
    const auto all = only_ != nullptr ? *only_ : ElementsToCheck(observed_.shape, options_.most_elements);
    const auto references = oracle_.References(value_, all);
    const FloatFormat& format = *FormatOf(observed_.dtype);
    int64_t undecided = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      const Reference& reference = references[i];
      const double stored = observed_.At(all[i]);
      if (reference.kind == ReferenceKind::kUndecided) {
        ++undecided;
        continue;
      }
      if (reference.kind == ReferenceKind::kDomain) continue;
      elements_.push_back(all[i]);
      stored_.push_back(stored);
      references_.push_back(reference);
      result_.max_ulp = std::max(
          result_.max_ulp, std::fabs(UlpError(stored, {.hi = reference.hi, .lo = reference.lo}, format)));
      const double error = std::fabs((stored - reference.hi) - reference.lo);
      result_.max_abs = std::max(result_.max_abs, std::isnan(error) ? kInf : error);
    }
    result_.checked = static_cast<int64_t>(elements_.size());
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
      Try(&trials_.back(), 0, FirstElements());
      trials_.back().hypothesis->Forget();
      spent_ += WorkOf(std::min(trials_.back().passed + 1, FirstElements()));
      if (TooMuch() || WillBeTooMuch(hypotheses.size())) return;
    }
  }

  size_t FirstElements() const {
    if (HardOnly()) return elements_.size();
    const int64_t affordable = kFirstTerms / std::max<int64_t>(1, shape_.terms);
    return std::min(elements_.size(),
                    static_cast<size_t>(std::clamp<int64_t>(affordable, 16, kFirstElements)));
  }

  /// Few elements before many: those that explain the first ones are held against all. The others too, where that costs
  /// little: what is not excluded leaves a contract open.
  void TryRest(std::set<PrecisionModel>* likely) {
    const int64_t rest =
        static_cast<int64_t>(elements_.size() - FirstElements()) * std::max<int64_t>(1, shape_.terms);
    int64_t affordable = rest == 0 ? 0 : kRestTerms / rest;
    for (Trial& trial : trials_) {
      if (!trial.survived || trial.passed == elements_.size()) continue;
      if (!likely->contains(trial.hypothesis->model()) && affordable-- <= 0) continue;
      Try(&trial, trial.passed, elements_.size());
      trial.hypothesis->Forget();
    }
    std::set<PrecisionModel> left;
    for (const Trial& trial : trials_) {
      if (trial.survived && likely->contains(trial.hypothesis->model()))
        left.insert(trial.hypothesis->model());
    }
    *likely = left;
  }

  bool HardOnly() const { return options_.evidence == ClassifyOptions::Evidence::kHard; }

  /// The first element that the model cannot store. Models that store alike share the answer.
  size_t Unstorable(const Hypothesis& hypothesis) {
    const PrecisionModel& model = hypothesis.model();
    std::string key = model.acc + "|" + model.mid + "|" + model.out;
    for (const auto& [cut, format] : model.cuts) key += "|" + cut + ":" + format;
    const auto [known, is_new] = unstorable_.emplace(std::move(key), elements_.size());
    for (size_t i = 0; is_new && i < elements_.size(); ++i) {
      const double again = hypothesis.Store(stored_[i]);
      if (again == stored_[i] || (std::isnan(again) && std::isnan(stored_[i]))) continue;
      known->second = i;
      break;
    }
    return known->second;
  }

  /// Looks at elements [first, last).
  void Try(Trial* trial, size_t first, size_t last) {
    const Hypothesis& hypothesis = *trial->hypothesis;
    // Representability first: it needs no enclosure.
    if (const size_t i = first == 0 ? Unstorable(hypothesis) : elements_.size(); i < elements_.size()) {
      const double again = hypothesis.Store(stored_[i]);
      Fall(trial, i, {.lo = again, .hi = again},
           fmt::format("{} is not a value that this model can store (nearest: {})", FormatNumber(stored_[i]),
                       FormatNumber(again)));
      return;
    }
    for (size_t i = first; i < last; ++i) {
      if (!all_points_ && hypothesis.SurelyHolds(elements_[i], stored_[i])) continue;
      const Interval range = hypothesis.Enclose(elements_[i]);
      if (range.lo != range.hi) all_points_ = false;
      if (range.Holds(stored_[i])) {
        if (range.lo == range.hi || !std::isfinite(stored_[i]) || range.special) continue;
        const std::vector<double> possible = hypothesis.Possible(elements_[i]);
        if (possible.empty() || std::binary_search(possible.begin(), possible.end(), stored_[i])) continue;
        Fall(trial, i, {.lo = possible.front(), .hi = possible.back()},
             fmt::format("observed {}; the {} results that this model's summation orders give here lie "
                         "between {} and {} without it (exact value {})",
                         FormatNumber(stored_[i]), possible.size(), FormatNumber(possible.front()),
                         FormatNumber(possible.back()), FormatNumber(references_[i].hi)));
        return;
      }
      const std::string bounds = std::isnan(range.lo)   ? "a NaN or an infinity"
                                 : range.lo == range.hi ? "exactly " + FormatNumber(range.lo)
                                                        : "between " + FormatNumber(range.lo) + " and " +
                                                              FormatNumber(range.hi) + " in any order";
      Fall(trial, i, range,
           fmt::format("observed {}, this model gives {} (exact value {})", FormatNumber(stored_[i]), bounds,
                       FormatNumber(references_[i].hi)));
      return;
    }
    trial->passed = last;
    if (last < elements_.size()) return;
    if (const auto witness = ShowOneChunk(hypothesis, shape_.reduction_length, elements_, stored_))
      Fall(trial, witness->index, {.lo = stored_[witness->index], .hi = stored_[witness->index]},
           witness->why);
  }

  void Conclude() {
    std::set<PrecisionModel> likely = HardOnly() ? Survivors() : Likely();
    if (GaveUp()) return;
    if (!HardOnly()) KeepOrderWitnesses(likely);
    TryRest(&likely);
    if (!HardOnly() && options_.search) DoubtLikelihood(&likely);
    if (!HardOnly() && options_.search) LookInside(&likely);
    const Trial* natural = HardOnly() ? nullptr : Natural(likely);
    if (natural != nullptr) {
      const bool rounded = DoubtReading(&likely);
      if (!rounded) LookEverywhere(natural, &likely);
      if (!rounded && likely.empty() && options_.search) likely = Search(*natural);
    }
    const std::set<PrecisionModel> proved = Survivors();
    std::set<PrecisionModel> tried;
    for (const Trial& trial : trials_) tried.insert(trial.hypothesis->model());
    result_.models_tried = static_cast<int64_t>(tried.size());
    result_.models_proved.assign(proved.begin(), proved.end());
    result_.models.assign(likely.begin(), likely.end());
    result_.fits = !likely.empty() && odd_ == 0 && result_.says.empty();
    if (!result_.fits) result_.models.clear();
    if (!result_.models.empty() && only_ == nullptr && !HardOnly() && options_.search) MeasureFloors();
    if (result_.models.empty()) {
      result_.kind = ClassificationKind::kUnmodelled;
    } else {
      result_.rests_on_likelihood = likely.size() < proved.size();
      const bool nothing_fell = proved.size() == tried.size() && tried.size() > 1;
      result_.kind = nothing_fell && all_points_ ? ClassificationKind::kExactOnly
                     : likely.size() == 1        ? ClassificationKind::kIdentified
                                                 : ClassificationKind::kIndistinguishable;
    }
    if (!HardOnly()) result_.reproduced = Reproduced();
    DoubtForms();
    KeepExclusions(proved);
    ProjectFacets(shape_, &result_);
    result_.label = LabelOf(shape_, observed_.dtype, result_);
  }

  /// The largest share of the sample that an order of one of the likeliest models gives: of those results that the model
  /// narrows down to a few, where they are enough. Of the others another function or order gives other bits as rightly.
  double Reproduced() const {
    std::vector<const Trial*> likeliest;
    for (const Trial& trial : trials_) {
      const auto& models = result_.models;
      if (trial.survived &&
          std::find(models.begin(), models.end(), trial.hypothesis->model()) != models.end())
        likeliest.push_back(&trial);
    }
    std::stable_sort(likeliest.begin(), likeliest.end(),
                     [](const Trial* a, const Trial* b) { return a->log_likelihood > b->log_likelihood; });
    constexpr size_t kMostTrials = 6;
    if (likeliest.size() > kMostTrials) likeliest.resize(kMostTrials);
    double most = 0;
    for (const Trial* trial : likeliest) {
      if (trial->match.matches > 0) return 1;
      most = std::max(most, ReproducedBy(*trial->hypothesis));
    }
    return most;
  }

  /// Nothing in its operands, products and sums is narrower than the result that the program asks for.
  bool IsAsAsked(const PrecisionModel& model) const {
    const int precision = FormatOf(observed_.dtype)->precision;
    const auto acc = ParseAcc(model.acc);
    const auto mid = ParseMid(model.mid);
    return model.in.empty() && model.prod == "exact" && acc && mid &&
           (acc->exact() || (acc->wide() && acc->block == 0 && acc->rounding == Rounding::kNearestEven &&
                             acc->bits() >= precision)) &&
           (mid->none() || mid->bits() >= std::max(precision, Binary32().precision));
  }

  /// Of steps inside an op another algebraic form errs otherwise. Where what is likely gives few of the bits, likelihood
  /// accuses nobody while what the program asks for is not excluded, and no sum ever.
  void DoubtForms() {
    const auto asked = [&](const PrecisionModel& model) { return IsAsAsked(model); };
    if (HardOnly() || !shape_.has_steps || result_.models.empty() || result_.reproduced >= kNearlyAll ||
        std::any_of(result_.models.begin(), result_.models.end(), asked))
      return;
    const bool open = std::any_of(result_.models_proved.begin(), result_.models_proved.end(), asked);
    const bool sums =
        std::all_of(result_.models.begin(), result_.models.end(), [](const PrecisionModel& model) {
          const auto acc = ParseAcc(model.acc);
          return acc && acc->bits() < Binary32().precision;
        });
    if (!open && !sums) return;
    result_.says.push_back(
        fmt::format("no form tried of the steps inside gives these bits, and what the program asks for is {}",
                    open ? "not excluded" : "excluded"));
    result_.models.clear();
    result_.fits = result_.rests_on_likelihood = false;
    result_.kind = ClassificationKind::kUnmodelled;
  }

  double ReproducedBy(const Hypothesis& hypothesis) const {
    constexpr double kFew = 2;  // units in the last place
    std::vector<int64_t> elements;
    std::vector<double> stored;
    for (size_t i = 0; i < sample_.size(); ++i) {
      const Interval range = hypothesis.Enclose(sample_[i]);
      if (!(range.hi - range.lo <= kFew * Ulp(sample_stored_[i], *FormatOf(observed_.dtype)))) continue;
      elements.push_back(sample_[i]);
      stored.push_back(sample_stored_[i]);
    }
    if (elements.size() * 4 < sample_.size()) {
      elements = sample_;
      stored = sample_stored_;
    }
    const auto known = static_cast<int>(hypothesis.orders().size());
    // Without a sum the first order stands for all: it rounds the steps inside an op.
    const int orders = hypothesis.order_free() ? std::min(known, 1) : known;
    size_t most = 0;
    for (int order = hypothesis.order_free() || known == 0 ? -1 : 0; order < orders; ++order) {
      const auto run = hypothesis.Simulate(order, elements);
      size_t given = 0;
      for (size_t i = 0; i < run.size(); ++i) given += hypothesis.Store(run[i]) == stored[i] ? 1 : 0;
      most = std::max(most, given);
    }
    return elements.empty() ? 0 : static_cast<double>(most) / static_cast<double>(elements.size());
  }

  std::set<PrecisionModel> Survivors() const {
    std::set<PrecisionModel> left;
    for (const Trial& trial : trials_) {
      if (trial.survived) left.insert(trial.hypothesis->model());
    }
    return left;
  }

  /// The elements that orders are simulated on.
  void ChooseSample() {
    const int64_t budget =
        std::clamp<int64_t>(65536 / std::max<int64_t>(1, shape_.terms), 16, options_.likelihood_elements);
    const size_t count = std::min(elements_.size(), static_cast<size_t>(budget));
    for (size_t i = 0; i < count; ++i) {
      const size_t pick = count == 1 ? 0 : i * (elements_.size() - 1) / (count - 1);
      sample_.push_back(elements_[pick]);
      sample_stored_.push_back(stored_[pick]);
    }
  }

  /// The survivors that explain the bits: an order of theirs gives them all, or their errors are those of an order that
  /// is not simulated.
  std::set<PrecisionModel> Likely() {
    std::set<PrecisionModel> likely;
    if (sample_.empty()) ChooseSample();
    const bool none =
        std::none_of(trials_.begin(), trials_.end(), [](const Trial& trial) { return trial.survived; });
    if (none) return likely;
    const bool order_free = std::all_of(trials_.begin(), trials_.end(),
                                        [](const Trial& trial) { return trial.hypothesis->order_free(); });
    double best = Weigh(sample_, sample_stored_);
    if (order_free && best == -kInf) {
      // Nobody's functions are ours. Without a sum the enclosures are a few units wide: to lie inside is to fit.
      for (Trial& trial : trials_) {
        if (!trial.survived) continue;
        trial.log_likelihood = best = 0;
        trial.residuals.fits = true;
      }
    }
    const auto fits = [&](const Trial& trial) {
      return trial.survived && std::isfinite(trial.log_likelihood) && Fits(trial);
    };
    // Which way the last bits of steps inside an op lean is the form's doing as much as the rounding's.
    const auto leans = [](const Trial& trial) {
      const auto acc = ParseAcc(trial.hypothesis->model().acc);
      return trial.match.matches == 0 && acc && acc->wide() && acc->rounding != Rounding::kNearestEven;
    };
    const bool forms =
        shape_.has_steps && std::any_of(trials_.begin(), trials_.end(),
                                        [&](const Trial& trial) { return fits(trial) && !leans(trial); });
    if (forms) {
      best = -kInf;
      for (const Trial& trial : trials_) {
        if (fits(trial) && !leans(trial)) best = std::max(best, trial.log_likelihood);
      }
    }
    for (const Trial& trial : trials_) {
      if (forms && leans(trial)) continue;
      if (fits(trial) && trial.log_likelihood >= best - std::log(options_.keep_factor))
        likely.insert(trial.hypothesis->model());
    }
    // Of steps inside an op another form gives other bits as rightly.
    if (!shape_.has_steps) MatchMore(&likely);
    return likely;
  }

  /// What is made of one sum errs with it: as much evidence as there are sums.
  bool Fits(const Trial& trial) const {
    const Residuals& residuals = trial.residuals;
    if (!shape_.has_steps || shape_.reduction_length < 2)
      return residuals.fits && trial.fit >= options_.worst_fit;
    const int64_t lines = (result_.elements + shape_.reduction_length - 1) / shape_.reduction_length;
    const auto together = static_cast<double>(std::min(shape_.reduction_length, result_.elements));
    return trial.fit / std::sqrt(together) >= options_.worst_fit &&
           (residuals.fits || FitsOrders(residuals.ratio, residuals.largest, residuals.lean,
                                         std::min(residuals.count, static_cast<size_t>(lines))));
  }

  /// Where one model gives every bit of more elements than the sample has, in one order, a rival each of whose orders misses
  /// many of them is set aside: a sum in float16 gives most of the bits that a float32 one leaves in bfloat16.
  void MatchMore(std::set<PrecisionModel>* likely) {
    std::vector<const Trial*> rivals;
    bool matched = false;
    for (const Trial& trial : trials_) {
      if (!trial.survived || !likely->contains(trial.hypothesis->model()) || trial.hypothesis->order_free())
        continue;
      rivals.push_back(&trial);
      matched = matched || trial.match.matches > 0;
    }
    if (!matched || likely->size() < 2) return;
    const auto affordable = static_cast<size_t>(kMatchTerms / std::max<int64_t>(1, shape_.terms));
    std::vector<int64_t> elements = sample_;
    std::vector<double> stored = sample_stored_;
    const std::set<int64_t> sampled(sample_.begin(), sample_.end());
    for (size_t i = 0; i < elements_.size() && elements.size() < affordable; ++i) {
      if (sampled.contains(elements_[i])) continue;
      elements.push_back(elements_[i]);
      stored.push_back(stored_[i]);
    }
    if (elements.size() <= sample_.size()) return;
    // As many misses as make none of them in another order as unlikely as what likelihood sets aside.
    const auto most = static_cast<size_t>(std::ceil(std::log(options_.keep_factor)));
    std::set<PrecisionModel> whole, near;
    for (const Trial* trial : rivals) {
      const size_t misses = FewestMisses(*trial->hypothesis, elements, stored, most);
      if (misses == 0) whole.insert(trial->hypothesis->model());
      if (misses < most) near.insert(trial->hypothesis->model());
    }
    if (whole.empty()) return;
    for (const Trial* trial : rivals) {
      if (!near.contains(trial->hypothesis->model())) likely->erase(trial->hypothesis->model());
    }
  }

  /// A unit of another size is set aside by orders, not by a bound: the element that none of them gives says so.
  void KeepOrderWitnesses(const std::set<PrecisionModel>& likely) {
    for (const Trial& trial : trials_) {
      const PrecisionModel& model = trial.hypothesis->model();
      const auto acc = ParseAcc(model.acc);
      if (trial.survived && acc && acc->block > 0 && !likely.contains(model))
        KeepOrderWitness(*trial.hypothesis, sample_, sample_stored_);
    }
  }

  /// A likelihood ranks models, it accuses none. Where no simulated order gives the bits, and all that explains them is a
  /// truncating or a narrow sum in an order of its own, other causes are as plausible: narrower operands, a store that is
  /// not to nearest. What the search finds for them takes its place.
  void DoubtLikelihood(std::set<PrecisionModel>* likely) {
    if (likely->empty() || only_ != nullptr) return;
    for (const Trial& trial : trials_) {
      const PrecisionModel& model = trial.hypothesis->model();
      if (!trial.survived || !likely->contains(model)) continue;
      const auto acc = ParseAcc(model.acc);
      const bool usual = acc && acc->wide() && acc->block == 0 && acc->rounding == Rounding::kNearestEven;
      if (trial.match.matches > 0 || usual) return;
    }
    const Trial* natural = Natural({});
    if (natural == nullptr || natural->hypothesis->order_free()) return;
    if (!natural->survived && IsFaithful(*natural->hypothesis)) {
      result_.says.push_back(
          "every result is one of the two neighbours of the exact value, but not always the nearest");
      likely->clear();
      return;
    }
    std::vector<Proposal> proposals;
    Explain(*natural->hypothesis, &proposals);
    if (!result_.says.empty()) {
      likely->clear();
      return;
    }
    const auto proposed = Proposed(proposals);
    if (!proposed.empty()) {
      *likely = proposed;
      return;
    }
    int bits = 0;
    for (const PrecisionModel& model : *likely) bits = std::max(bits, ParseAcc(model.acc)->bits());
    if (bits >= Binary32().precision) {
      const bool cut = std::all_of(likely->begin(), likely->end(), [](const PrecisionModel& model) {
        const auto acc = ParseAcc(model.acc);
        return acc->binary() && acc->rounding == Rounding::kTowardZero;
      });
      if (!cut) return;
      result_.says.push_back(
          "errors that lean as those of truncating float32 sums do, and no order tried of such sums gives "
          "these bits");
      likely->clear();
      return;
    }
    result_.says.push_back(
        fmt::format("errors as large as those of sums in {} bits or fewer, and no order tried of such sums "
                    "gives these bits",
                    bits));
    likely->clear();
  }

  /// What is likely of an op with steps inside it gives the bits in no order. Where sums in float32 and some of the steps
  /// rounded give all of them, that is the explanation.
  void LookInside(std::set<PrecisionModel>* likely) {
    constexpr int64_t kMostWork = int64_t{1} << 18;
    if (!shape_.has_steps || only_ != nullptr || sample_.empty()) return;
    for (const Trial& trial : trials_) {
      const PrecisionModel& model = trial.hypothesis->model();
      if (trial.survived && likely->contains(model) && (trial.match.matches > 0 || IsAsAsked(model))) return;
    }
    const auto own = [this](const std::string& cut) { return cut.starts_with(value_ + "."); };
    if (!std::all_of(shape_.cut_points.begin(), shape_.cut_points.end(), own)) return;
    std::set<PrecisionModel> found;
    for (auto& hypothesis : oracle_.StepBank(value_, observed_.dtype, kMostWork)) {
      Trial trial;
      trial.match = ExactMatch(*hypothesis, sample_, sample_stored_);
      if (trial.match.matches == 0) continue;
      trial.hypothesis = std::move(hypothesis);
      Try(&trial, 0, elements_.size());
      trial.hypothesis->Forget();
      if (!trial.survived) continue;
      trial.log_likelihood = trial.match.log_likelihood;
      trial.residuals = trial.match.residuals;
      found.insert(trial.hypothesis->model());
      trials_.push_back(std::move(trial));
    }
    if (found.empty()) return;
    for (const PrecisionModel& model : found) {
      for (const auto& [step, format] : model.cuts) {
        auto& known = shape_.cut_points;
        if (std::find(known.begin(), known.end(), step) == known.end()) known.push_back(step);
      }
    }
    *likely = std::move(found);
    result_.says.clear();
  }

  /// Rounded to a neighbour of the exact sum, all of them, and some not to the nearest.
  bool IsFaithful(const Hypothesis& model) const {
    const FloatFormat& format = *FormatOf(observed_.dtype);
    constexpr size_t kLeast = 32;
    if (sample_.size() < kLeast || format.precision > 11) return false;
    bool nearest = true;
    const auto exact = model.Simulate(-1, sample_);
    for (size_t i = 0; i < sample_.size(); ++i) {
      const double error = std::fabs(sample_stored_[i] - exact[i]);
      if (!(error < Ulp(exact[i], format))) return false;
      nearest = nearest && model.Store(exact[i]) == sample_stored_[i];
    }
    return !nearest;
  }

  /// Those of the proposals that explain the bits. An accumulator of so many bits has to give them in some order: of
  /// errors alone there are many causes.
  std::set<PrecisionModel> Proposed(std::span<const Proposal> proposals) {
    std::set<PrecisionModel> likely;
    if (proposals.empty()) return likely;
    const size_t before = trials_.size();
    TryAll(oracle_.Propose(value_, observed_.dtype, proposals));
    const std::set<PrecisionModel> all = Likely();
    for (size_t i = before; i < trials_.size(); ++i) {
      const PrecisionModel& model = trials_[i].hypothesis->model();
      const auto acc = ParseAcc(model.acc);
      const bool narrow = acc && acc->bits() < Binary32().precision;
      if (all.contains(model) && (!narrow || trials_[i].match.matches > 0)) likely.insert(model);
    }
    return likely;
  }

  /// What errors are measured against: the best explanation; without one, the program as it stands, in float32.
  const Trial* Natural(const std::set<PrecisionModel>& likely) const {
    const Trial* best = nullptr;
    for (const Trial& trial : trials_) {
      if (!likely.contains(trial.hypothesis->model()) || !trial.survived) continue;
      if (best == nullptr || trial.log_likelihood > best->log_likelihood) best = &trial;
    }
    if (best != nullptr) return best;
    size_t fewest = 0;
    int candidates = 0;
    for (const Trial& trial : trials_) {
      const PrecisionModel& model = trial.hypothesis->model();
      const bool plain = model.in.empty() && model.prod == "exact" && model.out.ends_with("_rne") &&
                         (model.acc == "float32" || model.acc == "float64" || model.acc == "exact");
      if (!plain || ++candidates > 16) continue;
      size_t outside = 0;
      for (size_t i = 0; i < sample_.size(); ++i)
        outside += trial.hypothesis->Enclose(sample_[i]).Holds(sample_stored_[i]) ? 0 : 1;
      const bool float32 = model.acc == "float32" || best == nullptr;
      if (best != nullptr && (outside > fewest || (outside == fewest && !float32))) continue;
      best = &trial;
      fewest = outside;
    }
    return best;
  }

  /// An element that `model` does not explain, with `reach` of its worst-case bound.
  bool IsOdd(const Hypothesis& model, double reach, int64_t element, double stored,
             const Interval& sum) const {
    if (!std::isfinite(stored) || !std::isfinite(sum.lo) || !std::isfinite(sum.hi) || sum.special)
      return IsOddSpecial(model, element, stored, sum);
    if (FormatOf(observed_.dtype)->precision > 51) return !model.Enclose(element).Holds(stored);
    const double centre = sum.lo + (sum.hi - sum.lo) / 2, radius = (sum.hi - sum.lo) / 2 * reach;
    return stored < model.Store(centre - radius) || stored > model.Store(centre + radius);
  }

  std::vector<int64_t> OddOf(const Hypothesis& model, double reach,
                             const std::vector<int64_t>& elements) const {
    std::vector<int64_t> odd;
    for (const int64_t element : elements) {
      if (IsOdd(model, reach, element, observed_.At(element), model.EncloseUnstored(element)))
        odd.push_back(element);
    }
    return odd;
  }

  /// Every element, as far as that is affordable: gross errors, special values, and how many bits the results use. A
  /// sample has no tails, and no single element. Models that it refutes leave `likely`.
  void LookEverywhere(const Trial* natural, std::set<PrecisionModel>* likely) {
    if (only_ != nullptr) return;
    const int64_t most = options_.most_terms / std::max<int64_t>(1, shape_.terms);
    const auto looked = ElementsToCheck(observed_.shape, most);
    looked_ = static_cast<int64_t>(looked.size());
    std::vector<int64_t> odd =
        OddOf(*natural->hypothesis, likely->empty() ? 1 : Reach(*natural->hypothesis), looked);
    CountBits(*natural->hypothesis, looked, likely);
    if (!odd.empty()) {
      // Another model may explain what the first one does not.
      std::vector<const Trial*> rivals;
      for (const Trial& trial : trials_) {
        if (trial.survived && likely->contains(trial.hypothesis->model())) rivals.push_back(&trial);
      }
      std::stable_sort(rivals.begin(), rivals.end(),
                       [](const Trial* a, const Trial* b) { return a->log_likelihood > b->log_likelihood; });
      std::set<PrecisionModel> explain;
      int wholes = 0;
      for (const Trial* rival : rivals) {
        const double reach = Reach(*rival->hypothesis);
        if (!OddOf(*rival->hypothesis, reach, odd).empty()) continue;
        // The first that explains these is asked for all of them.
        if (explain.empty() && wholes < 3) {
          ++wholes;
          const auto others = OddOf(*rival->hypothesis, reach, looked);
          rival->hypothesis->Forget();
          if (!others.empty()) {
            odd.insert(odd.end(), others.begin(), others.end());
            continue;
          }
        } else if (explain.empty()) {
          break;
        }
        explain.insert(rival->hypothesis->model());
      }
      if (!explain.empty()) {
        *likely = explain;
        odd.clear();
      }
    }
    natural->hypothesis->Forget();
    std::sort(odd.begin(), odd.end());
    odd.erase(std::unique(odd.begin(), odd.end()), odd.end());
    odd_ = static_cast<int64_t>(odd.size());
    if (odd.empty()) return;
    if (!likely->empty() || odd.size() < looked.size()) SayWhere(looked, odd);
    likely->clear();
    const auto zeros = static_cast<size_t>(std::count_if(
        odd.begin(), odd.end(), [&](const int64_t element) { return observed_.At(element) == 0; }));
    if (zeros == odd.size() && odd.size() > 1)
      result_.says.push_back(fmt::format("{} results are zero", zeros));
  }

  /// Each result that wants more bits than any has would have had them with even odds, bit by bit.
  void CountBits(const Hypothesis& natural, const std::vector<int64_t>& looked,
                 std::set<PrecisionModel>* likely) {
    constexpr int64_t kNoAccident = 128;
    const FloatFormat& format = *FormatOf(observed_.dtype);
    int bits = 0;
    for (const int64_t element : looked) {
      const double stored = observed_.At(element);
      if (stored != 0 && std::isfinite(stored)) bits = std::max(bits, SignificantBits(stored));
      if (bits >= format.precision - 1) return;
    }
    if (bits < 2) return;
    const Missing missing = MissingByBounds(natural, looked, bits);
    if (missing.bits >= kNoAccident) {
      std::erase_if(*likely, [&](const PrecisionModel& model) { return !StoresIn(model, bits); });
      if (!likely->empty()) return;
    } else if (shape_.has_steps) {
      return;
    } else if (likely->empty()) {
      if (MissingByOrders(natural, static_cast<int64_t>(looked.size()), bits) < kNoAccident) return;
    } else {
      // Bounds count as if the largest terms were added last. Orders tell what is left of the last bits of smaller ones.
      for (const Trial& trial : trials_) {
        const PrecisionModel& model = trial.hypothesis->model();
        if (!likely->contains(model) || StoresIn(model, bits)) continue;
        if (MissingByOrders(*trial.hypothesis, static_cast<int64_t>(looked.size()), bits) >= kNoAccident)
          likely->erase(model);
      }
      if (!likely->empty()) return;
    }
    const std::string more = missing.results == 0 ? "fewer than any order tried leaves"
                                                  : fmt::format("of which {} want more", missing.results);
    result_.says.push_back(
        fmt::format("at most {} significant bits in {} results, {}", bits, looked.size(), more));
    bits_ = bits;
  }

  /// A library's function may err by several units; but where the same function of an operand rounded to fewer bits leaves
  /// hardly an error, it is the reading that errs.
  bool DoubtReading(std::set<PrecisionModel>* likely) {
    constexpr double kLibrary = 2.5, kVanishes = 3;
    constexpr size_t kLeast = 24, kMost = 64;
    constexpr int kFewestBits = 9;  // narrower readings have models
    const int precision = std::min(FormatOf(observed_.dtype)->precision, Binary32().precision);
    if (only_ != nullptr || shape_.reduction_length > 0 || sample_.size() < kLeast ||
        precision < Binary32().precision || !(result_.max_ulp > kLibrary) || !std::isfinite(result_.max_ulp))
      return false;
    // What nothing but a narrow step explains is explained.
    if (!likely->empty() && std::none_of(likely->begin(), likely->end(), [this](const PrecisionModel& model) {
          return IsAsAsked(model) && model.cuts.empty();
        }))
      return false;
    const size_t count = std::min(sample_.size(), kMost);
    const std::span<const int64_t> elements(sample_.data(), count);
    double least = MedianError(oracle_.References(value_, elements)) / kVanishes;
    std::string found;
    for (const std::string& tensor : shape_.tensors) {
      for (int bits = kFewestBits; bits < precision; ++bits) {
        const double errors = MedianError(oracle_.ReferencesReading(value_, elements, tensor, bits));
        if (!(errors < least)) continue;
        least = errors;
        found = fmt::format("as if {} were rounded to {} significant bits where it is read", tensor, bits);
      }
    }
    if (found.empty()) return false;
    result_.says.push_back(found);
    likely->clear();
    return true;
  }

  /// Of the errors of the sample's first elements against `references`, in units in the last place: a few that cancellation
  /// has blown up do not count.
  double MedianError(std::span<const Reference> references) const {
    std::vector<double> errors;
    for (size_t i = 0; i < references.size(); ++i) {
      const double error =
          (sample_stored_[i] - references[i].hi) / Ulp(sample_stored_[i], *FormatOf(observed_.dtype));
      if (std::isfinite(error)) errors.push_back(std::fabs(error));
    }
    if (errors.empty()) return 0;
    const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
    std::nth_element(errors.begin(), middle, errors.end());
    return *middle;
  }

  struct Missing {
    int64_t results = 0;  ///< those that want more bits than `bits`
    int64_t bits = 0;     ///< how many more, in all
  };

  /// What the centre of each enclosure wants, as far as one rounding of the whole sum allows.
  Missing MissingByBounds(const Hypothesis& model, const std::vector<int64_t>& looked, int bits) const {
    const FloatFormat& format = *FormatOf(observed_.dtype);
    const auto acc = ParseAcc(model.model().acc);
    Missing missing;
    for (const int64_t element : looked) {
      const Interval sum = model.EncloseUnstored(element);
      if (!std::isfinite(sum.lo) || !std::isfinite(sum.hi)) continue;
      double value = RoundTo(sum.lo + (sum.hi - sum.lo) / 2, format);
      // Where larger terms cancel, what is left is a multiple of their last bits, and no rounding of the result.
      if (acc && !acc->exact() && shape_.terms > 1) {
        const double step = (sum.hi - sum.lo) / 2 / static_cast<double>(shape_.terms);
        const double quantum = std::ldexp(1.0, std::ilogb(std::max(step, 0x1p-1000)));
        value = std::nearbyint(value / quantum) * quantum;
      }
      const int want = SignificantBits(value);
      missing.results += want > bits ? 1 : 0;
      missing.bits += std::max(0, want - bits);
    }
    return missing;
  }

  /// The same from the order of the model that wants fewest, in the sample, for as many results as `looked`.
  int64_t MissingByOrders(const Hypothesis& model, int64_t looked, int bits) const {
    if (sample_.empty()) return 0;
    const int orders = model.order_free() ? 0 : static_cast<int>(model.orders().size());
    int64_t fewest = std::numeric_limits<int64_t>::max();
    for (int order = orders == 0 ? -1 : 0; order < orders; ++order) {
      int64_t missing = 0;
      for (const double run : model.Simulate(order, sample_)) {
        const double stored = model.Store(run);
        if (std::isfinite(stored)) missing += std::max(0, SignificantBits(stored) - bits);
      }
      fewest = std::min(fewest, missing);
    }
    return fewest * looked / static_cast<int64_t>(sample_.size());
  }

  bool StoresIn(const PrecisionModel& model, int bits) const {
    const auto few = [bits](const std::string& word) {
      const auto spec = ParseMid(word);
      return spec && spec->format != nullptr && spec->format->precision <= bits;
    };
    if (const auto acc = ParseAcc(model.acc); acc && acc->bits() <= bits) return true;
    if (model.cuts.empty()) return few(model.mid);
    // What is stored inside the op is computed with afterwards.
    return std::any_of(model.cuts.begin(), model.cuts.end(), [&](const auto& cut) {
      return !cut.first.starts_with(value_ + ".") && few(cut.second);
    });
  }

  bool IsOddSpecial(const Hypothesis& model, int64_t element, double stored, Interval sum) const {
    if (!std::isfinite(stored) && !model.Enclose(element).Holds(stored)) return true;
    if (std::isfinite(stored) && std::isnan(sum.lo)) return true;
    if (std::isfinite(sum.lo) && std::isfinite(sum.hi)) return false;
    const Reference reference = oracle_.References(value_, std::span(&element, 1)).front();
    if (reference.kind != ReferenceKind::kDomain) return false;
    // A NaN stays one. An infinity may become one, where the other terms can overflow to its opposite on the way.
    if (std::isnan(reference.hi) || std::isfinite(stored)) return !std::isnan(stored);
    return stored != reference.hi && !sum.special;
  }

  /// The share of its worst-case bound that a model's simulated orders use, with room for orders that are not simulated.
  double Reach(const Hypothesis& model) const {
    // Steps inside an op are computed in forms and by functions that no order stands for.
    if (model.order_free() || !model.smooth() || shape_.has_steps) return 1;
    double largest = 0;
    std::vector<Interval> ranges;
    for (const int64_t element : sample_) ranges.push_back(model.EncloseUnstored(element));
    for (size_t order = 0; order < model.orders().size(); ++order) {
      const auto run = model.Simulate(static_cast<int>(order), sample_);
      for (size_t i = 0; i < run.size(); ++i) {
        const double radius = (ranges[i].hi - ranges[i].lo) / 2;
        const double error = std::fabs(run[i] - (ranges[i].lo + radius));
        if (radius > 0 && std::isfinite(radius) && std::isfinite(error))
          largest = std::max(largest, error / radius);
      }
    }
    if (largest == 0) return 1;
    return std::min(1.0, largest * (4 + 6 / std::sqrt(static_cast<double>(sample_.size()))));
  }

  /// Says where the odd elements are, and how the parts were computed when each shares a model.
  void SayWhere(const std::vector<int64_t>& looked, const std::vector<int64_t>& odd) {
    const auto place = PlaceOf(observed_.shape, looked, odd);
    if (!place) {
      result_.says.push_back(
          fmt::format("{} of {} results lie outside what the rest agrees with, [{}] the first", odd.size(),
                      looked.size(), Join(Coordinates(odd[0], observed_.shape), ", ")));
      return;
    }
    result_.says.push_back("wrong only in " + place->words);
    constexpr size_t kLeast = 8;
    if (place->inside.size() < kLeast || place->outside.size() < kLeast) return;
    for (const auto* part : {&place->inside, &place->outside}) {
      std::vector<int64_t> elements;
      const auto most = static_cast<size_t>(options_.most_elements);
      const size_t step = std::max<size_t>(1, part->size() / most);
      for (size_t i = 0; i < part->size(); i += step) elements.push_back((*part)[i]);
      const Classification each = Classifier(oracle_, value_, observed_, options_, &elements).Run();
      result_.regions.push_back(
          {.where = part == &place->inside ? place->words : "elsewhere", .label = each.label});
    }
  }

  /// Nothing of the bank explains the value: what the numbers do say, and models that the search proposes.
  std::set<PrecisionModel> Search(const Trial& natural) {
    const Hypothesis& model = *natural.hypothesis;
    std::vector<Proposal> proposals;
    if (bits_ > 1) proposals.push_back({.in = {}, .acc = "float32", .mid = fmt::format("p{}", bits_)});
    if (!model.order_free() && odd_ == 0) {
      const Yardstick yardstick(model, sample_, sample_stored_);
      const double ratio = yardstick.residuals().ratio;
      if (!yardstick.residuals().fits && std::isfinite(ratio))
        errors_ =
            fmt::format("errors {} times those of {} in any order tried", Times(ratio), model.model().acc);
      if (std::isfinite(ratio) && ratio > 1) {
        const int wide = ParseAcc(model.model().acc)->bits(),
                  lost = static_cast<int>(std::lround(std::log2(ratio)));
        for (int p = wide - lost - 2; p <= wide - lost + 2; ++p) {
          if (p >= 4 && p < std::min(wide, 52))
            proposals.push_back({.in = {}, .acc = "p" + std::to_string(p), .mid = "none"});
        }
      }
    }
    if (odd_ < looked_ || only_ != nullptr) Explain(model, &proposals);
    const std::set<PrecisionModel> likely = Proposed(proposals);
    if (!likely.empty() && odd_ == 0) {
      // What was said of bits is now said by a model.
      result_.says.clear();
      bits_ = 0;
      return likely;
    }
    if (!errors_.empty()) result_.says.push_back(errors_);
    return {};
  }

  /// How few bits each facet might keep without that one saw it here: a rounding to so many bits or more would leave
  /// these results as likely as they are. By bisection, since fewer bits are easier to see.
  void MeasureFloors() {
    const bool sums = shape_.reduction_length > 0 && shape_.cut_points.empty() && !sample_.empty();
    // Beside a rounding that was found, nothing is asked of others.
    const bool plain =
        std::any_of(result_.models.begin(), result_.models.end(), [](const PrecisionModel& model) {
          const auto acc = ParseAcc(model.acc);
          return model.in.empty() && model.mid == "none" && acc && acc->wide();
        });
    if (!sums || !plain) return;
    double best = -kInf;
    for (const Trial& trial : trials_) {
      if (trial.survived) best = std::max(best, trial.log_likelihood);
    }
    const auto may_be = [&](const Proposal& proposal) {
      for (auto& hypothesis : oracle_.Propose(value_, observed_.dtype, std::span(&proposal, 1))) {
        Trial trial;
        trial.hypothesis = std::move(hypothesis);
        Try(&trial, 0, std::min(kFloorElements, FirstElements()));
        if (!trial.survived) continue;
        trial.match = ExactMatch(*trial.hypothesis, sample_, sample_stored_);
        if (trial.match.matches > 0) return true;
        if (trial.hypothesis->order_free()) continue;
        const LikelihoodResult likelihood =
            Likelihood(*trial.hypothesis, sample_, sample_stored_, trial.match, FitCheck::kSkip);
        if (likelihood.residuals.fits && likelihood.log_likelihood >= best - std::log(options_.keep_factor))
          return true;
      }
      return false;
    };
    const auto floor = [&](const auto& propose) {
      int low = 2, high = Binary32().precision;  // `high` bits are none to see, `low` are
      while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        (may_be(propose("p" + std::to_string(middle))) ? high : low) = middle;
      }
      return high;
    };
    result_.floors["acc"] = floor([](const std::string& bits) { return Proposal{.in = {}, .acc = bits}; });
    result_.floors["mid"] = floor([](const std::string& bits) { return Proposal{.in = {}, .mid = bits}; });
    for (const auto& operand : shape_.operands) {
      if (operand.starts_with("scalar.")) continue;
      result_.floors["in." + operand] = floor([&](const std::string& bits) {
        return Proposal{.in = {{operand, bits + "_rne"}}};
      });
    }
  }

  /// Another product than the program's, or narrower operands. On values that are not wrong in a place of their own.
  void Explain(const Hypothesis& model, std::vector<Proposal>* proposals) {
    if (!result_.regions.empty()) return;
    std::vector<int64_t> elements;
    std::vector<double> stored;
    const size_t count = std::min(kSearchElements, sample_.size());
    for (size_t i = 0; i < count; ++i) {
      const size_t pick = i * sample_.size() / count;
      if (!std::isfinite(sample_stored_[pick])) continue;
      elements.push_back(sample_[pick]);
      stored.push_back(sample_stored_[pick]);
    }
    if (elements.size() < 2) return;
    const Yardstick yardstick(model, elements, stored);
    bool near = true;
    for (size_t i = 0; i < elements.size(); ++i)
      near = near && yardstick.Deviation(i, yardstick.centre(i)) <= kNearby;
    if (near) return;
    ulpscope::Search found =
        oracle_.Explain(value_, elements, [&](size_t i, double sum) { return yardstick.Deviation(i, sum); });
    for (Proposal& proposal : found.proposals) proposals->push_back(std::move(proposal));
    for (std::string& sentence : found.says) result_.says.push_back(std::move(sentence));
    if (!found.says.empty()) return;
    // A factor that all results share.
    double products = 0, squares = 0;
    for (size_t i = 0; i < elements.size(); ++i) {
      products += stored[i] * yardstick.centre(i);
      squares += yardstick.centre(i) * yardstick.centre(i);
    }
    const double factor = squares > 0 ? products / squares : 1;
    bool scaled = std::isfinite(factor) && std::fabs(factor - 1) > 1e-6, zero = true;
    for (size_t i = 0; i < elements.size(); ++i) {
      scaled = scaled && yardstick.Deviation(i, factor * yardstick.centre(i)) <= kNearby;
      zero = zero && stored[i] == 0;
    }
    if (zero) return;
    if (scaled) result_.says.push_back(fmt::format("{:.6g} times the exact value", factor));
  }

  /// The first of `elements` that none of the orders gives. The very first ones tell mostly.
  void KeepOrderWitness(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                        std::span<const double> stored) {
    constexpr size_t kFew = 4;
    if (result_.excluded.size() >= kMostExclusions) return;
    if (!OrderWitness(hypothesis, elements.first(std::min(kFew, elements.size())), stored, 0) &&
        elements.size() > kFew)
      OrderWitness(hypothesis, elements, stored, kFew);
  }

  bool OrderWitness(const Hypothesis& hypothesis, std::span<const int64_t> elements,
                    std::span<const double> stored, size_t from) {
    std::vector<std::vector<double>> runs;
    for (size_t order = 0; order < hypothesis.orders().size(); ++order)
      runs.push_back(hypothesis.Simulate(static_cast<int>(order), elements));
    for (size_t i = from; i < elements.size(); ++i) {
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
      return true;
    }
    return false;
  }

  /// Sets the log likelihood of every surviving trial that can matter and returns the best one. Exact matches
  /// first: they are cheap, and where there is one, a rival has to come near it. The others are weighed from
  /// the most promising down.
  double Weigh(std::span<const int64_t> elements, std::span<const double> stored) {
    double best = -kInf;
    std::vector<Trial*> rivals;
    // The same sums of operands as they are, by what else there is to a model.
    std::map<std::string, const Hypothesis*> plain;
    const auto sums = [](const PrecisionModel& model) {
      PrecisionModel key{
          .in = {}, .prod = "exact", .acc = model.acc, .mid = "", .out = "", .cuts = model.cuts};
      return key.Name();
    };
    for (const Trial& trial : trials_) {
      const PrecisionModel& model = trial.hypothesis->model();
      if (model.in.empty() && model.prod == "exact") plain.emplace(sums(model), trial.hypothesis.get());
    }
    for (Trial& trial : trials_) {
      if (!trial.survived) continue;
      if (TooMuch()) return best;
      trial.log_likelihood = -kInf;
      // Without such a model, its own errors: four elements tell most of them apart, and cost less than all.
      const auto like = plain.find(sums(trial.hypothesis->model()));
      const Hypothesis& errs = like != plain.end() ? *like->second : *trial.hypothesis;
      spent_ += WorkOfOrders(errs, kMayFit);
      if (!MayFit(*trial.hypothesis, errs, elements, stored)) continue;
      trial.match = ExactMatch(*trial.hypothesis, elements, stored);
      spent_ += WorkOfOrders(*trial.hypothesis, trial.match.matches > 0 ? elements.size() : kMayFit);
      trial.log_likelihood = trial.match.log_likelihood;
      trial.residuals = trial.match.residuals;
      best = std::max(best, trial.log_likelihood);
      if (trial.match.matches == 0 && !trial.hypothesis->order_free()) rivals.push_back(&trial);
    }
    const FitCheck fit = best > -kInf ? FitCheck::kSkip : FitCheck::kMeasure;
    for (Trial* trial : rivals) {
      if (TooMuch()) return best;
      trial->probe = ProbeLaw(*trial->hypothesis, elements, stored);
      spent_ += WorkOfOrders(*trial->hypothesis, ProbeCount(elements.size()));
    }
    std::stable_sort(rivals.begin(), rivals.end(),
                     [](const Trial* a, const Trial* b) { return a->probe > b->probe; });
    const double keep = std::log(options_.keep_factor);
    for (Trial* trial : rivals) {
      if (trial->probe < best - keep - 4) continue;
      if (TooMuch()) return best;
      spent_ += WorkOfOrders(*trial->hypothesis, elements.size());
      const LikelihoodResult likelihood = Likelihood(*trial->hypothesis, elements, stored, trial->match, fit);
      trial->log_likelihood = likelihood.log_likelihood;
      trial->fit = likelihood.fit;
      trial->residuals = likelihood.residuals;
      // What does not fit is no measure for what does: a truncating sum may come nearer to bits that lean the other way.
      if (Fits(*trial)) best = std::max(best, trial->log_likelihood);
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
  std::map<std::string, size_t>
      unstorable_;  ///< by how models store: the first element that such a one cannot
  bool all_points_ = true;
  const std::vector<int64_t>* only_ = nullptr;
  std::vector<int64_t> sample_;  ///< of elements_: those that orders are simulated on
  std::vector<double> sample_stored_;
  bool stopped_ = false;          ///< by what all models would cost
  int64_t spent_ = 0;             ///< terms that enclosing the first elements has cost
  int64_t looked_ = 0, odd_ = 0;  ///< elements of LookEverywhere, and those that nothing explains
  int bits_ = 0;                  ///< that the results use, where that is too few; else 0
  std::string errors_;
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
