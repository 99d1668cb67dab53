// A plan in which stored values replace the results of the steps that give them.
#include "oracles/exact_rest.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "harness/base/check.h"
#include "harness/base/deadline.h"
#include "harness/base/find.h"
#include "oracles/evaluate.h"
#include "oracles/expand.h"
#include "oracles/inputs.h"
#include "oracles/laned.h"
#include "oracles/path.h"

namespace ulpscope {
namespace {

constexpr auto kLanes = static_cast<size_t>(kHybridsAtOnce);

bool SameElements(const TensorData& a, const TensorData& b) {
  if (a.shape != b.shape) return false;
  for (int64_t i = 0; i < a.size(); ++i) {
    if (!SameValue(a.At(i), b.At(i))) return false;
  }
  return true;
}

/// A copy of a plan with a node after each of `stored`, read by everything that read the node itself.
struct PlanOfStored {
  Plan plan;
  std::vector<int> slots;  ///< by node: which of `stored` it holds, or -1

  PlanOfStored(const Plan& from, const std::map<int, int>& slot_of_node) {
    std::vector<int> read_as(from.nodes.size());
    for (size_t i = 0; i < from.nodes.size(); ++i) {
      PlanNode node = from.nodes[i];
      for (std::vector<int>* ids : {&node.args, &node.slack}) {
        // A node in its own slack keeps itself there.
        for (int& id : *ids) id = id == static_cast<int>(i) ? Next() : read_as[static_cast<size_t>(id)];
      }
      const Shape shape = node.shape;
      const DType dtype = node.dtype;
      read_as[i] = Append(std::move(node), -1);
      const auto slot = slot_of_node.find(static_cast<int>(i));
      if (slot == slot_of_node.end()) continue;
      PlanNode stored{.kind = NodeKind::kStore, .args = {read_as[i]}, .shape = shape, .dtype = dtype};
      stored.part = Arrangement{.strides = {RowMajorStrides(shape)}};
      read_as[i] = Append(std::move(stored), slot->second);
    }
    for (const auto& [name, node] : from.values) plan.values[name] = read_as[static_cast<size_t>(node)];
  }

 private:
  int Next() const { return static_cast<int>(plan.nodes.size()); }
  int Append(PlanNode node, int slot) {
    plan.nodes.push_back(std::move(node));
    slots.push_back(slot);
    return Next() - 1;
  }
};

class StoredProgram : public ExactRest {
 public:
  StoredProgram(PlanOfStored plan, const std::string& value, std::map<std::string, TensorData> inputs,
                std::vector<StoredStep> steps)
      : plan_(std::move(plan.plan)),
        slots_(std::move(plan.slots)),
        inputs_(std::move(inputs)),
        steps_(std::move(steps)),
        node_(plan_.values.at(value)) {
    nothing_rounds_.store.resize(plan_.nodes.size());
    nothing_rounds_.in.resize(plan_.nodes.size());
  }

  const std::vector<StoredStep>& steps() const override { return steps_; }

  int64_t Work(int64_t elements) const override { return WorkOf(plan_, PathOf(plan_, node_), elements); }

  void MeasureSteps(std::span<const int64_t> elements) override {
    const HybridOfSteps all{.given = std::vector<bool>(steps_.size(), true)};
    const std::vector<StoredValue> stored = StoredBy({&all, 1}, 1);
    std::vector<StepError> errors(steps_.size());
    Evaluator<LanedArithmetic<1>> evaluator(plan_, inputs_,
                                            LanedArithmetic<1>(&nothing_rounds_, slots_, stored, &errors));
    for (const int64_t element : elements) {
      KeepDeadline();
      evaluator.At(node_, element);
    }
    for (size_t i = 0; i < steps_.size(); ++i) steps_[i].error = errors[i].any ? errors[i].Relative() : 0;
  }

