// Enumerates the roundings of intermediates.
#include "oracles/cuts.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "harness/words/facets.h"
#include "oracles/canonical.h"

namespace ulpscope {
namespace {

void AddUnique(std::vector<std::vector<std::string>>* options, std::vector<std::string> option) {
  if (std::find(options->begin(), options->end(), option) == options->end())
    options->push_back(std::move(option));
}

std::string Own(const PlanNode& node) {
  const FloatFormat* declared = FormatOf(node.dtype);
  return declared == nullptr ? "" : std::string(declared->name);
}

/// A rounding through `word` before the declared store.
std::vector<std::string> Through(const std::string& word, const std::string& own) {
  return Holds(*FormatOfWord(own), *FormatOfWord(word)) ? std::vector<std::string>{word}
                                                        : std::vector<std::string>{word, own};
}

/// What a backend may do with one intermediate. A lone cut point is tried at every format, several at the
/// likely ones.
std::vector<std::vector<std::string>> CutOptions(const Plan& plan, const ValuePath& path, int id) {
  const PlanNode& node = plan.at(id);
  std::vector<std::vector<std::string>> options{{}};
  const std::string own = Own(node);
  if (own.empty()) return options;
  if (node.handed_on) {
    const bool computes = node.kind != NodeKind::kCast && node.kind != NodeKind::kStore;
    if (computes && FormatOfWord(own)->precision < Binary32().precision) AddUnique(&options, {"float32"});
    return options;
  }
  if (IsStep(node)) {
    AddUnique(&options, {NarrowOf(plan, path)});
    return options;
  }
  AddUnique(&options, {own});
  if (node.kind == NodeKind::kCast || node.kind == NodeKind::kStore) return options;
  const bool alone = path.cut_points.size() == 1;
  for (const char* word : {"bfloat16", "float32", "float16", "tf32"}) {
    const bool narrower =
        std::string_view(word) == "bfloat16" && Holds(*FormatOfWord(own), *FormatOfWord(word));
    const bool in_registers = std::string_view(word) == "float32" && FormatOfWord(own)->precision < 24;
    if (alone || narrower || in_registers) AddUnique(&options, Through(word, own));
  }
  return options;
}

/// Cut points that behave alike (eight temporaries of one loop) share one choice.
std::string GroupKey(const PlanNode& node) {
  if (IsStep(node)) return node.name;
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
  std::vector<std::vector<std::string>> options;
};

std::vector<CutGroup> CutGroups(const Plan& plan, const ValuePath& path) {
  std::map<std::string, std::vector<int>> groups;
  const bool few = path.cut_points.size() <= 3;
  for (const int cut : path.cut_points)
    groups[few ? std::to_string(cut) : GroupKey(plan.at(cut))].push_back(cut);
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

std::string NarrowOf(const Plan& plan, const ValuePath& path) {
  const FloatFormat* own = FormatOf(plan.at(path.root).dtype);
  return own != nullptr && own->precision <= 11 ? std::string(own->name) : "bfloat16";
}

CutChoice UniformCuts(const Plan& plan, const ValuePath& path, const std::string& word) {
  CutChoice choice;
  for (const int cut : path.cut_points) {
    const PlanNode& node = plan.at(cut);
    const std::string own = Own(node);
    if (IsStep(node) || own.empty() || node.handed_on) continue;
    const bool through =
        word != "none" && node.kind != NodeKind::kCast && (IsReduction(node.kind) || word == "float32");
    choice[cut] = through ? Through(word, own) : std::vector<std::string>{own};
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
  for (const auto& word : MidWords()) all.push_back(UniformCuts(plan, path, word));
  // Without a cut point they are all the same.
  std::set<CutChoice> seen;
  std::erase_if(all, [&](const CutChoice& choice) { return !seen.insert(choice).second; });
  return all;
}

}  // namespace ulpscope
