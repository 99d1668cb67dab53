// Precision models beyond the ones that are listed: roundings of named steps, and sums that drop subnormals.
#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <string>

#include "harness/base/find.h"
#include "oracles/cuts.h"
#include "oracles/hypothesis.h"

namespace ulpscope {
namespace {

/// The steps inside the op that are cut points, by their names.
std::map<std::string, std::vector<int>> NamedStepsOf(const Plan& plan, const ValuePath& path) {
  std::map<std::string, std::vector<int>> groups;
  for (const int cut : path.cut_points) {
    if (IsStep(plan.at(cut))) groups[plan.at(cut).name].push_back(cut);
  }
  return groups;
}

/// Sums in float32, and no step rounded but to its dtype.
Choice StepsAsDeclared(const Plan& plan, const ValuePath& path, DType observed) {
  return {.in = {},
          .acc = SumsIn(Binary32()),
          .out = ToNearest(*FormatOf(observed)),
          .cuts = UniformCuts(plan, path, {})};
}

}  // namespace

std::vector<Choice> EnumerateSteps(const Plan& plan, const ValuePath& path, DType observed, size_t most) {
  constexpr size_t kMostSteps = 16;  // what their sets are numbered with
  const auto groups = NamedStepsOf(plan, path);
  if (groups.size() > kMostSteps) return {};
  const size_t all = (size_t{1} << groups.size()) - 1;
  std::vector<size_t> sets;
  for (size_t set = 1; set <= all; ++set) sets.push_back(set);
  // All steps, single ones, all but single ones, pairs and so on: the sets that one decision in a kernel selects.
  const auto rank = [&](size_t set) {
    const auto chosen = static_cast<size_t>(std::popcount(set));
    return std::min(2 * chosen, 2 * (groups.size() - chosen) + 1);
  };
  std::ranges::stable_sort(sets, [&](size_t a, size_t b) { return rank(a) < rank(b); });
  if (sets.size() > most) sets.resize(most);
  const Choice declared = StepsAsDeclared(plan, path, observed);
  const FloatFormat* narrow = &NarrowOf(plan, path);
  std::vector<Choice> choices;
  std::set<std::string> seen;
  for (const size_t set : sets) {
    // For a wide result the steps are tried in bfloat16 only; a total has the bits of its accumulator, which may be
    // float16.
    const bool wide = FormatOf(observed)->precision > Binary16().precision;
    for (const FloatFormat* total : {narrow, wide ? &Binary16() : narrow}) {
      Choice one = declared;
      size_t bit = 1;
      for (const auto& [name, nodes] : groups) {
        for (const int node : nodes) {
          if ((set & bit) != 0) one.cuts[node] = {IsReduction(plan.at(node).kind) ? total : narrow};
        }
        bit <<= 1;
      }
      one = Canonical(plan, path, std::move(one));
      if (seen.insert(ModelOf(plan, path, one).Name()).second) choices.push_back(std::move(one));
    }
  }
  return choices;
}

std::vector<Choice> EnumerateKept(const Plan& plan, const ValuePath& path, DType observed,
                                  const FloatFormat& format) {
  const Choice declared = StepsAsDeclared(plan, path, observed);
  std::vector<Choice> choices;
  for (const auto& [name, nodes] : NamedStepsOf(plan, path)) {
    Choice choice = declared;
    for (const int node : nodes) choice.cuts[node] = {&format};
    choices.push_back(Canonical(plan, path, std::move(choice)));
  }
  return choices;
}

std::vector<Choice> EnumerateFlushing(const Plan& plan, const ValuePath& path, DType observed) {
  std::vector<Choice> choices;
  if (!path.has_products) return choices;
  // A hardware mode applies to all operands; no result shows whether it applied to one without subnormals.
  const RoundSpec drops = *ParseIn("as_is+daz");
  std::map<std::string, RoundSpec> all;
  std::vector<std::map<std::string, RoundSpec>> dropped;
  for (const auto& [operand, dtype] : path.operands) {
    if (FormatOf(dtype) == nullptr) continue;
    all[operand] = drops;
    dropped.push_back({{operand, drops}});
  }
  if (dropped.size() != 1) dropped.insert(dropped.begin(), all);
  for (const Choice& plain : EnumerateChoices(plan, path, observed)) {
    const AccSpec& acc = plain.acc;
    if (!plain.in.empty() || !acc.binary() || acc.format->precision < 24) continue;
    Choice sums = plain;
    sums.acc.subnormals = Subnormals::kFlushed;
    for (const auto& in : dropped) {
      Choice operands = plain, both = sums;
      operands.in = both.in = in;
      choices.push_back(std::move(both));
      choices.push_back(std::move(operands));
    }
    choices.push_back(std::move(sums));
  }
  return choices;
}

}  // namespace ulpscope
