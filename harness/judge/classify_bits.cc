// How many significant bits the results use, and which models leave so few.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>

#include "harness/judge/classifier.h"
#include "harness/judge/rule_numbers.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {

std::optional<Classifier::BitsInUse> Classifier::CountBitsInUse() const {
  const int precision = FormatOf(observed_.dtype)->precision;
  BitsInUse used;
  for (const int64_t element : now_.looked) {
    const double stored = observed_.At(element);
    if (stored == 0 || !std::isfinite(stored)) continue;
    const int own = SignificantBits(stored);
    if (own > used.bits) used.with_last = 0;
    used.bits = std::max(used.bits, own);
    used.with_last += own == used.bits ? 1 : 0;
    ++used.numbers;
    if (used.bits >= precision) return std::nullopt;
  }
  if (used.bits < 2) return std::nullopt;
  return used;
}

void Classifier::NotePerhapsBits(int bits) {
  const auto rounds = [&](const PrecisionModel& model) { return !model.mid.none() && StoresIn(model, bits); };
  if (std::ranges::none_of(now_.likely, rounds)) now_.perhaps_bits = bits;
}

void Classifier::DropByBounds(int bits) {
  const size_t before = now_.likely.size();
  // Of a few results in one bit more all may have a zero there: beside these, so few bits are one guess among others.
  const int room = static_cast<int>(kChanceBits / static_cast<int64_t>(now_.looked.size()));
  std::erase_if(now_.likely, [&](const PrecisionModel& model) { return !StoresIn(model, bits + room); });
  if (now_.likely.size() < before) EraseGuesses();
  if (!now_.likely.empty()) NotePerhapsBits(bits);
}

void Classifier::DropByOrders(int bits, int64_t enough) {
  // Bounds count as if the largest terms were added last. Orders tell what is left of the last bits of smaller ones. Whether products are
  // rounded first says nothing of that: the orders of either are orders of both.
  const auto looked = static_cast<int64_t>(now_.looked.size());
  std::map<PrecisionModel, int64_t> wants;
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    if (!now_.likely.contains(model) || StoresIn(model, bits)) continue;
    int64_t& most = wants[WithExactProducts(model)];
    most = std::max(most, MissingByOrders(*trial.hypothesis, looked, bits));
  }
  const size_t before = now_.likely.size();
  std::erase_if(now_.likely, [&](const PrecisionModel& model) {
    const auto want = wants.find(WithExactProducts(model));
    return !StoresIn(model, bits) && want != wants.end() && want->second >= enough;
  });
  if (now_.likely.size() < before) EraseGuesses();
}

bool Classifier::WantsMoreBits(int bits) const {
  const FloatFormat& format = *FormatOf(observed_.dtype);
  int64_t more = 0;
  for (const Reference& exact : oracle_.References(value_, now_.looked)) {
    if (std::isfinite(exact.hi)) more += std::max(0, SignificantBits(RoundTo(exact.value(), format)) - bits);
  }
  return more >= kNoAccident;
}

void Classifier::CountBits() {
  const auto used = CountBitsInUse();
  if (!used) return;
  const auto [bits, with_last, numbers] = *used;
  const Hypothesis& baseline = *now_.baseline->hypothesis;
  const Missing missing = MissingByBounds(baseline, now_.looked, bits);
  const bool last = bits == FormatOf(observed_.dtype)->precision - 1;
  const int64_t enough = last ? kNoLastBits : kFewerBits;
  // What is the last bit of a sum depends on its order: bounds do not tell.
  if (!last && missing.bits >= kNoAccident) {
    DropByBounds(bits);
    if (!now_.likely.empty()) return;
  } else if (now_.likely.empty()) {
    if (MissingByOrders(baseline, static_cast<int64_t>(now_.looked.size()), bits) < enough) return;
  } else {
    DropByOrders(bits, enough);
    if (!now_.likely.empty()) {
      // A narrow sum wants few bits; a wide one that was rounded once would have them by no accident, where the exact one has more. Where
      // terms cancel, a wide sum wants few as well.
      const bool more = WantsMoreBits(bits);
      const bool wide =
          std::ranges::any_of(now_.likely, [&](const PrecisionModel& model) { return IsAsAsked(model); });
      if (!last && !wide && more) NotePerhapsBits(bits);
      return;
    }
  }
  const std::string more = missing.results == 0 ? "fewer than any order tried leaves"
                                                : fmt::format("of which {} want more", missing.results);
  // To nearest, half of all results have their last bit.
  now_.to_odd = numbers >= kNoAccident && with_last * 20 >= numbers * 19;
  const std::string odd =
      now_.to_odd
          ? fmt::format("; bit {} is set in {} of them, as rounding to odd leaves it", bits, with_last)
          : "";
  result_.says.push_back({RemarkKind::kBits, fmt::format("at most {} significant bits in {} results, {}{}",
                                                         bits, now_.looked.size(), more, odd)});
  now_.bits = bits;
}

void Classifier::EraseGuesses() {
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    if (trial.match.matches == 0 && !model.acc.wide()) now_.likely.erase(model);
  }
}

Classifier::Missing Classifier::MissingByBounds(const Hypothesis& model, const std::vector<int64_t>& looked,
                                                int bits) const {
  const FloatFormat& format = *FormatOf(observed_.dtype);
  const bool exact_sum = model.model().acc.exact();
  Missing missing;
  for (const int64_t element : looked) {
    const Interval sum = model.EncloseUnstored(element);
    if (!std::isfinite(sum.lo) || !std::isfinite(sum.hi)) continue;
    double value = RoundTo(sum.lo + (sum.hi - sum.lo) / 2, format);
    // Where larger terms cancel, what is left is a multiple of their last bits, and no rounding of the result.
    if (!exact_sum && shape_.terms > 1) {
      const double step = (sum.hi - sum.lo) / 2 / static_cast<double>(shape_.terms);
      const double quantum = std::ldexp(1.0, std::ilogb(std::max(step, 0x1p-1000)));
      value = std::nearbyint(value / quantum) * quantum;
    }
    const int want = SignificantBits(value);
    // Where steps inside an op come to an end of their own, as the tanh of a large number does, the result is an operand or nothing: it
    // has far fewer bits than any rounding leaves, and tells of none.
    const double stored = observed_.At(element);
    if (shape_.has_steps && (stored == 0 || SignificantBits(stored) + kFarFewerBits <= bits)) continue;
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
  const auto few = [bits](const RoundSpec& rounding) { return rounding.bits() <= bits; };
  if (model.acc.bits() <= bits) return true;
  if (model.cuts.empty()) return few(model.mid);
  // What is stored inside the op is computed with afterwards.
  return std::ranges::any_of(
      model.cuts, [&](const auto& cut) { return !cut.first.starts_with(value_ + ".") && few(cut.second); });
}

void Classifier::TryPerhapsBits() {
  now_.bits = now_.perhaps_bits;
  const Proposal rounded{.in = {}, .mid = ToBits(now_.bits)};
  now_.likely.merge(Proposed(std::span(&rounded, 1)));
  now_.bits = 0;
}

}  // namespace ulpscope
