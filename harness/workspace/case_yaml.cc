// YAML from a case, in the flow style that people write cases in.
#include "harness/workspace/case_yaml.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/casefile/load.h"
#include "harness/casefile/number.h"
#include "harness/judge/expect.h"
#include "harness/record/observation_json.h"
#include "harness/words/backend_name.h"

namespace ulpscope {
namespace {

bool IsPlain(std::string_view text) {
  return !text.empty() && text.front() != '-' && text.front() != ':' && text.back() != ':' &&
         std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  std::string_view("_+./:-").find(c) != std::string_view::npos;
         });
}

std::string Quote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '\n') {
      quoted += "\\n";
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

/// Text that must stay text: quoted if it would read as something else.
std::string SpellText(std::string_view text) {
  const bool other = LooksLikeNumber(text) || IsAmbiguousWord(text) || text == "true" || text == "false";
  return IsPlain(text) && !other ? std::string(text) : Quote(text);
}

/// A number or word of a fill, as in the source.
std::string Raw(std::string_view text) {
  return IsPlain(text) || LooksLikeNumber(text) ? std::string(text) : Quote(text);
}

std::string Number(double value) {
  std::string text = ShortestDecimal(value);
  const bool integral = text.find_first_not_of("-0123456789") == std::string::npos;
  return integral ? text + ".0" : text;
}

enum class Strings { kText, kRaw };

std::string Spell(const Attr& attr, Strings strings) {
  struct Visitor {
    Strings strings;
    std::string operator()(std::monostate) const { return "{}"; }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(int64_t value) const { return std::to_string(value); }
    std::string operator()(double value) const { return Number(value); }
    std::string operator()(const std::string& value) const {
      return strings == Strings::kRaw ? Raw(value) : SpellText(value);
    }
    std::string operator()(const Attr::List& list) const {
      return "[" + Join(Mapped(list, [&](const Attr& item) { return Spell(item, strings); }), ", ") + "]";
    }
    std::string operator()(const Attr::Map& map) const {
      std::vector<std::string> parts;
      for (const auto& [key, item] : map) parts.push_back(key + ": " + Spell(item, strings));
      return "{" + Join(parts, ", ") + "}";
    }
  };
  return std::visit(Visitor{strings}, attr.value);
}

std::string Integers(const std::vector<int64_t>& numbers) { return "[" + Join(numbers, ", ") + "]"; }

std::string Texts(const std::vector<std::string>& texts) {
  return "[" + Join(Mapped(texts, SpellText), ", ") + "]";
}

std::string TextMap(const std::map<std::string, std::string>& entries) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : entries) parts.push_back(key + ": " + Raw(value));
  return "{" + Join(parts, ", ") + "}";
}

std::string Tensor(const TensorSpec& spec) {
  std::vector<std::string> parts{"dtype: " + std::string(Name(spec.dtype)), "shape: " + Integers(spec.shape)};
  if (!spec.strides.empty()) parts.push_back("layout: {strides: " + Integers(spec.strides) + "}");
  parts.push_back("fill: " + Spell(spec.fill, Strings::kRaw));
  if (spec.requires_grad) parts.push_back("requires_grad: true");
  return "{" + Join(parts, ", ") + "}";
}

std::string OriginText(const StepOrigin& at) {
  std::vector<std::string> parts;
  if (!at.module.empty()) parts.push_back("module: " + SpellText(at.module));
  if (!at.file.empty()) parts.push_back("file: " + SpellText(at.file));
  if (at.line > 0) parts.push_back("line: " + std::to_string(at.line));
  return "{" + Join(parts, ", ") + "}";
}

/// Whether a step's text has its origin.
enum class Origins { kKept, kLeftOut };

