// Ops and their attributes.
#include "backends/sdk/vocabulary.h"

#include <algorithm>
#include <map>

namespace ulpscope::sdk {
namespace {

using Names = std::vector<std::string>;

const std::map<std::string, Names>& Table() {
  static const std::map<std::string, Names> table = [] {
    const Names product{"out_dtype", "preferred_element_type"};
    std::map<std::string, Names> rows = {
        {"empty", {"shape", "dtype"}},
        {"zeros", {"shape", "dtype"}},
        {"ones", {"shape", "dtype"}},
        {"full", {"shape", "dtype", "value"}},
        {"matmul", product},
        {"mm", product},
        {"bmm", product},
        {"addmm", {"alpha", "beta", "out_dtype"}},
        {"baddbmm", {"alpha", "beta", "out_dtype"}},
        {"add", {"alpha"}},
        {"sub", {"alpha"}},
        {"gelu", {"approximate"}},
        {"softmax", {"dim", "dtype"}},
        {"log_softmax", {"dim", "dtype"}},
        {"logsumexp", {"dim", "keepdim"}},
        {"amax", {"dim", "keepdim"}},
        {"sum", {"dim", "keepdim", "dtype"}},
        {"mean", {"dim", "keepdim", "dtype"}},
        {"cast", {"dtype"}},
        {"layer_norm", {"normalized_shape", "eps"}},
        {"rms_norm", {"normalized_shape", "eps"}},
        {"transpose", {"dim0", "dim1"}},
        {"reshape", {"shape"}},
        {"view", {"shape"}},
        {"expand", {"shape"}},
        {"permute", {"dims"}},
        {"select", {"dim", "index"}},
        {"unsqueeze", {"dim"}},
        {"squeeze", {"dim"}},
        {"set_data", {"to"}},
        {"module_to", {"dtype", "overwrite"}},
        {"backward", {"grad", "retain_graph"}},
        {"autocast", {"device", "dtype", "enabled", "cache"}},
    };
    for (const char* op :
         {"linear", "mul",   "div",    "neg", "abs",     "relu",        "sqrt",    "rsqrt", "exp",
          "expm1",  "log",   "log1p",  "sin", "cos",     "tanh",        "sigmoid", "erf",   "erfc",
          "silu",   "clone", "detach", "t",   "no_grad", "enable_grad", "sync"})
      rows[op] = {};
    return rows;
  }();
  return table;
}

}  // namespace

const Names* AttributesOf(const std::string& op) {
  const auto row = Table().find(op);
  return row == Table().end() ? nullptr : &row->second;
}

std::string UnknownAttribute(const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    const Names* known = AttributesOf(step.op);
    for (const auto& [key, value] : step.attrs.items()) {
      if (known != nullptr && !value.is_null() &&
          std::find(known->begin(), known->end(), key) == known->end())
        return "op '" + step.op + "' has no attribute '" + key + "'";
    }
    if (std::string inner = UnknownAttribute(step.steps); !inner.empty()) return inner;
  }
  return {};
}

}  // namespace ulpscope::sdk
