// The search where nothing of the bank fits, and how little would still be seen.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "harness/base/find.h"
#include "harness/judge/classifier.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

/// Elements of a search for what else the results are, and of one for the least bits.
constexpr size_t kSearchElements = 16, kFloorElements = 64;

std::string Times(double ratio) {
  return ratio < 10    ? fmt::format("{:.1f}", ratio)
         : ratio < 1e5 ? fmt::format("{:.0f}", ratio)
                       : fmt::format("{:.0e}", ratio);
}

}  // namespace

std::vector<Proposal> Classifier::SumsWithGuardBits(int most) {
  std::vector<Proposal> sums;
  for (int bits = Binary32().precision + 1; bits <= most; ++bits) {
    for (const char* mode : {"", "_rz", "_rna"})
      sums.push_back({.in = {}, .acc = fmt::format("p{}{}", bits, mode)});
  }
  return sums;
}

std::set<PrecisionModel> Classifier::Search(const Trial& natural) {
  const Hypothesis& model = *natural.hypothesis;
  std::vector<Proposal> proposals;
  if (bits_ > 1 && !to_odd_) {
    // Rounded to so many after the sum, or all along.
    proposals.push_back({.in = {}, .acc = "float32", .mid = fmt::format("p{}", bits_)});
    if (!model.order_free()) proposals.push_back({.in = {}, .acc = fmt::format("p{}", bits_)});
  }
  // Results of few bits are those of no float32 sums, however these are joined.
  if (bits_ == 0 && shape_.reduction_length >= kLeastJoined && !shape_.has_steps && too_near_.empty()) {
    for (const char* prod : {"exact", "float32"})
      proposals.push_back({.in = {}, .acc = std::string(kJoinedWider), .mid = "none", .prod = prod});
  }
  if (!model.order_free() && odd_.empty()) {
    const Yardstick yardstick(model, sample_, sample_stored_);
    const double ratio = yardstick.residuals().ratio;
    if (!yardstick.residuals().fits && std::isfinite(ratio))
      errors_ =
          fmt::format("errors {} times those of {} in any order tried", Times(ratio), model.model().acc);
    // Guard bits: no float32 sum gives these results, and they err no more.
    constexpr double kNoMore = 1.5;
    constexpr int kMostBits = 32;
    const Trial* plain = PlainFloat32();
    if (plain != nullptr && !plain->survived && ratio <= kNoMore && bits_ == 0 && !shape_.has_steps) {
      std::ranges::move(SumsWithGuardBits(kMostBits), std::back_inserter(proposals));
    }
    if (std::isfinite(ratio) && ratio > 1) {
      const int wide = ParseAcc(model.model().acc)->bits(),
                lost = static_cast<int>(std::lround(std::log2(ratio)));
      for (int p = wide - lost - 2; p <= wide - lost + 2; ++p) {
        if (p < 4 || p >= std::min(wide, 52)) continue;
        proposals.push_back({.in = {}, .acc = "p" + std::to_string(p), .mid = "none"});
        proposals.push_back({.in = {}, .mid = "p" + std::to_string(p)});
        if (shape_.has_products) proposals.push_back({.in = {}, .prod = "p" + std::to_string(p)});
      }
    }
  }
  Explain(model, &proposals);
  const std::set<PrecisionModel> likely = Proposed(proposals);
  if (!likely.empty() && odd_.empty()) {
    // What was said of bits is now said by a model.
    result_.says.clear();
    bits_ = 0;
    return likely;
  }
  if (!errors_.empty()) result_.says.push_back(errors_);
  return {};
}

