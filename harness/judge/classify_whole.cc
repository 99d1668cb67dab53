// Every element: gross errors, special values, and how many bits the results use.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "harness/base/text.h"
#include "harness/judge/classifier.h"
#include "harness/judge/sample.h"
#include "harness/judge/where.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {

bool Classifier::IsOdd(const Hypothesis& model, double reach, int64_t element, double stored,
                       const Interval& sum) const {
  if (!std::isfinite(stored) || !std::isfinite(sum.lo) || !std::isfinite(sum.hi) || sum.special)
    return IsOddSpecial(model, element, stored, sum);
  if (FormatOf(observed_.dtype)->precision > 51) return !model.Enclose(element).Holds(stored);
  if (reach >= 1) return stored < model.Store(sum.lo) || stored > model.Store(sum.hi);
  // One step outwards: halves of an interval of two neighbours would round back to one of them.
  const double centre = sum.lo + (sum.hi - sum.lo) / 2, radius = (sum.hi - sum.lo) / 2 * reach;
  return stored < model.Store(std::nextafter(centre - radius, -kInf)) ||
         stored > model.Store(std::nextafter(centre + radius, kInf));
}

std::vector<int64_t> Classifier::OddOf(const Hypothesis& model, double reach,
                                       const std::vector<int64_t>& elements) const {
  std::vector<int64_t> odd;
  for (const int64_t element : elements) {
    if (IsOdd(model, reach, element, observed_.At(element), model.EncloseUnstored(element)))
      odd.push_back(element);
  }
  return odd;
}

