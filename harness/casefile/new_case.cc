// The skeleton of a new case.
#include "harness/casefile/new_case.h"

namespace ulpscope {

std::string NewCaseTemplate(std::string_view name) {
  return R"(# What do these cases ask? One line; the editor reads case.schema.json for the rest.
about: One sentence, which question does this case ask?
cases:
  - name: )" +
         std::string(name) + R"(            # its id is the path of this file and this name
    source: where the question comes from, a link or a post
    tags: [ci]                  # smoke < ci < nightly
    tensors:
      # Full-width random data tell precisions apart; small integers do not. `ulpscope lint` says when a case is too poor.
      x: {dtype: bfloat16, shape: [16, 64], fill: normal}
      w: {dtype: bfloat16, shape: [64, 16], fill: normal}
    program:
      - {op: matmul, of: [x, w], as: product}
      - {op: cast, of: [product], dtype: float32, as: result}
    observe: [product, result]  # values, w.grad, w.grad_metadata_dtype, trace
    # What is demanded, and on whose authority. Without a contract every outcome is accepted, and its class is shown.
    # contract: {status: documented, source: URL, accept: {product: {dtype: bfloat16, acc: [float32, float64]}}}
    # What is known today, per backend: a change is news.
    # expect:
    #   torch-eager: [{versions: "torch>=2.13,<2.14", product: {dtype: bfloat16}}]
)";
}

}  // namespace ulpscope
