// Steps inside an op, and operands, that are in fewer bits than the program states.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/base/find.h"
#include "harness/judge/classifier.h"
#include "harness/judge/label.h"
#include "harness/judge/rule_numbers.h"
#include "harness/judge/same_errors.h"
#include "harness/model/conforming.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {

void Classifier::LookInside() {
  bool narrow = false;
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    if (!trial.survived || !now_.likely.contains(model)) continue;
    if (IsAsAsked(model)) return;
    if (trial.match.matches == 0) continue;
    // Without a sum, steps in 16 bits are steps that are each rounded to 16 bits.
    if (model.acc.wide() || shape_.reduction_length < 2) return;
    narrow = true;
  }
  const auto own = [this](const std::string& cut) { return cut.starts_with(value_ + "."); };
  if (!std::ranges::all_of(shape_.cut_points, own)) return;
  std::set<PrecisionModel> found = KeepMatching(oracle_.StepBank(value_, observed_.dtype, kLookInsideWork));
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
    return IsConforming(model, Binary32(), kNarrowSum);
  };
  // Each by chance in a quarter of cases: more of them than this are less likely so than what is set aside.
  const double totals = static_cast<double>(shape_.sums) * static_cast<double>(shape_.sum_cuts.size());
  const bool few = totals * std::log(4) < std::log(options_.keep_factor);
  if (!narrow && !(few && std::ranges::any_of(found, sums_alone))) now_.likely.clear();
  if (!narrow) std::erase_if(now_.likely, [&](const PrecisionModel& model) { return !is_narrow_sum(model); });
  now_.likely.merge(found);
  result_.says.clear();
}

void Classifier::ChooseErring() {
  // What nothing but a narrow step explains is explained.
  const auto as_asked = [this](const PrecisionModel& model) {
    return IsAsAsked(model) && model.cuts.empty();
  };
  if (!now_.likely.empty() && std::ranges::none_of(now_.likely, as_asked)) return;
  // Where a function is flat, a wrong argument does not show: what errs more than rounding does is asked, where it is enough.
  ErringResults erring;
  const auto exact = oracle_.References(value_, sample_);
  const auto take = [&](size_t i) {
    erring.elements.push_back(sample_[i]);
    erring.stored.push_back(sample_stored_[i]);
  };
  for (size_t i = 0; i < sample_.size(); ++i) {
    if (std::fabs(ErrorInUlps(exact[i], sample_stored_[i])) > 1) take(i);
  }
  erring.enough = erring.elements.size() >= kEnoughErr;
  if (!erring.enough) {
    erring.elements.clear();
    erring.stored.clear();
    for (size_t i = 0; i < std::min(sample_.size(), kMostRead); ++i) take(i);
  }
  // A form's own steps may err so: each as it is asked for, in float32, gives these results then.
  if (erring.enough && GivenAsAsked(erring.elements, erring.stored)) return;
  erring.given = GivenBy(exact);
  now_.erring = std::move(erring);
}

void Classifier::Misread(std::string found) {
  if (found.empty()) return;
  result_.says.push_back({RemarkKind::kChange, std::move(found)});
  now_.likely.clear();
  now_.misread = true;
  now_.erring.reset();
}

void Classifier::DoubtReading() {
  const auto& [elements, stored, enough, given] = *now_.erring;
  const int precision = std::min(FormatOf(observed_.dtype)->precision, Binary32().precision);
  double least = MedianError(oracle_.References(value_, elements), stored) / kVanishes;
  std::string found;
  for (const std::string& tensor : shape_.tensors) {
    for (int bits = Contains(shape_.operands, tensor) ? kFewestBitsRead : 2; bits < precision; ++bits) {
      const auto reading = oracle_.ReferencesReading(value_, elements, tensor, bits);
      const double errors = MedianError(reading, stored);
      // A reading is claimed of every result: it gives no fewer of them than the operand as it is.
      if (!(errors < least) || GivenBy(oracle_.ReferencesReading(value_, sample_, tensor, bits)) < given)
        continue;
      least = errors;
      found = fmt::format("as if {} were rounded to {} significant bits where it is read", tensor, bits);
      result_.reads.clear();
      if (GivesNearlyEvery(reading, stored))
        result_.reads[tensor] = {bits == Bfloat16().precision ? std::string(Bfloat16().name)
                                                              : fmt::format("p{}", bits)};
    }
  }
  Misread(std::move(found));
}

void Classifier::DoubtStep() { Misread(StepKept(now_.erring->elements, now_.erring->stored)); }

void Classifier::DoubtErrorsOfStep() { Misread(StepsErrors()); }

void Classifier::DoubtFactorOfStep() { Misread(StepsFactor()); }

int64_t Classifier::GivenBy(const std::vector<Reference>& exact) const {
  const FloatFormat& format = *FormatOf(observed_.dtype);
  int64_t given = 0;
  for (size_t i = 0; i < sample_.size(); ++i)
    given += SameValue(RoundTo(exact[i].value(), format), sample_stored_[i]);
  return given;
}

bool Classifier::GivesNearlyEvery(const std::vector<Reference>& exact, std::span<const double> stored) const {
  const FloatFormat& format = *FormatOf(observed_.dtype);
  size_t given = 0;
  for (size_t i = 0; i < exact.size(); ++i) given += RoundTo(exact[i].hi, format) == stored[i] ? 1 : 0;
  return static_cast<double>(given) >= kNearlyEvery * static_cast<double>(exact.size());
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
  auto most = static_cast<size_t>(std::ceil(kGivesErring * static_cast<double>(elements.size())));
  std::string found;
  for (int bits = kFewestBitsKept; bits <= kMostBitsKept; ++bits) {
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
  const auto plain = std::ranges::find_if(trials_, [this](const Trial& trial) {
    return IsAsAsked(trial.hypothesis->model()) && trial.hypothesis->model().cuts.empty();
  });
  if (plain == trials_.end()) return {};
  const FloatFormat& format = *FormatOf(observed_.dtype);
  for (const int order : {-1, 0}) {
    const auto whole = plain->hypothesis->Simulate(order, sample_);
    for (int bits = kFewestBitsKept; bits <= kMostBitsKept; ++bits) {
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
        if (!AreThose(errors, due, static_cast<double>(Distinct(due).size()), kMostLeftOfStep)) continue;
        return AsIfRounded(kept->model(), bits);
      }
    }
  }
  return {};
}

std::string Classifier::StepsFactor() const {
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
      if (!(std::fabs(share) > kFewestShare) || !(std::min(one / other, other / one) >= kMostlyOneShare) ||
          static_cast<double>(errors.size()) < kMostlyOneShare * static_cast<double>(sample_.size()))
        continue;
      for (double& move : moves) move *= share;
      if (!AreThose(errors, moves, static_cast<double>(Distinct(moves).size()) - 1)) continue;
      return fmt::format("as if {} inside were too {} by {:.1e} of itself in every element",
                         StepInside(step.name, value_), share > 0 ? "large" : "small", std::fabs(share));
    }
  }
  return {};
}

}  // namespace ulpscope