void Classifier::LookEverywhere(const Trial* natural, std::set<PrecisionModel>* likely) {
  if (only_ != nullptr) return;
  const int64_t most = options_.most_terms / std::max<int64_t>(1, shape_.terms);
  const auto looked = ElementsToCheck(observed_.shape, most);
  looked_ = static_cast<int64_t>(looked.size());
  std::vector<int64_t> odd =
      OddOf(*natural->hypothesis, likely->empty() ? 1 : Reach(*natural->hypothesis), looked);
  CountBits(*natural->hypothesis, looked, likely);
  if (!odd.empty()) {
    // Another model may explain what the first one does not. Sums that are cut, none of whose orders gives the bits, only have room for it.
    const auto is_guess = [](const Trial& trial) {
      const auto acc = ParseAcc(trial.hypothesis->model().acc);
      return trial.match.matches == 0 && acc && (acc->block > 0 || acc->rounding == Rounding::kTowardZero);
    };
    std::vector<const Trial*> rivals;
    for (const Trial& trial : trials_) {
      if (trial.survived && likely->contains(trial.hypothesis->model()) &&
          (is_guess(*natural) || !is_guess(trial)))
        rivals.push_back(&trial);
    }
    std::ranges::stable_sort(
        rivals, [](const Trial* a, const Trial* b) { return a->log_likelihood > b->log_likelihood; });
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
  std::ranges::sort(odd);
  odd.erase(std::unique(odd.begin(), odd.end()), odd.end());
  odd_ = odd;
  if (odd.empty()) return;
  if (!likely->empty() || odd.size() < looked.size()) SayWhere(*natural->hypothesis, looked, odd);
  likely->clear();
  const auto zeros = static_cast<size_t>(
      std::ranges::count_if(odd, [&](const int64_t element) { return observed_.At(element) == 0; }));
  if (zeros == odd.size() && odd.size() > 1)
    result_.says.push_back(fmt::format("{} results are zero", zeros));
}

void Classifier::CountBits(const Hypothesis& natural, const std::vector<int64_t>& looked,
                           std::set<PrecisionModel>* likely) {
  constexpr int64_t kNoAccident = 48;  // 2^-48: no accident in the judgements of many lives
  constexpr int64_t kFewer = 32;       // fewer bits than every order tried leaves
  // Half of the results have a last bit of their own: where a sum would leave 16 of them one, 32 are without it, by 2^-32.
  constexpr int64_t kNoLastBits = 16;
  constexpr int64_t kChance = 20;  // 2^-20: what likelihood sets aside
  const FloatFormat& format = *FormatOf(observed_.dtype);
  int bits = 0;
  int64_t with_last = 0, numbers = 0;  // results whose last bit, of those that any has, is set
  for (const int64_t element : looked) {
    const double stored = observed_.At(element);
    if (stored == 0 || !std::isfinite(stored)) continue;
    const int own = SignificantBits(stored);
    if (own > bits) with_last = 0;
    bits = std::max(bits, own);
    with_last += own == bits ? 1 : 0;
    ++numbers;
    if (bits >= format.precision) return;
  }
  if (bits < 2) return;
  const auto note_perhaps = [&] {
    const auto rounds = [&](const PrecisionModel& model) {
      return model.mid != "none" && StoresIn(model, bits);
    };
    if (std::ranges::none_of(*likely, rounds)) perhaps_bits_ = bits;
  };
  const Missing missing = MissingByBounds(natural, looked, bits);
  const bool last = bits == format.precision - 1;
  const int64_t enough = last ? kNoLastBits : kFewer;
  // What is the last bit of a sum depends on its order: bounds do not tell.
  if (!last && missing.bits >= kNoAccident) {
    const size_t before = likely->size();
    // Of a few results in one bit more all may have a zero there: beside these, so few bits are one guess among others.
    const int room = static_cast<int>(kChance / static_cast<int64_t>(looked.size()));
    std::erase_if(*likely, [&](const PrecisionModel& model) { return !StoresIn(model, bits + room); });
    if (likely->size() < before) EraseGuesses(likely);
    if (!likely->empty()) {
      note_perhaps();
      return;
    }
  } else if (shape_.has_steps) {
    return;
  } else if (likely->empty()) {
    if (MissingByOrders(natural, static_cast<int64_t>(looked.size()), bits) < enough) return;
  } else {
    // Bounds count as if the largest terms were added last. Orders tell what is left of the last bits of smaller ones. Whether
    // products are rounded first says nothing of that: the orders of either are orders of both.
    std::map<PrecisionModel, int64_t> wants;
    for (const Trial& trial : trials_) {
      const PrecisionModel& model = trial.hypothesis->model();
      if (!likely->contains(model) || StoresIn(model, bits)) continue;
      int64_t& most = wants[WithExactProducts(model)];
      most = std::max(most, MissingByOrders(*trial.hypothesis, static_cast<int64_t>(looked.size()), bits));
    }
    const size_t before = likely->size();
    std::erase_if(*likely, [&](const PrecisionModel& model) {
      const auto want = wants.find(WithExactProducts(model));
      return !StoresIn(model, bits) && want != wants.end() && want->second >= enough;
    });
    if (likely->size() < before) EraseGuesses(likely);
    if (!likely->empty()) {
      // A narrow sum wants few bits; a wide one that was rounded once would have them by no accident, where the exact one has more.
      int64_t more = 0;
      for (const Reference& exact : oracle_.References(value_, looked)) {
        if (std::isfinite(exact.hi))
          more += std::max(0, SignificantBits(RoundTo(exact.value(), format)) - bits);
      }
      // Where terms cancel, a wide sum wants few as well.
      const bool wide =
          std::ranges::any_of(*likely, [&](const PrecisionModel& model) { return IsAsAsked(model); });
      if (!last && !wide && more >= kNoAccident) note_perhaps();
      return;
    }
  }
  const std::string more = missing.results == 0 ? "fewer than any order tried leaves"
                                                : fmt::format("of which {} want more", missing.results);
  // To nearest, half of all results have their last bit.
  to_odd_ = numbers >= kNoAccident && with_last * 20 >= numbers * 19;
  const std::string odd =
      to_odd_ ? fmt::format("; bit {} is set in {} of them, as rounding to odd leaves it", bits, with_last)
              : "";
  result_.says.push_back(
      fmt::format("at most {} significant bits in {} results, {}{}", bits, looked.size(), more, odd));
  bits_ = bits;
}

void Classifier::EraseGuesses(std::set<PrecisionModel>* likely) const {
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    const auto acc = ParseAcc(model.acc);
    if (trial.match.matches == 0 && acc && !acc->wide()) likely->erase(model);
  }
}

Classifier::Missing Classifier::MissingByBounds(const Hypothesis& model, const std::vector<int64_t>& looked,
                                                int bits) const {
  constexpr int kFarFewer = 8;
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
    // Where steps inside an op come to an end of their own, as the tanh of a large number does, the result is an operand or nothing: it
    // has far fewer bits than any rounding leaves, and tells of none.
    const double stored = observed_.At(element);
    if (shape_.has_steps && (stored == 0 || SignificantBits(stored) + kFarFewer <= bits)) continue;
    missing.results += want > bits ? 1 : 0;
    missing.bits += std::max(0, want - bits);
  }
  return missing;
}

