// The course of a classification: hard evidence, then likelihood, then doubt.
#include "harness/judge/classifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <unordered_set>

#include "harness/base/text.h"
#include "harness/judge/label.h"
#include "harness/judge/sample.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

/// Models by what they are, not copied: a bank has thousands, and most differ in what an ordered comparison sees last.
struct OrderOfModels {
  bool operator()(const PrecisionModel* a, const PrecisionModel* b) const { return *a < *b; }
};
struct SameModel {
  bool operator()(const PrecisionModel* a, const PrecisionModel* b) const { return *a == *b; }
};
struct HashOfModel {
  size_t operator()(const PrecisionModel* model) const {
    size_t hash = 0;
    const auto add = [&](const std::string& word) { hash = hash * 31 + std::hash<std::string>()(word); };
    for (const auto* words : {&model->in, &model->cuts}) {
      for (const auto& [name, word] : *words) {
        add(name);
        add(word);
      }
    }
    for (const auto* word : {&model->prod, &model->acc, &model->mid, &model->out}) add(*word);
    return hash;
  }
};

}  // namespace

Classification Classifier::Run() {
  result_.elements = observed_.size();
  const auto shape = oracle_.Describe(value_);
  if (shape && shape->shape != observed_.shape) return WrongShape(shape->shape);
  if (!IsFloating(observed_.dtype)) return WholeNumbers(options_.settle && shape && shape->settled);
  if (!shape) return NoReference(shape.error().message);
  shape_ = *shape;
  if (observed_.dtype == shape_.declared) result_.as_exact = shape_.as_exact;
  MeasureErrors();
  if (elements_.empty()) return NoReference("no element of this value has a finite exact reference");
  // To list a model costs about as much as some thousand terms.
  constexpr int64_t kTermsOfOne = 2048;
  spent_ = shape_.most_models * kTermsOfOne;
  if (TooMuch()) return NotJudged();
  spent_ = 0;
  TryAll(oracle_.Bank(value_, observed_.dtype));
  TryNamed();
  spent_ += WorkOfLikelihood();
  const auto survived = [](const Trial& trial) { return trial.survived; };
  if (options_.search && !GaveUp() && (std::ranges::none_of(trials_, survived) || AnyVanished()))
    TryFlushing();
  if (GaveUp()) return NotJudged();
  Conclude();
  return GaveUp() ? NotJudged() : result_;
}

void Classifier::TryNamed() {
  if (options_.named.empty()) return;
  std::set<PrecisionModel> known;
  for (const Trial& trial : trials_) known.insert(trial.hypothesis->model());
  auto named = oracle_.Propose(value_, observed_.dtype, options_.named);
  std::erase_if(named, [&](const auto& hypothesis) {
    return known.contains(hypothesis->model()) ||
           (hypothesis->model().acc == kJoinedWider && shape_.reduction_length < kLeastJoined);
  });
  TryAll(std::move(named));
}

Classification Classifier::NoReference(const std::string& why) {
  result_.kind = ClassificationKind::kNoReference;
  result_.notes.push_back(why);
  result_.label = "no reference";
  return result_;
}

Classification Classifier::WrongShape(const std::vector<int64_t>& due) {
  result_.kind = ClassificationKind::kWrongShape;
  result_.label = fmt::format("of shape {}, where the program has {}",
                              Describe(observed_.dtype, observed_.shape), Describe(observed_.dtype, due));
  result_.says = {result_.label};
  return result_;
}

Classification Classifier::WholeNumbers(bool settled) {
  result_.kind = ClassificationKind::kNotFloating;
  result_.label = "not a floating-point value";
  if (!settled) return result_;
  const auto all = ElementsToCheck(observed_.shape, options_.most_elements);
  const auto references = oracle_.References(value_, all);
  int64_t wrong = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (references[i].kind != ReferenceKind::kExact || references[i].lo != 0) continue;
    ++result_.checked;
    const double stored = observed_.At(all[i]), due = references[i].hi;
    if (stored == due) continue;
    if (wrong++ > 0) continue;
    result_.shown_by = {all[i]};
    result_.label = fmt::format("first [{}] = {} against {}", Join(Coordinates(all[i], observed_.shape), ","),
                                stored, due);
  }
  if (wrong > 0) {
    result_.kind = ClassificationKind::kWrongValue;
    result_.label = fmt::format("not what the program gives in {} of {} elements, {}", wrong, result_.checked,
                                result_.label);
    result_.says = {result_.label};
  } else if (result_.checked > 0) {
    result_.label = fmt::format("exact: what the program gives ({} of {} elements looked at)",
                                result_.checked, result_.elements);
  }
  return result_;
}