  std::vector<std::vector<TwoDoubles>> Evaluate(std::span<const int64_t> elements,
                                                std::span<const HybridOfSteps> hybrids) const override {
    std::vector<std::vector<TwoDoubles>> all(hybrids.size());
    for (size_t first = 0; first < hybrids.size(); first += kLanes) {
      const size_t count = std::min(kLanes, hybrids.size() - first);
      const std::vector<StoredValue> stored = StoredBy(hybrids.subspan(first, count), kLanes);
      Evaluator<LanedArithmetic<kLanes>> evaluator(plan_, inputs_,
                                                   LanedArithmetic<kLanes>(&nothing_rounds_, slots_, stored));
      for (const int64_t element : elements) {
        KeepDeadline();
        const Laned<kLanes> value = evaluator.At(node_, element);
        for (size_t lane = 0; lane < count; ++lane) all[first + lane].push_back(value.Of(lane));
      }
    }
    return all;
  }

 private:
  /// Lanes beyond the last hybrid do as the last one does.
  std::vector<StoredValue> StoredBy(std::span<const HybridOfSteps> hybrids, size_t lanes) const {
    std::vector<StoredValue> stored(steps_.size());
    for (size_t i = 0; i < steps_.size(); ++i) {
      stored[i].data = &steps_[i].data;
      for (size_t lane = 0; lane < lanes; ++lane) {
        const HybridOfSteps& hybrid = hybrids[std::min(lane, hybrids.size() - 1)];
        stored[i].given.push_back(hybrid.given[i]);
        const DType dtype = hybrid.in_float32 == static_cast<int>(i) ? DType::kFloat32 : steps_[i].data.dtype;
        stored[i].rounded.push_back(hybrid.rounds ? FormatOf(dtype) : nullptr);
      }
      stored[i].given_everywhere = std::ranges::all_of(stored[i].given, std::identity());
    }
    return stored;
  }

  Plan plan_;
  std::vector<int> slots_;
  std::map<std::string, TensorData> inputs_;
  std::vector<StoredStep> steps_;
  int node_;
  Binding nothing_rounds_;
};

/// Those of `stored` that `value` depends on, by node; the others are removed.
Result<std::map<int, int>> PlaceStored(const Plan& plan, const std::string& value,
                                       const std::map<std::string, TensorData>& inputs,
                                       std::vector<StoredStep>* stored) {
  const std::vector<int> path = PathOf(plan, plan.values.at(value)).nodes;
  std::map<int, int> slots;
  std::vector<StoredStep> kept;
  for (StoredStep& step : *stored) {
    const auto found = plan.values.find(step.name);
    if (found == plan.values.end() || plan.gaps.contains(step.name)) continue;
    const int node = found->second;
    if (step.name != value && !std::ranges::binary_search(path, node)) continue;
    const PlanNode& own = plan.at(node);
    if (own.shape != step.data.shape) return Fail(step.name + " has another shape than the program gives it");
    const TensorRead* read = own.If<TensorRead>();
    const auto other = slots.find(node);
    const TensorData* same = read != nullptr        ? Lookup(inputs, read->tensor)
                             : other != slots.end() ? &kept[static_cast<size_t>(other->second)].data
                                                    : nullptr;
    if (same == nullptr) {
      slots[node] = static_cast<int>(kept.size());
      kept.push_back(std::move(step));
    } else if (!SameElements(*same, step.data)) {
      return Fail(step.name + " differs from what it is a copy of");
    }
  }
  *stored = std::move(kept);
  return slots;
}

}  // namespace

Result<std::unique_ptr<ExactRest>> OpenExactRest(const Case& c, std::map<std::string, TensorData> inputs,
                                                 const std::set<std::string>& unrounded,
                                                 const std::string& value, std::vector<StoredStep> stored) {
  ULPSCOPE_TRY(CheckInputs(c, inputs));
  Plan plan = ULPSCOPE_TRY(Lower(c));
  if (const auto gap = plan.gaps.find(value); gap != plan.gaps.end()) return Fail(gap->second);
  if (!plan.values.contains(value)) return Fail("the program gives '" + value + "' no value");
  for (PlanNode& node : plan.nodes) node.handed_on = unrounded.contains(node.name);
  const auto slots = ULPSCOPE_TRY(PlaceStored(plan, value, inputs, &stored));
  return std::make_unique<StoredProgram>(PlanOfStored(plan, slots), value, std::move(inputs),
                                         std::move(stored));
}

}  // namespace ulpscope
