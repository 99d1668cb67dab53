// Programs: steps in order, names defined before they are used, attributes by the op table.
#include <algorithm>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/casefile/decode.h"
#include "harness/casefile/number.h"
#include "harness/words/aten.h"
#include "harness/words/ops.h"
#include "harness/words/program.h"

namespace ulpscope {
namespace {

/// A scalar without a type of its own: boolean, number, text, null.
Attr DecodeUntyped(const Node& node, ErrorSink& errors) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return {};
    case Node::Kind::kScalar:
      if (node.quoted) return {.value = node.text};
      if (node.text == "true" || node.text == "false") return {.value = node.text == "true"};
      if (LooksLikeNumber(node.text)) return DecodeNumber(node, errors);
      return {.value = node.text};
    case Node::Kind::kList: {
      Attr::List list;
      for (const Node& item : node.children) list.push_back(DecodeUntyped(item, errors));
      return {.value = std::move(list)};
    }
    case Node::Kind::kMap:
      break;
  }
  Attr::Map map;
  for (size_t i = 0; i < node.entry_count(); ++i)
    map[node.key(i).text] = DecodeUntyped(node.value(i), errors);
  return {.value = std::move(map)};
}

Operand DecodeOperand(const Node& node, NameTable& names, ErrorSink& errors) {
  Operand operand;
  if (!node.quoted && (node.text == "true" || node.text == "false")) {
    operand.scalar = Attr{.value = node.text == "true"};
  } else if (!node.quoted && IsAmbiguousWord(node.text) && !names.entries.contains(node.text)) {
    errors.Add(node.mark, "ambiguous word for an operand", node.Describe(), "a name, a number, true or false",
               "YAML readers disagree about it");
  } else if (!node.quoted && LooksLikeNumber(node.text)) {
    operand.scalar = DecodeNumber(node, errors);
  } else if (!NamePattern().matches(node.text)) {
    errors.Add(node.mark, "wrong value for an operand", node.Describe(), "a name or a number");
  } else {
    operand.name = node.text;
    names.Use(node.mark, node.text, errors);
  }
  return operand;
}

const std::vector<Field>& FieldsOf(const std::string& op) {
  for (const Type::Variant& variant : StepType().variants) {
    if (variant.word == op || (variant.word == "aten::*" && OpPattern().matches(op))) return variant.fields;
  }
  static const std::vector<Field> none;
  return none;
}

bool IsStepKey(std::string_view key) {
  return key == "op" || key == "of" || key == "as" || key == "out" || key == "steps" || key == "reference" ||
         key == "at";
}

/// Reports tensors in an attribute of an op whose attributes no table has: the harness only follows operands.
void CheckTensorsInAttribute(const Node& key, const Node& value, const Step& step, NameTable& names,
                             ErrorSink& errors) {
  const auto entry = [&](const Node& item) {
    return item.kind == Node::Kind::kScalar && !item.quoted ? names.entries.find(item.text)
                                                            : names.entries.end();
  };
  if (value.kind == Node::Kind::kScalar) {
    // It may be a word of the op's own (reduce: mean) that a value is called by as well, so it is no error.
    if (const auto found = entry(value); found != names.entries.end())
      found->second.attribute = "'" + key.text + "' of " + step.op;
    return;
  }
  if (value.kind != Node::Kind::kList || value.children.empty()) return;
  std::vector<std::string> listed;
  for (const Node& item : value.children) {
    const auto found = entry(item);
    if (found == names.entries.end()) return;
    listed.push_back(item.text);
  }
  for (const std::string& name : listed) names.entries.find(name)->second.used = true;
  errors.Add(value.mark, "tensors in the attribute '" + key.text + "' of " + step.op,
             "[" + Join(listed, ", ") + "]", "them among the operands, of: [" + Join(listed, ", ") + "]",
             "a list of tensors is made of neighbours in 'of'");
}

