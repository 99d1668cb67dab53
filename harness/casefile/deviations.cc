// Reading the deviations file.
#include "harness/casefile/deviations.h"

#include <algorithm>
#include <set>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/casefile/structure.h"
#include "harness/words/backend_name.h"

namespace ulpscope {
namespace {

/// The last line of `node` and its children.
int LastLine(const Node& node) {
  int line = node.mark.line;
  for (const Node& child : node.children) line = std::max(line, LastLine(child));
  return line;
}

std::string TextAt(const Node& map, std::string_view key) {
  const Node* node = map.Find(key);
  return node == nullptr ? "" : node->text;
}

void CheckBackend(const Node& backend, const Vocabulary& vocabulary, ErrorSink& errors) {
  const auto& known = vocabulary.backends;
  const std::string name(BackendSpec::NameOf(backend.text));
  if (known.empty() || errors.full() || Contains(known, name)) return;
  errors.Add(backend.mark, "unknown backend", backend.Describe(), "one of " + Join(known, ", "),
             Suggest(name, known));
}

}  // namespace

DeviationsResult LoadDeviationsText(std::string_view text, const std::string& shown_as,
                                    const Vocabulary& vocabulary) {
  DeviationsResult result;
  auto root = ParseYaml(text, shown_as);
  if (!root) return {.errors = {root.error()}};
  if (root->kind == Node::Kind::kNull) return result;
  ErrorSink errors(shown_as);
  CheckStructure(*root, DeviationsType(), "the deviations file", errors);
  std::set<std::vector<std::string>> seen;
  int line = 0;
  for (const Node& entry : errors.reported() == 0 ? root->children : std::vector<Node>{}) {
    Deviation deviation{.case_id = TextAt(entry, "case"),
                        .backend = TextAt(entry, "backend"),
                        .value = TextAt(entry, "value"),
                        .versions = TextAt(entry, "versions"),
                        .found = TextAt(entry, "found"),
                        .reason = TextAt(entry, "reason"),
                        .link = TextAt(entry, "link"),
                        .expires = TextAt(entry, "expires"),
                        .pos = errors.At(entry.mark)};
    if (entry.mark.line == line || LastLine(entry) != entry.mark.line) {
      errors.Add(entry.mark, "deviation does not have a line of its own", "",
                 "one flow map per line, {case: ..., ...}");
    }
    line = LastLine(entry);
    CheckBackend(*entry.Find("backend"), vocabulary, errors);
    if (!seen.insert({deviation.case_id, deviation.backend, deviation.value, deviation.versions}).second) {
      errors.Add(entry.mark, "duplicate deviation", "the same case, backend, value and versions again",
                 "each once");
    }
    result.deviations.push_back(std::move(deviation));
  }
  result.errors = errors.Take();
  if (!result.errors.empty()) result.deviations.clear();
  return result;
}

DeviationsResult LoadDeviations(const std::filesystem::path& file, const Vocabulary& vocabulary) {
  std::error_code code;
  if (!std::filesystem::exists(file, code)) return {};
  const std::string shown_as = file.generic_string();
  auto text = ReadSmallFile(file, shown_as);
  if (!text) return {.errors = {text.error()}};
  return LoadDeviationsText(*text, shown_as, vocabulary);
}

}  // namespace ulpscope
