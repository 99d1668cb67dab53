// Compares traces with numbers.
#include "harness/judge/graph_execution.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

int Precision(std::string_view dtype) {
  const FloatFormat* format = FindFormat(dtype);
  return format == nullptr ? 0 : format->precision;
}

const AccSpec& PlainOf(const AccSpec& acc) { return acc; }

/// A rounding to nearest is named by its format alone.
RoundSpec PlainOf(RoundSpec spec) {
  if (spec.pieces > 1 || spec.faithful || spec.rounding != Rounding::kNearestEven) return spec;
  spec.daz_below = RoundSpec::kNeverDropped;
  spec.subnormals = Subnormals::kGradual;
  return spec;
}

/// The narrowest format that a model rounds to, over everything but its operands; and over its operands.
struct Narrowest {
  int bits = kAllBits;
  std::string what;               ///< the formats of that width; a model uses one of them
  std::set<std::string> formats;  ///< that have so few bits: one of them in one model
  template <class Spec>
  void Take(const Spec& spec, std::string (*word)(const Spec&), std::string_view of) {
    if (spec.bits() >= bits) return;
    bits = spec.bits();
    what = of;
    formats = {WithoutUsualMode(word(PlainOf(spec)))};
  }
  bool operator==(const Narrowest&) const = default;
  std::string Text() const { return Join(std::vector(formats.begin(), formats.end()), " or ") + what; }
};

Narrowest Computed(const PrecisionModel& model) {
  Narrowest narrowest;
  narrowest.Take(model.prod, ProdWord, " products");
  narrowest.Take(model.acc, AccWord, " accumulation");
  narrowest.Take(model.mid, MidWord, "");
  narrowest.Take(model.out, OutWord, "");
  for (const auto& [name, cut] : model.cuts) narrowest.Take(cut, MidWord, " for " + name);
  return narrowest;
}

using Models = std::vector<PrecisionModel> Classification::*;

/// True for a value judged step by step, or in a few steps of its own, if an earlier value is known to be rounded to as
/// few bits, as the program states. The format that the last step keeps is no evidence about that earlier value.
bool IsRoundedBefore(const CaseResult& result, const Classification& classification, int precision) {
  const auto& on_the_way = classification.on_the_way;
  if (std::ranges::any_of(on_the_way, [](const auto& each) { return Contains(each.second, "rounded"); }))
    return true;
  if (classification.piece.empty() || !result.opened) return false;
  std::set<std::string> narrow;
  const auto& steps = result.opened->steps;
  for (const auto& step : steps) {
    const int bits = Precision(Name(step.result.dtype));
    if (bits > 0 && bits <= precision) narrow.insert(step.value);
  }
  return std::ranges::any_of(steps, [&](const auto& step) {
    const auto& reads = step.result.classification.reads;
    return std::ranges::any_of(reads, [&](const auto& read) {
      return narrow.contains(read.first) && Contains(read.second, "stored");
    });
  });
}

/// Observed values of `elements` elements, in program order; empty if a model rounds so, or without the program's last.
std::vector<std::string> ValuesThatKeepMore(const CaseResult& result, int64_t elements, int precision,
                                            Models models) {
  std::vector<std::string> names;
  for (const auto& name : result.value_order) {
    const auto value = result.values.find(name);
    if (value == result.values.end() || ElementCount(value->second.shape) != elements) continue;
    if (IsRoundedBefore(result, value->second.classification, precision)) return {};
    const auto& surviving = value->second.classification.*models;
    // Operands do not count: they were not computed here.
    const auto keeps = [&](const PrecisionModel& model) { return Computed(model).bits > precision; };
    if (surviving.empty() || !std::ranges::all_of(surviving, keeps)) return {};
    names.push_back(name);
  }
  return !names.empty() && names.back() == result.value_order.back() ? names : std::vector<std::string>{};
}

/// The nodes by id, and the casts by the node that converts.
class Graph {
 public:
  Graph(const CaseResult& result, std::span<const TraceNode> trace) {
    for (const TraceNode& node : trace) {
      nodes_.emplace(node.id, &node);
      last_inside_[node.parent] = &node;
      for (const int64_t source : node.from) readers_[source].push_back(&node);
    }
    for (const Cast& cast : result.casts) {
      if (cast.node >= 0) casts_.emplace(cast.node, &cast);
    }
  }

