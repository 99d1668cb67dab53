// Reading, writing and naming summation trees.
#include "harness/probe/sum_tree.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace ulpscope {
namespace {

using Positions = SumTree::Positions;

/// How lanes are folded into one.
enum class Fold { kHalves, kNeighbours, kSequential };
constexpr std::pair<Fold, const char*> kFolds[] = {{Fold::kHalves, "in halves"},
                                                   {Fold::kNeighbours, "by neighbours"},
                                                   {Fold::kSequential, "one after another"}};

Positions Chain(SumTree* tree, const std::vector<Positions>& parts) {
  Positions sum = parts.front();
  for (size_t i = 1; i < parts.size(); ++i) sum = tree->Join({sum, parts[i]});
  return sum;
}

Positions FoldAll(SumTree* tree, Fold fold, std::vector<Positions> parts) {
  if (fold == Fold::kSequential) return Chain(tree, parts);
  while (parts.size() > 1) {
    std::vector<Positions> next;
    const size_t half = (parts.size() + 1) / 2;
    for (size_t i = 0; i < half; ++i) {
      const size_t first = fold == Fold::kHalves ? i : 2 * i,
                   second = fold == Fold::kHalves ? i + half : 2 * i + 1;
      next.push_back(second < parts.size() ? tree->Join({parts[first], parts[second]}) : parts[first]);
    }
    parts = std::move(next);
  }
  return parts.front();
}

/// Positions begin, begin + step, ... below end, each a leaf.
std::vector<Positions> Leaves(int64_t begin, int64_t end, int64_t step) {
  std::vector<Positions> leaves;
  for (int64_t i = begin; i < end; i += step) leaves.push_back({i});
  return leaves;
}

/// Pairs of neighbours, the odd one first, as two multiply-adds of one pair instruction take them.
std::vector<Positions> OddFirst(std::vector<Positions> leaves) {
  for (size_t i = 0; i + 1 < leaves.size(); i += 2) std::swap(leaves[i], leaves[i + 1]);
  return leaves;
}

Positions Pairwise(SumTree* tree, int64_t begin, int64_t end, int64_t base) {
  if (end - begin <= base) return Chain(tree, Leaves(begin, end, 1));
  const int64_t middle = begin + (end - begin) / 2;
  const Positions left = Pairwise(tree, begin, middle, base);
  return tree->Join({left, Pairwise(tree, middle, end, base)});
}

/// Blocks of `length` products that join the sum so far in one node.
void Fused(SumTree* tree, int64_t length) {
  Positions sum;
  for (int64_t begin = 0; begin < tree->size(); begin += length) {
    std::vector<Positions> parts = Leaves(begin, std::min(begin + length, tree->size()), 1);
    if (!sum.empty()) parts.push_back(sum);
    sum = parts.size() == 1 ? parts.front() : tree->Join(parts);
  }
}

struct Candidate {
  std::string name;
  SumTree tree;
};

/// The leaves of [begin, end) that lane `lane` of `lanes` takes; with pairs, two neighbours at a time, the
/// odd one first.
std::vector<Positions> LaneLeaves(int64_t begin, int64_t end, int64_t lane, int64_t lanes, int64_t run) {
  std::vector<Positions> leaves;
  for (int64_t i = begin + lane * run; i < end; i += lanes * run) {
    for (int64_t j = i; j < std::min(i + run, end); ++j) leaves.push_back({j});
  }
  return run == 2 ? OddFirst(std::move(leaves)) : leaves;
}

/// Lanes of [begin, end), folded: `groups` registers of `width` lanes each first register by register, then
/// inside.
Positions Lanes(SumTree* tree, int64_t begin, int64_t end, int64_t groups, int64_t width, int64_t run,
                Fold across, Fold inside) {
  std::vector<Positions> registers;
  for (int64_t lane = 0; lane < width; ++lane) {
    std::vector<Positions> same_lane;
    for (int64_t group = 0; group < groups; ++group) {
      const auto leaves = LaneLeaves(begin, end, group * width + lane, groups * width, run);
      if (!leaves.empty()) same_lane.push_back(Chain(tree, leaves));
    }
    if (!same_lane.empty()) registers.push_back(FoldAll(tree, across, std::move(same_lane)));
  }
  return FoldAll(tree, inside, std::move(registers));
}

/// Contiguous parts, each in `width` lanes; the parts are added lane by lane, then the lanes are folded.
void PartsOfLanes(SumTree* tree, int64_t parts, int64_t width, Fold across, Fold inside) {
  const int64_t length = tree->size() / parts;
  std::vector<Positions> lanes;
  for (int64_t lane = 0; lane < width; ++lane) {
    std::vector<Positions> same_lane;
    for (int64_t part = 0; part < parts; ++part)
      same_lane.push_back(Chain(tree, LaneLeaves(part * length, (part + 1) * length, lane, width, 1)));
    lanes.push_back(FoldAll(tree, across, std::move(same_lane)));
  }
  FoldAll(tree, inside, std::move(lanes));
}

/// The orders of summation of `size` terms that have a name.
class NamedOrders {
 public:
  explicit NamedOrders(int64_t size) : size_(size) {}

