// Enumerates the roundings of intermediates.
#include "oracles/cuts.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "harness/words/facets.h"
#include "harness/words/gradient_name.h"

namespace ulpscope {
namespace {

void AddUnique(std::vector<FormatChain>* options, FormatChain option) {
  if (std::find(options->begin(), options->end(), option) == options->end())
    options->push_back(std::move(option));
}

/// A rounding through `format` before the declared output rounding.
FormatChain Through(const FloatFormat& format, const FloatFormat& own) {
  return Holds(own, format) ? FormatChain{&format} : FormatChain{&format, &own};
}

/// Rounding options of one intermediate. A single cut point is tried in every format, several in the likely ones.
std::vector<FormatChain> CutOptions(const Plan& plan, const ValuePath& path, int id) {
  const PlanNode& node = plan.at(id);
  std::vector<FormatChain> options{{}};
  const FloatFormat* own = FormatOf(node.dtype);
  if (own == nullptr) return options;
  if (node.handed_on) {
    const bool computes = node.kind != NodeKind::kCast && node.kind != NodeKind::kStore;
    if (computes && own->precision < Binary32().precision) AddUnique(&options, {&Binary32()});
    return options;
  }
  if (IsStep(node)) {
    AddUnique(&options, {&NarrowOf(plan, path)});
    return options;
  }
  AddUnique(&options, {own});
  if (node.kind == NodeKind::kCast || node.kind == NodeKind::kStore) return options;
  const bool alone = path.cut_points.size() == 1;
  for (const FloatFormat* format : {&Bfloat16(), &Binary32(), &Binary16(), &Tf32()}) {
    const bool narrower = format == &Bfloat16() && Holds(*own, *format);
    const bool in_registers = format == &Binary32() && own->precision < format->precision;
    if (alone || narrower || in_registers) AddUnique(&options, Through(*format, *own));
  }
  return options;
}

/// Nodes that carry numbers to the root. A node that decides only a mask does not: rounding it changes the
/// result only if it changes a comparison.
std::set<int> CarriesNumbers(const Plan& plan, const ValuePath& path) {
  std::set<int> reached;
  std::vector<int> pending{path.root};
  while (!pending.empty()) {
    const int id = pending.back();
    pending.pop_back();
    if (plan.at(id).dtype == DType::kBool || !reached.insert(id).second) continue;
    reached.insert(plan.Root(id));
    for (const int arg : plan.at(id).args) pending.push_back(arg);
  }
  return reached;
}

/// Cut points that behave alike (eight temporaries of one loop) share one choice.
std::string GroupKey(const PlanNode& node) {
  if (IsStep(node)) return node.name;
  if (node.name.starts_with(kPartialGradient)) return std::string(kPartialGradient);
  if (node.handed_on) return "handed on:" + std::string(Name(node.dtype));
  const std::string kind = node.kind == NodeKind::kContract ? "contract"
                           : node.kind == NodeKind::kReduce ? "reduce"
                           : node.kind == NodeKind::kCast   ? "cast"
                           : node.kind == NodeKind::kStore  ? "store"
                                                            : "pointwise";
  return kind + ":" + std::string(Name(node.dtype));
}

/// The options of each group of cut points that share a choice.
struct CutGroup {
  std::vector<int> members;
  std::vector<FormatChain> options;
};

std::vector<CutGroup> CutGroups(const Plan& plan, const ValuePath& path) {
  std::map<std::string, std::vector<int>> groups;
  const bool few = path.cut_points.size() <= 3;
  const std::set<int> carries = CarriesNumbers(plan, path);
  for (const int cut : path.cut_points) {
    const std::string key = few                     ? std::to_string(cut)
                            : carries.contains(cut) ? GroupKey(plan.at(cut))
                                                    : "mask of " + GroupKey(plan.at(cut));
    groups[key].push_back(cut);
  }
  constexpr double kMost = 100;
  double count = 1;
  std::vector<CutGroup> all;
  for (auto& [key, members] : groups) {
    auto options = CutOptions(plan, path, members.front());
    // Past the limit a group keeps two answers: unrounded, or as declared.
    if (count * static_cast<double>(options.size()) > kMost && options.size() > 2) options.resize(2);
    count *= static_cast<double>(options.size());
    all.push_back({.members = std::move(members), .options = std::move(options)});
  }
  return all;
}

}  // namespace

const FloatFormat& NarrowOf(const Plan& plan, const ValuePath& path) {
  const FloatFormat* own = FormatOf(plan.at(path.root).dtype);
  return own != nullptr && own->precision <= 11 ? *own : Bfloat16();
}

CutChoice UniformCuts(const Plan& plan, const ValuePath& path, const RoundSpec& mid) {
  CutChoice choice;
  for (const int cut : path.cut_points) {
    const PlanNode& node = plan.at(cut);
    const FloatFormat* own = FormatOf(node.dtype);
    if (IsStep(node) || own == nullptr || node.handed_on) continue;
    const bool through =
        !mid.none() && node.kind != NodeKind::kCast && (IsReduction(node.kind) || mid.rounds_to(Binary32()));
    choice[cut] = through ? Through(*mid.format, *own) : FormatChain{own};
  }
  return choice;
}

double CountCuts(const Plan& plan, const ValuePath& path) {
  auto count = static_cast<double>(MidWords().size());
  double product = 1;
  for (const CutGroup& group : CutGroups(plan, path)) product *= static_cast<double>(group.options.size());
  return count + product;
}

std::vector<CutChoice> EnumerateCuts(const Plan& plan, const ValuePath& path) {
  std::vector<CutChoice> all{{}};
  for (const CutGroup& group : CutGroups(plan, path)) {
    std::vector<CutChoice> next;
    for (const auto& option : group.options) {
      for (const CutChoice& before : all) {
        CutChoice choice = before;
        for (const int cut : group.members) choice[cut] = option;
        next.push_back(std::move(choice));
      }
    }
    all = std::move(next);
  }
  for (const auto& word : MidWords()) all.push_back(UniformCuts(plan, path, *ParseMid(word)));
  // Without a cut point they are all the same.
  std::set<CutChoice> seen;
  std::erase_if(all, [&](const CutChoice& choice) { return !seen.insert(choice).second; });
  return all;
}

}  // namespace ulpscope
