// Doubt: where a likelihood must not accuse, and what else explains the bits.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "harness/base/find.h"
#include "harness/judge/classifier.h"
#include "harness/judge/label.h"
#include "harness/judge/same_errors.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

/// Of so many results it is no accident that each is a neighbour of the exact value.
constexpr size_t kFaithfulLeast = 32;

/// Of so few products the orders that are tried are nearly all that there are, and one of them would give the bits; what they err by
/// depends on the order, and is no law.
constexpr int64_t kFewTerms = 16;

/// Thousands of orders of tens of roundings: so many results that each gives by chance in half of the cases are given by one of them.
constexpr size_t kByChance = 16;

}  // namespace

void Classifier::DoubtForms() {
  const auto asked = [&](const PrecisionModel& model) { return IsAsAsked(model); };
  if (HardOnly() || !shape_.has_steps || result_.models.empty() || result_.reproduced >= kNearlyAll ||
      std::ranges::any_of(result_.models, asked))
    return;
  const bool open = std::ranges::any_of(result_.models_proved, asked);
  const bool sums = std::ranges::all_of(result_.models, [](const PrecisionModel& model) {
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

std::set<PrecisionModel> Classifier::KeepMatching(std::vector<std::unique_ptr<Hypothesis>> hypotheses) {
  return KeepMatching(std::move(hypotheses), sample_, sample_stored_, 1);
}

std::set<PrecisionModel> Classifier::KeepMatching(std::vector<std::unique_ptr<Hypothesis>> hypotheses,
                                                  std::span<const int64_t> elements,
                                                  std::span<const double> stored, size_t misses) {
  std::set<PrecisionModel> found;
  for (auto& hypothesis : hypotheses) {
    Trial trial;
    trial.match = ExactMatch(*hypothesis, sample_, sample_stored_);
    if (trial.match.matches == 0 && FewestMisses(*hypothesis, elements, stored, misses) >= misses) continue;
    trial.hypothesis = std::move(hypothesis);
    Try(&trial, 0, elements_.size());
    trial.hypothesis->Forget();
    if (!trial.survived) continue;
    trial.log_likelihood = trial.match.log_likelihood;
    trial.residuals = trial.match.residuals;
    found.insert(trial.hypothesis->model());
    trials_.push_back(std::move(trial));
  }
  return found;
}

bool Classifier::IsOrderKnown() const {
  const Trial* plain = PlainFloat32();
  return plain != nullptr && ExactMatch(*plain->hypothesis, sample_, sample_stored_).matches > 0;
}

std::set<PrecisionModel> Classifier::KeepHolding(std::span<const Proposal> proposals) {
  const size_t before = trials_.size();
  TryAll(oracle_.Propose(value_, observed_.dtype, proposals));
  std::set<PrecisionModel> held;
  for (size_t i = before; i < trials_.size(); ++i) {
    if (trials_[i].survived) held.insert(trials_[i].hypothesis->model());
  }
  return held;
}

void Classifier::TryBitsBeforeStore(std::set<PrecisionModel>* likely) {
  const int precision = FormatOf(observed_.dtype)->precision;
  // A float32 store shows all bits of the case's own data. Further inputs are made for results of few bits: block units that cut and a
  // sum that is rounded may give all of these alike.
  const bool further = HardOnly() && precision == Binary32().precision;
  // A further input that nothing listed gives is not yet one of a sum that is not listed.
  const bool unexplained = HardOnly() && likely->empty();
  if ((likely->empty() && !unexplained) || only_ != nullptr || shape_.has_steps) return;
  if (precision > Binary16().precision && !further) return;
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    if (further || !trial.survived || !likely->contains(model)) continue;
    const auto acc = ParseAcc(model.acc);
    const bool split = !model.in.empty() && std::ranges::all_of(model.in, [](const auto& in) {
      const auto spec = ParseIn(in.second);
      return spec && spec->pieces > 1;
    });
    if (split) continue;
    if (!model.in.empty() || !acc || acc->exact()) return;
    // Of sums in 16 bits some order gives the bits, or it is a few results that ask for such errors and not the rest.
    const bool unseen = !HardOnly() && acc->bits() < Binary32().precision && trial.match.matches == 0;
    if (acc->binary() && acc->rounding == Rounding::kNearestEven && !unseen) return;
  }
  if (sample_.empty()) ChooseSample();
  std::vector<Proposal> proposals;
  const int fewest = (further ? Bfloat16().precision : precision) + 1;
  for (int bits = fewest; bits < Binary32().precision; ++bits) {
    proposals.push_back({.in = {}, .mid = fmt::format("p{}", bits)});
    if (HardOnly()) continue;
    proposals.push_back({.in = {}, .acc = fmt::format("p{}", bits), .mid = "none"});
    if (shape_.has_products)
      proposals.push_back({.in = {}, .acc = "float32", .mid = "none", .prod = fmt::format("p{}", bits)});
  }
  auto found = KeepMatching(oracle_.Propose(value_, observed_.dtype, proposals));
  if (found.empty() && further && !likely->empty() && !IsOrderKnown()) found = KeepHolding(proposals);
  if (found.empty()) return;
  if (HardOnly()) {
    likely->merge(found);
    return;
  }
  // Of tens of roundings in thousands of orders one gives a sample by chance, and not what is beside it. Where float32 gives all but a
  // handful, so does one of these by chance: none is told from the others.
  const auto [elements, stored] = AffordableElements();
  const auto most = static_cast<size_t>(std::ceil(std::log(options_.keep_factor)));
  bool given = false;  // by what the bank lists
  size_t handful = kByChance;
  const Trial* plain = PlainFloat32();
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    const bool listed = trial.match.matches > 0 && likely->contains(model);
    if (listed || found.contains(model)) {
      const size_t misses = FewestMisses(*trial.hypothesis, elements, stored, most);
      given = given || (listed && misses == 0);
      if (misses >= most) found.erase(model);
    } else if (&trial == plain) {
      handful = FewestMisses(*trial.hypothesis, elements, stored, kByChance);
    }
  }
  likely->insert(found.begin(), found.end());
  if (found.empty()) return;
  if (!given && handful < kByChance) {
    auto others = oracle_.Propose(value_, observed_.dtype, proposals);
    std::erase_if(others, [&](const auto& hypothesis) { return found.contains(hypothesis->model()); });
    likely->merge(KeepMatching(std::move(others), elements, stored, most));
    // Sums of so many widths that some order of each gives what float32 does not, and a rounding of the total beside them: none of them
    // is an explanation.
    constexpr int64_t kManyWidths = 4;
    const auto in_bits = [](const PrecisionModel& model) {
      return model.acc.starts_with('p') && model.mid == "none" && model.prod == "exact";
    };
    const bool wide = std::ranges::any_of(*likely, [this](const auto& model) { return IsAsAsked(model); });
    if (handful > 0 && !wide && std::ranges::count_if(*likely, in_bits) >= kManyWidths) {
      result_.says.push_back(
          fmt::format("one order of float32 sums gives all but {} of {} results, and nothing tells how the "
                      "others were rounded",
                      handful, elements.size()));
      likely->clear();
    }
    return;
  }
  double best = -kInf;
  std::set<PrecisionModel> near;
  for (const Trial& trial : trials_) {
    if (found.contains(trial.hypothesis->model())) best = std::max(best, trial.log_likelihood);
  }
  for (const Trial& trial : trials_) {
    if (trial.log_likelihood >= best - std::log(options_.keep_factor)) near.insert(trial.hypothesis->model());
  }
  std::erase_if(*likely, [&](const PrecisionModel& model) { return !near.contains(model); });
}

void Classifier::TryProductsInTf32(std::set<PrecisionModel>* likely) {
  // Where other products are as likely, none is said to be rounded.
  const auto in_float16 = [](const PrecisionModel& model) { return model.prod == "float16"; };
  if (only_ != nullptr || !std::ranges::all_of(*likely, in_float16)) return;
  std::vector<Proposal> proposals;
  for (const PrecisionModel& model : *likely) {
    if (!model.in.empty() || !model.cuts.empty()) continue;
    proposals.push_back({.in = {}, .acc = model.acc, .mid = model.mid, .prod = "p11"});
  }
  if (proposals.empty()) return;
  const size_t before = trials_.size();
  TryAll(oracle_.Propose(value_, observed_.dtype, proposals));
  const std::set<PrecisionModel> all = Likely();
  for (size_t i = before; i < trials_.size(); ++i) {
    if (all.contains(trials_[i].hypothesis->model())) likely->insert(trials_[i].hypothesis->model());
  }
  // Out of float16's range the one of them is the likelier by far.
  std::erase_if(*likely,
                [&](const PrecisionModel& model) { return in_float16(model) && !all.contains(model); });
}

bool Classifier::DoubtTwice(std::set<PrecisionModel>* likely) {
  constexpr double kNearlyAllOf = 0.98;  // a float32 sum is not the exact one
  if (likely->empty() || only_ != nullptr || shape_.has_steps || sample_.size() < kFaithfulLeast)
    return false;
  const FloatFormat* first = nullptr;
  const FloatFormat* second = nullptr;
  for (const PrecisionModel& model : *likely) {
    const auto acc = ParseAcc(model.acc);
    const auto mid = ParseMid(model.mid);
    if (!model.in.empty() || !acc || !mid || mid->none() || mid->bits() >= acc->bits()) return false;
    second = mid->format;
    for (const FloatFormat* format : {&Binary16(), &Bfloat16()}) {
      if (format->precision == acc->bits()) first = format;
    }
  }
  if (first == nullptr) return false;
  const FloatFormat& format = *FormatOf(observed_.dtype);
  const auto exact = oracle_.References(value_, sample_);
  size_t given = 0;
  for (size_t i = 0; i < sample_.size(); ++i) {
    const double once = RoundTo(exact[i].value(), *first);
    given += RoundTo(RoundTo(once, *second), format) == sample_stored_[i] ? 1 : 0;
  }
  if (static_cast<double>(given) < kNearlyAllOf * static_cast<double>(sample_.size())) return false;
  result_.says.push_back(fmt::format("as if the sum were rounded to {} and then to {} ({} of {} results)",
                                     first->name, second->name, given, sample_.size()));
  likely->clear();
  return true;
}

void Classifier::DoubtTooNear(std::set<PrecisionModel>* likely) {
  if (likely->empty() || only_ != nullptr || shape_.has_steps || sample_.size() < kFaithfulLeast) return;
  std::vector<const Trial*> sums;
  for (const Trial& trial : trials_) {
    if (!trial.survived || !likely->contains(trial.hypothesis->model())) continue;
    if (trial.match.matches > 0 || trial.hypothesis->order_free()) return;
    sums.push_back(&trial);
  }
  const FloatFormat& format = *FormatOf(observed_.dtype);
  const auto exact = oracle_.References(value_, sample_);
  const auto far_off = [&](size_t i, double stored) {
    return !(DistanceFrom(exact[i], stored) < Ulp(exact[i].hi, format));
  };
  for (size_t i = 0; i < stored_.size(); ++i) {
    if (!(DistanceFrom(references_[i], stored_[i]) < Ulp(references_[i].hi, format))) return;
  }
  // As many further off as make none of them in an order of its own as unlikely as what likelihood sets aside.
  const auto enough = static_cast<size_t>(std::ceil(std::log(options_.keep_factor)));
  for (const Trial* trial : sums) {
    for (size_t order = 0; order < trial->hypothesis->orders().size(); ++order) {
      const auto run = trial->hypothesis->Stored(static_cast<int>(order), sample_);
      size_t off = 0;
      for (size_t i = 0; i < run.size(); ++i) off += far_off(i, run[i]) ? 1 : 0;
      if (off < enough) return;
    }
  }
  too_near_ =
      "every result is one of the two neighbours of the exact value, nearer than any order tried of a "
      "float32 sum comes, but not always the nearest";
  result_.says.push_back(too_near_);
  likely->clear();
}

void Classifier::TryFaithful(std::set<PrecisionModel>* likely) {
  if (likely->empty() || only_ != nullptr || shape_.has_steps || shape_.reduction_length < 2) return;
  double best = -kInf;
  size_t runs = 0;
  bool matched = false;
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    if (!trial.survived || !likely->contains(model)) continue;
    const auto acc = ParseAcc(model.acc);
    if (trial.hypothesis->order_free() || !acc || !acc->wide()) return;
    best = std::max(best, trial.log_likelihood);
    runs += trial.hypothesis->orders().size();
    matched = matched || trial.match.matches > 0;
  }
  // Which neighbour is kept is a matter of chance, as a stochastic rounding has it: the nearer one the likelier.
  constexpr double kBelow = 4;  // standard deviations
  const FloatFormat& format = *FormatOf(observed_.dtype);
  int64_t others = 0;
  double due = 0, variance = 0, agree = 0;
  for (size_t i = 0; i < stored_.size(); ++i) {
    if (!std::isfinite(references_[i].hi) || !std::isfinite(stored_[i])) continue;
    const double off = DistanceFrom(references_[i], stored_[i]) / Ulp(references_[i].hi, format);
    if (!(off < 1)) return;
    others += stored_[i] != RoundTo(references_[i].value(), format) ? 1 : 0;
    const double farther = std::min(off, 1 - off);
    due += farther;
    variance += farther * (1 - farther);
    agree += std::log1p(-2 * farther * (1 - farther));  // that two such roundings keep the same one
  }
  if (others == 0 || static_cast<double>(others) < due - kBelow * std::sqrt(variance)) return;
  // An order that gives every bit explains them, unless one among so many is likely to.
  if (matched && agree + std::log(static_cast<double>(runs)) < -std::log(options_.keep_factor)) return;
  const Proposal proposal{.in = {}, .acc = "exact", .out = std::string(format.name) + "_faithful"};
  for (auto& hypothesis : oracle_.Propose(value_, observed_.dtype, std::span(&proposal, 1))) {
    Trial trial;
    trial.hypothesis = std::move(hypothesis);
    Try(&trial, 0, elements_.size());
    trial.hypothesis->Forget();
    if (!trial.survived) continue;
    // Never what others are measured against.
    trial.log_likelihood = best - 1e-6;
    trial.residuals.fits = true;
    likely->insert(trial.hypothesis->model());
    trials_.push_back(std::move(trial));
  }
}

