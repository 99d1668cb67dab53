// The emulated backend: runs a program in software at any precision model and accumulation order.
//
// It shares its arithmetic with the oracle, so it cannot judge itself: its results are cross-checked in tests
// against independent implementations. Its purpose: the classifier must find the model that was requested
// here, or the documented set of models that these inputs cannot distinguish.
#include <algorithm>
#include <string>

#include "backends/sdk/adapter.h"
#include "harness/base/build_info.h"
#include "harness/base/find.h"
#include "harness/model/case.h"
#include "oracles/emulated.h"
#include "oracles/lower.h"
#include "oracles/models.h"
#include "oracles/oracle.h"

namespace ulpscope {
namespace {

constexpr const char* kDefaultModel = "in=as_is;prod=exact;acc=float32;mid=none;out=float32_rne";
constexpr const char* kDefaultOrder = "sequential";
/// About a minute of emulation.
constexpr int64_t kMostMultiplyAdds = 400'000'000;

Case CaseOf(const sdk::RunRequest& request) {
  Case c;
  c.id = request.case_id;
  for (const auto& tensor : request.program.tensors) {
    TensorSpec spec;
    spec.name = tensor.name;
    spec.dtype = tensor.dtype;
    spec.shape = tensor.shape;
    spec.requires_grad = tensor.requires_grad;
    c.tensors.push_back(std::move(spec));
  }
  c.program = request.program.steps;
  for (const auto& name : request.program.observe) {
    if (!name.ends_with("_dtype")) c.observe.push_back(name);
  }
  return c;
}

bool IsOrder(const std::string& name) {
  const auto& orders = SumOrders(AddendOrders::kBoth);
  return std::ranges::any_of(orders, [&](const SumOrder& order) { return order.name == name; });
}

/// "" or the first word of the program that is not emulated: the oracle takes what holds steps for a scope.
std::string UnknownWord(const std::vector<sdk::Step>& steps) {
  const std::vector<std::string> ops = KnownOps();
  for (const auto& step : steps) {
    const bool known =
        IsScope(step.op) || step.op.starts_with("aten::") || step.op == "sync" || Contains(ops, step.op);
    if (!known) return "op '" + step.op + "'";
    if (std::string inner = UnknownWord(step.steps); !inner.empty()) return inner;
  }
  return "";
}

std::string UnknownObservation(const std::vector<std::string>& observed) {
  for (const auto& name : observed) {
    const size_t dot = name.find('.');
    const std::string property = dot == std::string::npos ? "" : name.substr(dot + 1);
    if (property.empty() || property == "grad" || property == "grad_dtype" ||
        property == "grad_metadata_dtype")
      continue;
    return "observation '" + name + "'";
  }
  return "";
}

/// Results of `empty` that nothing was written into hold what uninitialised memory is to hold.
void Poison(const std::vector<sdk::Step>& steps, sdk::TensorMap& values) {
  for (const auto& step : steps) {
    if (step.op != "empty" || !values.contains(step.as)) continue;
    const bool written = std::ranges::any_of(
        steps, [&](const sdk::Step& other) { return other.out == step.as || !other.steps.empty(); });
    TensorData& tensor = values.at(step.as);
    if (!written) sdk::FillPoison(tensor.bytes, SizeOf(tensor.dtype));
  }
}

class EmulatedAdapter : public sdk::Adapter {
 public:
  sdk::Capabilities Hello(const sdk::HelloRequest& request) override {
    sdk::Capabilities capabilities;
    capabilities.name = "emulated";
    capabilities.backends = {"emulated"};
    capabilities.versions = {{"ulpscope", std::string(Version())}};
    capabilities.knobs = {{"threads", {"1"}}, {"model", {kDefaultModel}}, {"order", {kDefaultOrder}}};
    capabilities.ops = KnownOps();
    capabilities.dtypes = {"float64", "float32", "bfloat16", "float16"};
    capabilities.scopes = {"autocast", "no_grad", "enable_grad"};
    capabilities.capabilities = {"autograd", "out"};
    const auto knob = [&](const char* name, const char* otherwise) {
      return LookupOr(request.knobs, name, std::string(otherwise));
    };
    model_name_ = knob("model", kDefaultModel);
    order_ = knob("order", kDefaultOrder);
    if (!IsOrder(order_))
      capabilities.error = "knob order=" + order_ + ": no order of accumulation of that name";
    const auto model = ParsePrecisionModel(model_name_);
    if (!model) {
      capabilities.error = model.error().Text();
    } else {
      model_ = *model;
    }
    return capabilities;
  }

  sdk::RunReply Run(const sdk::RunRequest& request) override {
    for (const std::string& unknown :
         {UnknownWord(request.program.steps), UnknownObservation(request.program.observe)}) {
      if (!unknown.empty()) return sdk::RunReply::Unsupported(unknown + " is not emulated");
    }
    const Case c = CaseOf(request);
    const auto cost = EmulationCost(c);
    if (!cost) return sdk::RunReply::Unsupported(cost.error().Text());
    if (*cost > kMostMultiplyAdds) {
      return sdk::RunReply::Unsupported("too large to emulate: " + std::to_string(*cost) +
                                        " multiply-adds, budget " + std::to_string(kMostMultiplyAdds));
    }
    const auto values = EmulateProgram(c, request.inputs, model_, order_);
    if (!values) return sdk::RunReply::Unsupported(values.error().Text());
    sdk::RunReply reply;
    reply.tensors = *values;
    if (request.poison) Poison(request.program.steps, reply.tensors);
    for (const auto& name : request.program.observe) {
      if (reply.tensors.contains(name)) continue;
      const size_t dot = name.find(".grad");
      const std::string property = dot == std::string::npos ? "" : name.substr(dot);
      const auto grad =
          dot == std::string::npos ? reply.tensors.end() : reply.tensors.find(name.substr(0, dot) + ".grad");
      // The emulated autograd engine stores a gradient in the dtype of its metadata.
      reply.observations[name] = property.ends_with("_dtype") && grad != reply.tensors.end()
                                     ? std::string(Name(grad->second.dtype))
                                     : "none";
    }
    reply.knobs = {{"threads", "1"}, {"model", model_name_}, {"order", order_}};
    return reply;
  }

 private:
  PrecisionModel model_;
  std::string model_name_, order_;
};

}  // namespace
}  // namespace ulpscope

int main() {
  ulpscope::EmulatedAdapter adapter;
  return ulpscope::sdk::ServeAdapter(adapter);
}