int64_t Classifier::MissingByOrders(const Hypothesis& model, int64_t looked, int bits) const {
  if (sample_.empty()) return 0;
  int64_t fewest = std::numeric_limits<int64_t>::max();
  for (const int order : model.Orders()) {
    int64_t missing = 0;
    for (const double stored : model.Stored(order, sample_)) {
      if (std::isfinite(stored)) missing += std::max(0, SignificantBits(stored) - bits);
    }
    fewest = std::min(fewest, missing);
  }
  return fewest * looked / static_cast<int64_t>(sample_.size());
}

bool Classifier::StoresIn(const PrecisionModel& model, int bits) const {
  const auto few = [bits](const std::string& word) {
    const auto spec = ParseMid(word);
    return spec && spec->format != nullptr && spec->format->precision <= bits;
  };
  if (const auto acc = ParseAcc(model.acc); acc && acc->bits() <= bits) return true;
  if (model.cuts.empty()) return few(model.mid);
  // What is stored inside the op is computed with afterwards.
  return std::ranges::any_of(
      model.cuts, [&](const auto& cut) { return !cut.first.starts_with(value_ + ".") && few(cut.second); });
}

void Classifier::TryPerhapsBits(std::set<PrecisionModel>* likely) {
  if (perhaps_bits_ == 0 || likely->empty()) return;
  bits_ = perhaps_bits_;
  const Proposal rounded{.in = {}, .acc = "float32", .mid = fmt::format("p{}", bits_)};
  likely->merge(Proposed(std::span(&rounded, 1)));
  bits_ = 0;
}

bool Classifier::IsOddSpecial(const Hypothesis& model, int64_t element, double stored, Interval sum) const {
  if (!std::isfinite(stored) && !model.Enclose(element).Holds(stored)) return true;
  if (std::isfinite(stored) && std::isnan(sum.lo)) return true;
  if (std::isfinite(sum.lo) && std::isfinite(sum.hi)) return false;
  const Reference reference = oracle_.References(value_, std::span(&element, 1)).front();
  if (reference.kind != ReferenceKind::kDomain) return false;
  // A NaN stays one. An infinity may become one, where the other terms can overflow to its opposite on the way.
  if (std::isnan(reference.hi) || std::isfinite(stored)) return !std::isnan(stored);
  return stored != reference.hi && !sum.special;
}

double Classifier::Reach(const Hypothesis& model) const {
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

bool Classifier::AreOthersGiven(const Hypothesis& natural, const std::vector<int64_t>& odd) const {
  const std::set<int64_t> out(odd.begin(), odd.end());
  std::vector<int64_t> others;
  std::vector<double> stored;
  for (size_t i = 0; i < sample_.size(); ++i) {
    if (out.contains(sample_[i])) continue;
    others.push_back(sample_[i]);
    stored.push_back(sample_stored_[i]);
  }
  return others.empty() || FewestMisses(natural, others, stored, 1) == 0;
}

void Classifier::SayWhere(const Hypothesis& natural, const std::vector<int64_t>& looked,
                          const std::vector<int64_t>& odd) {
  // Results that all lack bits are wrong everywhere, and stand out where they happen to lose more.
  const auto place = bits_ > 0 ? std::nullopt : PlaceOf(observed_.shape, looked, odd);
  if (!place) {
    const PrecisionModel& model = natural.model();
    const std::string example = Join(Coordinates(odd[0], observed_.shape), ", ");
    // What is rounded on the way, or leaves room for a library's function, is no measure of the exact value.
    const bool plain_sum = !natural.order_free() && !shape_.has_steps && model.in.empty() &&
                           model.cuts.empty() && model.mid == "none";
    if (plain_sum) {
      result_.says.push_back(
          fmt::format("{} of {} elements are further from the exact value than a sum in {} comes, e.g. [{}]",
                      odd.size(), looked.size(), model.acc, example));
      return;
    }
    result_.says.push_back(
        fmt::format("{} of {} elements lie outside what the plainest computation allows, e.g. [{}]",
                    odd.size(), looked.size(), example));
    return;
  }
  constexpr size_t kLeast = 8;
  const size_t inside = place->inside.size();
  // Of a few that stand out the others may be off by less, where no order gives them.
  const bool only =
      inside >= kLeast || natural.order_free() || shape_.has_steps || AreOthersGiven(natural, odd);
  result_.says.push_back(
      (only ? "wrong only in " : "wrong in ") + place->words +
      (odd.size() < inside ? fmt::format(" ({} of these {} elements)", odd.size(), inside) : ""));
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

}  // namespace ulpscope
