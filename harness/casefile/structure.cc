// Walks a tree along the field table.
#include "harness/casefile/structure.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "harness/base/find.h"
#include "harness/base/spellings.h"
#include "harness/base/text.h"
#include "harness/casefile/number.h"
#include "harness/num/dtype.h"
#include "harness/words/facets.h"

namespace ulpscope {
namespace {

std::vector<std::string> Keys(const std::vector<Field>& fields) {
  return Mapped<std::string>(fields, &Field::key);
}

std::string OneOf(const std::vector<std::string>& words) {
  constexpr size_t kShown = 16;
  if (words.size() == 1) return "'" + words[0] + "'";
  const std::string shown = Join(std::span(words).first(std::min(kShown, words.size())), ", ");
  return "one of " + shown + (words.size() > kShown ? ", ..." : "");
}

/// A suggestion for a word that does not match: for a facet, a dtype or facet word of similar spelling.
std::string SuggestFor(const Pattern& pattern, std::string_view word) {
  // Words for operands and outputs name the rounding too; a bare format elsewhere means rounding to nearest
  // even.
  for (const std::string_view rounding : {"", "_rne"}) {
    const std::string ours = OurSpelling(word, [&](std::string_view each) {
      return pattern.matches(std::string(each) + std::string(rounding));
    });
    if (!ours.empty()) return fmt::format("did you mean '{}{}'?", ours, rounding);
  }
  const bool of_facet =
      std::ranges::any_of(Facets(), [&](const FacetRow& row) { return row.knows == pattern.matches; });
  if (!of_facet) return "";
  std::vector<std::string> known{"none", "exact", "as_is", "tf32", "at_least_float32"};
  for (const DType dtype : AllDTypes()) known.emplace_back(Name(dtype));
  std::erase_if(known, [&](const std::string& each) { return !pattern.matches(each); });
  return Suggest(word, known);
}

class Checker {
 public:
  explicit Checker(ErrorSink& errors) : errors_(errors) {}

  void Check(const Node& node, const Type& type, const std::string& name) {
    if (errors_.full()) return;
    using enum Type::Kind;
    switch (type.kind) {
      case kAny:
        CheckAny(node, name);
        return;
      case kDeferred:
        return;
      case kText:
      case kWord:
      case kBoolean:
      case kInteger:
      case kNumber:
        CheckScalar(node, type, name);
        return;
      case kList:
        CheckList(node, type, name);
        return;
      case kMap:
        if (Is(node, Node::Kind::kMap, type, name)) CheckMap(node, type, name, type.fields, type.rest);
        return;
      case kTagged:
        if (Is(node, Node::Kind::kMap, type, name)) CheckTagged(node, type, name);
        return;
      case kEither:
        CheckEither(node, type, name);
        return;
    }
  }

 private:
  bool Is(const Node& node, Node::Kind kind, const Type& type, const std::string& name) {
    if (node.kind == kind) return true;
    Wrong(node, type, name);
    return false;
  }

  void Wrong(const Node& node, const Type& type, const std::string& name, std::string hint = {}) {
    errors_.Add(node.mark, "wrong value for " + name, node.Describe(), std::string(type.what),
                std::move(hint));
  }

  void CheckScalar(const Node& node, const Type& type, const std::string& name) {
    using enum Type::Kind;
    if (!Is(node, Node::Kind::kScalar, type, name)) return;
    if (type.kind == kText) {
      if (type.pattern != nullptr && !type.pattern->matches(node.text)) {
        errors_.Add(node.mark, "wrong value for " + name, node.Describe(), std::string(type.pattern->what),
                    SuggestFor(*type.pattern, node.text));
      }
    } else if (type.kind == kWord) {
      if (!Contains(type.words, node.text)) {
        errors_.Add(node.mark, "wrong value for " + name, node.Describe(), OneOf(type.words),
                    Suggest(node.text, type.words));
      }
    } else if (type.kind == kBoolean) {
      if (node.quoted || (node.text != "true" && node.text != "false")) {
        Wrong(node, type, name,
              node.quoted                  ? "without quotes"
              : IsAmbiguousWord(node.text) ? "only true and false are booleans here"
                                           : "");
      }
    } else if (node.quoted) {
      Wrong(node, type, name, "a quoted scalar is text; write the number without quotes");
    } else if (type.kind == kInteger) {
      auto value = ParseInteger(node.text);
      if (!value) {
        errors_.Add(node.mark, value.error(), name);
      } else if (*value < type.low || *value > type.high) {
        errors_.Add(node.mark, "integer out of range for " + name, node.Describe(),
                    std::to_string(type.low) + " to " + std::to_string(type.high));
      }
    } else if (auto value = ParseNumber(node.text); !value) {
      errors_.Add(node.mark, value.error(), name);
    }
  }

  void CheckAny(const Node& node, const std::string& name) {
    for (const Node& child : node.children) CheckAny(child, name);
    if (node.kind != Node::Kind::kScalar || node.quoted) return;
    if (IsAmbiguousWord(node.text)) {
      errors_.Add(node.mark, "ambiguous word for " + name, node.Describe(),
                  "true, false, null, a number, or text in quotes", "YAML readers disagree about it");
    } else if (LooksLikeNumber(node.text)) {
      if (auto value = ParseNumber(node.text); !value)
        errors_.Add(node.mark, value.error(), name + " (put text in quotes)");
    }
  }

