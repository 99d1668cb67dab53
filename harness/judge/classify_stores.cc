// Stores that a contract does not name and that no bank lists, and the signs of stored zeros.
//
// A bank lists stores that round to nearest, cut, or take ties away from zero. A store may also keep either neighbour of a value
// (stochastic rounding), and its results then lie outside what every listed store gives. That excludes the listed stores. It does not
// exclude an accumulator behind a store that nobody asked about.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/base/text.h"
#include "harness/judge/classifier.h"
#include "harness/judge/contract.h"
#include "harness/judge/rule_numbers.h"
#include "harness/num/float_format.h"
#include "harness/num/tensor_data.h"

namespace ulpscope {

double Classifier::BitsOfChosenNeighbours() const {
  const FloatFormat& format = *FormatOf(observed_.dtype);
  double bits = 0;
  for (size_t i = 0; i < stored_.size(); ++i) {
    if (!std::isfinite(references_[i].hi) || !std::isfinite(stored_[i])) continue;
    const double off = DistanceFrom(references_[i], stored_[i]) / Ulp(references_[i].hi, format);
    if (off < 1) bits -= std::log2(1 - off);
  }
  return bits;
}

void Classifier::TryAnyStore() {
  const ValueDemand& demand = *options_.any_store_of;
  std::vector<Proposal> proposals;
  std::set<PrecisionModel> seen;
  for (const Trial& trial : trials_) {
    const PrecisionModel& model = trial.hypothesis->model();
    if (trial.survived || !IsInside(model, demand, result_)) continue;
    Proposal proposal{.in = model.in, .acc = model.acc, .prod = model.prod};
    // Of a program of several steps `mid` is the coarsest of their roundings; each way to round these is tried in any case.
    if (model.cuts.empty()) proposal.mid = model.mid;
    proposal.out = {.format = FormatOf(observed_.dtype), .faithful = true};
    PrecisionModel key = model;
    key.mid = proposal.mid;
    key.out = proposal.out;
    key.cuts.clear();
    if (seen.insert(std::move(key)).second) proposals.push_back(std::move(proposal));
  }
  if (proposals.empty()) return;
  if (sample_.empty()) ChooseSample();
  const auto affordable = AffordableElements();
  const bool given = std::ranges::any_of(trials_, [&](const Trial& trial) {
    return trial.survived && FewestMisses(*trial.hypothesis, affordable.first, affordable.second, 1) == 0;
  });
  if (given && BitsOfChosenNeighbours() >= static_cast<double>(kNoAccident)) return;
  for (auto& hypothesis : oracle_.Propose(value_, observed_.dtype, proposals)) {
    if (!IsInside(hypothesis->model(), demand, result_)) continue;
    Trial trial;
    trial.hypothesis = std::move(hypothesis);
    Try(&trial, 0, elements_.size());
    trial.hypothesis->Forget();
    trials_.push_back(std::move(trial));
  }
}

void Classifier::CheckZeroSigns() {
  constexpr std::string_view kGradient = ".grad";  // frameworks leave out what they know to be zero
  if (FormatOf(observed_.dtype)->specials == Specials::kMinusZeroIsNan || value_.ends_with(kGradient)) return;
  std::vector<size_t> places;
  std::vector<int64_t> zeros;
  for (size_t i = 0; i < elements_.size(); ++i) {
    if (stored_[i] != 0 || references_[i].hi != 0 || references_[i].kind != ReferenceKind::kExact) continue;
    places.push_back(i);
    zeros.push_back(elements_[i]);
  }
  if (zeros.empty()) return;
  const std::vector<int> signs = oracle_.ZeroSigns(value_, zeros);
  std::string first;
  for (size_t k = 0; k < zeros.size(); ++k) {
    if (signs[k] == 0) continue;
    double& due = references_[places[k]].hi;
    due = std::copysign(0.0, signs[k]);
    if (std::signbit(due) == std::signbit(stored_[places[k]])) continue;
    ++result_.wrong_zeros;
    if (first.empty())
      first =
          fmt::format("[{}]: {} where IEEE 754 gives {}", Join(Coordinates(zeros[k], observed_.shape), ","),
                      std::signbit(due) ? "0" : "-0", std::signbit(due) ? "-0" : "0");
  }
  if (result_.wrong_zeros > 0)
    result_.notes.push_back(
        {RemarkKind::kSignsOfZeros, fmt::format("{} of {} zeros have the wrong sign, e.g. {}",
                                                result_.wrong_zeros, zeros.size(), first)});
}

}  // namespace ulpscope