std::string StepText(const Step& step, Origins origins) {
  std::vector<std::string> parts{"op: " + SpellText(step.op)};
  if (!step.of.empty()) {
    std::vector<std::string> operands;
    for (const Operand& operand : step.of) {
      operands.push_back(operand.scalar ? Spell(*operand.scalar, Strings::kText) : SpellText(operand.name));
    }
    parts.push_back("of: [" + Join(operands, ", ") + "]");
  }
  for (const auto& [key, value] : step.attrs) parts.push_back(key + ": " + Spell(value, Strings::kText));
  if (!step.out.empty()) parts.push_back("out: " + SpellText(step.out));
  if (!step.as.empty()) parts.push_back("as: " + SpellText(step.as));
  if (IsScope(step.op)) {
    std::vector<std::string> inner;
    for (const Step& child : step.steps) inner.push_back(StepText(child, origins));
    parts.push_back("steps: [" + Join(inner, ", ") + "]");
  }
  if (origins == Origins::kKept && !step.at.IsEmpty()) parts.push_back("at: " + OriginText(step.at));
  return "{" + Join(parts, ", ") + "}";
}

std::string Raised(const RaisedMatch& raised) {
  std::vector<std::string> parts;
  if (!raised.error_class.empty()) parts.push_back("class: " + SpellText(raised.error_class));
  if (!raised.match.empty()) parts.push_back("match: " + Quote(raised.match));
  return "{" + Join(parts, ", ") + "}";
}

std::string Demand(const ValueDemand& demand) {
  std::vector<std::string> parts, operands;
  if (demand.dtype) parts.push_back("dtype: " + *demand.dtype);
  for (const auto& [facet, words] : demand.facets) {
    if (facet.starts_with("in.")) {
      operands.push_back(facet.substr(3) + ": " + Texts(TextsOf(words)));
    } else {
      parts.push_back(facet + ": " + Texts(TextsOf(words)));
    }
  }
  if (!operands.empty()) parts.push_back("in: {" + Join(operands, ", ") + "}");
  return "{" + Join(parts, ", ") + "}";
}

std::vector<std::string> Demands(const std::map<std::string, ValueDemand>& values) {
  std::vector<std::string> parts;
  for (const auto& [name, demand] : values) parts.push_back(name + ": " + Demand(demand));
  return parts;
}

std::string ContractText(const Contract& contract) {
  static constexpr std::string_view kStatuses[] = {"", "specified", "documented", "de_facto", "unspecified"};
  std::vector<std::string> parts;
  if (contract.status != ContractStatus::kNone) {
    parts.push_back("status: " + std::string(kStatuses[static_cast<size_t>(contract.status)]));
  }
  if (!contract.source.empty()) parts.push_back("source: " + Quote(contract.source));
  std::vector<std::string> accept = Demands(contract.values);
  if (contract.raised) accept.push_back("raised: " + Raised(*contract.raised));
  if (!contract.accept_any)
    parts.push_back("accept: {" + Join(accept, ", ") + "}");
  else if (contract.equal.empty() && contract.same_class.empty())
    parts.emplace_back("accept: any");
  if (!contract.equal.empty()) parts.push_back("equal: " + Texts(contract.equal));
  if (!contract.same_class.empty()) parts.push_back("same_class: " + Texts(contract.same_class));
  if (contract.prove) parts.push_back("prove: true");
  return "{" + Join(parts, ", ") + "}";
}

std::string CastCounts(const std::vector<CastCount>& casts) {
  std::vector<std::string> items;
  for (const CastCount& cast : casts) {
    std::vector<std::string> parts{"stage: " + cast.stage};
    if (!cast.from.empty()) parts.push_back("from: " + cast.from);
    if (!cast.to.empty()) parts.push_back("to: " + cast.to);
    parts.push_back("count: " + std::to_string(cast.count));
    items.push_back("{" + Join(parts, ", ") + "}");
  }
  return "[" + Join(items, ", ") + "]";
}

std::string Expected(const Expectation& expectation) {
  std::vector<std::string> parts;
  if (!expectation.versions.empty()) parts.push_back("versions: " + Quote(expectation.versions));
  if (expectation.raised) parts.push_back("raised: " + Raised(*expectation.raised));
  if (expectation.unsupported) parts.push_back("unsupported: " + Quote(*expectation.unsupported));
  for (auto& demand : Demands(expectation.values)) parts.push_back(std::move(demand));
  if (!expectation.observations.empty())
    parts.push_back("observations: " + TextMap(expectation.observations));
  if (!expectation.casts.empty()) parts.push_back("casts: " + CastCounts(expectation.casts));
  return "{" + Join(parts, ", ") + "}";
}