void Classifier::DoubtLikelihood(std::set<PrecisionModel>* likely) {
  if (likely->empty() || only_ != nullptr) return;
  // What errs less than this share of what a model's sums do is not as large as theirs.
  constexpr double kAsLarge = 0.75;
  bool split = true, large = false;
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    if (!trial.survived || !likely->contains(model)) continue;
    if (trial.match.matches > 0) return;
    // Sums whose parts are joined in a wider format err less than what they stand beside.
    large = large || (model.acc != kJoinedWider && trial.residuals.ratio >= kAsLarge);
    split = split && std::ranges::any_of(model.in, [](const auto& in) {
              const auto spec = ParseIn(in.second);
              return spec && spec->pieces > 1;
            });
  }
  if (split && (!large || shape_.reduction_length <= kFewTerms) && !shape_.has_steps) {
    likely->clear();
    return;
  }
  for (const PrecisionModel& model : *likely) {
    const auto acc = ParseAcc(model.acc);
    if (acc && acc->wide() && acc->block == 0 && acc->rounding == Rounding::kNearestEven) return;
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
      return acc->block > 0 || (acc->binary() && acc->rounding == Rounding::kTowardZero);
    });
    if (!cut) return;
    // What errs like a float32 sum is not accused of cutting, however much better the law takes that.
    bool plain = false;
    for (const Trial& trial : trials_) {
      const PrecisionModel& model = trial.hypothesis->model();
      if (!trial.survived || !IsAsAsked(model) || !std::isfinite(trial.log_likelihood) || !Fits(trial))
        continue;
      likely->insert(model);
      plain = true;
    }
    if (plain) return;
    const bool units = std::any_of(likely->begin(), likely->end(), [](const PrecisionModel& model) {
      return ParseAcc(model.acc)->block > 0;
    });
    if (Lean()) {
      lean_ =
          fmt::format("errors that lean as those of {} do, and no order tried of such sums gives these bits",
                      units ? "float32 sums that are cut" : "truncating float32 sums");
      result_.says.push_back(lean_);
    }
    likely->clear();
    return;
  }
  likely->clear();
  // Of an op that does more than sum, errors of that size may be those of what it reads. And a few results may ask for them alone.
  if (shape_.has_steps || !large) return;
  const std::string sums = bits == Bfloat16().precision   ? "bfloat16 sums (8 significant bits)"
                           : bits == Binary16().precision ? "float16 sums (11 significant bits)"
                                                          : fmt::format("sums in {} significant bits", bits);
  result_.says.push_back(
      fmt::format("errors as large as those of {}, and no order tried of such sums gives these bits", sums));
}

