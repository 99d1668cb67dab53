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

/// The outermost node around `id` that is no conversion: what a reader would call the op.
const TraceNode* Enclosing(const Index& index, int64_t id) {
  const TraceNode* op = nullptr;
  auto node = index.find(id);
  const TraceNode* outermost = node == index.end() ? nullptr : node->second;
  for (size_t steps = 0; node != index.end() && steps <= index.size(); ++steps) {
    if (node->second->parent < 0) break;
    node = index.find(node->second->parent);
    if (node != index.end() && node->second->us) op = node->second;
  }
  return op == outermost ? nullptr : op;
}

void AddShares(const std::vector<Cast>& casts, const Index& index, std::string_view stage, CastCost* cost) {
  std::map<const TraceNode*, double> spent;
  std::vector<const TraceNode*> order;
  for (const Cast& cast : casts) {
    if (cast.stage != stage || !cast.us || cast.node < 0) continue;
    const TraceNode* op = Enclosing(index, cast.node);
    if (op == nullptr) continue;
    if (!spent.contains(op)) order.push_back(op);
    spent[op] += *cast.us;
  }
  for (const TraceNode* op : order) {
    cost->shares.push_back(
        {.under = op->op, .casts_us = spent[op], .op_us = std::max(0.0, *op->us - spent[op])});
  }
}

}  // namespace

size_t StageRank(std::string_view stage) {
  return static_cast<size_t>(std::find(kTraceStages.begin(), kTraceStages.end(), stage) -
                             kTraceStages.begin());
}

std::vector<CastCost> CostOfCasts(const std::vector<Cast>& casts, const std::vector<TraceNode>& trace) {
  const Index index = IndexOf(trace);
  std::vector<CastCost> costs;
  for (const std::string_view stage : kTraceStages) {
    CastCost cost{.stage = std::string(stage)};
    for (const Cast& cast : casts) {
      if (cast.stage != stage) continue;
      ++cost.casts;
      cost.moved_bytes += MovedBytes(cast);
      if (!cast.redundant) continue;
      cost.redundant_bytes += MovedBytes(cast);
      // Of a pair, the wide tensor in the middle is what need not exist; the narrowing half closes the pair.
      if (ElementBytes(cast.to) > ElementBytes(cast.from)) {
        cost.extra_alive_bytes += cast.bytes;
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
