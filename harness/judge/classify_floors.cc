// The fewest bits that each facet of a model might keep without that these results show it.
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "harness/judge/classifier.h"
#include "harness/judge/rule_numbers.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

/// An operand, each addition or the store is cut.
bool Truncates(const PrecisionModel& model) {
  const auto cut = [](const auto& in) { return in.second.rounding == Rounding::kTowardZero; };
  return std::ranges::any_of(model.in, cut) || model.out.rounding == Rounding::kTowardZero ||
         (model.acc.binary() && model.acc.rounding == Rounding::kTowardZero);
}

}  // namespace

const PrecisionModel* Classifier::PlainestOfModels() const {
  const PrecisionModel* plain = nullptr;
  for (const PrecisionModel& model : result_.models) {
    // Behind a rounding to so many bits sums in some bits more are not seen.
    const bool wide = (model.mid.none() || model.mid.to_bits()) && model.cuts.empty() && model.acc.wide();
    const auto besides = [](const PrecisionModel& one) { return std::pair(!one.mid.none(), one.in.size()); };
    if (wide && (plain == nullptr || besides(model) < besides(*plain))) plain = &model;
  }
  return plain;
}

bool Classifier::MayBeOneOf(const std::vector<Proposal>& proposals, double least, bool bits_alone) {
  for (auto& hypothesis : oracle_.Propose(value_, observed_.dtype, proposals)) {
    Trial trial;
    trial.hypothesis = std::move(hypothesis);
    Try(&trial, 0, std::min(kFloorElements, FirstElements()));
    if (!trial.survived) continue;
    trial.match = ExactMatch(*trial.hypothesis, sample_, sample_stored_);
    if (trial.match.matches > 0) return true;
    if (bits_alone || trial.hypothesis->order_free()) continue;
    // A few elements tell most of them: further ones make none more likely.
    if (ProbeLaw(*trial.hypothesis, sample_, sample_stored_) < least - kProbeRoom) continue;
    const LikelihoodResult likelihood =
        Likelihood(*trial.hypothesis, sample_, sample_stored_, trial.match, FitCheck::kSkip);
    // Which way errors lean is no sign against it: a row of rounded operands moves a whole row of results.
    const Residuals& residuals = likelihood.residuals;
    if (FitsOrders(residuals.ratio, residuals.largest, 0, residuals.count) &&
        likelihood.log_likelihood >= least)
      return true;
  }
  return false;
}

int Classifier::FloorOf(const Propose& propose, double least) {
  int low = 2, high = Binary32().precision;  // `high` bits are none to see, `low` are
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (MayBeOneOf(propose(middle), least, false) ? high : low) = middle;
  }
  // A rounding that cancels errs little, and yet more than a finer one that does not.
  for (int bits = 3; bits < low; ++bits) {
    if (MayBeOneOf(propose(bits), least, true)) return bits;
  }
  return high;
}

void Classifier::MeasureFloors() {
  // Beside a rounding that was found, nothing is asked but of the other operand.
  const PrecisionModel* plain = PlainestOfModels();
  if (plain == nullptr) return;
  // What is as likely as one that is kept is not seen either, and its own order may be one that was not tried.
  double best = -kInf, kept = kInf;
  for (const Trial& trial : trials_) {
    if (!trial.survived) continue;
    best = std::max(best, trial.log_likelihood);
    if (std::isfinite(trial.log_likelihood) && IsKept(trial)) kept = std::min(kept, trial.log_likelihood);
  }
  const double least = std::min(kept, best - 2 * std::log(options_.keep_factor));
  const auto floor = [&](const Propose& propose) { return FloorOf(propose, least); };
  using Proposals = std::vector<Proposal>;
  // Beside products in fewer bits sums in more of them are not seen.
  const RoundSpec products = plain->prod.bits() < Binary32().precision ? plain->prod : RoundSpec{};
  if (plain->in.empty()) {
    result_.floors["acc"] = floor([&](int bits) {
      return Proposals{{.in = {}, .acc = SumsIn(FormatOfBits(bits)), .mid = plain->mid, .prod = products}};
    });
    if (plain->mid.none()) {
      result_.floors["mid"] =
          floor([&](int bits) { return Proposals{{.in = {}, .mid = ToBits(bits), .prod = products}}; });
      // Sums in so few bits leave totals of no more.
      result_.floors["mid"] = std::min(result_.floors["mid"], result_.floors["acc"]);
    }
    if (shape_.has_products)
      result_.floors["prod"] =
          floor([&](int bits) { return Proposals{{.in = {}, .mid = plain->mid, .prod = ToBits(bits)}}; });
  }
  // Errors that lean to one side are those of operands that are cut as well.
  const bool lean = std::ranges::any_of(result_.models, Truncates);
  for (const auto& operand : shape_.operands) {
    if (operand.starts_with("scalar.") || plain->in.contains(operand)) continue;
    result_.floors["in." + operand] = floor([&](int bits) {
      Proposals proposals;
      for (const Rounding mode : {Rounding::kNearestEven, Rounding::kTowardZero}) {
        proposals.push_back({.in = plain->in, .mid = plain->mid});
        proposals.back().in[operand] = {.format = &FormatOfBits(bits), .rounding = mode};
        if (!lean) break;
      }
      return proposals;
    });
  }
}

}  // namespace ulpscope