  /// How the node whose result `widening` converts got its narrow format; nothing if its input was narrow already.
  std::optional<GraphGap::By> RoundsBefore(const Cast& widening) const {
    const TraceNode* node = Source(widening.node, widening.from);
    for (size_t steps = 0; node != nullptr && steps <= nodes_.size(); ++steps) {
      if (const auto cast = casts_.find(node->id); cast != casts_.end()) {
        if (Precision(cast->second->from) > Precision(widening.from)) return GraphGap::By::kCast;
        return std::nullopt;
      }
      if (node->from.empty()) return std::nullopt;  // an input, a constant, a load
      if (Computes(node->kind)) return GraphGap::By::kOp;
      node = Source(node->id, widening.from);
    }
    return std::nullopt;
  }

  /// True if node `id` feeds matrix products only: its rounding is their operand's, and no result of the program.
  bool IsOperand(int64_t id) const {
    std::set<int64_t> seen;
    std::vector<int64_t> pending{id};
    while (!pending.empty()) {
      const int64_t at = pending.back();
      pending.pop_back();
      if (!seen.insert(at).second) continue;
      const auto node = nodes_.find(at);
      if (node == nodes_.end()) return false;
      const auto enclosing = nodes_.find(node->second->parent);
      const bool leaves = enclosing != nodes_.end() && enclosing->second->kind == TraceKind::kFusion &&
                          last_inside_.at(node->second->parent) == node->second;
      if (leaves) {
        pending.push_back(node->second->parent);
        continue;
      }
      const auto readers = readers_.find(at);
      if (readers == readers_.end()) return false;  // a result of the graph
      for (const TraceNode* reader : readers->second) {
        if (reader->kind == TraceKind::kProduct || reader->kind == TraceKind::kFusion) continue;
        if (reader->kind != TraceKind::kMove && reader->kind != TraceKind::kView) return false;
        pending.push_back(reader->id);
      }
    }
    return true;
  }

  bool Has(int64_t id) const { return nodes_.contains(id); }

 private:
  /// The node that node `id` reads and whose result has `dtype`.
  const TraceNode* Source(int64_t id, std::string_view dtype) const {
    const auto reader = nodes_.find(id);
    if (reader == nodes_.end()) return nullptr;
    for (const int64_t source : reader->second->from) {
      const auto node = nodes_.find(source);
      if (node == nodes_.end()) continue;
      for (const TraceTensor& output : node->second->outputs) {
        if (output.dtype == dtype) return Result(node->second);
      }
    }
    return nullptr;
  }

  /// The node that computes a fusion's result: the last instruction inside it, which it is printed with.
  const TraceNode* Result(const TraceNode* node) const {
    for (auto last = last_inside_.find(node->id);
         node->kind == TraceKind::kFusion && last != last_inside_.end(); last = last_inside_.find(node->id)) {
      node = last->second;
    }
    return node;
  }

  std::map<int64_t, const TraceNode*> nodes_, last_inside_;
  std::map<int64_t, std::vector<const TraceNode*>> readers_;
  std::multimap<int64_t, const Cast*> casts_;
};

/// The casts to fewer bits, by the properties that a cast back shares.
class Narrowings {
 public:
  explicit Narrowings(const CaseResult& result) {
    for (const Cast& cast : result.casts) {
      if (Precision(cast.from) > Precision(cast.to))
        keys_.emplace(cast.stage, cast.to, ElementCount(cast.shape));
    }
  }
  /// True if `widening` undoes one of them.
  bool HasPairOf(const Cast& widening) const {
    return keys_.contains({widening.stage, widening.from, ElementCount(widening.shape)});
  }

 private:
  std::set<std::tuple<std::string, std::string, int64_t>> keys_;
};

std::set<size_t> StagesOf(const CaseResult& result, std::span<const TraceNode> trace) {
  std::set<size_t> stages;
  for (const Cast& cast : result.casts) stages.insert(StageRank(cast.stage));
  for (const TraceNode& node : trace) stages.insert(StageRank(node.stage));
  stages.erase(StageRank("profile"));  // a profiler's timing record; it lists no conversions
  stages.erase(StageRank("glue"));     // the adapter's own steps, which are not under test
  stages.erase(kTraceStages.size());
  return stages;
}

Narrowest Operands(const PrecisionModel& model) {
  Narrowest narrowest;
  for (const auto& [name, in] : model.in) narrowest.Take(in, InWord, " operands");
  return narrowest;
}

/// The weakest claim of all `models`; nothing if one of them claims nothing below `precision` bits.
Narrowest Weakest(const std::vector<PrecisionModel>& models, Narrowest (*of)(const PrecisionModel&),
                  int precision) {
  Narrowest weakest{.bits = 0, .what = {}, .formats = {}};
  for (const PrecisionModel& model : models) {
    const Narrowest narrowest = of(model);
    if (narrowest.bits >= precision) return {};
    if (narrowest.bits > weakest.bits)
      weakest = narrowest;
    else if (narrowest.bits == weakest.bits && narrowest.what == weakest.what)
      weakest.formats.insert(narrowest.formats.begin(), narrowest.formats.end());
  }
  return models.empty() ? Narrowest{} : weakest;
}