void Classifier::TryJoinedWider(std::set<PrecisionModel>* likely) {
  if (shape_.has_steps || shape_.reduction_length < kLeastJoined || only_ != nullptr) return;
  std::vector<Proposal> proposals;
  double best = -kInf;
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    if (!trial.survived || !likely->contains(model)) continue;
    if (trial.match.matches > 0) return;
    best = std::max(best, trial.log_likelihood);
    if (model.acc == "float32" && model.cuts.empty())
      proposals.push_back(
          {.in = model.in, .acc = std::string(kJoinedWider), .mid = model.mid, .prod = model.prod});
  }
  for (auto& hypothesis : oracle_.Propose(value_, observed_.dtype, proposals)) {
    const auto has_this = [&](const Trial& trial) {
      return trial.hypothesis->model() == hypothesis->model();
    };
    if (const auto before = std::ranges::find_if(trials_, has_this); before != trials_.end()) {
      // A contract named it.
      if (!before->survived) continue;
      before->log_likelihood = std::max(before->log_likelihood, best);
      likely->insert(before->hypothesis->model());
      continue;
    }
    Trial trial;
    trial.hypothesis = std::move(hypothesis);
    Try(&trial, 0, elements_.size());
    if (trial.survived) {
      trial.match = ExactMatch(*trial.hypothesis, sample_, sample_stored_);
      trial.Take(Likelihood(*trial.hypothesis, sample_, sample_stored_, trial.match, FitCheck::kMeasure));
      // Its errors lie between none and those of float32: what these explain without an order it explains too. Nor does it come
      // alone: two parts are joined alike in either format.
      trial.log_likelihood = std::max(trial.log_likelihood, best);
      likely->insert(trial.hypothesis->model());
    }
    trial.hypothesis->Forget();
    trials_.push_back(std::move(trial));
  }
  // What an order of theirs gives, float32 parts that were joined in another one may give as well, however products were rounded.
  std::set<PrecisionModel> alike;
  for (const PrecisionModel& model : *likely) {
    if (model.acc == kJoinedWider) alike.insert(WithExactProducts(model));
  }
  for (const Trial& trial : trials_) {
    PrecisionModel joined = WithExactProducts(trial.hypothesis->model());
    if (!trial.survived || joined.acc != "float32" ||
        (!std::isfinite(trial.log_likelihood) && shape_.reduction_length > kFewTerms))
      continue;
    joined.acc = kJoinedWider;
    if (alike.contains(joined)) likely->insert(trial.hypothesis->model());
  }
}

