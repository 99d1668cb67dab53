// The expansions of the vocabulary, from the rows of harness/words/ops.def.
#include "oracles/ops/table.h"

#include "harness/base/check.h"
#include "harness/words/ops.h"

namespace ulpscope {
namespace {

struct Row {
  std::string_view word;
  OpLowering lower;
};

constexpr Row kRows[] = {
#define ULPSCOPE_OP(word, lowering, ...) {word, Lower##lowering},
#include "harness/words/ops.def"
#undef ULPSCOPE_OP
};

}  // namespace

/// Placeholder for ops that have no value; never called.
int LowerNone(Lowering&, const OpCall& call) {
  ULPSCOPE_CHECK(false, "op " + call.step.op + " has no value");
  return -1;
}

OpLowering FindLowering(std::string_view op) {
  constexpr std::string_view kDispatcher = "aten::";
  const OpRow* row = FindOp(op.starts_with(kDispatcher) ? op.substr(kDispatcher.size()) : op);
  if (row == nullptr || (op != row->name && row->kind != OpRow::Kind::kProduct)) return nullptr;
  const OpLowering lower = kRows[row - Ops().data()].lower;
  return lower == LowerNone ? nullptr : lower;
}

std::vector<std::string> KnownOps() {
  std::vector<std::string> words;
  for (const OpRow& row : Ops()) {
    if (!row.GivesValue()) continue;
    words.emplace_back(row.name);
    if (row.kind == OpRow::Kind::kProduct) words.push_back("aten::" + std::string(row.name));
  }
  return words;
}

}  // namespace ulpscope
