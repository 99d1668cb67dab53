// Laying out slices.
#include "reports/chrome_trace.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "harness/base/find.h"
#include "harness/words/trace_words.h"

namespace ulpscope {
namespace {

using TraceJson = nlohmann::ordered_json;

/// The length of a node without a duration and without parts.
constexpr double kDrawnUs = 1;

/// Slices of one stage of one result.
class StageSlices {
 public:
  StageSlices(std::string stage, TraceJson where, TraceJson* events)
      : stage_(std::move(stage)), where_(std::move(where)), events_(*events) {}

  void Add(const TraceNode& node) { nodes_.push_back(&node); }

  void Write(const std::map<int64_t, const Cast*>& casts) {
    std::set<int64_t> here;
    for (const TraceNode* node : nodes_) here.insert(node->id);
    for (const TraceNode* node : nodes_)
      children_[here.contains(node->parent) ? node->parent : -1].push_back(node);
    double at = 0;
    for (const TraceNode* node : children_[-1]) at += Slice(*node, at, 0, casts);
  }

 private:
  /// Deeper than any real trace; the stack of a viewer is limited as well.
  static constexpr int kDeepest = 512;

  /// Its duration, parts included: no part may extend beyond its parent.
  double Length(const TraceNode& node, int depth) {
    const auto known = lengths_.find(node.id);
    if (known != lengths_.end()) return known->second;
    double parts = 0;
    if (depth < kDeepest) {
      for (const TraceNode* child : children_[node.id]) parts += Length(*child, depth + 1);
    }
    const double length = std::max(node.us.value_or(parts > 0 ? parts : kDrawnUs), parts);
    lengths_[node.id] = length;
    return length;
  }

  double Slice(const TraceNode& node, double at, int depth, const std::map<int64_t, const Cast*>& casts) {
    const double length = Length(node, depth);
    TraceJson event{{"ph", "X"},
                    {"cat", stage_ == "dispatch" ? "cpu_op" : stage_},
                    {"name", node.op.empty() ? std::string(Name(node.kind)) : node.op},
                    {"ts", at},
                    {"dur", length}};
    event.update(where_);
    TraceJson args = TraceJson::object();
    AddTensors(node.inputs, "Input", &args);
    AddTensors(node.outputs, "Output", &args);
    if (node.us) args["us"] = *node.us;
    if (node.kind != TraceKind::kCompute) args["kind"] = Name(node.kind);
    if (const auto cast = casts.find(node.id); cast != casts.end()) {
      args["conversion"] = cast->second->from + " to " + cast->second->to;
      args["under"] = cast->second->under;
    }
    event["args"] = std::move(args);
    events_.push_back(std::move(event));
    double inner = at;
    if (depth < kDeepest) {
      for (const TraceNode* child : children_[node.id]) inner += Slice(*child, inner, depth + 1, casts);
    }
    return length;
  }

  static void AddTensors(const std::vector<TraceTensor>& tensors, const std::string& what, TraceJson* args) {
    if (tensors.empty()) return;
    TraceJson dims = TraceJson::array(), types = TraceJson::array();
    for (const TraceTensor& tensor : tensors) {
      dims.push_back(tensor.shape);
      types.push_back(tensor.dtype);
    }
    (*args)[what + " Dims"] = std::move(dims);
    (*args)[what + " type"] = std::move(types);
  }

  std::string stage_;
  TraceJson where_;
  TraceJson& events_;
  std::vector<const TraceNode*> nodes_;
  std::map<int64_t, std::vector<const TraceNode*>> children_;
  std::map<int64_t, double> lengths_;
};

TraceJson NameEvent(const char* what, const std::string& name, int64_t process, int64_t thread) {
  return {{"ph", "M"}, {"name", what}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}};
}

void AddResult(const CaseResult& result, const std::vector<TraceNode>& trace, int64_t process,
               TraceJson* events) {
  std::map<int64_t, const Cast*> casts;
  for (const Cast& cast : result.casts) {
    if (cast.node >= 0) casts.emplace(cast.node, &cast);
  }
  events->push_back(NameEvent("process_name", result.id + " on " + result.backend, process, 0));
  for (size_t rank = 0; rank < kTraceStages.size(); ++rank) {
    const auto thread = static_cast<int64_t>(rank);
    StageSlices stage(std::string(kTraceStages[rank]), {{"pid", process}, {"tid", thread}}, events);
    bool any = false;
    for (const TraceNode& node : trace) {
      if (node.stage != kTraceStages[rank]) continue;
      stage.Add(node);
      any = true;
    }
    if (!any) continue;
    events->push_back(NameEvent("thread_name", std::string(kTraceStages[rank]), process, thread));
    stage.Write(casts);
  }
}

}  // namespace

std::string WriteChromeTrace(const RunReport& report, const ReportDetails& details) {
  TraceJson events = TraceJson::array();
  int64_t process = 0;
  for (const CaseResult& result : report.results) {
    if (result.status == Status::kSkip || result.status == Status::kNotRun || !details.of_trace) continue;
    const std::vector<TraceNode> trace = details.of_trace(result);
    if (!trace.empty()) AddResult(result, trace, ++process, &events);
  }
  const TraceJson trace = {
      {"displayTimeUnit", "ns"},
      {"otherData",
       {{"written by", "ulpscope"},
        {"time", "durations are measured where args.us stands; when an op began is not recorded"}}},
      {"traceEvents", std::move(events)}};
  return trace.dump(-1, ' ', false, TraceJson::error_handler_t::replace) + "\n";
}

}  // namespace ulpscope