  std::vector<Candidate> All() && {
    AddChains();
    AddBlocks();
    AddLanes();
    AddPartsOfLanes();
    return std::move(all_);
  }

 private:
  template <class Build>
  void Add(std::string name, const Build& build) {
    SumTree tree(size_);
    build(&tree);
    all_.push_back({.name = std::move(name), .tree = std::move(tree)});
  }

  void AddChains();
  void AddBlocks();
  void AddLanes();
  void AddPartsOfLanes();

  int64_t size_;
  std::vector<Candidate> all_;
};

void NamedOrders::AddChains() {
  Add("sequential", [&](SumTree* tree) { Chain(tree, Leaves(0, size_, 1)); });
  Add("reversed", [&](SumTree* tree) {
    auto leaves = Leaves(0, size_, 1);
    std::reverse(leaves.begin(), leaves.end());
    Chain(tree, leaves);
  });
  Add("sequential in pairs, the odd one first",
      [&](SumTree* tree) { Chain(tree, OddFirst(Leaves(0, size_, 1))); });
  for (int64_t length = 2; length <= size_; length *= 2) {
    Add("fused blocks of " + std::to_string(length) + ", one after another",
        [&](SumTree* tree) { Fused(tree, length); });
  }
  for (int64_t base = 1; base < size_; base *= 2) {
    const std::string rest = base == 1 ? "" : ", sequential below " + std::to_string(base + 1);
    Add("pairwise" + rest, [&](SumTree* tree) { Pairwise(tree, 0, size_, base); });
  }
}

void NamedOrders::AddBlocks() {
  for (int64_t length = 2; length < size_; length *= 2) {
    for (const int64_t run : {1, 2}) {
      Add("blocks of " + std::to_string(length) + ", each sequential" +
              (run == 2 ? " in pairs, the odd one first" : "") + ", added one after another",
          [&](SumTree* tree) {
            std::vector<Positions> blocks;
            for (int64_t begin = 0; begin < size_; begin += length) {
              const auto leaves = Leaves(begin, std::min(begin + length, size_), 1);
              blocks.push_back(Chain(tree, run == 2 ? OddFirst(leaves) : leaves));
            }
            Chain(tree, blocks);
          });
    }
    for (const auto& [fold_kind, how] : kFolds) {
      const auto fold = fold_kind;  // Clang up to 15 lets no lambda capture a structured binding
      if (fold == Fold::kSequential) continue;
      Add("contiguous parts of " + std::to_string(length) + ", folded " + how, [&](SumTree* tree) {
        std::vector<Positions> blocks;
        for (int64_t begin = 0; begin < size_; begin += length)
          blocks.push_back(Chain(tree, Leaves(begin, std::min(begin + length, size_), 1)));
        FoldAll(tree, fold, blocks);
      });
    }
  }
}

void NamedOrders::AddLanes() {
  for (const int64_t run : {1, 2}) {
    for (int64_t groups = 1; groups <= 16; groups *= 2) {
      for (int64_t width = 1; groups * width * run <= size_; width *= 2) {
        if (groups * width < 2) continue;
        for (const auto& [across_kind, across_how] : kFolds) {
          const auto across = across_kind;
          if (groups <= 2 && across != Fold::kHalves) continue;
          for (const auto& [inside_kind, inside_how] : kFolds) {
            const auto inside = inside_kind;
            if (width <= 2 && inside != Fold::kHalves) continue;
            std::string name =
                std::to_string(groups * width) + " lanes" + (run == 2 ? " of pairs (the odd one first)" : "");
            if (groups > 1 && width > 1)
              name += ", " + std::to_string(groups) + " registers of " + std::to_string(width) +
                      (groups > 2 ? std::string(" added ") + across_how : "");
            else if (groups > 2)
              name += std::string(", folded ") + across_how;
            if (width > 2) name += std::string(groups > 1 ? ", then folded " : ", folded ") + inside_how;
            Add(std::move(name),
                [&](SumTree* tree) { Lanes(tree, 0, size_, groups, width, run, across, inside); });
          }
        }
      }
    }
  }
}

void NamedOrders::AddPartsOfLanes() {
  for (int64_t parts = 2; parts <= 8; parts *= 2) {
    for (int64_t width = 2; parts * width < size_ && size_ % (parts * width) == 0; width *= 2) {
      for (const auto& [across_kind, across_how] : kFolds) {
        const auto across = across_kind;
        if (parts == 2 && across != Fold::kHalves) continue;
        for (const auto& [inside_kind, inside_how] : kFolds) {
          const auto inside = inside_kind;
          if (width == 2 && inside != Fold::kHalves) continue;
          Add(std::to_string(parts) + " contiguous parts of " + std::to_string(width) +
                  " lanes, added lane by lane" + (parts > 2 ? std::string(" ") + across_how : "") +
                  (width > 2 ? std::string(", then folded ") + inside_how : ""),
              [&](SumTree* tree) { PartsOfLanes(tree, parts, width, across, inside); });
        }
      }
    }
  }
}

}  // namespace