void Classifier::TryFurtherOrders(std::set<PrecisionModel>* likely) {
  constexpr size_t kFirst = 16;
  if (only_ != nullptr || elements_.empty() || shape_.reduction_length < 2 || !OddAreNumbers()) return;
  if (sample_.empty()) ChooseSample();
  auto [elements, stored] = AffordableElements();
  for (const int64_t odd : odd_) {
    if (Contains(elements, odd)) continue;
    elements.push_back(odd);
    stored.push_back(observed_.At(odd));
  }
  for (Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    const size_t orders = model.in.empty() ? trial.hypothesis->further_orders().size() : 0;
    for (size_t order = 0; order < orders && trial.further < 0; ++order) {
      const size_t first = std::min(kFirst, elements.size());
      const auto differ = [&](std::span<const int64_t> some, std::span<const double> of_them) {
        return DifferentValues(trial.hypothesis->StoredFurther(order, some), of_them) > 0;
      };
      if (differ(std::span(elements).first(first), std::span(stored).first(first)) ||
          differ(elements, stored))
        continue;
      trial.further = static_cast<int>(order);
      result_.notes.push_back(fmt::format("each of {} results is what {} gives {}", elements.size(),
                                          model.acc, trial.hypothesis->further_orders()[order]));
    }
    if (trial.further < 0) continue;
    // What an order gives no bound excludes: those of a mean are of a sum that is divided.
    trial.survived = true;
    trial.match.matches = 1;
    trial.log_likelihood = 0;
    trial.residuals = {};
    trial.residuals.fits = true;
    likely->insert(model);
  }
  if (likely->empty()) return;
  result_.says.clear();
  errors_.clear();
  odd_.clear();
  bits_ = 0;
}

void Classifier::TryGuardBits() {
  constexpr int kMostBits = 34;
  TryAll(oracle_.Propose(value_, observed_.dtype, SumsWithGuardBits(kMostBits)));
}

void Classifier::TryTiesAway(std::set<PrecisionModel>* likely) {
  constexpr std::string_view kToEven = "_rne", kAway = "_rna";
  constexpr size_t kMost = 8;  // further models: each costs a look at all elements
  if (shape_.has_steps || only_ != nullptr || sample_.empty()) return;
  std::vector<Proposal> proposals;
  std::map<PrecisionModel, const Trial*> likes;
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    if (!trial.survived || trial.match.matches > 0 || !likely->contains(model) || !model.cuts.empty() ||
        trial.hypothesis->order_free() || proposals.size() >= kMost)
      continue;
    PrecisionModel away = model;
    for (auto& [operand, word] : away.in) {
      if (word.ends_with(kToEven)) word.replace(word.size() - kAway.size(), kAway.size(), kAway);
    }
    if (away.in == model.in) continue;
    proposals.push_back({.in = away.in, .acc = away.acc, .mid = away.mid, .prod = away.prod});
    likes.emplace(std::move(away), &trial);
  }
  std::vector<Trial> found;
  for (auto& hypothesis : oracle_.Propose(value_, observed_.dtype, proposals)) {
    const auto like = likes.find(hypothesis->model());
    // Without a number that lies half-way the two are one.
    if (like == likes.end() ||
        hypothesis->Simulate(-1, sample_) == like->second->hypothesis->Simulate(-1, sample_))
      continue;
    Trial trial;
    trial.hypothesis = std::move(hypothesis);
    Try(&trial, 0, elements_.size());
    if (!trial.survived) continue;
    trial.Take(Likelihood(*trial.hypothesis, sample_, sample_stored_, trial.match, FitCheck::kMeasure));
    trial.hypothesis->Forget();
    if (!Fits(trial) || trial.log_likelihood < like->second->log_likelihood - std::log(options_.keep_factor))
      continue;
    likely->insert(trial.hypothesis->model());
    found.push_back(std::move(trial));
  }
  std::ranges::move(found, std::back_inserter(trials_));
}

void Classifier::TryBitsByErrors(std::set<PrecisionModel>* likely) {
  constexpr int kFewestOfOperand = 16, kFewestOfProduct = 18;
  constexpr size_t kFewResults = 16;
  if (shape_.has_steps || only_ != nullptr || likely->empty() || shape_.reduction_length < 2) return;
  bool splits = true, cuts = true, products = true;
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    if (!trial.survived || !likely->contains(model)) continue;
    if (trial.match.matches > 0 || trial.hypothesis->order_free()) return;
    splits = splits && std::ranges::any_of(model.in, [](const auto& in) {
               const auto spec = ParseIn(in.second);
               return spec && spec->pieces > 1;
             });
    const auto acc = ParseAcc(model.acc);
    cuts = cuts && acc && acc->binary() && acc->rounding == Rounding::kTowardZero;
    // By errors alone, products in so many bits are no likelier than operands are.
    products = products && model.in.empty() && model.prod.starts_with('p');
  }
  result_.models.assign(likely->begin(), likely->end());
  // A few results may err by three times as much as mostly.
  if (!splits && !cuts && !products && sample_.size() >= kFewResults && Beyond() == 0) return;
  std::vector<Proposal> proposals;
  for (int bits = kFewestOfOperand; bits < Binary32().precision; ++bits) {
    for (const char* mode : {"rne", "rz"}) {
      Proposal all{.in = {}};
      for (const std::string& operand : shape_.operands) {
        if (operand.starts_with("scalar.")) continue;
        all.in[operand] = fmt::format("p{}_{}", bits, mode);
        proposals.push_back({.in = {{operand, all.in[operand]}}});
      }
      if (all.in.size() > 1) proposals.push_back(std::move(all));
    }
    if (shape_.has_products && bits >= kFewestOfProduct)
      proposals.push_back({.in = {}, .prod = fmt::format("p{}", bits)});
  }
  const auto best_of = [&](const std::set<PrecisionModel>& models) {
    double best = -kInf;
    for (const Trial& trial : trials_) {
      if (trial.survived && models.contains(trial.hypothesis->model()))
        best = std::max(best, trial.log_likelihood);
    }
    return best;
  };
  const double before = best_of(*likely);
  std::set<PrecisionModel> found = Proposed(proposals);
  // What reads an operand in fewer bits may multiply in float32 too.
  proposals.clear();
  for (const PrecisionModel& model : found) {
    if (shape_.has_products && !model.in.empty())
      proposals.push_back({.in = model.in, .acc = model.acc, .mid = model.mid, .prod = "float32"});
  }
  found.merge(Proposed(proposals));
  // By errors alone an operand in so many bits is no less likely than products in as many, whichever way it was rounded.
  int fewest = Binary32().precision;
  for (const PrecisionModel& model : found) {
    const auto prod = ParseProd(model.prod);
    if (model.prod.starts_with('p') && prod) fewest = std::min(fewest, prod->bits());
  }
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    const bool as_few = !model.in.empty() && std::ranges::all_of(model.in, [&](const auto& in) {
      const auto read = ParseIn(in.second);
      return in.second.starts_with('p') && read && read->bits() >= fewest;
    });
    if (trial.survived && as_few && model.prod == "exact") found.insert(model);
  }
  // Far likelier, it is the explanation; else one beside the others, however unlikely some of these are.
  const double keep = std::log(options_.keep_factor);
  if (best_of(found) > before + keep)
    *likely = std::move(found);
  else
    likely->merge(found);
  TryJoinedWider(likely);
}

