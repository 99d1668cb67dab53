// Cases that probe the knobs planted in the faulty adapter, each of known behaviour.
#pragma once

namespace ulpscope::testing {

inline constexpr const char* kPlantedKnobCases = R"(
about: probes of planted knobs
contract: {status: unspecified, accept: any}
cases:
  - name: planted
    tags: [ci, knobs, planted_idle, planted_lie, planted_act, planted_refusal, threads]
    tensors:
      x: {dtype: float32, shape: [4, 8], fill: normal}
      y: {dtype: float32, shape: [8, 4], fill: normal}
    program:
      - {op: matmul, of: [x, y], as: product}
    observe: [product]
  - name: other
    tags: [ci, knobs, flush_denormal]
    tensors:
      x: {dtype: float32, shape: [4], fill: subnormals}
    program:
      - {op: add, of: [x, x], as: result}
    observe: [result]
)";

}  // namespace ulpscope::testing
