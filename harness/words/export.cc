// Vocabularies as text. Every word is plain ASCII of our own, so that quoting is all there is to do.
#include "harness/words/export.h"

#include <array>
#include <utility>

#include "harness/words/ops.h"

namespace ulpscope {
namespace {

std::string Quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::string_view Name(OpRow::Kind kind) {
  static constexpr std::array<std::string_view, 5> kNames{"value", "view", "product", "effect", "scope"};
  return kNames[static_cast<size_t>(kind)];
}

std::string OpLine(const OpRow& op) {
  std::string attributes;
  for (const OpAttribute& attribute : op.attributes)
    attributes += (attributes.empty() ? "" : ", ") + Quoted(attribute.key);
  return Quoted(op.name) + ": {\"kind\": " + Quoted(Name(op.kind)) + ", \"operands\": [" +
         std::to_string(op.operands.fewest) + ", " + std::to_string(op.operands.most) +
         "], \"out\": " + (op.out == OpRow::Out::kOut ? "true" : "false") + ", \"attributes\": [" +
         attributes + "]}";
}

std::string OperandsText(const OpRow& op) {
  if (op.kind == OpRow::Kind::kScope) return "none; holds `steps`";
  const std::string most = std::to_string(op.operands.most);
  return op.operands.fewest == op.operands.most ? most : std::to_string(op.operands.fewest) + " to " + most;
}

}  // namespace

std::string WordsJson() {
  std::string ops;
  for (const OpRow& op : Ops()) ops += (ops.empty() ? "    " : ",\n    ") + OpLine(op);
  return "{\n  \"ops\": {\n" + ops + "\n  }\n}\n";
}

std::string OpTable() {
  std::string table = "| op | operands | attributes | |\n|---|---|---|---|\n";
  for (const OpRow& op : Ops()) {
    std::string attributes;
    for (const OpAttribute& attribute : op.attributes) {
      attributes += (attributes.empty() ? "" : ", ") + std::string(attribute.key);
      if (attribute.required) attributes += "*";
    }
    table += "| " + std::string(op.name) + " | " + OperandsText(op) + " | " + attributes + " | " +
             std::string(op.about) +
             (op.out == OpRow::Out::kOut ? (op.about.empty() ? "out=" : "; out=") : "") + " |\n";
  }
  return table +
         "| aten::NAME | as its schema; of several results `as` names the first | keyword arguments of the schema | an op of PyTorch's dispatcher |\n";
}

}  // namespace ulpscope
