// Hand-made models, classifications, observations and cases for the tests of the judge.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "harness/base/find.h"
#include "harness/model/case.h"
#include "harness/model/classification.h"
#include "harness/model/observation.h"
#include "harness/model/run_report.h"
#include "tests/support/models.h"

namespace ulpscope::testing {

/// A classification whose facets are the projections of `models`; operands x and y.
inline Classification Classify(std::vector<PrecisionModel> models, std::vector<PrecisionModel> proved,
                               std::string label = "") {
  Classification c;
  c.kind = proved.empty()       ? ClassificationKind::kUnmodelled
           : models.size() == 1 ? ClassificationKind::kIdentified
                                : ClassificationKind::kIndistinguishable;
  for (const auto& model : models) {
    AddOnce(&c.facets.prod, model.prod);
    AddOnce(&c.facets.acc, model.acc);
    AddOnce(&c.facets.mid, model.mid);
    AddOnce(&c.facets.out, model.out);
    for (const std::string operand : {"x", "y"}) {
      AddOnce(&c.facets_in[operand], LookupOr(model.in, operand));
    }
  }
  for (const auto& model : models) {
    for (const auto& [cut, format] : model.cuts) c.cuts.emplace(cut, std::vector<RoundSpec>());
  }
  for (auto& [cut, roundings] : c.cuts) {
    for (const auto& model : models) AddOnce(&roundings, LookupOr(model.cuts, cut));
  }
  c.rests_on_likelihood = models.size() < proved.size();
  c.models = std::move(models);
  c.models_proved = std::move(proved);
  c.fits = !c.models.empty();
  c.elements = c.checked = 4;
  c.max_ulp = 0.5;
  c.label = std::move(label);
  return c;
}

inline Classification Classify(std::vector<PrecisionModel> models, std::string label = "") {
  return Classify(models, models, std::move(label));
}

inline TensorData Tensor(DType dtype, Shape shape, const std::vector<double>& values) {
  TensorData data = TensorData::Zeros(dtype, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i) data.Set(static_cast<int64_t>(i), values[i]);
  return data;
}

inline ValueResult Value(Classification classification, DType dtype = DType::kFloat32) {
  ValueResult value;
  value.dtype = dtype;
  value.shape = {2, 2};
  value.classification = std::move(classification);
  return value;
}

inline Case MakeCase(std::vector<std::string> observe = {"product", "result"}) {
  Case c;
  c.id = "seeds/matmul_out/as_posted";
  c.observe = std::move(observe);
  for (const std::string name : {"x", "y", "bias"}) {
    TensorSpec tensor;
    tensor.name = name;
    tensor.dtype = DType::kBfloat16;
    c.tensors.push_back(tensor);
  }
  const auto step = [](std::string op, std::string out, std::string as) {
    Step made;
    made.op = std::move(op);
    made.out = std::move(out);
    made.as = std::move(as);
    return made;
  };
  c.program = {step("empty", "", "buffer"), step("matmul", "buffer", "product"), step("add", "", "result")};
  return c;
}

inline Observation Completed(std::map<std::string, TensorData> values) {
  Observation observation;
  observation.values = std::move(values);
  return observation;
}

inline Observation Raised(std::string error_class, std::string text) {
  Observation observation;
  observation.outcome = {
      .kind = OutcomeKind::kRaised, .error_class = std::move(error_class), .text = std::move(text)};
  return observation;
}

inline const std::string kRefusal = "Expected out tensor to have dtype c10::BFloat16, but got float instead";

}  // namespace ulpscope::testing