  void CheckList(const Node& node, const Type& type, const std::string& name) {
    if (!Is(node, Node::Kind::kList, type, name)) return;
    const size_t count = node.children.size();
    if (count < type.min_items || count > type.max_items) {
      std::string expected = std::to_string(type.min_items);
      if (type.max_items == SIZE_MAX) {
        expected = "at least " + expected;
      } else if (type.max_items != type.min_items) {
        expected += " to " + std::to_string(type.max_items);
      }
      errors_.Add(node.mark, "wrong number of entries for " + name, std::to_string(count), expected);
    }
    for (const Node& item : node.children) Check(item, *type.item, name);
  }

  void CheckMap(const Node& node, const Type& type, const std::string& name, const std::vector<Field>& fields,
                const Type* rest) {
    for (size_t i = 0; i < node.entry_count(); ++i) {
      const Node& key = node.key(i);
      const auto field = std::ranges::find_if(fields, [&](const Field& f) { return f.key == key.text; });
      if (field != fields.end()) {
        Check(node.value(i), *field->type, "'" + key.text + "'");
      } else if (rest == nullptr) {
        const auto known = Keys(fields);
        errors_.Add(key.mark, "unknown key " + key.Describe() + " in " + name, key.Describe(), OneOf(known),
                    Suggest(key.text, known));
      } else if (type.rest_key != nullptr && !type.rest_key->matches(key.text)) {
        const auto known = Keys(fields);
        errors_.Add(key.mark, "wrong key in " + name, key.Describe(), std::string(type.rest_key->what),
                    Suggest(key.text, known));
      } else {
        Check(node.value(i), *rest, "'" + key.text + "'");
      }
    }
    for (const Field& field : fields) {
      if (field.presence == Presence::kRequired && node.Find(field.key) == nullptr) {
        errors_.Add(node.mark, "missing key '" + std::string(field.key) + "' in " + name, "",
                    std::string(field.type->what));
      }
    }
    if (type.exactly_keys != 0 && node.entry_count() != type.exactly_keys) {
      errors_.Add(node.mark, "wrong number of keys in " + name, std::to_string(node.entry_count()),
                  "exactly one of " + Join(Keys(fields), ", "));
    }
  }

  void CheckTagged(const Node& node, const Type& type, const std::string& name) {
    const Node* tag = node.Find(type.tag);
    const std::string key(type.tag);
    if (tag == nullptr) {
      errors_.Add(node.mark, "missing key '" + key + "' in " + name, "",
                  std::string(type.what) + " with '" + key + "'");
      return;
    }
    if (tag->kind != Node::Kind::kScalar) {
      errors_.Add(tag->mark, "wrong value for '" + key + "'", tag->Describe(), "a word");
      return;
    }
    std::vector<std::string> words;
    for (const Type::Variant& variant : type.variants) {
      const bool open = variant.word.ends_with("*");
      const bool fits = open ? tag->text.starts_with(variant.word.substr(0, variant.word.size() - 1))
                             : tag->text == variant.word;
      if (fits && open && !OpPattern().matches(tag->text)) break;
      if (fits) {
        CheckMap(node, type, key + " " + tag->text, variant.fields, variant.rest);
        return;
      }
      words.emplace_back(variant.word);
    }
    errors_.Add(tag->mark, "unknown " + key + " " + tag->Describe(), tag->Describe(), OneOf(words),
                Suggest(tag->text, words));
  }

  void CheckEither(const Node& node, const Type& type, const std::string& name) {
    const Type* choice = nullptr;
    if (node.kind == Node::Kind::kScalar) choice = type.scalar;
    if (node.kind == Node::Kind::kList) choice = type.list;
    if (node.kind == Node::Kind::kMap) choice = type.map;
    if (choice == nullptr) {
      Wrong(node, type, name);
      return;
    }
    // A word that is no bare choice but a key of the map form deserves its own hint.
    if (choice->kind == Type::Kind::kWord && type.map != nullptr && !Contains(choice->words, node.text)) {
      const auto keys = Keys(type.map->fields);
      if (Contains(keys, node.text)) {
        Wrong(node, type, name, "'" + node.text + "' needs parameters: {" + node.text + ": ...}");
        return;
      }
      std::vector<std::string> all = choice->words;
      std::copy_if(keys.begin(), keys.end(), std::back_inserter(all),
                   [&](const std::string& key) { return !Contains(choice->words, key); });
      errors_.Add(node.mark, "wrong value for " + name, node.Describe(), OneOf(all), Suggest(node.text, all));
      return;
    }
    Check(node, *choice, name);
  }

  ErrorSink& errors_;
};

}  // namespace

std::string Suggest(std::string_view word, std::span<const std::string> candidates) {
  return word.size() > 100 ? "" : DidYouMean(word, candidates);
}

void ErrorSink::Add(const Mark& mark, std::string message, std::string found, std::string expected,
                    std::string hint) {
  Add(mark, Problem(std::move(message), std::move(found), std::move(expected), std::move(hint)));
}

void ErrorSink::Add(const Mark& mark, Error error, std::string_view context) {
  ++reported_;
  if (full()) return;
  error.pos = At(mark);
  if (!context.empty()) error.message += " for " + std::string(context);
  // Every combination of a sweep finds the same error once more.
  const bool known = std::ranges::any_of(errors_, [&](const Error& other) {
    return other.pos.line == error.pos.line && other.pos.column == error.pos.column &&
           other.message == error.message;
  });
  if (!known) errors_.push_back(std::move(error));
}

void CheckStructure(const Node& node, const Type& type, std::string_view name, ErrorSink& errors) {
  Checker(errors).Check(node, type, std::string(name));
}

}  // namespace ulpscope