Positions SumTree::Join(const std::vector<Positions>& parts) {
  Positions all;
  for (const Positions& part : parts) all.insert(all.end(), part.begin(), part.end());
  const auto count = static_cast<int64_t>(all.size());
  for (size_t a = 0; a < parts.size(); ++a) {
    for (size_t b = 0; b < parts.size(); ++b) {
      if (a == b) continue;
      for (const int64_t i : parts[a]) {
        for (const int64_t j : parts[b]) meet_[static_cast<size_t>(i * size_ + j)] = count;
      }
    }
  }
  return all;
}

std::vector<Positions> SumTree::MembersOf(const Positions& leaves) const {
  const auto count = static_cast<int64_t>(leaves.size());
  std::vector<Positions> members;
  for (const int64_t leaf : leaves) {
    const auto own = std::ranges::find_if(
        members, [&](const Positions& member) { return Meet(member.front(), leaf) < count; });
    if (own == members.end())
      members.push_back({leaf});
    else
      own->push_back(leaf);
  }
  return members;
}

std::string SumTree::TextOf(const Positions& leaves) const {
  if (leaves.size() == 1) return std::to_string(leaves.front());
  std::string text = "(";
  for (const Positions& member : MembersOf(leaves)) text += (text.size() > 1 ? " " : "") + TextOf(member);
  return text + ")";
}

int64_t SumTree::WidestOf(const Positions& leaves) const {
  if (leaves.size() == 1) return 1;
  const auto members = MembersOf(leaves);
  int64_t widest = std::ranges::count_if(members, [](const Positions& member) { return member.size() == 1; });
  if (members.size() == 2) widest = 2;
  for (const Positions& member : members) widest = std::max(widest, WidestOf(member));
  return widest;
}