int64_t Classifier::WorkOf(size_t elements) const {
  return std::min(static_cast<int64_t>(elements) * shape_.work_of_one, shape_.work_of_all);
}

int64_t Classifier::WorkOfOrders(const Hypothesis& hypothesis, size_t elements) const {
  return static_cast<int64_t>(hypothesis.orders().size()) * WorkOf(elements);
}

int64_t Classifier::WorkOfLikelihood() const {
  constexpr int64_t kOrders = 16, kElements = 4;
  const auto left = std::ranges::count_if(trials_, [](const Trial& trial) { return trial.survived; });
  return HardOnly() ? 0 : left * kOrders * WorkOf(kElements);
}

bool Classifier::WillBeTooMuch(size_t models) {
  constexpr size_t kPart = 16, kBetween = 64;
  if (trials_.size() % kBetween != 0) return false;
  if (trials_.size() * kPart < models || options_.most_work <= 0 || shape_.cut_points.size() < 2)
    return false;
  const double all = static_cast<double>(spent_ + WorkOfLikelihood()) * static_cast<double>(models) /
                     static_cast<double>(trials_.size());
  stopped_ = stopped_ || all > 2 * static_cast<double>(options_.most_work);
  return stopped_;
}

Classification Classifier::NotJudged() {
  result_.kind = ClassificationKind::kNotJudged;
  result_.says = {
      fmt::format("not judged as one: too many models of {} roundings on the way and of their sums",
                  shape_.cut_points.size())};
  result_.label = LabelOf(shape_, observed_.dtype, result_);
  return result_;
}

void Classifier::MeasureErrors() {
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
    result_.max_ulp = std::max(result_.max_ulp, std::fabs(UlpError(stored, reference.value(), format)));
    const double error = DistanceFrom(reference, stored);
    result_.max_abs = std::max(result_.max_abs, std::isnan(error) ? kInf : error);
  }
  result_.checked = static_cast<int64_t>(elements_.size());
  if (undecided > 0)
    result_.notes.push_back(fmt::format("{} element(s) are undecided by the oracle", undecided));
}

void Classifier::Conclude() {
  const bool search = !HardOnly() && options_.search;
  std::set<PrecisionModel> likely = HardOnly() ? Survivors() : Likely();
  if (GaveUp()) return;
  if (search) TryJoinedWider(&likely);
  if (!HardOnly()) KeepOrderWitnesses(likely);
  TryRest(&likely);
  // Also where to exclude is all that is asked: of what the bounds leave none may be told beside a rounding that no bank lists.
  if (search || HardOnly()) TryBitsBeforeStore(&likely);
  if (search) TryProductsInTf32(&likely);
  const bool twice = search && DoubtTwice(&likely);
  if (search) DoubtTooNear(&likely);
  if (search) TryFaithful(&likely);
  if (search) DoubtLikelihood(&likely);
  if (search) LookInside(&likely);
  const Trial* natural = HardOnly() ? nullptr : Natural(likely);
  if (natural != nullptr) {
    const bool rounded = twice || DoubtReading(&likely);
    if (!rounded) LookEverywhere(natural, &likely);
    const bool in_lines = search && !rounded && odd_.empty() && DoubtLines(&likely);
    if (!rounded && !in_lines && likely.empty() && search) likely = Search(*natural);
    if (search) TryPerhapsBits(&likely);
  }
  if (search && odd_.empty()) TryBitsByErrors(&likely);
  if (search) TryTiesAway(&likely);
  const auto as_asked = [&](const PrecisionModel& model) { return IsAsAsked(WithExactProducts(model)); };
  if (search ? likely.empty() : HardOnly() && std::ranges::none_of(likely, as_asked)) {
    TryFurtherOrders(&likely);
    if (HardOnly() && likely.empty()) {
      TryGuardBits();
      likely = Survivors();
    }
  }
  if (options_.ordinary) ExcludeTooNear(&likely);
  const std::set<PrecisionModel> proved = Survivors();
  std::unordered_set<const PrecisionModel*, HashOfModel, SameModel> tried;
  for (const Trial& trial : trials_) tried.insert(&trial.hypothesis->model());
  result_.models_tried = static_cast<int64_t>(tried.size());
  result_.models_proved.assign(proved.begin(), proved.end());
  result_.models.assign(likely.begin(), likely.end());
  if (search) DoubtSpecials();
  if (search && odd_.empty()) MeasureBeyond(&likely);
  result_.fits = !likely.empty() && odd_.empty() && result_.says.empty();
  if (!result_.fits) result_.models.clear();
  if (!result_.models.empty() && only_ == nullptr && search) MeasureFloors();
  if (result_.models.empty()) {
    result_.kind = ClassificationKind::kUnmodelled;
    SayWhatIsGone();
  } else {
    result_.rests_on_likelihood = likely.size() < proved.size() || result_.beyond > 0;
    const bool nothing_fell = proved.size() == tried.size() && tried.size() > 1;
    result_.kind = nothing_fell && all_points_ ? ClassificationKind::kExactOnly
                   : likely.size() == 1        ? ClassificationKind::kIdentified
                                               : ClassificationKind::kIndistinguishable;
  }
  if (!HardOnly()) result_.reproduced = Reproduced();
  MeasureNearness(search);
  DoubtForms();
  DoubtZeros();
  KeepExclusions(proved);
  ProjectFacets(shape_, &result_);
  result_.label = LabelOf(shape_, observed_.dtype, result_);
}