void DecodeAttributes(const Node& node, Step& step, NameTable& names, ErrorSink& errors) {
  static const Type anything;
  const auto& fields = FieldsOf(step.op);
  for (size_t i = 0; i < node.entry_count(); ++i) {
    const std::string& key = node.key(i).text;
    if (IsStepKey(key)) continue;
    const Field* field = FindIf(fields, [&](const Field& each) { return each.key == key; });
    step.attrs[key] = DecodeAttr(node.value(i), field == nullptr ? anything : *field->type, errors);
    if (field == nullptr) CheckTensorsInAttribute(node.key(i), node.value(i), step, names, errors);
  }
  if (step.op == "autocast") {  // resolved here, so that no adapter has a default of its own
    step.attrs.try_emplace("device", Attr{.value = std::string("auto")});
    step.attrs.try_emplace("dtype", Attr{.value = std::string("bfloat16")});
    step.attrs.try_emplace("enabled", Attr{.value = true});
    step.attrs.try_emplace("cache", Attr{.value = true});
  }
}

/// Names in attributes, gradients, buffers that the program requests.
void CheckMeaning(const Node& node, const Step& step, NameTable& names, Budget& budget, ErrorSink& errors) {
  if (step.op == "backward") {
    names.has_backward = true;
    if (const Node* grad = node.Find("grad")) names.Use(grad->mark, grad->text, errors);
  } else if (step.op == "set_data") {
    if (const Node* value = node.Find("to")->Find("value")) names.Use(value->mark, value->text, errors);
    if (!step.of.empty() && step.of[0].scalar)
      errors.Add(node.mark, "set_data needs a tensor", "a number", "a name");
  } else if (step.op == "empty" || step.op == "zeros" || step.op == "ones" || step.op == "full") {
    const Node& shape = *node.Find("shape");
    Shape extents;
    for (const Node& item : shape.children) extents.push_back(ParseInteger(item.text).value_or(1));
    budget.Spend(shape.mark, CappedElementCount(extents), *ParseDType(node.Find("dtype")->text), errors);
  }
}

/// The first (or only) result that a step names; null if it names none.
const Node* FirstName(const Node& node) {
  const Node* as = node.Find("as");
  return as != nullptr && as->kind == Node::Kind::kList ? &as->children.front() : as;
}

/// Steps for the other names of `as: [a, b]`: the same op, each with another of its results.
void AddOtherResults(const Node& node, std::vector<Step>& steps, NameTable& names, ErrorSink& errors) {
  const Node* as = node.Find("as");
  if (as == nullptr || as->kind != Node::Kind::kList) return;
  const std::string key(kResultKey);
  if (node.Find(key) != nullptr || node.Find("out") != nullptr) {
    errors.Add(as->mark,
               "several names beside '" + std::string(node.Find(key) != nullptr ? key : "out") + "'",
               "a list", "one name");
    return;
  }
  for (size_t i = 1; i < as->children.size(); ++i) {
    Step other = steps.back();
    other.as = as->children[i].text;
    other.attrs[key] = Attr{.value = static_cast<int64_t>(i)};
    names.Define(as->children[i], {.mark = as->children[i].mark}, errors);
    steps.push_back(std::move(other));
  }
}

/// A detached tensor takes a gradient from here on if the step requests it, whether or not it did before.
void NoteDetached(const Node& node, const Step& step, NameTable& names, ErrorSink& errors) {
  if (step.of.empty()) return;
  if (step.of[0].scalar) {
    errors.Add(node.mark, step.op + " needs a tensor", "a number", "a name");
    return;
  }
  const auto takes = ReadBool(step, "requires_grad", false);
  const auto entry = names.entries.find(step.of[0].name);
  if (takes && *takes && entry != names.entries.end()) entry->second.requires_grad = true;
}

Step DecodeStep(const Node& node, NameTable& names, Budget& budget, ErrorSink& errors) {
  Step step{.op = node.Find("op")->text, .pos = errors.At(node.mark)};
  if (const Node* of = node.Find("of")) {
    for (const Node& operand : of->children) step.of.push_back(DecodeOperand(operand, names, errors));
  }
  if (const Node* out = node.Find("out")) {
    step.out = out->text;
    names.Use(out->mark, out->text, errors);
  }
  if (const Node* reference = node.Find("reference")) step.reference = reference->text;
  if (const Node* at = node.Find("at")) {
    if (const Node* module = at->Find("module")) step.at.module = module->text;
    if (const Node* file = at->Find("file")) step.at.file = file->text;
    if (const Node* line = at->Find("line")) step.at.line = ParseInteger(line->text).value_or(0);
  }
  DecodeAttributes(node, step, names, errors);
  CheckMeaning(node, step, names, budget, errors);
  if (step.op == "detach_") NoteDetached(node, step, names, errors);
  // The body comes before `as`, which scopes do not have: names defined in a scope stay visible after it.
  if (const Node* body = node.Find("steps")) step.steps = DecodeSteps(*body, names, budget, errors);
  if (const std::string why = WhyOutOfReach(step.op); !why.empty())
    errors.Add(node.mark, "op " + step.op + " cannot be asked for", why,
               "an op that takes and gives tensors");
  const OpRow* row = FindOp(step.op);
  const bool gives_value = row == nullptr || row->GivesValue();
  if (const Node* as = FirstName(node)) {
    step.as = as->text;
    names.Define(*as, {.mark = as->mark}, errors);
  } else if (gives_value && step.out.empty() && row != nullptr) {
    errors.Add(node.mark, "step has no effect: its result has no name", "op " + step.op + " without 'as'",
               row->out == OpRow::Out::kOut ? "'as' or 'out'" : "'as'");
  } else if (row == nullptr && step.out.empty() && !step.op.ends_with("_")) {
    errors.Add(node.mark, "step has no effect: its result has no name", step.op + " without 'as'",
               "'as', 'out', or an in-place op (its name ends in _)");
  }
  return step;
}

}  // namespace