/// The last part of the id, without its sweep. The tilde of an auxiliary input's id is not allowed in a name.
std::string NameOf(const std::string& id) {
  const size_t tilde = id.rfind('~');
  const std::string path = id.substr(0, id.find('['));
  const std::string name = path.substr(path.rfind('/') + 1);
  return tilde == id.npos ? name : name.substr(0, name.find('~')) + "+" + id.substr(tilde + 1);
}

std::string Expectations(const Case& test_case, std::string_view backend) {
  std::string text;
  for (const auto& [name, expectations] : test_case.expect) {
    if (!backend.empty() && CanonicalBackend(name) != CanonicalBackend(backend)) continue;
    std::vector<std::string> parts;
    for (const Expectation& expectation : expectations) parts.push_back(Expected(expectation));
    text += fmt::format("      {}: [{}]\n", SpellText(name), Join(parts, ", "));
  }
  return text.empty() ? "" : "    expect:\n" + text;
}

/// A list of many values on lines of its own: the loader takes none of more than 64 KiB.
std::string Wrapped(const std::string& flow) {
  constexpr size_t kLong = 4096, kColumns = 120;
  if (flow.size() < kLong) return flow;
  std::string text;
  size_t column = 0;
  char quote = 0;
  for (const char c : flow) {
    if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    } else if (c == quote) {
      quote = 0;
    }
    if (c == ' ' && quote == 0 && column > kColumns && text.ends_with(',')) {
      text += "\n          ";
      column = 0;
      continue;
    }
    text += c;
    ++column;
  }
  return text;
}

}  // namespace

std::string StepYaml(const Step& step) { return StepText(step, Origins::kLeftOut); }

Result<std::string> WriteCaseYaml(const Case& test_case, std::string_view backend) {
  std::string text = fmt::format("# {}, as it was run.\n", test_case.id);
  if (!test_case.about.empty()) text += "about: " + Quote(test_case.about) + "\n";
  text += "cases:\n  - name: " + NameOf(test_case.id) + "\n";
  if (!test_case.source.empty()) text += "    source: " + Quote(test_case.source) + "\n";
  if (!test_case.tags.empty()) text += "    tags: " + Texts(test_case.tags) + "\n";
  if (!test_case.requires_.empty()) text += "    requires: " + TextMap(test_case.requires_) + "\n";
  if (!test_case.knobs.empty()) text += "    knobs: " + TextMap(test_case.knobs) + "\n";
  if (!test_case.tensors.empty()) text += "    tensors:\n";
  for (const auto& tensor : test_case.tensors)
    text += fmt::format("      {}: {}\n", tensor.name, Wrapped(Tensor(tensor)));
  text += "    program:\n";
  for (const Step& step : test_case.program) text += "      - " + StepText(step, Origins::kKept) + "\n";
  text += "    observe: " + Texts(test_case.observe) + "\n";
  if (test_case.contract.status != ContractStatus::kNone || test_case.contract.demands()) {
    text += "    contract: " + ContractText(test_case.contract) + "\n";
  }
  text += Expectations(test_case, backend);
  // Loaded again under a path next to the case's own file, since tensor files may lie there.
  const auto beside =
      std::filesystem::path(test_case.pos.file).parent_path() / "the repro bundle's case.yaml";
  const LoadResult again = LoadCaseText(text, beside.string(), "case", {});
  if (!again.errors.empty()) return Fail(again.errors.front());
  if (again.cases.size() != 1 || CaseDigest(again.cases[0]) != CaseDigest(test_case)) {
    return Fail("case " + test_case.id + " cannot be written as a file of its own");
  }
  return text;
}

}  // namespace ulpscope
