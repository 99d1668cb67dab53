// Vocabularies as text. Every word is plain ASCII of our own, so that quoting is all there is to do.
#include "harness/words/export.h"

#include <array>
#include <string>
#include <vector>

#include "harness/num/dtype.h"
#include "harness/words/knobs.h"
#include "harness/words/ops.h"
#include "harness/words/trace_words.h"

namespace ulpscope {
namespace {

std::string InQuotes(std::string_view text) { return "\"" + std::string(text) + "\""; }

/// ["a", "b"] of the names of `rows`.
template <typename Rows, typename Spell>
std::string List(const Rows& rows, const Spell& spell) {
  std::string list;
  for (const auto& row : rows) list += (list.empty() ? "" : ", ") + spell(row);
  return "[" + list + "]";
}

std::string Words(std::span<const std::string> words) { return List(words, InQuotes); }

/// "key": {, a line for each of `rows`, }.
template <typename Rows, typename Spell>
std::string Section(std::string_view key, const Rows& rows, const Spell& spell) {
  std::string lines;
  for (const auto& row : rows) {
    const std::string line = spell(row);
    if (!line.empty()) lines += (lines.empty() ? "    " : ",\n    ") + line;
  }
  return "  " + InQuotes(key) + ": {\n" + lines + "\n  }";
}

std::string OpLine(const OpRow& op) {
  static constexpr std::array<std::string_view, 5> kKinds{"value", "view", "product", "effect", "scope"};
  std::vector<OpAttribute> required = op.attributes;
  std::erase_if(required, [](const OpAttribute& row) { return !row.required; });
  return InQuotes(op.name) + ": {\"kind\": " + InQuotes(kKinds[static_cast<size_t>(op.kind)]) +
         ", \"operands\": [" + std::to_string(op.operands.fewest) + ", " + std::to_string(op.operands.most) +
         "], \"out\": " + (op.out == OpRow::Out::kOut ? "true" : "false") + ", \"attributes\": " +
         List(op.attributes, [](const OpAttribute& row) { return InQuotes(row.key); }) +
         ", \"required\": " + List(required, [](const OpAttribute& row) { return InQuotes(row.key); }) + "}";
}

std::string DTypeLine(DType dtype) {
  static constexpr std::array<std::string_view, 3> kKinds{"bool", "integer", "floating"};
  return InQuotes(Name(dtype)) + ": {\"kind\": " + InQuotes(kKinds[static_cast<size_t>(KindOf(dtype))]) +
         ", \"bytes\": " + std::to_string(SizeOf(dtype)) +
         ", \"safetensors\": " + InQuotes(SafetensorsName(dtype)) + "}";
}

/// The line of a knob that sets how a backend computes; empty for the others, which concern no framework.
std::string KnobLine(const KnobRow& knob) {
  if (knob.use != KnobRow::Use::kSetting) return "";
  return InQuotes(knob.name) + ": {\"values\": " + Words(knob.values) +
         ", \"backends\": " + Words(knob.takers) + ", \"about\": " + InQuotes(knob.about) + "}";
}

std::string OperandsText(const OpRow& op) {
  if (op.kind == OpRow::Kind::kScope) return "none; holds `steps`";
  const std::string most = std::to_string(op.operands.most);
  return op.operands.fewest == op.operands.most ? most : std::to_string(op.operands.fewest) + " to " + most;
}

}  // namespace

std::string WordsJson() {
  const auto quoted = [](std::string_view word) { return InQuotes(word); };
  return "{\n" + Section("ops", Ops(), OpLine) + ",\n" + Section("dtypes", AllDTypes(), DTypeLine) + ",\n" +
         Section("knobs", KnobRows(), KnobLine) + ",\n  \"trace_stages\": " + List(kTraceStages, quoted) +
         ",\n  \"trace_kinds\": " + List(kTraceKinds, quoted) + "\n}\n";
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
         "| aten::NAME | as its schema | keyword arguments of the schema, result | an op of PyTorch's "
         "dispatcher |\n"
         "| torch.NAME, torch.nn.functional.NAME, torch.special.NAME, torch.linalg.NAME | positional "
         "arguments | keyword "
         "arguments, result | a public function behind which the dispatcher has an op, as it stands |\n";
}

}  // namespace ulpscope
