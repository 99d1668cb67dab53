// Small cases and inputs for tests that must not depend on the case files.
#pragma once

#include <map>
#include <string>

#include "harness/base/hash.h"
#include "harness/model/case.h"

namespace ulpscope::testing {

inline Attr Text(std::string text) { return Attr{.value = std::move(text)}; }
inline Attr Integer(int64_t value) { return Attr{.value = value}; }
inline Attr Integers(const std::vector<int64_t>& values) {
  Attr::List list;
  for (const int64_t value : values) list.push_back(Integer(value));
  return Attr{.value = std::move(list)};
}

inline TensorSpec Tensor(const std::string& name, DType dtype, Shape shape, bool requires_grad = false) {
  TensorSpec spec;
  spec.name = name;
  spec.dtype = dtype;
  spec.shape = std::move(shape);
  spec.requires_grad = requires_grad;
  return spec;
}

inline Step MakeStep(const std::string& op, const std::vector<std::string>& of, const std::string& as,
                     std::map<std::string, Attr> attrs = {}, const std::string& out = "") {
  Step step;
  step.op = op;
  for (const auto& name : of) step.of.push_back(Operand{.name = name, .scalar = {}});
  step.as = as;
  step.out = out;
  step.attrs = std::move(attrs);
  return step;
}

/// Roughly normal values (a sum of 12 uniforms), rounded once to the dtype; only for tests.
inline std::map<std::string, TensorData> NormalInputs(const Case& c, uint64_t seed) {
  std::map<std::string, TensorData> inputs;
  uint64_t state = seed * kGoldenGamma + 1;
  for (const auto& tensor : c.tensors) {
    TensorData data = TensorData::Zeros(tensor.dtype, tensor.shape);
    for (int64_t i = 0; i < data.size(); ++i) {
      double sum = -6;
      for (int k = 0; k < 12; ++k) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        sum += static_cast<double>(state >> 11) * 0x1p-53;
      }
      data.Set(i, RoundTo(sum, *FormatOf(tensor.dtype)));
    }
    inputs.emplace(tensor.name, std::move(data));
  }
  return inputs;
}

/// The forum's program: a bfloat16 product into a float32 out= buffer, plus a bfloat16 bias.
inline Case MatmulOutCase() {
  Case c;
  c.id = "test/matmul_out";
  c.tensors = {Tensor("x", DType::kBfloat16, {32, 7, 1, 8}), Tensor("y", DType::kBfloat16, {32, 7, 8, 1}),
               Tensor("bias", DType::kBfloat16, {32, 7, 1, 1})};
  c.program = {
      MakeStep("empty", {}, "buffer", {{"shape", Integers({32, 7, 1, 1})}, {"dtype", Text("float32")}}),
      MakeStep("matmul", {"x", "y"}, "product", {}, "buffer"),
      MakeStep("add", {"product", "bias"}, "result")};
  c.observe = {"product", "result"};
  return c;
}

inline Case MatmulCase(DType a, DType b, int64_t m, int64_t k, int64_t n) {
  Case c;
  c.id = "test/matmul";
  c.tensors = {Tensor("a", a, {m, k}), Tensor("b", b, {k, n})};
  c.program = {MakeStep("matmul", {"a", "b"}, "product")};
  c.observe = {"product"};
  return c;
}

}  // namespace ulpscope::testing
