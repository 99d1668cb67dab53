// Drawing traces.
#include "reports/op_tree.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "reports/text_safe.h"

namespace ulpscope {
namespace {

constexpr size_t kMostLines = 60;

std::string Tensors(const std::vector<TraceTensor>& tensors) {
  std::vector<std::string> parts;
  for (const TraceTensor& tensor : tensors) {
    parts.push_back(Brief(tensor.dtype) + "[" + Join(tensor.shape, ",") + "]");
  }
  return Join(parts, ", ");
}

std::string Duration(double us) {
  return us < 10 ? fmt::format("{:.1f} us", us) : fmt::format("{:.0f} us", us);
}

class Stage {
 public:
  Stage(std::string name, const OpTreeOptions& options) : name_(std::move(name)), options_(options) {}

  void Add(const TraceNode& node) {
    nodes_.push_back(&node);
    by_id_.emplace(node.id, &node);
  }

  std::string Draw(const std::map<int64_t, const Cast*>& casts) {
    casts_ = &casts;
    for (const TraceNode* node : nodes_) children_[node->parent].push_back(node);
    int64_t conversions = 0;
    for (const TraceNode* node : nodes_) {
      if (!casts.contains(node->id)) continue;
      ++conversions;
      for (const TraceNode* at = node; at != nullptr; at = Parent(*at)) keep_.insert(at->id);
    }
    text_ = fmt::format("    {:<14} {}, {}\n", name_, Counted(nodes_.size(), "node"),
                        Counted(conversions, "conversion"));
    if (!Full()) return std::move(text_);
    for (const TraceNode* node : nodes_) {
      if (!by_id_.contains(node->parent)) Subtree(*node, 0);
    }
    if (left_out_ > 0) text_ += fmt::format("        and {} more lines (-v shows them)\n", left_out_);
    return std::move(text_);
  }

 private:
  bool Verbose() const { return options_.console.verbosity == ConsoleOptions::Verbosity::kVerbose; }
  bool Full() const { return Verbose() || Contains(options_.stages, name_); }
  const TraceNode* Parent(const TraceNode& node) const { return LookupOr(by_id_, node.parent); }

  void Subtree(const TraceNode& node, size_t depth) {
    if (!Verbose() && node.kind == TraceKind::kView && !keep_.contains(node.id)) return;
    if (Verbose() || lines_ < kMostLines) {
      Line(node, depth);
    } else {
      ++left_out_;
    }
    ++lines_;
    if (depth > 24) return;  // deeper than any reader follows
    for (const TraceNode* child : children_[node.id]) Subtree(*child, depth + 1);
  }

  /// Graphs number their nodes, since a node's operands are elsewhere; nested calls are shown by nesting.
  bool Numbered() const { return name_ != "dispatch"; }

  void Line(const TraceNode& node, size_t depth) {
    const auto cast = casts_->find(node.id);
    std::string line =
        fmt::format("{:<8}{}", cast == casts_->end() ? "" : "    >", std::string(2 * depth, ' '));
    if (Numbered() && !node.outputs.empty()) line += fmt::format("%{} = ", node.id);
    line += node.op;
    if (Numbered() && !node.from.empty()) {
      std::vector<std::string> sources;
      for (const int64_t source : node.from) sources.push_back("%" + std::to_string(source));
      line += "(" + Join(sources, ", ") + ")";
    } else if (!node.inputs.empty()) {
      line += " (" + Tensors(node.inputs) + ")";
    }
    if (!node.outputs.empty()) line += (Numbered() ? "  " : " -> ") + Tensors(node.outputs);
    if (node.us) line += "  " + Duration(*node.us);
    if (cast != casts_->end()) {
      line += fmt::format("   {} to {}{}", cast->second->from, cast->second->to,
                          cast->second->redundant ? ", changes no value" : "");
    }
    line = TerminalSafe(line);
    if (cast != casts_->end() && options_.console.color == ConsoleOptions::Color::kAlways)
      line = "\x1b[33m" + line + "\x1b[0m";
    text_ += line + "\n";
  }

  std::string name_;
  const OpTreeOptions& options_;
  std::vector<const TraceNode*> nodes_;
  std::map<int64_t, const TraceNode*> by_id_;
  std::map<int64_t, std::vector<const TraceNode*>> children_;
  const std::map<int64_t, const Cast*>* casts_ = nullptr;
  std::set<int64_t> keep_;
  size_t lines_ = 0, left_out_ = 0;
  std::string text_;
};

}  // namespace

std::string_view LastStage(std::span<const TraceNode> trace) {
  size_t last = 0;
  for (const TraceNode& node : trace) {
    if (node.stage != "glue" && node.stage != "profile") last = std::max(last, StageRank(node.stage));
  }
  return kTraceStages[last];
}

std::string DrawOpTree(std::span<const TraceNode> trace, std::span<const Cast> casts,
                       const OpTreeOptions& options) {
  std::map<int64_t, const Cast*> at;
  for (const Cast& cast : casts) {
    if (cast.node >= 0) at.emplace(cast.node, &cast);
  }
  std::string text;
  for (const std::string_view name : kTraceStages) {
    Stage stage(std::string(name), options);
    bool any = false;
    for (const TraceNode& node : trace) {
      if (node.stage != name) continue;
      stage.Add(node);
      any = true;
    }
    if (any) text += stage.Draw(at);
  }
  return text;
}

}  // namespace ulpscope
