// Redundant casts: back from each narrowing to what it undoes, then forward to what else reads the wide
// value.
#include "harness/model/redundant_casts.h"

#include <algorithm>
#include <map>
#include <set>

#include "harness/base/find.h"
#include "harness/num/float_format.h"

namespace ulpscope {
namespace {

/// True when each value of `narrow` is a value of `wide`, another format.
bool Widens(const std::string& narrow, const std::string& wide) {
  const FloatFormat* from = FindFormat(narrow);
  const FloatFormat* to = FindFormat(wide);
  return from != nullptr && to != nullptr && !(*from == *to) && Holds(*to, *from);
}

class Pairs {
 public:
  Pairs(const std::vector<TraceNode>& trace, std::vector<Cast>* casts) {
    for (const TraceNode& node : trace) {
      nodes_.emplace(node.id, &node);
      parts_[node.parent].push_back(&node);
      for (const int64_t source : std::set<int64_t>(node.from.begin(), node.from.end()))
        readers_[source].push_back(&node);
    }
    for (Cast& cast : *casts) {
      if (cast.node >= 0) casts_.emplace(cast.node, &cast);
    }
    for (auto& [id, cast] : casts_) {
      for (const TraceNode* node = Find(id); node != nullptr; node = Find(node->parent)) {
        if (node->id != id && !OnlyConverts(*node)) break;
        result_of_.emplace(node->id, cast);
        results_[cast].push_back(node->id);
      }
    }
  }

  void Mark() {
    std::vector<Cast*> undone;
    for (const auto& [id, cast] : casts_) {
      Cast* widening = Undone(id, *cast);
      if (widening == nullptr) continue;
      undoing_.insert(id);
      undone.push_back(widening);
    }
    for (const int64_t id : undoing_) casts_.at(id)->redundant = true;
    for (Cast* widening : undone) {
      const auto& results = results_.at(widening);
      std::set<int64_t> seen;
      if (FeedsOnlyWhatUndoes({results.begin(), results.end()}, &seen)) widening->redundant = true;
    }
  }

 private:
  const TraceNode* Find(int64_t id) const { return LookupOr(nodes_, id); }

  /// True for a node around a single conversion and nothing that computes: an op that calls one, a backward
  /// formula.
  bool OnlyConverts(const TraceNode& node) const {
    if (node.kind == TraceKind::kFusion || node.kind == TraceKind::kKernel) return false;
    int64_t conversions = 0;
    std::vector<const TraceNode*> pending{&node};
    while (!pending.empty()) {
      const TraceNode* at = pending.back();
      pending.pop_back();
      conversions += static_cast<int64_t>(casts_.count(at->id));
      const auto parts = parts_.find(at->id);
      if (parts != parts_.end()) {
        pending.insert(pending.end(), parts->second.begin(), parts->second.end());
      } else if (Computes(at->kind)) {
        return false;
      }
    }
    return conversions == 1;
  }

  /// True for a node that gives the one value that it reads as it is.
  static bool HandsOn(const TraceNode& node) {
    const bool one = !node.from.empty() &&
                     std::ranges::all_of(node.from, [&](int64_t id) { return id == node.from.front(); });
    return one && (node.kind == TraceKind::kView || node.kind == TraceKind::kMove);
  }

  /// The widening that the conversion at node `id` undoes; null when it undoes none.
  Cast* Undone(int64_t id, const Cast& cast) const {
    std::set<int64_t> seen;
    const TraceNode* node = Find(id);
    while (node != nullptr && seen.insert(node->id).second) {
      const TraceNode* source = nullptr;
      for (const int64_t from : node->from) {
        const TraceNode* maker = Find(from);
        const auto gives = [&](const TraceTensor& output) { return output.dtype == cast.from; };
        if (source == nullptr && maker != nullptr && std::ranges::any_of(maker->outputs, gives))
          source = maker;
      }
      if (source == nullptr) return nullptr;
      const auto made = result_of_.find(source->id);
      if (made != result_of_.end()) {
        Cast* before = made->second;
        const bool undoes = before->to == cast.from && before->from == cast.to && Widens(cast.to, cast.from);
        return undoes ? before : nullptr;
      }
      if (!HandsOn(*source)) return nullptr;
      node = source;
    }
    return nullptr;
  }

  /// True when something reads `values`, one value under the nodes that give it, and everything that does
  /// converts it back.
  bool FeedsOnlyWhatUndoes(const std::set<int64_t>& values, std::set<int64_t>* seen) const {
    std::set<const TraceNode*> readers, around;
    if (seen->contains(*values.begin())) return true;  // what reads it is looked at already
    for (const int64_t value : values) {
      seen->insert(value);
      const auto found = readers_.find(value);
      if (found != readers_.end()) readers.insert(found->second.begin(), found->second.end());
    }
    // A node that encloses a reader reads in order to hand it in.
    for (const TraceNode* reader : readers) {
      for (const TraceNode* node = Find(reader->parent); node != nullptr; node = Find(node->parent))
        if (!around.insert(node).second) break;
    }
    return !readers.empty() && std::ranges::all_of(readers, [&](const TraceNode* reader) {
      return around.contains(reader) || undoing_.contains(reader->id) ||
             (HandsOn(*reader) && FeedsOnlyWhatUndoes({reader->id}, seen));
    });
  }

  std::map<int64_t, const TraceNode*> nodes_;
  std::map<int64_t, std::vector<const TraceNode*>> parts_, readers_;
  std::map<int64_t, Cast*> casts_;      ///< by the node that converts
  std::map<int64_t, Cast*> result_of_;  ///< by every node whose result it is
  std::map<const Cast*, std::vector<int64_t>> results_;
  std::set<int64_t> undoing_;
};

}  // namespace

void MarkRedundantCasts(const std::vector<TraceNode>& trace, std::vector<Cast>* casts) {
  for (Cast& cast : *casts) cast.redundant = false;
  Pairs(trace, casts).Mark();
}

}  // namespace ulpscope
