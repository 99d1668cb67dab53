// Decodes one case: its parts, the defaults of its file, and the constraints between the parts.

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/casefile/decode.h"

namespace ulpscope {
namespace {

/// The case's own node, else the file's.
const Node* Pick(const Node& node, const Node& file, std::string_view key) {
  const Node* own = node.Find(key);
  return own != nullptr ? own : file.Find(key);
}

std::string PickText(const Node& node, const Node& file, std::string_view key) {
  const Node* picked = Pick(node, file, key);
  return picked == nullptr ? "" : picked->text;
}

/// Key by key: the file's entries, then the case's over them.
std::map<std::string, std::string> Merge(const Node& node, const Node& file, std::string_view key) {
  std::map<std::string, std::string> merged;
  for (const Node* source : {file.Find(key), node.Find(key)}) {
    if (source == nullptr) continue;
    for (size_t i = 0; i < source->entry_count(); ++i) merged[source->key(i).text] = source->value(i).text;
  }
  return merged;
}

void DecodeTensors(const Node& tensors, Case& result, NameTable& names, Budget& budget, ErrorSink& errors) {
  for (size_t i = 0; i < tensors.entry_count(); ++i) {
    TensorSpec spec = DecodeTensor(tensors.key(i), tensors.value(i), budget, errors);
    names.Define(tensors.key(i),
                 {.mark = tensors.key(i).mark, .is_tensor = true, .requires_grad = spec.requires_grad},
                 errors);
    result.tensors.push_back(std::move(spec));
  }
}

void DecodeObserve(const Node& list, Case& result, NameTable& names, ErrorSink& errors) {
  for (const Node& item : list.children) {
    const std::string& observed = item.text;
    if (Contains(result.observe, observed)) {
      errors.Add(item.mark, "observed twice", item.Describe(), "each value once");
    }
    result.observe.push_back(observed);
    if (observed == "trace" || observed == "peak_bytes") continue;
    const size_t dot = observed.find('.');
    const NameTable::Entry* entry = names.Use(item.mark, observed.substr(0, dot), errors);
    if (entry == nullptr || dot == observed.npos) continue;
    if (!names.has_backward) {
      errors.Add(item.mark, "a gradient is observed but the program has no backward", item.Describe(),
                 "a backward step");
    } else if (entry->is_tensor && !entry->requires_grad) {
      errors.Add(item.mark, "a gradient is observed but the tensor has none", item.Describe(),
                 "requires_grad: true on '" + observed.substr(0, dot) + "'");
    }
  }
}

void CheckUnused(const NameTable& names, ErrorSink& errors) {
  for (const auto& [name, entry] : names.entries) {
    if (entry.is_tensor && !entry.used) {
      errors.Add(entry.mark, "unused tensor '" + name + "'", "no step uses it and it is not observed",
                 "a use, or no such tensor",
                 entry.attribute.empty() ? "" : entry.attribute + " has its name; operands stand in 'of'");
    }
  }
}

}  // namespace

Case DecodeCase(const Node& node, const Node& file, const std::string& id, const Vocabulary& vocabulary,
                ErrorSink& errors) {
  Case result;
  result.id = id;
  result.pos = errors.At(node.mark);
  result.about = PickText(node, file, "about");
  result.source = PickText(node, file, "source");
  if (const Node* tags = Pick(node, file, "tags")) {
    for (const Node& tag : tags->children) {
      if (Contains(result.tags, tag.text))
        errors.Add(tag.mark, "duplicate tag", tag.Describe(), "each tag once");
      result.tags.push_back(tag.text);
    }
  }
  NameTable names;
  Budget budget;
  if (const Node* tensors = node.Find("tensors")) DecodeTensors(*tensors, result, names, budget, errors);
  result.program = DecodeSteps(*node.Find("program"), names, budget, errors);
  DecodeObserve(*node.Find("observe"), result, names, errors);
  CheckUnused(names, errors);
  result.knobs = Merge(node, file, "knobs");
  result.requires_ = Merge(node, file, "requires");
  const DemandContext context{
      .observed = result.observe, .case_name = node.Find("name")->text, .vocabulary = vocabulary};
  if (const Node* contract = Pick(node, file, "contract"))
    result.contract = DecodeContract(*contract, context, errors);
  for (const Node* expect : {file.Find("expect"), node.Find("expect")}) {
    if (expect != nullptr) DecodeExpect(*expect, context, result.expect, errors);
  }
  return result;
}

}  // namespace ulpscope
