// Names versions of the tensors whose data a program replaces.
#include <utility>

#include "harness/casefile/open.h"
#include "harness/num/float_format.h"
#include "harness/words/program.h"

namespace ulpscope {
namespace {

TensorData CastTo(const TensorData& data, DType dtype) {
  TensorData cast = TensorData::Zeros(dtype, data.shape);
  for (int64_t i = 0; i < data.size(); ++i) cast.Set(i, RoundTo(data.At(i), *FormatOf(dtype)));
  return cast;
}

class Settler {
 public:
  explicit Settler(SettledProgram* settled) : settled_(*settled) {}

  std::vector<Step> Steps(const std::vector<Step>& steps) {
    std::vector<Step> kept;
    for (const Step& step : steps) {
      if (step.op == "set_data" || step.op == "module_to") {
        Replace(step);
        continue;
      }
      if (step.op == "detach_") continue;
      Step other = step;
      other.steps = Steps(step.steps);
      if (IsScope(step.op) && other.steps.empty()) continue;
      for (Operand& operand : other.of) {
        if (!operand.IsScalar()) operand.name = Version(operand.name);
      }
      kept.push_back(std::move(other));
    }
    return kept;
  }

 private:
  /// The name by which the remaining steps know the current contents of `name`.
  std::string Version(const std::string& name) {
    read_.insert(name);
    const auto now = now_.find(name);
    return now == now_.end() ? name : now->second;
  }

  void Replace(const Step& step) {
    const std::string& name = step.of.front().name;
    const auto to =
        step.op == "module_to" ? Result<SetDataTo>(*ReadDType(step, "dtype")) : ReadSetDataTo(step);
    if (const auto* value = std::get_if<std::string>(&*to)) {
      now_[name] = Version(*value);
      return;
    }
    const auto now = now_.find(name);
    const auto held = settled_.inputs.find(now == now_.end() ? name : now->second);
    if (held == settled_.inputs.end())
      return;  // the value of a step: the cast's result is unknown before it has run
    TensorData cast = CastTo(held->second, std::get<DType>(*to));
    // A version that no step has read yet is replaced under its name.
    std::string version = name;
    for (int count = 2; read_.contains(name) && settled_.inputs.contains(version); ++count)
      version = name + "@" + std::to_string(count);
    TensorSpec spec = *settled_.program.FindTensor(name);
    spec.name = version;
    spec.dtype = cast.dtype;
    std::erase_if(settled_.program.tensors, [&](const TensorSpec& tensor) { return tensor.name == version; });
    settled_.program.tensors.push_back(std::move(spec));
    settled_.inputs.insert_or_assign(version, std::move(cast));
    now_[name] = version;
  }

  SettledProgram& settled_;
  std::map<std::string, std::string> now_;  ///< tensor -> its current version
  std::set<std::string> read_;
};

}  // namespace

SettledProgram WithDataSet(const Case& opened, std::map<std::string, TensorData> inputs) {
  SettledProgram settled{.program = opened, .inputs = std::move(inputs)};
  settled.program.program = Settler(&settled).Steps(opened.program);
  return settled;
}

}  // namespace ulpscope