void Classifier::LookInside(std::set<PrecisionModel>* likely) {
  constexpr int64_t kMostWork = int64_t{1} << 20;
  if (!shape_.has_steps || only_ != nullptr || sample_.empty()) return;
  bool narrow = false;
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    if (!trial.survived || !likely->contains(model)) continue;
    if (IsAsAsked(model)) return;
    if (trial.match.matches == 0) continue;
    const auto acc = ParseAcc(model.acc);
    // Without a sum, steps in 16 bits are steps that are each rounded to 16 bits.
    if (!acc || acc->wide() || shape_.reduction_length < 2) return;
    narrow = true;
  }
  const auto own = [this](const std::string& cut) { return cut.starts_with(value_ + "."); };
  if (!std::ranges::all_of(shape_.cut_points, own)) return;
  std::set<PrecisionModel> found = KeepMatching(oracle_.StepBank(value_, observed_.dtype, kMostWork));
  if (found.empty()) return;
  for (const PrecisionModel& model : found) {
    for (const auto& [step, format] : model.cuts) {
      auto& known = shape_.cut_points;
      if (!Contains(known, step)) known.push_back(step);
    }
  }
  // A narrow sum that gives the bits as well is no better than these. Nor is one in an order that was not tried, where nothing but a
  // handful of sums, or what only they read, is rounded: chance gives the totals of one order rounded in another one.
  const auto sums_alone = [this](const PrecisionModel& model) {
    return std::ranges::all_of(model.cuts, [this](const auto& cut) {
      const auto among = [&](const std::vector<std::string>& cuts) { return Contains(cuts, cut.first); };
      return among(shape_.sum_cuts) || among(shape_.term_cuts);
    });
  };
  const auto is_narrow_sum = [](const PrecisionModel& model) {
    const auto acc = ParseAcc(model.acc);
    return acc && !acc->wide() && model.mid == "none" && model.cuts.empty() && model.out.ends_with("_rne");
  };
  // Each by chance in a quarter of cases: more of them than this are less likely so than what is set aside.
  const double totals = static_cast<double>(shape_.sums) * static_cast<double>(shape_.sum_cuts.size());
  const bool few = totals * std::log(4) < std::log(options_.keep_factor);
  if (!narrow && !(few && std::ranges::any_of(found, sums_alone))) likely->clear();
  if (!narrow) std::erase_if(*likely, [&](const PrecisionModel& model) { return !is_narrow_sum(model); });
  likely->merge(found);
  result_.says.clear();
}

bool Classifier::IsFaithful(const Hypothesis& model) const {
  const FloatFormat& format = *FormatOf(observed_.dtype);
  if (stored_.size() < kFaithfulLeast || format.precision > 11) return false;
  bool nearest = true;
  const auto exact = model.Simulate(-1, elements_);
  for (size_t i = 0; i < elements_.size(); ++i) {
    const double error = std::fabs(stored_[i] - exact[i]);
    if (!(error < Ulp(exact[i], format))) return false;
    nearest = nearest && model.Store(exact[i]) == stored_[i];
  }
  return !nearest;
}

bool Classifier::Lean() const {
  constexpr double kByChance = 4;  // standard deviations
  double towards_zero = 0, count = 0;
  for (size_t i = 0; i < stored_.size(); ++i) {
    const double error = (stored_[i] - references_[i].hi) - references_[i].lo;
    if (!std::isfinite(error) || error == 0) continue;
    towards_zero += std::signbit(error) != std::signbit(references_[i].hi) ? 1 : 0;
    ++count;
  }
  return std::fabs(2 * towards_zero - count) > kByChance * std::sqrt(count);
}