void Classifier::MeasureNearness(bool search) {
  const Trial* plain = PlainFloat32();
  const bool fallen = HardOnly() && plain != nullptr && !plain->survived;
  if (!fallen && !(search && IsOffByErrorsAlone())) return;
  const Nearness found = NearnessToFloat32(*plain->hypothesis);
  result_.within = found.ratio;
  result_.within_forms = found.of_forms;
  result_.within_sums = found.of_sums;
}

/// Nothing explains the results, what the program asks for is not excluded, and nothing but their errors is said against it.
bool Classifier::IsOffByErrorsAlone() const {
  const Trial* plain = PlainFloat32();
  const bool errors_alone = std::ranges::all_of(result_.says, [&](const std::string& sentence) {
    return sentence == errors_ || sentence == too_near_ || sentence == lean_;
  });
  return result_.kind == ClassificationKind::kUnmodelled && only_ == nullptr && plain != nullptr &&
         plain->survived && errors_alone && bits_ == 0 &&
         (odd_.empty() || (shape_.is_mean && OddAreNumbers()));
}

bool Classifier::OddAreNumbers() const {
  const std::set<int64_t> numbers(elements_.begin(), elements_.end());
  return std::ranges::all_of(odd_, [&](const int64_t element) {
    return numbers.contains(element) && std::isfinite(observed_.At(element));
  });
}

/// Out of a format's range goes what is out of another's: of infinities and NaNs alone no format can be told.
void Classifier::DoubtSpecials() {
  int64_t specials = 0;
  double most = 0;
  for (size_t i = 0; i < stored_.size(); ++i) {
    if (std::isfinite(stored_[i]) && stored_[i] != 0) return;
    if (!std::isfinite(stored_[i])) ++specials;
    if (std::isfinite(references_[i].hi)) most = std::max(most, std::fabs(references_[i].hi));
  }
  constexpr int64_t kFewest = 8;
  if (specials < kFewest || most == 0 || !std::isfinite(RoundTo(most, *FormatOf(observed_.dtype)))) return;
  result_.says.push_back(fmt::format(
      "no result is a number other than zero ({} of {} are infinite or NaN), where exact ones reach {:.3g}",
      specials, stored_.size(), most));
}

/// Zero where every exact result is subnormal: any narrow format gives that, and so does what drops subnormals. Zero where it is not:
/// any format whose range ends above the operands.
void Classifier::DoubtZeros() {
  if (result_.models.empty() || stored_.empty()) return;
  const FloatFormat& format = *FormatOf(observed_.dtype);
  const double least = std::ldexp(1.0, format.emin);
  double most = 0;
  for (size_t i = 0; i < stored_.size(); ++i) {
    if (stored_[i] != 0) return;
    most = std::max(most, std::fabs(references_[i].hi));
  }
  const auto drops = [&](const PrecisionModel& model) {
    return IsAsAsked(model) || model.Name().find("+ftz") != std::string::npos ||
           model.Name().find("+daz") != std::string::npos;
  };
  if (most == 0 || !std::isfinite(most)) return;
  if (most >= least) {
    result_.fits = false;
    result_.kind = ClassificationKind::kUnmodelled;
    result_.models.clear();
    result_.says.push_back(fmt::format(
        "every result is zero where exact ones reach {:.3g}: no zero shows which format lost them", most));
    return;
  }
  if (std::ranges::any_of(result_.models, drops)) return;
  result_.kind = ClassificationKind::kNotJudged;
  result_.fits = false;
  result_.models.clear();
  result_.models_proved.clear();
  result_.says = {fmt::format(
      "every result is zero where the exact ones are subnormal numbers, up to {:.3g}: no format shows",
      most)};
}