std::string SumTree::Text() const {
  Positions all(static_cast<size_t>(size_));
  std::iota(all.begin(), all.end(), 0);
  return all.empty() ? "()" : TextOf(all);
}

int64_t SumTree::WidestNode() const {
  Positions all(static_cast<size_t>(size_));
  std::iota(all.begin(), all.end(), 0);
  return all.empty() ? 0 : WidestOf(all);
}

std::string SumTree::Name() const {
  if (size_ < 3) return "";
  for (const Candidate& candidate : NamedOrders(size_).All()) {
    if (candidate.tree == *this) return candidate.name;
  }
  return "";
}

namespace {

using Meets = std::map<std::pair<int64_t, int64_t>, int64_t>;

/// Pairs of `all` that determine the rest, in as few rounds as possible; nothing when the answers belong to no tree.
std::optional<Meets> FindMeets(const Positions& all, const AskMeets& ask) {
  const auto size = static_cast<int64_t>(all.size());
  std::vector<Positions> open{all};
  Meets meets;
  while (!open.empty()) {
    std::vector<std::pair<int64_t, int64_t>> pairs;
    for (const Positions& set : open) {
      for (size_t j = 1; j < set.size(); ++j) pairs.emplace_back(set.front(), set[j]);
    }
    const std::vector<int64_t> answers = ask(pairs);
    if (answers.size() != pairs.size()) return std::nullopt;
    size_t next = 0;
    std::vector<Positions> deeper;
    for (const Positions& set : open) {
      std::map<int64_t, Positions> groups;
      for (size_t j = 1; j < set.size(); ++j, ++next) {
        meets[pairs[next]] = answers[next];
        groups[answers[next]].push_back(set[j]);
      }
      for (auto& [count, group] : groups) {
        // A node holds at least the products that meet there: masks that absorb nothing end here, before
        // every pair is queried.
        if (count < static_cast<int64_t>(group.size()) + 1 || count > size) return std::nullopt;
        if (group.size() > 1) deeper.push_back(std::move(group));
      }
    }
    open = std::move(deeper);
  }
  return meets;
}

/// Whether each node that should hold n products holds n.
bool HoldsWhatItSays(const SumTree& tree) {
  for (int64_t i = 0; i < tree.size(); ++i) {
    for (int64_t j = 0; j < tree.size(); ++j) {
      if (i == j) continue;
      int64_t under = 0;
      for (int64_t k = 0; k < tree.size(); ++k) under += tree.Meet(i, k) <= tree.Meet(i, j) ? 1 : 0;
      if (under != tree.Meet(i, j)) return false;
    }
  }
  return true;
}

}  // namespace

std::optional<SumTree> RevealTree(int64_t size, const AskMeets& ask) {
  if (size < 1) return std::nullopt;
  SumTree tree(size);
  Positions all(static_cast<size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  const auto meets = FindMeets(all, ask);
  if (!meets) return std::nullopt;
  // The remaining pairs follow: j and k that meet i at different heights meet each other at the greater one.
  const std::function<bool(const Positions&)> fill = [&](const Positions& set) {
    std::map<int64_t, Positions> groups;
    for (size_t j = 1; j < set.size(); ++j) groups[meets->at({set.front(), set[j]})].push_back(set[j]);
    Positions inside{set.front()};
    for (const auto& [count, group] : groups) {
      if (count < 2 || count > size) return false;
      // Each group holds the members that join what lies inside at one node.
      for (const int64_t i : inside) {
        for (const int64_t j : group) {
          tree.meet_[static_cast<size_t>(i * size + j)] = tree.meet_[static_cast<size_t>(j * size + i)] =
              count;
        }
      }
      if (!fill(group)) return false;
      inside.insert(inside.end(), group.begin(), group.end());
    }
    return true;
  };
  if (!fill(all) || !HoldsWhatItSays(tree)) return std::nullopt;
  return tree;
}

}  // namespace ulpscope