std::set<PrecisionModel> Classifier::Proposed(std::span<const Proposal> proposals) {
  std::set<PrecisionModel> likely;
  if (proposals.empty()) return likely;
  const size_t before = trials_.size();
  TryAll(oracle_.Propose(value_, observed_.dtype, proposals));
  const std::set<PrecisionModel> all = Likely();
  bool open = false;
  // Operands in fewer bits that no order shows err no more than the worst order tried does, but for chance. However their products are
  // rounded: what is near enough of one is of the other.
  std::set<PrecisionModel> near;
  for (size_t i = before; i < trials_.size(); ++i) {
    const PrecisionModel& model = trials_[i].hypothesis->model();
    const Residuals& residuals = trials_[i].residuals;
    if (trials_[i].match.matches > 0 || model.in.empty() ||
        residuals.ratio <= 1 + 3 / std::sqrt(static_cast<double>(std::max<size_t>(1, residuals.count))))
      near.insert(WithExactProducts(model));
  }
  // What reads an operand in fewer bits moves all results of its row or column together: so many are one observation of it.
  double best = -kInf;
  for (const Trial& trial : trials_) {
    if (all.contains(trial.hypothesis->model())) best = std::max(best, trial.log_likelihood);
  }
  const double rows = static_cast<double>(ElementCount(observed_.shape)) /
                      static_cast<double>(observed_.shape.empty() ? 1 : observed_.shape.back());
  const double together = std::max(1.0, static_cast<double>(sample_.size()) / std::max(1.0, rows));
  const auto as_likely = [&](const Trial& trial) {
    return trial.survived && !trial.hypothesis->model().in.empty() && std::isfinite(trial.log_likelihood) &&
           Fits(trial) && trial.log_likelihood >= best - together * std::log(options_.keep_factor);
  };
  for (size_t i = before; i < trials_.size(); ++i) {
    const PrecisionModel& model = trials_[i].hypothesis->model();
    const auto acc = ParseAcc(model.acc);
    const bool narrow = acc && acc->bits() < Binary32().precision;
    // Errors tell no bits beside float32's own, nor how they were rounded: those of one order do.
    const bool guarded = acc && acc->has_guard_bits();
    const bool matches = trials_[i].match.matches > 0;
    if ((all.contains(model) || as_likely(trials_[i])) && ((!narrow && !guarded) || matches) &&
        near.contains(WithExactProducts(model)))
      likely.insert(model);
    open = open || (all.contains(model) && narrow && !matches && acc->bits() == bits_);
  }
  // Rounded to so many bits, sums in other orders are mostly the same: results that the nearest order misses more of than orders miss
  // of each other's were rounded on their way too.
  for (size_t i = before; i < trials_.size(); ++i) {
    const Trial& trial = trials_[i];
    const PrecisionModel& model = trial.hypothesis->model();
    if (trial.match.matches > 0 || !likely.contains(model) || bits_ == 0 ||
        model.mid != fmt::format("p{}", bits_))
      continue;
    const size_t apart = OrdersApart(*trial.hypothesis, sample_);
    const double most = static_cast<double>(apart) + 3 * std::sqrt(static_cast<double>(apart) + 1);
    if (static_cast<double>(FewestMisses(*trial.hypothesis, sample_, sample_stored_, sample_.size())) > most)
      likely.erase(model);
  }
  const auto rounded = [this](const PrecisionModel& model) { return model.mid == fmt::format("p{}", bits_); };
  const bool unmatched = std::ranges::any_of(trials_, [&](const Trial& trial) {
    return trial.match.matches == 0 && rounded(trial.hypothesis->model()) &&
           likely.contains(trial.hypothesis->model());
  });
  // Results that all have so few bits may come of sums in as many, of parts that are joined in as many, or of one rounding: no order
  // tells.
  if (open || (unmatched && MayBeJoined())) std::erase_if(likely, rounded);
  // Nor do errors that are as much a narrow sum's as one rounding's.
  if (std::ranges::any_of(likely, [](const PrecisionModel& model) { return model.mid.starts_with('p'); })) {
    for (size_t i = before; i < trials_.size(); ++i) {
      const PrecisionModel& model = trials_[i].hypothesis->model();
      const auto acc = ParseAcc(model.acc);
      if (all.contains(model) && acc && acc->bits() < Binary32().precision) likely.insert(model);
    }
  }
  return likely;
}

bool Classifier::MayBeJoined() {
  if (shape_.has_steps || shape_.reduction_length < kLeastJoined) return false;
  const size_t before = trials_.size();
  const Proposal joined{.in = {}, .acc = fmt::format("split_k(float32,p{})", bits_)};
  TryAll(oracle_.Propose(value_, observed_.dtype, std::span(&joined, 1)));
  const std::set<PrecisionModel> likely = Likely();
  const bool may_be = std::any_of(
      trials_.begin() + static_cast<std::ptrdiff_t>(before), trials_.end(), [&](const Trial& trial) {
        return trial.match.matches == 0 && likely.contains(trial.hypothesis->model());
      });
  trials_.erase(trials_.begin() + static_cast<std::ptrdiff_t>(before), trials_.end());
  return may_be;
}

