// Checks of a trace and the cost of its casts.
#include "harness/model/trace.h"

#include <algorithm>
#include <map>
#include <set>

#include "harness/num/dtype.h"

namespace ulpscope {
namespace {

/// 0 for a dtype that is none of ours.
int64_t ElementBytes(std::string_view dtype) {
  const auto known = ParseDType(dtype);
  return known ? static_cast<int64_t>(SizeOf(*known)) : 0;
}

int64_t MovedBytes(const Cast& cast) {
  const int64_t elements = ElementCount(cast.shape);
  return elements * (ElementBytes(cast.from) + ElementBytes(cast.to));
}

/// The nodes by id.
using Index = std::map<int64_t, const TraceNode*>;

Index IndexOf(const std::vector<TraceNode>& trace) {
  Index index;
  for (const TraceNode& node : trace) index.emplace(node.id, &node);
  return index;
}

/// The nodes around `id`, itself first and the outermost last, as far as they were timed or are `id`.
std::vector<const TraceNode*> TimedAround(const Index& index, int64_t id) {
  std::vector<const TraceNode*> around;
  auto node = index.find(id);
  for (size_t steps = 0; node != index.end() && steps <= index.size(); ++steps) {
    if (around.empty() || node->second->us) around.push_back(node->second);
    if (node->second->parent < 0) break;
    node = index.find(node->second->parent);
  }
  return around;
}

/// The first timed node outside `makers` that reads what one of them made, the outermost where readers are
/// nested; null where none is known.
const TraceNode* ReaderOf(const std::vector<const TraceNode*>& makers, const Index& index) {
  std::set<int64_t> made;
  for (const TraceNode* maker : makers) made.insert(maker->id);
  std::set<int64_t> inside = made;
  for (const auto& [id, node] : index) {  // a timed node comes after what encloses it
    if (inside.contains(id)) continue;
    if (inside.contains(node->parent)) {
      inside.insert(id);
      continue;
    }
    const auto is_made = [&](int64_t source) { return made.contains(source); };
    if (node->us && std::ranges::any_of(node->from, is_made)) return node;
  }
  return nullptr;
}

void AddShares(const std::vector<Cast>& casts, const Index& index, std::string_view stage, CastCost* cost) {
  // By the op that the casts are made for, and whether they stand before it or inside it.
  std::map<std::pair<int64_t, bool>, size_t> known;
  for (const Cast& cast : casts) {
    if (cast.stage != stage || !cast.us || cast.node < 0) continue;
    const auto around = TimedAround(index, cast.node);
    if (around.empty()) continue;
    const TraceNode* outermost = around.back();
    // An op that takes no longer than its conversion is that conversion: it is made for what reads it.
    const bool alone = outermost->id == cast.node || *outermost->us <= *cast.us;
    const TraceNode* op = alone ? ReaderOf(around, index) : outermost;
    if (op == nullptr) continue;
    const auto [entry, fresh] = known.emplace(std::pair(op->id, alone), cost->shares.size());
    if (fresh)
      cost->shares.push_back({.under = outermost->op, .before = alone ? op->op : "", .op_us = *op->us});
    CastCost::Share& share = cost->shares[entry->second];
    share.casts_us += *cast.us;
    if (!alone) share.op_us = std::max(0.0, share.op_us - *cast.us);
  }
}

/// The nodes directly inside each node.
using InsideNodes = std::map<int64_t, std::vector<const TraceNode*>>;

/// True when the conversion stands inside a kernel (a generated one, a fusion of HLO) that computes something
/// else as well: its result stays in registers. A kernel that converts and moves, and does no more, is the
/// conversion.
bool IsInKernel(const Cast& cast, const Index& index, const InsideNodes& inside) {
  const auto node = index.find(cast.node);
  if (node == index.end()) return false;
  const auto kernel = index.find(node->second->parent);
  if (kernel == index.end()) return false;
  if (kernel->second->kind != TraceKind::kFusion && kernel->second->kind != TraceKind::kKernel) return false;
  const auto& parts = inside.at(kernel->first);
  return std::ranges::any_of(parts, [](const TraceNode* part) { return Computes(part->kind); });
}

}  // namespace

std::vector<CastCost> CostOfCasts(const std::vector<Cast>& casts, const std::vector<TraceNode>& trace) {
  const Index index = IndexOf(trace);
  InsideNodes inside;
  for (const TraceNode& node : trace) inside[node.parent].push_back(&node);
  std::vector<CastCost> costs;
  for (const std::string_view stage : kTraceStages) {
    CastCost cost{.stage = std::string(stage)};
    for (const Cast& cast : casts) {
      if (cast.stage != stage) continue;
      ++cost.casts;
      const bool in_kernel = IsInKernel(cast, index, inside);
      const int64_t moved = in_kernel ? 0 : MovedBytes(cast);
      cost.in_kernels += in_kernel;
      cost.moved_bytes += moved;
      if (!cast.redundant) continue;
      cost.redundant_bytes += moved;
      // Of a pair, the wide tensor in the middle is what need not exist; the narrowing half closes the pair.
      if (ElementBytes(cast.to) > ElementBytes(cast.from)) {
        cost.extra_alive_bytes += in_kernel ? 0 : cast.bytes;
      } else {
        ++cost.redundant_pairs;
      }
    }
    if (cost.casts == 0) continue;
    AddShares(casts, index, stage, &cost);
    costs.push_back(std::move(cost));
  }
  return costs;
}

std::string TraceProblem(const std::vector<TraceNode>& trace, const std::vector<Cast>& casts) {
  std::map<int64_t, int64_t> parents;
  for (const TraceNode& node : trace) {
    if (node.id < 0) return "a trace node with the id " + std::to_string(node.id);
    if (StageRank(node.stage) == kTraceStages.size())
      return "a trace node of the unknown stage '" + node.stage + "'";
    if (!parents.emplace(node.id, node.parent).second)
      return "two trace nodes with the id " + std::to_string(node.id);
  }
  for (const TraceNode& node : trace) {
    if (node.parent != -1 && !parents.contains(node.parent))
      return "trace node " + std::to_string(node.id) + " lies in node " + std::to_string(node.parent) +
             ", which is none";
    for (const int64_t source : node.from) {
      if (!parents.contains(source))
        return "trace node " + std::to_string(node.id) + " reads node " + std::to_string(source) +
               ", which is none";
    }
  }
  std::set<int64_t> rooted{-1};
  for (const auto& [id, parent] : parents) {
    std::vector<int64_t> path;
    std::set<int64_t> seen;
    for (int64_t at = id; !rooted.contains(at); at = parents.at(at)) {
      if (!seen.insert(at).second) return "trace node " + std::to_string(id) + " lies in itself";
      path.push_back(at);
    }
    rooted.insert(path.begin(), path.end());
  }
  for (const Cast& cast : casts) {
    if (StageRank(cast.stage) == kTraceStages.size())
      return "a cast of the unknown stage '" + cast.stage + "'";
    if (cast.node != -1 && !parents.contains(cast.node))
      return "a cast at trace node " + std::to_string(cast.node) + ", which is none";
  }
  return {};
}

}  // namespace ulpscope