void Classifier::MeasureFloors() {
  // A mean is a sum and one step more. What rounds several steps on its way has too many places for one number.
  if (shape_.reduction_length == 0 || shape_.cut_points.size() > 1 || sample_.empty()) return;
  // Beside a rounding that was found, nothing is asked but of the other operand.
  const PrecisionModel* plain = nullptr;
  for (const PrecisionModel& model : result_.models) {
    const auto acc = ParseAcc(model.acc);
    // Behind a rounding to so many bits sums in some bits more are not seen.
    const bool rounded = model.mid.starts_with('p');
    const bool wide = (model.mid == "none" || rounded) && model.cuts.empty() && acc && acc->wide();
    const auto besides = [](const PrecisionModel& one) {
      return std::pair(one.mid != "none", one.in.size());
    };
    if (wide && (plain == nullptr || besides(model) < besides(*plain))) plain = &model;
  }
  if (plain == nullptr) return;
  // What is as likely as one that is kept is not seen either, and its own order may be one that was not tried.
  double best = -kInf, kept = kInf;
  for (const Trial& trial : trials_) {
    if (!trial.survived) continue;
    best = std::max(best, trial.log_likelihood);
    if (std::isfinite(trial.log_likelihood) && IsKept(trial)) kept = std::min(kept, trial.log_likelihood);
  }
  const double least = std::min(kept, best - 2 * std::log(options_.keep_factor));
  const auto may_be = [&](const std::vector<Proposal>& proposals, bool bits_alone) {
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
  };
  const auto floor = [&](const auto& propose) {
    int low = 2, high = Binary32().precision;  // `high` bits are none to see, `low` are
    while (high - low > 1) {
      const int middle = low + (high - low) / 2;
      (may_be(propose("p" + std::to_string(middle)), false) ? high : low) = middle;
    }
    // A rounding that cancels errs little, and yet more than a finer one that does not.
    for (int bits = 3; bits < low; ++bits) {
      if (may_be(propose("p" + std::to_string(bits)), true)) return bits;
    }
    return high;
  };
  using Proposals = std::vector<Proposal>;
  // Beside products in fewer bits sums in more of them are not seen.
  const auto prod = ParseProd(plain->prod);
  const std::string products =
      prod && prod->bits() < Binary32().precision ? plain->prod : std::string("exact");
  if (plain->in.empty()) {
    result_.floors["acc"] = floor([&](const std::string& bits) {
      return Proposals{{.in = {}, .acc = bits, .mid = plain->mid, .prod = products}};
    });
    if (plain->mid == "none") {
      result_.floors["mid"] = floor(
          [&](const std::string& bits) { return Proposals{{.in = {}, .mid = bits, .prod = products}}; });
      // Sums in so few bits leave totals of no more.
      result_.floors["mid"] = std::min(result_.floors["mid"], result_.floors["acc"]);
    }
    if (shape_.has_products)
      result_.floors["prod"] = floor(
          [&](const std::string& bits) { return Proposals{{.in = {}, .mid = plain->mid, .prod = bits}}; });
  }
  // Errors that lean to one side are those of operands that are cut as well.
  const bool lean = std::ranges::any_of(result_.models, [](const PrecisionModel& model) {
    return model.Name().find("_rz") != std::string::npos;
  });
  for (const auto& operand : shape_.operands) {
    if (operand.starts_with("scalar.") || plain->in.contains(operand)) continue;
    result_.floors["in." + operand] = floor([&](const std::string& bits) {
      Proposals proposals;
      for (const char* mode : {"_rne", "_rz"}) {
        proposals.push_back({.in = plain->in, .mid = plain->mid});
        proposals.back().in[operand] = bits + mode;
        if (!lean) break;
      }
      return proposals;
    });
  }
}

void Classifier::Explain(const Hypothesis& model, std::vector<Proposal>* proposals) {
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
  for (Proposal& proposal : found.proposals) {
    proposals->push_back(proposal);
    // What is read rounded may be multiplied in float32 or with the sum, in one step.
    if (!shape_.has_products || proposal.in.empty() || proposal.prod != "exact") continue;
    proposal.prod = "float32";
    proposals->push_back(std::move(proposal));
  }
  for (std::string& sentence : found.says) {
    if (!Contains(result_.says, sentence)) result_.says.push_back(std::move(sentence));
  }
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
  if (!scaled) return;
  // What few results of one kind share, all of them have to: else it is how they were rounded.
  constexpr double kMuchLess = 0.25;
  double plain = 0, with = 0;
  for (size_t i = 0; i < sample_.size() && scaled; ++i) {
    const double exact = oracle_.References(value_, std::span(&sample_[i], 1)).front().hi;
    const double half = Ulp(sample_stored_[i], *FormatOf(observed_.dtype)) / 2;
    scaled = !std::isfinite(sample_stored_[i]) || std::fabs(sample_stored_[i] - exact) > half || exact == 0 ||
             std::fabs(factor - 1) * std::fabs(exact) < half;
    if (!std::isfinite(sample_stored_[i])) continue;
    plain += std::pow(sample_stored_[i] - exact, 2);
    with += std::pow(sample_stored_[i] - factor * exact, 2);
  }
  scaled = scaled && with < kMuchLess * plain;
  const std::string text = fmt::format("{:.6g} times the exact value", factor);
  if (scaled && !Contains(result_.says, text)) result_.says.push_back(text);
}

}  // namespace ulpscope