const Trial* Classifier::Natural(const std::set<PrecisionModel>& likely) const {
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
    // What rounds steps on the way besides is one of many.
    const bool bare = model.mid == "none" && model.cuts.empty();
    if (!plain || (!bare && ++candidates > 16)) continue;
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

bool Classifier::DoubtReading(std::set<PrecisionModel>* likely) {
  constexpr double kLibrary = 2.5, kVanishes = 3;
  constexpr size_t kLeast = 24, kMost = 64, kFew = 12;
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
  // Where a function is flat, a wrong argument does not show: what errs more than rounding does is asked, where it is enough.
  std::vector<int64_t> elements;
  std::vector<double> stored;
  const auto exact = oracle_.References(value_, sample_);
  const auto take = [&](size_t i) {
    elements.push_back(sample_[i]);
    stored.push_back(sample_stored_[i]);
  };
  for (size_t i = 0; i < sample_.size(); ++i) {
    if (std::fabs(ErrorInUlps(exact[i], sample_stored_[i])) > 1) take(i);
  }
  const bool enough = elements.size() >= kFew;
  if (!enough) {
    elements.clear();
    stored.clear();
    for (size_t i = 0; i < std::min(sample_.size(), kMost); ++i) take(i);
  }
  // A form's own steps may err so: each as it is asked for, in float32, gives these results then.
  if (enough && GivenAsAsked(elements, stored)) return false;
  double least = MedianError(oracle_.References(value_, elements), stored) / kVanishes;
  std::string found;
  for (const std::string& tensor : shape_.tensors) {
    for (int bits = kFewestBits; bits < precision; ++bits) {
      const double errors = MedianError(oracle_.ReferencesReading(value_, elements, tensor, bits), stored);
      if (!(errors < least)) continue;
      least = errors;
      found = fmt::format("as if {} were rounded to {} significant bits where it is read", tensor, bits);
    }
  }
  if (found.empty() && shape_.has_steps && enough) found = StepKept(elements, stored);
  if (found.empty() && shape_.has_steps && enough) found = StepsErrors();
  if (found.empty() && shape_.has_steps && enough) found = StepsFactor();
  if (found.empty()) return false;
  result_.says.push_back(found);
  likely->clear();
  return true;
}

bool Classifier::GivenAsAsked(std::span<const int64_t> elements, std::span<const double> stored) const {
  return std::ranges::any_of(trials_, [&](const Trial& trial) {
    const Hypothesis& model = *trial.hypothesis;
    return IsAsAsked(model.model()) && model.model().cuts.empty() &&
           2 * FewestMisses(model, elements, stored, elements.size(), elements.size() / 2) <= elements.size();
  });
}

std::string Classifier::StepKept(std::span<const int64_t> elements, std::span<const double> stored) const {
  // Another form of the op errs too, and as if a step had fewer bits in places: it does not give nearly all the bits.
  constexpr double kNearlyAllOf = 0.9;
  // 1 + tanh in float32 leaves of tanh 23 bits, of a smaller one fewer: so few are no form's doing.
  constexpr int kFewestBits = 9, kMostBits = 21;
  auto most = static_cast<size_t>(std::ceil(kNearlyAllOf * static_cast<double>(elements.size())));
  std::string found;
  for (int bits = kFewestBits; bits <= kMostBits; ++bits) {
    for (const auto& kept : oracle_.StepsKept(value_, observed_.dtype, bits)) {
      const PrecisionModel& model = kept->model();
      if (model.cuts.size() != 1) continue;
      const size_t given = elements.size() - DifferentValues(kept->Stored(-1, elements), stored);
      if (given < most) continue;
      most = given + 1;
      found = fmt::format("{} ({} of {} results that err)", AsIfRounded(model, bits), given, elements.size());
    }
  }
  return found;
}

std::string Classifier::AsIfRounded(const PrecisionModel& kept, int bits) {
  return fmt::format("as if {} inside were rounded to {} significant bits",
                     InsideName(kept.cuts.begin()->first), bits);
}

std::string Classifier::StepsErrors() const {
  // Other forms of an op err in places as if a step had fewer bits: what such a step leaves of all errors is next to nothing.
  constexpr double kMostLeft = 0.1;
  constexpr int kFewestBits = 9, kMostBits = 21;
  const auto plain = std::ranges::find_if(trials_, [this](const Trial& trial) {
    return IsAsAsked(trial.hypothesis->model()) && trial.hypothesis->model().cuts.empty();
  });
  if (plain == trials_.end()) return {};
  const FloatFormat& format = *FormatOf(observed_.dtype);
  for (const int order : {-1, 0}) {
    const auto whole = plain->hypothesis->Simulate(order, sample_);
    for (int bits = kFewestBits; bits <= kMostBits; ++bits) {
      for (const auto& kept : oracle_.StepsKept(value_, observed_.dtype, bits)) {
        if (kept->model().cuts.size() != 1) continue;
        const auto with = kept->Simulate(order, sample_);
        std::vector<double> errors, due;
        for (size_t i = 0; i < sample_.size(); ++i) {
          const double unit = Ulp(whole[i], format);
          if (!std::isfinite(sample_stored_[i]) || !std::isfinite(with[i] / unit)) continue;
          errors.push_back((sample_stored_[i] - whole[i]) / unit);
          due.push_back((with[i] - whole[i]) / unit);
        }
        if (!AreThose(errors, due, static_cast<double>(Distinct(due).size()), kMostLeft)) continue;
        return AsIfRounded(kept->model(), bits);
      }
    }
  }
  return {};
}

std::string Classifier::StepsFactor() const {
  // Products in float32 and constants of it are off by a quarter of this and an eighth.
  constexpr double kFewest = 0x1p-22;
  // Where more of a result is wrong its errors are no longer as large as the step's: 1 + erf leaves nothing of a small one.
  constexpr double kMostOfResult = 0x1p-7, kMostly = 0.75;
  const Trial* plain = PlainFloat32();
  if (plain == nullptr) return {};
  const FloatFormat& format = *FormatOf(observed_.dtype);
  const auto moving = oracle_.MovesOfSteps(value_, sample_, WhichSteps::kAll);
  for (const int order : {-1, 0}) {
    const auto whole = plain->hypothesis->Simulate(order, sample_);
    for (const MovingStep& step : moving) {
      std::vector<double> errors, moves;
      // Every other element is asked by itself: one share is theirs as well as the others'.
      double along[2] = {0, 0}, square[2] = {0, 0};
      for (size_t i = 0; i < sample_.size(); ++i) {
        const double unit = Ulp(whole[i], format), move = step.moves[i] / unit;
        const double error = (sample_stored_[i] - whole[i]) / unit;
        if (!std::isfinite(error) || !std::isfinite(move) ||
            std::fabs(error * unit) > kMostOfResult * std::fabs(whole[i]))
          continue;
        const size_t half = errors.size() % 2;
        along[half] += error * move;
        square[half] += move * move;
        errors.push_back(error);
        moves.push_back(move);
      }
      const double share = (along[0] + along[1]) / (square[0] + square[1]);
      const double one = along[0] / square[0], other = along[1] / square[1];
      if (!(std::fabs(share) > kFewest) || !(std::min(one / other, other / one) >= kMostly) ||
          static_cast<double>(errors.size()) < kMostly * static_cast<double>(sample_.size()))
        continue;
      for (double& move : moves) move *= share;
      if (!AreThose(errors, moves, static_cast<double>(Distinct(moves).size()) - 1)) continue;
      return fmt::format("as if {} inside were too {} by {:.1e} of itself in every element",
                         StepInside(step.name, value_), share > 0 ? "large" : "small", std::fabs(share));
    }
  }
  return {};
}

const Trial* Classifier::PlainFloat32() const {
  const Trial* plain = nullptr;
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    if (model.acc != "float32" || !model.cuts.empty() || !IsAsAsked(model)) continue;
    if (trial.survived) return &trial;
    if (plain == nullptr) plain = &trial;
  }
  return plain;
}