/// True if a stage names a float format of at most `bits` significant bits, as result, cast target or (`reads`) input.
bool Names(const CaseResult& result, std::span<const TraceNode> trace, int bits, bool reads) {
  const auto narrow = [&](std::string_view dtype) {
    return Precision(dtype) > 0 && Precision(dtype) <= bits;
  };
  const auto any = [&](const std::vector<TraceTensor>& tensors) {
    return std::ranges::any_of(tensors, [&](const TraceTensor& tensor) { return narrow(tensor.dtype); });
  };
  const auto names = [&](const TraceNode& node) {
    const bool input = node.from.empty() && node.inputs.empty();
    return (reads && (any(node.inputs) || any(node.outputs))) || (!input && any(node.outputs));
  };
  return std::ranges::any_of(trace, names) ||
         std::ranges::any_of(result.casts, [&](const Cast& cast) { return narrow(cast.to); });
}

}  // namespace

std::optional<GraphGap> FindVanishedRounding(const CaseResult& result, std::span<const TraceNode> trace) {
  if (result.outcome.kind != OutcomeKind::kCompleted || result.value_order.empty()) return std::nullopt;
  const Graph graph(result, trace);
  const Narrowings narrowings(result);
  const std::set<size_t> stages = StagesOf(result, trace);
  std::set<std::pair<int64_t, int>> nothing;  // (elements, precision) for which no value keeps more
  std::optional<GraphGap> lost;
  for (const Cast& cast : result.casts) {
    const int precision = Precision(cast.from);
    const size_t stage = StageRank(cast.stage);
    if (precision == 0 || Precision(cast.to) <= precision || !stages.contains(stage)) continue;
    if (lost && stage <= StageRank(lost->from)) continue;
    std::optional<GraphGap::By> by;
    if (!graph.Has(cast.node)) {
      if (narrowings.HasPairOf(cast)) by = GraphGap::By::kCast;
    } else if (!graph.IsOperand(cast.node)) {
      by = graph.RoundsBefore(cast);
    }
    if (!by) continue;
    const int64_t elements = ElementCount(cast.shape);
    if (nothing.contains({elements, precision})) continue;
    const auto proved = ValuesThatKeepMore(result, elements, precision, &Classification::models_proved);
    const auto likely = ValuesThatKeepMore(result, elements, precision, &Classification::models);
    const auto& values = proved.empty() ? likely : proved;
    if (values.empty()) {
      nothing.emplace(elements, precision);
      continue;
    }
    const auto next = stages.upper_bound(stage);
    lost = GraphGap{.kind = GraphGap::Kind::kVanished,
                    .by = *by,
                    .value = values.front(),
                    .format = cast.from,
                    .from = cast.stage,
                    .to = next == stages.end() ? "execution" : std::string(kTraceStages[*next]),
                    .basis = proved.empty() ? "likely" : "proved"};
  }
  return lost;
}

std::optional<GraphGap> FindAppearedRounding(const CaseResult& result, std::span<const TraceNode> trace) {
  const std::set<size_t> stages = StagesOf(result, trace);
  if (result.outcome.kind != OutcomeKind::kCompleted || trace.empty() || stages.empty()) return std::nullopt;
  const bool eager_seen = stages.contains(StageRank("dispatch"));
  for (const auto& name : result.value_order) {
    const auto value = result.values.find(name);
    if (value == result.values.end()) continue;
    const Classification& classification = value->second.classification;
    const int own = Precision(Name(value->second.dtype));
    if (own == 0 || (!eager_seen && value->second.part == "eager") || value->second.part == "glue") continue;
    for (const auto of : {&Computed, &Operands}) {
      const Narrowest claim = Weakest(classification.models_proved, of, own);
      if (claim.formats.empty() || Names(result, trace, claim.bits, of == &Operands)) continue;
      // Its existence is proved; which one it is may be only likely.
      const Narrowest likely = Weakest(classification.models, of, own);
      return GraphGap{.kind = GraphGap::Kind::kAppeared,
                      .value = name,
                      .format = likely != claim      ? "a rounding, likely " + likely.Text()
                                : claim.what.empty() ? "a rounding to " + claim.Text()
                                                     : claim.Text(),
                      .from = std::string(kTraceStages[*stages.rbegin()]),
                      .to = "execution",
                      .basis = "proved"};
    }
  }
  return std::nullopt;
}

}  // namespace ulpscope
