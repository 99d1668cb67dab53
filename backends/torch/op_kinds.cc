// Kinds of ops: by name if a schema does not show it, by aliases otherwise.
#include "backends/torch/op_kinds.h"

#include <ATen/core/function_schema.h>
#include <torch/csrc/jit/runtime/operator.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>

#include "harness/base/find.h"

namespace ulpscope::torch_backend {
namespace {

/// A schema does not distinguish these from ops that compute.
TraceKind KindByName(const std::string& plain) {
  static const std::map<std::string, TraceKind> kKinds = [] {
    using enum TraceKind;
    std::map<std::string, TraceKind> kinds;
    for (const char* name : {"to", "_to_copy", "type_as"}) kinds[name] = kConvert;
    for (const char* name : {"addmm", "baddbmm", "bmm", "dot", "linear", "matmul", "mm", "mv"})
      kinds[name] = kProduct;
    for (const char* name : {"_unsafe_view", "clone", "copy", "copy_"}) kinds[name] = kMove;
    for (const char* name : {"empty", "empty_like", "empty_strided", "_has_compatible_shallow_copy_type"})
      kinds[name] = kView;
    return kinds;
  }();
  return LookupOr(kKinds, plain, TraceKind::kCompute);
}

/// True if a schema states that the first result shows an operand's memory and that nothing is written.
bool IsView(const std::string& plain) {
  const auto& overloads = torch::jit::getAllOperatorsFor(c10::Symbol::fromQualString("aten::" + plain));
  return std::ranges::any_of(overloads, [](const auto& overload) {
    const c10::FunctionSchema& schema = overload->schema();
    const c10::AliasInfo* alias = schema.returns().empty() ? nullptr : schema.returns()[0].alias_info();
    return alias != nullptr && !alias->isWrite();
  });
}

bool IsIdentifier(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char letter) {
    return std::isalnum(letter) != 0 || letter == '_';
  });
}

}  // namespace

TraceKind KindOf(const std::string& op) {
  static std::mutex mutex;
  static std::map<std::string, TraceKind> known;
  const std::scoped_lock lock(mutex);
  const auto found = known.find(op);
  if (found != known.end()) return found->second;
  const size_t colons = op.rfind("::");
  const std::string plain = colons == op.npos ? op : op.substr(colons + 2);
  TraceKind kind = KindByName(plain);
  if (kind == TraceKind::kCompute && IsIdentifier(plain) && IsView(plain)) kind = TraceKind::kView;
  return known.emplace(op, kind).first->second;
}

void SettleKind(TraceNode* node) {
  if (node->kind != TraceKind::kConvert || node->inputs.empty() || node->outputs.empty()) return;
  const auto differs = [&](const TraceTensor& input) { return input.dtype != node->outputs[0].dtype; };
  if (std::ranges::none_of(node->inputs, differs)) node->kind = TraceKind::kMove;
}

}  // namespace ulpscope::torch_backend