/// What a format of a smaller range does: small numbers are zero, large ones infinite, where the exact ones are far inside the
/// range of the result.
void Classifier::SayWhatIsGone() {
  constexpr int kFarInside = 8;  // in powers of two
  const FloatFormat& format = *FormatOf(observed_.dtype);
  struct Gone {
    int64_t count = 0;
    size_t first = 0;
  };
  std::array<Gone, 2> gone{};
  const double small = std::ldexp(1.0, format.emin + kFarInside);
  for (size_t i = 0; i < stored_.size(); ++i) {
    const double exact = std::fabs(references_[i].hi);
    if (references_[i].kind == ReferenceKind::kUndecided || !std::isfinite(exact)) continue;
    const bool zero = stored_[i] == 0 && exact >= small;
    const bool infinite =
        std::isinf(stored_[i]) && std::isfinite(RoundTo(std::ldexp(exact, kFarInside), format));
    if (!zero && !infinite) continue;
    Gone& one = gone[infinite ? 1 : 0];
    if (one.count++ == 0) one.first = i;
  }
  for (const auto& [one, word] : {std::pair{gone[0], "zero"}, {gone[1], "infinite"}}) {
    if (one.count == 0) continue;
    result_.says.push_back(fmt::format(
        "{} of {} results are {} where the exact ones are not (at [{}]: {:.3g})", one.count, stored_.size(),
        word, Join(Coordinates(elements_[one.first], observed_.shape), ", "), references_[one.first].hi));
  }
}

bool Classifier::IsAsAsked(const PrecisionModel& model) const {
  const int precision = FormatOf(observed_.dtype)->precision;
  const auto acc = ParseAcc(model.acc);
  const auto mid = ParseMid(model.mid);
  const auto out = ParseOut(model.out);
  return model.in.empty() && model.prod == "exact" && acc && mid && out &&
         out->rounding == Rounding::kNearestEven && !out->faithful &&
         (acc->exact() || (acc->wide() && acc->block == 0 && acc->rounding == Rounding::kNearestEven &&
                           acc->bits() >= precision)) &&
         (mid->none() || mid->bits() >= std::max(precision, Binary32().precision));
}

std::set<PrecisionModel> Classifier::Survivors() const {
  std::set<PrecisionModel> left;
  for (const Trial& trial : trials_) {
    if (trial.survived) left.insert(trial.hypothesis->model());
  }
  return left;
}

int Classifier::Differences(const PrecisionModel& a, const PrecisionModel& b) {
  return (a.in != b.in) + (a.prod != b.prod) + (a.acc != b.acc) + (a.mid != b.mid || a.cuts != b.cuts) +
         (a.out != b.out);
}

void Classifier::KeepExclusions(const std::set<PrecisionModel>& proved) {
  const auto is_near = [&](const PrecisionModel& rival) {
    return std::ranges::any_of(
        result_.models, [&](const PrecisionModel& survivor) { return Differences(rival, survivor) <= 1; });
  };
  std::map<const PrecisionModel*, const Trial*, OrderOfModels> fallen;
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    // What a contract asks for is shown beside what is left, however far from it.
    if (trial.survived || proved.contains(model) || (!proved.empty() && !is_near(model) && !IsAsAsked(model)))
      continue;
    const Trial*& kept = fallen[&model];
    if (kept == nullptr || trial.passed > kept->passed) kept = &trial;
  }
  std::vector<const Trial*> rivals;
  for (const auto& [model, trial] : fallen) rivals.push_back(trial);
  if (proved.empty())
    std::ranges::stable_sort(rivals, [](const Trial* a, const Trial* b) { return a->passed > b->passed; });
  std::stable_partition(rivals.begin(), rivals.end(),
                        [&](const Trial* trial) { return IsAsAsked(trial->hypothesis->model()); });
  if (rivals.size() > kMostExclusions) rivals.resize(kMostExclusions);
  for (const Trial* trial : rivals) result_.excluded.push_back(ExclusionOf(*trial));
}

}  // namespace ulpscope