void NameTable::Define(const Node& name, Entry entry, ErrorSink& errors) {
  if (IsReservedName(name.text) || IsAmbiguousWord(name.text)) {
    errors.Add(name.mark, "reserved name", name.Describe(), "another name",
               name.text.ends_with("_dtype") ? "names in _dtype are observations that are text" : "");
    return;
  }
  const auto [place, added] = entries.emplace(name.text, entry);
  if (!added) {
    errors.Add(name.mark, "redefined name '" + name.text + "'", "a second " + name.Describe(), "a new name",
               "first defined in line " + std::to_string(place->second.mark.line));
  }
}

NameTable::Entry* NameTable::Use(const Mark& mark, const std::string& name, ErrorSink& errors) {
  const auto place = entries.find(name);
  if (place == entries.end()) {
    if (errors.full()) return nullptr;
    const auto known = Names();
    errors.Add(mark, "undefined name '" + name + "'", "'" + name + "'",
               known.empty() ? "a name defined before" : "one of " + Join(known, ", "), Suggest(name, known));
    return nullptr;
  }
  place->second.used = true;
  return &place->second;
}

std::vector<std::string> NameTable::Names() const { return Keys(entries); }

Attr DecodeNumber(const Node& node, ErrorSink& errors) {
  auto number = ParseNumber(node.text);
  if (!number) {
    errors.Add(node.mark, number.error());
    return {};
  }
  if (number->syntax == ExactNumber::Syntax::kInteger) {
    if (auto integer = ParseInteger(node.text)) return {.value = *integer};
  }
  auto value = RoundNumber(*number, Binary64());
  if (!value) {
    errors.Add(node.mark, value.error());
    return {};
  }
  return {.value = *value};
}

Attr DecodeAttr(const Node& node, const Type& type, ErrorSink& errors) {
  using enum Type::Kind;
  switch (type.kind) {
    case kText:
    case kWord:
      return {.value = node.text};
    case kBoolean:
      return {.value = node.text == "true"};
    case kInteger:
      return {.value = ParseInteger(node.text).value_or(0)};
    case kNumber:
      return DecodeNumber(node, errors);
    case kList: {
      Attr::List list;
      for (const Node& item : node.children) list.push_back(DecodeAttr(item, *type.item, errors));
      return {.value = std::move(list)};
    }
    case kMap: {
      Attr::Map map;
      for (const Field& field : type.fields) {
        if (const Node* value = node.Find(field.key))
          map[std::string(field.key)] = DecodeAttr(*value, *field.type, errors);
      }
      return {.value = std::move(map)};
    }
    case kEither:
      return DecodeAttr(node,
                        node.kind == Node::Kind::kScalar ? *type.scalar
                        : node.kind == Node::Kind::kList ? *type.list
                                                         : *type.map,
                        errors);
    case kTagged:
    case kAny:
    case kDeferred:
      break;
  }
  return DecodeUntyped(node, errors);
}

std::vector<Step> DecodeSteps(const Node& list, NameTable& names, Budget& budget, ErrorSink& errors) {
  std::vector<Step> steps;
  for (const Node& node : list.children) {
    steps.push_back(DecodeStep(node, names, budget, errors));
    AddOtherResults(node, steps, names, errors);
  }
  return steps;
}

}  // namespace ulpscope
