// Enumerates the models of a matrix product and weighs probes against them.
#include "oracles/dot/bank.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "harness/base/check.h"
#include "harness/model/conforming.h"
#include "harness/num/error_free.h"
#include "harness/num/float_format.h"
#include "oracles/dot/trees.h"

namespace ulpscope {
namespace {

bool Less(double x, double y) { return std::isnan(y) ? !std::isnan(x) : x < y; }

std::string KeyOf(const ProbeGroup& group) {
  std::string key;
  for (const ProbeDot& dot : group.members) {
    for (const ProbeTerm& term : dot.terms) {
      key.append(reinterpret_cast<const char*>(&term.a), sizeof term.a);
      key.append(reinterpret_cast<const char*>(&term.b), sizeof term.b);
    }
    key += '|';
  }
  return key;
}

std::vector<double> OnePass(const AccSpec& acc, std::span<const SumTerm> terms) {
  std::vector<double> values;
  SumTrees::For(acc, static_cast<int>(terms.size()))->Evaluate(terms, &values);
  return values;
}

/// Passes are products of their own that are added to one another, as XLA lowers its split algorithms.
std::vector<double> SeveralPasses(const AccSpec& acc, const std::vector<std::vector<SumTerm>>& passes) {
  std::vector<double> apart = OnePass(acc, passes[0]);
  for (size_t pass = 1; pass < passes.size(); ++pass) {
    const auto next = OnePass(acc, passes[pass]);
    for (size_t s = 0; s < apart.size(); ++s) apart[s] = AddPartials(acc, apart[s], next[s]);
  }
  return apart;
}

/// The interval of an accumulator around exact terms, in any order: see AccSpec's bounds.
Interval BoundOf(const AccSpec& acc, std::span<const SumTerm> terms) {
  TwoDoubles sum;
  double magnitude = 0;
  for (const SumTerm& term : terms) {
    sum = Add(sum, term.value);
    magnitude += std::fabs(term.value.hi) * (1 + 0x1p-50);
  }
  if (!std::isfinite(magnitude)) return {.lo = -kInf, .hi = kInf};
  const auto count = static_cast<int64_t>(terms.size());
  const double radius = (RelativeBound(acc, count) * magnitude + AbsoluteBound(acc, count)) * (1 + 0x1p-40) +
                        magnitude * 0x1p-95;
  const double low = sum.hi + (sum.lo - radius), high = sum.hi + (sum.lo + radius);
  const Interval outward{.lo = std::nextafter(low, -kInf), .hi = std::nextafter(high, kInf)};
  // A sum beyond the format's range has overflowed on the way, or not; nothing is known then.
  if (magnitude > SumFormat(acc)->max_finite) return {.lo = -kInf, .hi = kInf};
  return {.lo = StoreIn(acc, {.hi = outward.lo, .lo = 0}), .hi = StoreIn(acc, {.hi = outward.hi, .lo = 0})};
}

}  // namespace

double DotModel::Store(TwoDoubles sum) const { return Store(ToOdd(sum)); }

DotBank::Prediction DotBank::Predict(const Core& core, const ProbeGroup& group) const {
  Prediction prediction;
  // Terms of each member by pass of a split operand (one pass otherwise), in their slots.
  std::vector<std::vector<std::vector<SumTerm>>> members;
  size_t slots = 0;
  for (const ProbeDot& dot : group.members) {
    std::vector<std::vector<SumTerm>> passes;
    for (const ProbeTerm& factor : dot.terms) {
      const Products products = Multiply(core.in, core.in, core.prod, factor.a, factor.b);
      passes.resize(static_cast<size_t>(products.count));
      for (size_t pass = 0; pass < passes.size(); ++pass) {
        SumTerm term = TermOf(products.a[pass], products.b[pass]);
        term.value = products.value[pass];
        passes[pass].push_back(term);
      }
    }
    slots = std::max(slots, dot.terms.size());
    members.push_back(std::move(passes));
  }
  if (core.acc.exact()) {
    prediction.structures.emplace_back();
    for (const auto& passes : members) {
      TwoDoubles sum;
      for (const auto& terms : passes) {
        for (const SumTerm& term : terms) sum = Add(sum, term.value);
      }
      prediction.structures[0].push_back(ToOdd(sum));
    }
    std::ranges::sort(prediction.structures[0], Less);
    return prediction;
  }
  const size_t passes = members.front().size();
  if (slots < 1 || slots > SumTrees::kMostSlots) {
    for (const auto& member : members) {
      std::vector<SumTerm> all;
      for (const auto& terms : member) all.insert(all.end(), terms.begin(), terms.end());
      prediction.bounds.push_back(BoundOf(core.acc, all));
    }
    return prediction;
  }
  std::vector<std::vector<double>> by_member;
  for (auto& member : members)
    by_member.push_back(passes == 1 ? OnePass(core.acc, member[0]) : SeveralPasses(core.acc, member));
  std::set<std::vector<double>> distinct;
  for (size_t s = 0; s < by_member[0].size(); ++s) {
    std::vector<double> row;
    for (const auto& values : by_member) row.push_back(values[s]);
    std::ranges::sort(row, Less);
    const bool nan = std::ranges::any_of(row, [](double value) { return std::isnan(value); });
    const bool one_chunk = passes == 1 && SumTrees::For(core.acc, static_cast<int>(slots))->one_chunk(s);
    // The key's first entry keeps structures in one chunk apart from the others.
    std::vector<double> key{one_chunk ? 1.0 : 0.0};
    key.insert(key.end(), row.begin(), row.end());
    if (!nan && !distinct.insert(std::move(key)).second) continue;
    prediction.structures.push_back(std::move(row));
    prediction.one_chunk.push_back(one_chunk ? 1 : 0);
  }
  return prediction;
}

bool DotBank::Matches(const DotModel& model, const Prediction& prediction, const GroupOutputs& outputs,
                      std::vector<double>* nearest, Chunks* chunks) const {
  const auto& observed = outputs.outputs;  // sorted
  if (!prediction.bounds.empty()) {
    // Bounds of a group's members are those of one sum in other orders.
    for (size_t i = 0; i < observed.size(); ++i) {
      const Interval& bound = prediction.bounds[0];
      const double low = model.Store(bound.lo), high = model.Store(bound.hi);
      if (observed[i] >= low && observed[i] <= high) continue;
      if (std::isnan(observed[i]) && std::isinf(bound.lo)) continue;
      *nearest = {low, high};
      return false;
    }
    return true;
  }
  std::vector<double> stored(observed.size());
  const bool together = outputs.same_coordinate == SameCoordinate::kYes;
  std::vector<char> met(observed.size(), 0);
  bool matched = false;
  for (size_t s = 0; s < prediction.structures.size(); ++s) {
    const auto& structure = prediction.structures[s];
    bool same = structure.size() == observed.size();
    for (size_t i = 0; i < structure.size() && i < observed.size(); ++i) {
      stored[i] = model.Store(structure[i]);
      if (!SameValue(stored[i], observed[i])) same = false;
    }
    if (same) {
      if (chunks == nullptr) return true;
      matched = true;
      (prediction.one_chunk[s] != 0 ? chunks->together : chunks->apart) = true;
    }
    if (!together) {
      for (size_t i = 0; i < observed.size(); ++i) {
        if (std::ranges::any_of(stored, [&](double value) { return SameValue(value, observed[i]); }))
          met[i] = 1;
      }
    }
  }
  if (matched) return true;
  if (!together && std::ranges::all_of(met, [](char c) { return c != 0; })) return true;
  *nearest = stored;
  return false;
}

int64_t DotBank::Exclude(std::span<const GroupOutputs> outputs, std::vector<char>* alive,
                         std::vector<std::optional<ProbeWitness>>* witnesses) const {
  int64_t used = 0;
  std::vector<Chunks> chunks(models_.size());
  for (const GroupOutputs& given : outputs) {
    if (given.group->family == "mask" || given.group->family == "fuse") continue;
    ULPSCOPE_CHECK(given.outputs.size() == given.group->members.size(),
                   "a probe group without all its outputs: " + given.group->name);
    ++used;
    GroupOutputs sorted = given;
    std::ranges::sort(sorted.outputs, Less);
    auto& known = predictions_[KeyOf(*given.group)];
    known.resize(cores_.size());
    for (size_t i = 0; i < models_.size(); ++i) {
      if (!(*alive)[i]) continue;
      auto& prediction = known[core_of_[i]];
      if (!prediction)
        prediction = std::make_shared<const Prediction>(Predict(cores_[core_of_[i]], *given.group));
      std::vector<double> nearest;
      const bool chunked = models_[i].acc.partial != nullptr && models_[i].in.pieces == 1 &&
                           given.group->tells_chunks() && given.same_coordinate == SameCoordinate::kYes;
      if (chunked) ++chunks[i].asked;
      if (Matches(models_[i], *prediction, sorted, &nearest, chunked ? &chunks[i] : nullptr)) continue;
      (*alive)[i] = 0;
      if (witnesses != nullptr)
        (*witnesses)[i] = ProbeWitness{.family = given.group->family,
                                       .group = given.group->name,
                                       .observed = given.outputs,
                                       .predicted = nearest};
    }
  }
  // Split-K puts some pair of positions apart, and no chunk for each product: that is rounding the products.
  for (size_t i = 0; i < models_.size(); ++i) {
    // Below four terms there is nothing to split.
    if ((*alive)[i] && chunks[i].asked >= 6 && !(chunks[i].apart && chunks[i].together)) {
      (*alive)[i] = 0;
      if (witnesses != nullptr)
        (*witnesses)[i] = ProbeWitness{
            .family = "residual", .group = "every pair of positions", .observed = {}, .predicted = {}};
    }
  }
  return used;
}

void DotBank::Exclude(const BlockDecode& decode, int64_t k, std::vector<char>* alive) const {
  if (decode.kind == BlockDecode::Kind::kUnclear) return;
  for (size_t i = 0; i < models_.size(); ++i) {
    const AccSpec& acc = models_[i].acc;
    if (acc.block == 0) {
      if (decode.kind == BlockDecode::Kind::kFused) (*alive)[i] = 0;
      continue;
    }
    if (decode.kind == BlockDecode::Kind::kNotFused) {
      // A unit of n products shows itself wherever the window holds more than two of them.
      if (k > 2) (*alive)[i] = 0;
      continue;
    }
    const bool left_over = decode.may_be_tail && k % acc.block == decode.n;
    if (decode.n_is_least ? acc.block < decode.n : acc.block != decode.n && !left_over) (*alive)[i] = 0;
    if (decode.fraction > 0 && acc.fraction != decode.fraction) (*alive)[i] = 0;
    if (decode.mode && acc.rounding != *decode.mode) (*alive)[i] = 0;
  }
}

void DotBank::ExcludeShort(std::span<const double> a, std::span<const double> b, std::span<const double> y,
                           int64_t m, int64_t k, int64_t n, std::vector<char>* alive) const {
  for (int64_t e = 0; k > 0 && e < m * n; ++e) {
    ProbeGroup group{.family = "data", .name = "", .members = {{}}};
    for (int64_t t = 0; t < k; ++t)
      group.members[0].terms.push_back({.position = t,
                                        .a = a[static_cast<size_t>(e / n * k + t)],
                                        .b = b[static_cast<size_t>(t * n + e % n)]});
    const GroupOutputs outputs{
        .group = &group, .outputs = {y[static_cast<size_t>(e)]}, .same_coordinate = SameCoordinate::kNo};
    std::vector<std::optional<Prediction>> known(cores_.size());
    for (size_t i = 0; i < models_.size(); ++i) {
      if (!(*alive)[i]) continue;
      auto& prediction = known[core_of_[i]];
      if (!prediction) prediction = Predict(cores_[core_of_[i]], group);
      std::vector<double> nearest;
      if (!Matches(models_[i], *prediction, outputs, &nearest, nullptr)) (*alive)[i] = 0;
    }
  }
}

void DotBank::Exclude(std::span<const double> a, std::span<const double> b, std::span<const double> y,
                      int64_t m, int64_t k, int64_t n, std::vector<char>* alive) const {
  for (size_t i = 0; i < models_.size(); ++i) {
    for (size_t e = 0; (*alive)[i] && e < y.size(); ++e) {
      if (!SameValue(models_[i].Store(y[e]), y[e])) (*alive)[i] = 0;
    }
  }
  if (k <= SumTrees::kMostSlots) {
    ExcludeShort(a, b, y, m, k, n, alive);
    return;
  }
  std::vector<std::vector<Interval>> bounds(cores_.size());
  std::vector<SumTerm> terms;
  for (size_t i = 0; i < models_.size(); ++i) {
    if (!(*alive)[i]) continue;
    const Core& core = cores_[core_of_[i]];
    auto& bound = bounds[core_of_[i]];
    if (bound.empty()) {
      for (int64_t row = 0; row < m; ++row) {
        for (int64_t column = 0; column < n; ++column) {
          terms.clear();
          for (int64_t t = 0; t < k; ++t) {
            const Products products =
                Multiply(core.in, core.in, core.prod, a[static_cast<size_t>(row * k + t)],
                         b[static_cast<size_t>(t * n + column)]);
            for (int p = 0; p < products.count; ++p)
              terms.push_back({.value = products.value[static_cast<size_t>(p)], .exponent = 0});
          }
          if (core.acc.exact()) {
            TwoDoubles sum;
            for (const SumTerm& term : terms) sum = Add(sum, term.value);
            bound.push_back({.lo = ToOdd(sum), .hi = ToOdd(sum)});
          } else {
            bound.push_back(BoundOf(core.acc, terms));
          }
        }
      }
    }
    for (size_t e = 0; e < y.size(); ++e) {
      const double low = models_[i].Store(bound[e].lo), high = models_[i].Store(bound[e].hi);
      if (!(y[e] >= low && y[e] <= high) && !(std::isnan(y[e]) && std::isinf(bound[e].lo))) {
        (*alive)[i] = 0;
        break;
      }
    }
  }
}

}  // namespace ulpscope