double Classifier::Beyond() const {
  constexpr size_t kFewest = 16;
  constexpr int64_t kMostWork = int64_t{1} << 20;
  // One result may be where a library's function is at its worst.
  constexpr double kTwice = 2, kOfLargest = 3;
  const Trial* plain = PlainFloat32();
  if (plain == nullptr || !IsKept(*plain) || plain->further >= 0 || sample_.size() < kFewest) return 0;
  const bool every = WorkOfOrders(*plain->hypothesis, elements_.size()) <= kMostWork;
  const std::vector<int64_t>& elements = every ? elements_ : sample_;
  const auto centre = plain->hypothesis->Simulate(-1, elements);
  std::vector<std::vector<double>> runs;
  const auto names = plain->hypothesis->orders();
  for (const int order : plain->hypothesis->Orders()) {
    // Errors of functions that are drawn are larger than libraries' are.
    if (order < 0 || !names[static_cast<size_t>(order)].ends_with(kInexact))
      runs.push_back(plain->hypothesis->Stored(order, elements));
  }
  // A root mean square and the largest, of what both are numbers of.
  const auto measure = [&](const std::vector<double>& values, const std::vector<double>& unit) {
    std::pair<double, double> measured;
    for (size_t i = 0; i < values.size(); ++i) {
      const double error = std::fabs(values[i] - centre[i]) / unit[i];
      if (!std::isfinite(error)) continue;
      measured.first = std::hypot(measured.first, error);
      measured.second = std::max(measured.second, error);
    }
    return measured;
  };
  const auto beyond = [&](const std::vector<double>& unit) {
    const auto [all, largest] = measure(every ? stored_ : sample_stored_, unit);
    double most_all = 0, most_largest = 0;
    for (const auto& run : runs) {
      const auto [own_all, own_largest] = measure(run, unit);
      most_all = std::max(most_all, own_all);
      most_largest = std::max(most_largest, own_largest);
    }
    if (!(most_all > 0)) return 0.0;
    const double ratio = all / most_all, of_largest = largest / most_largest;
    return ratio > kTwice ? ratio : of_largest > kOfLargest ? of_largest : 0;
  };
  std::vector<double> unit(elements.size(), 1);
  if (const double found = beyond(unit); found > 0 || shape_.reduction_length == 0) return found;
  // Of a line's elements the largest alone would count: each in what it errs by itself.
  for (size_t i = 0; i < elements.size(); ++i) {
    unit[i] = Ulp(centre[i], Binary32());
    for (const auto& run : runs) unit[i] = std::max(unit[i], std::fabs(run[i] - centre[i]));
  }
  return beyond(unit);
}

Classifier::Nearness Classifier::NearnessToFloat32(const Hypothesis& plain) const {
  constexpr int64_t kMostWork = int64_t{1} << 24;
  const bool other_steps = shape_.has_steps && !shape_.is_mean;
  if (other_steps || shape_.reduction_length < 2) return {};
  if (WorkOfOrders(plain, elements_.size()) > kMostWork) return {};
  const FloatFormat& format = *FormatOf(observed_.dtype);
  // What an element may err by in any order is what its errors are measured in: these inputs hold numbers of many sizes.
  std::vector<double> unit;
  for (size_t i = 0; i < elements_.size(); ++i) {
    const Interval range = plain.Enclose(elements_[i]);
    unit.push_back(std::max(range.hi - range.lo, Ulp(references_[i].hi, format)));
  }
  plain.Forget();
  struct Errors {
    double squares = 0, largest = 0;
  };
  const auto errors_of = [&](const std::vector<double>& stored) {
    Errors errors;
    for (size_t i = 0; i < stored.size(); ++i) {
      const double one = DistanceFrom(references_[i], stored[i]) / unit[i];
      errors.squares += one * one;
      errors.largest = std::max(errors.largest, std::isnan(one) ? kInf : one);
    }
    return errors;
  };
  const Errors own = errors_of(stored_);
  Errors float32;
  // Far more than one rounding of the result errs by.
  constexpr double kOfSums = 2;
  constexpr size_t kFewest = 16;
  std::vector<bool> of_sums(elements_.size());
  const auto orders = plain.Orders();
  for (const int order : orders) {
    const std::vector<double> results = plain.Stored(order, elements_);
    for (size_t i = 0; i < results.size(); ++i) {
      if (DistanceFrom(references_[i], results[i]) > kOfSums * Ulp(references_[i].hi, format))
        of_sums[i] = true;
    }
    const Errors one = errors_of(results);
    float32.squares += one.squares / static_cast<double>(orders.size());
    float32.largest = std::max(float32.largest, one.largest);
  }
  const Errors plain_sums = float32;
  // A mean has other forms, which round where a sum of few bits is exact: as large as the errors of any of them.
  const size_t forms = shape_.is_mean ? plain.further_orders().size() : 0;
  for (size_t form = 0; form < forms; ++form) {
    const Errors one = errors_of(plain.StoredFurther(form, elements_));
    float32.squares = std::max(float32.squares, one.squares);
    float32.largest = std::max(float32.largest, one.largest);
  }
  const bool of_forms = float32.squares > plain_sums.squares || float32.largest > plain_sums.largest;
  if (!(float32.squares > 0) || !std::isfinite(float32.squares)) return {};
  const double ratio = std::max(std::sqrt(own.squares / float32.squares), own.largest / float32.largest);
  if (ratio > kNearFloat32) return {};
  return {.ratio = std::max(ratio, 0.01),
          .of_forms = of_forms,
          .of_sums = static_cast<size_t>(std::ranges::count(of_sums, true)) >=
                     std::max(kFewest, (elements_.size() + 1) / 2)};
}

void Classifier::MeasureBeyond(std::set<PrecisionModel>* likely) {
  if (only_ != nullptr || !result_.says.empty() || likely->empty()) return;
  result_.beyond = Beyond();
  // What libraries' functions err by: beside steps that happen to be exact that is a large multiple of nothing.
  constexpr double kNoFunction = 10, kUnits = 4;
  if (shape_.reduction_length > 0 || result_.beyond <= kNoFunction || result_.max_ulp <= kUnits) return;
  result_.says.push_back(fmt::format(
      "errors {:.1f} times those of its steps in float32, and no step in fewer bits explains them",
      std::exchange(result_.beyond, 0)));
  likely->clear();
}

double Classifier::ErrorInUlps(const Reference& reference, double stored) const {
  return (stored - reference.hi) / Ulp(stored, *FormatOf(observed_.dtype));
}

double Classifier::MedianError(std::span<const Reference> references, std::span<const double> stored) const {
  std::vector<double> errors;
  for (size_t i = 0; i < references.size(); ++i) {
    const double error = ErrorInUlps(references[i], stored[i]);
    if (std::isfinite(error)) errors.push_back(std::fabs(error));
  }
  if (errors.empty()) return 0;
  const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
  std::nth_element(errors.begin(), middle, errors.end());
  return *middle;
}

}  // namespace ulpscope
