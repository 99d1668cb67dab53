// Roundings of the total before the output rounding, and outputs that are not rounded to nearest.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/judge/classifier.h"
#include "harness/judge/rule_numbers.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {

bool Classifier::IsAuxiliaryInFloat32() const {
  return HardOnly() && FormatOf(observed_.dtype)->precision == Binary32().precision;
}

bool Classifier::AsksBitsBeforeStore() const {
  const int precision = FormatOf(observed_.dtype)->precision;
  // A float32 store shows all bits of the case's own data. Further inputs are made for results of few bits: block units that cut and a
  // sum that is rounded may give all of these alike.
  const bool further = IsAuxiliaryInFloat32();
  // A further input that nothing listed gives is not yet one of a sum that is not listed.
  const bool unexplained = HardOnly() && now_.likely.empty();
  if ((now_.likely.empty() && !unexplained) || only_ != nullptr || shape_.has_steps) return false;
  if (precision > Binary16().precision && !further) return false;
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    if (further || !trial.survived || !now_.likely.contains(model)) continue;
    const AccSpec& acc = model.acc;
    if (!model.in.empty() && std::ranges::all_of(model.in, IsSplit)) continue;
    if (!model.in.empty() || acc.exact()) return false;
    // Of sums in 16 bits some order gives the bits, or it is a few results that ask for such errors and not the rest.
    const bool unseen = !HardOnly() && acc.bits() < Binary32().precision && trial.match.matches == 0;
    if (acc.binary() && acc.rounding == Rounding::kNearestEven && !unseen) return false;
  }
  return true;
}

std::vector<Proposal> Classifier::BitsBeforeStore() const {
  std::vector<Proposal> proposals;
  const int precision = FormatOf(observed_.dtype)->precision;
  const int fewest = (IsAuxiliaryInFloat32() ? Bfloat16().precision : precision) + 1;
  for (int bits = fewest; bits < Binary32().precision; ++bits) {
    proposals.push_back({.in = {}, .mid = ToBits(bits)});
    if (HardOnly()) continue;
    proposals.push_back({.in = {}, .acc = SumsIn(FormatOfBits(bits))});
    if (shape_.has_products) proposals.push_back({.in = {}, .prod = ToBits(bits)});
  }
  return proposals;
}

void Classifier::TryBitsBeforeStore() {
  if (sample_.empty()) ChooseSample();
  const std::vector<Proposal> proposals = BitsBeforeStore();
  auto found = KeepMatching(oracle_.Propose(value_, observed_.dtype, proposals));
  if (found.empty() && IsAuxiliaryInFloat32() && !now_.likely.empty() && !IsOrderKnown())
    found = KeepHolding(proposals);
  if (found.empty()) return;
  if (HardOnly()) {
    now_.likely.merge(found);
    return;
  }
  // Of tens of roundings in thousands of orders one gives a sample by chance, and not what is beside it. Where float32 gives all but a
  // handful, so does one of these by chance: none is told from the others.
  const auto [elements, stored] = AffordableElements();
  const auto [given, handful] = DropMissing(elements, stored, &found);
  now_.likely.insert(found.begin(), found.end());
  if (found.empty()) return;
  if (!given && handful < kByChance) {
    auto others = oracle_.Propose(value_, observed_.dtype, proposals);
    std::erase_if(others, [&](const auto& hypothesis) { return found.contains(hypothesis->model()); });
    now_.likely.merge(KeepMatching(std::move(others), elements, stored, MostMisses()));
    DoubtManyWidths(handful, elements.size());
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
  std::erase_if(now_.likely, [&](const PrecisionModel& model) { return !near.contains(model); });
}

size_t Classifier::MostMisses() const {
  return static_cast<size_t>(std::ceil(std::log(options_.keep_factor)));
}

Classifier::GivenBits Classifier::DropMissing(std::span<const int64_t> elements,
                                              std::span<const double> stored,
                                              std::set<PrecisionModel>* found) const {
  const size_t most = MostMisses();
  GivenBits bits{.handful = kByChance};
  const Trial* plain = PlainFloat32();
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    const bool listed = trial.match.matches > 0 && now_.likely.contains(model);
    if (listed || found->contains(model)) {
      const size_t misses = FewestMisses(*trial.hypothesis, elements, stored, most);
      bits.by_listed = bits.by_listed || (listed && misses == 0);
      if (misses >= most) found->erase(model);
    } else if (&trial == plain) {
      bits.handful = FewestMisses(*trial.hypothesis, elements, stored, kByChance);
    }
  }
  return bits;
}

/// Sums of so many widths that some order of each gives what float32 does not, and a rounding of the total beside them: none of them is an
/// explanation.
void Classifier::DoubtManyWidths(size_t handful, size_t elements) {
  const auto in_bits = [](const PrecisionModel& model) {
    return model.acc.in_bits() && model.mid.none() && model.prod.none();
  };
  const bool wide = std::ranges::any_of(now_.likely, [this](const auto& model) { return IsAsAsked(model); });
  if (handful == 0 || wide || std::ranges::count_if(now_.likely, in_bits) < kManyWidths) return;
  result_.says.push_back(
      {RemarkKind::kOrder,
       fmt::format("one order of float32 sums gives all but {} of {} results, and nothing tells how the "
                   "others were rounded",
                   handful, elements)});
  now_.likely.clear();
}

bool Classifier::HasProductsInFloat16(const PrecisionModel& model) {
  return model.prod.rounds_to(Binary16());
}

void Classifier::TryProductsInTf32() {
  std::vector<Proposal> proposals;
  for (const PrecisionModel& model : now_.likely) {
    if (!model.in.empty() || !model.cuts.empty()) continue;
    proposals.push_back({.in = {}, .acc = model.acc, .mid = model.mid, .prod = ToBits(Tf32().precision)});
  }
  if (proposals.empty()) return;
  const size_t before = trials_.size();
  TryAll(oracle_.Propose(value_, observed_.dtype, proposals));
  const std::set<PrecisionModel> all = Likely();
  for (size_t i = before; i < trials_.size(); ++i) {
    if (all.contains(trials_[i].hypothesis->model())) now_.likely.insert(trials_[i].hypothesis->model());
  }
  // Out of float16's range the one of them is the likelier by far.
  std::erase_if(now_.likely, [&](const PrecisionModel& model) {
    return HasProductsInFloat16(model) && !all.contains(model);
  });
}

void Classifier::DoubtTwice() {
  const FloatFormat* first = nullptr;
  const FloatFormat* second = nullptr;
  for (const PrecisionModel& model : now_.likely) {
    if (!model.in.empty() || model.mid.none() || model.mid.bits() >= model.acc.bits()) return;
    second = model.mid.format;
    for (const FloatFormat* format : {&Binary16(), &Bfloat16()}) {
      if (format->precision == model.acc.bits()) first = format;
    }
  }
  if (first == nullptr) return;
  const FloatFormat& format = *FormatOf(observed_.dtype);
  const auto exact = oracle_.References(value_, sample_);
  size_t given = 0;
  for (size_t i = 0; i < sample_.size(); ++i) {
    const double once = RoundTo(exact[i].value(), *first);
    given += RoundTo(RoundTo(once, *second), format) == sample_stored_[i] ? 1 : 0;
  }
  if (static_cast<double>(given) < kRoundedTwice * static_cast<double>(sample_.size())) return;
  result_.says.push_back(
      {RemarkKind::kChange, fmt::format("as if the sum were rounded to {} and then to {} ({} of {} results)",
                                        first->name, second->name, given, sample_.size())});
  now_.likely.clear();
  now_.rounded_twice = true;
}

void Classifier::TryFaithful() {
  double best = -kInf;
  size_t runs = 0;
  bool matched = false;
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    if (!trial.survived || !now_.likely.contains(model)) continue;
    if (trial.hypothesis->order_free() || !model.acc.wide()) return;
    best = std::max(best, trial.log_likelihood);
    runs += trial.hypothesis->orders().size();
    matched = matched || trial.match.matches > 0;
  }
  // Which neighbour is kept is a matter of chance, as a stochastic rounding has it: the nearer one the likelier.
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
  if (others == 0 || static_cast<double>(others) < due - kFewerFarther * std::sqrt(variance)) return;
  // An order that gives every bit explains them, unless one among so many is likely to.
  if (matched && agree + std::log(static_cast<double>(runs)) < -std::log(options_.keep_factor)) return;
  const Proposal proposal{.in = {}, .acc = {}, .out = {.format = &format, .faithful = true}};
  for (auto& hypothesis : oracle_.Propose(value_, observed_.dtype, std::span(&proposal, 1))) {
    Trial trial;
    trial.hypothesis = std::move(hypothesis);
    Try(&trial, 0, elements_.size());
    trial.hypothesis->Forget();
    if (!trial.survived) continue;
    // Never what others are measured against.
    trial.log_likelihood = best - 1e-6;
    trial.residuals.fits = true;
    now_.likely.insert(trial.hypothesis->model());
    trials_.push_back(std::move(trial));
  }
}

}  // namespace ulpscope
