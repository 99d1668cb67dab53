// From the field table to JSON Schema draft-07.
#include "harness/casefile/schema.h"

#include <set>
#include <utility>
#include <vector>

#include "harness/casefile/fields.h"

namespace ulpscope {
namespace {

/// A JSON value that keeps the order of its keys.
struct Json {
  enum class Kind { kLiteral, kArray, kObject };
  Kind kind = Kind::kObject;
  std::string literal = {};
  std::vector<Json> items = {};
  std::vector<std::pair<std::string, size_t>> keys = {};  ///< key, index into items

  static Json Literal(std::string text) { return {.kind = Kind::kLiteral, .literal = std::move(text)}; }
  static Json Array(std::vector<Json> items = {}) {
    return {.kind = Kind::kArray, .items = std::move(items)};
  }
  Json& Set(std::string key, Json value) {
    keys.emplace_back(std::move(key), items.size());
    items.push_back(std::move(value));
    return *this;
  }
  bool empty() const { return items.empty(); }
};

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

Json Text(std::string_view text) { return Json::Literal(Quoted(text)); }
Json Number(int64_t number) { return Json::Literal(std::to_string(number)); }
Json False() { return Json::Literal("false"); }

Json Texts(const std::vector<std::string>& texts) {
  Json array = Json::Array();
  for (const auto& text : texts) array.items.push_back(Text(text));
  return array;
}

std::string OneLine(const Json& json) {
  if (json.kind == Json::Kind::kLiteral) return json.literal;
  std::string text;
  if (json.kind == Json::Kind::kArray) {
    for (const Json& item : json.items) text += (text.empty() ? "" : ", ") + OneLine(item);
    return "[" + text + "]";
  }
  for (const auto& [key, index] : json.keys) {
    text += (text.empty() ? "" : ", ") + Quoted(key) + ": " + OneLine(json.items[index]);
  }
  return "{" + text + "}";
}

/// A value that fits in one line is printed in one.
std::string Print(const Json& json, size_t indent, size_t taken) {
  constexpr size_t kWidth = 110;
  std::string line = OneLine(json);
  if (json.kind == Json::Kind::kLiteral || taken + line.size() <= kWidth) return line;
  const std::string margin(indent + 2, ' ');
  std::string text;
  const auto add = [&](const std::string& head, const Json& item) {
    text += (text.empty() ? "\n" : ",\n") + margin + head +
            Print(item, indent + 2, margin.size() + head.size() + 1);
  };
  if (json.kind == Json::Kind::kArray) {
    for (const Json& item : json.items) add("", item);
    return "[" + text + "\n" + std::string(indent, ' ') + "]";
  }
  for (const auto& [key, index] : json.keys) add(Quoted(key) + ": ", json.items[index]);
  return "{" + text + "\n" + std::string(indent, ' ') + "}";
}

class Writer {
 public:
  std::string Write() {
    Json root;
    root.Set("$schema", Text("http://json-schema.org/draft-07/schema#"));
    root.Set("title", Text("ulpscope case file"));
    const Json file = Object(FileType(), FileType().fields, FileType().rest);
    for (const auto& [key, index] : file.keys) root.Set(key, file.items[index]);
    Json choice;
    choice.Set("description", Text("a choice of the sweep"));
    choice.Set("type", Text("string"));
    choice.Set("pattern", Text("^[$][A-Za-z_][A-Za-z0-9_]{0,63}$"));
    Json definitions;
    definitions.Set("choice", std::move(choice));
    // Definitions name further ones while they are written.
    for (size_t i = 0; i < wanted_.size(); ++i) {
      const Type& type = *wanted_[i];
      definitions.Set(std::string(type.definition), Body(type));
    }
    root.Set("definitions", std::move(definitions));
    return Print(root, 0, 0) + "\n";
  }

 private:
  static Json Reference(std::string_view name) {
    Json reference;
    reference.Set("$ref", Text("#/definitions/" + std::string(name)));
    return reference;
  }

  static Json AnyOf(std::vector<Json> options) {
    if (options.size() == 1) return options[0];
    Json any;
    any.Set("anyOf", Json::Array(std::move(options)));
    return any;
  }

  Json Schema(const Type& type) {
    if (type.definition.empty()) return Body(type);
    if (named_.insert(type.definition).second) wanted_.push_back(&type);
    return Reference(type.definition);
  }

  Json Body(const Type& type) {
    using enum Type::Kind;
    switch (type.kind) {
      case kText:
        return TextSchema(type);
      case kWord:
        return OrChoice(WordSchema(type));
      case kBoolean:
        return OrChoice(Typed("boolean"));
      case kInteger:
        return OrChoice(IntegerSchema(type));
      case kNumber: {
        Json text = Typed("string");
        text.Set("pattern", Text(NumberPattern().regex));
        return AnyOf({Typed("number"), std::move(text), Reference("choice")});
      }
      case kList: {
        Json list = Typed("array");
        if (type.min_items > 0) list.Set("minItems", Number(static_cast<int64_t>(type.min_items)));
        if (type.max_items != SIZE_MAX) list.Set("maxItems", Number(static_cast<int64_t>(type.max_items)));
        list.Set("items", Schema(*type.item));
        return IsSwept(type) ? OrChoice(std::move(list)) : list;
      }
      case kMap:
        return Object(type, type.fields, type.rest);
      case kTagged:
        return Tagged(type);
      case kEither: {
        std::vector<Json> options;
        for (const Type* option : {type.scalar, type.list, type.map}) {
          if (option != nullptr) options.push_back(Schema(*option));
        }
        return AnyOf(std::move(options));
      }
      case kAny:
      case kDeferred:
        break;
    }
    return {};
  }

  /// Lists of scalars can be a choice of a sweep; lists of maps have no such form.
  static bool IsSwept(const Type& list) {
    return list.item->kind == Type::Kind::kInteger || list.item->kind == Type::Kind::kNumber;
  }

  static Json OrChoice(Json schema) { return AnyOf({std::move(schema), Reference("choice")}); }

  static Json Typed(std::string_view type) {
    Json schema;
    schema.Set("type", Text(type));
    return schema;
  }

  /// Text may be written so that an editor takes it for a number or a boolean.
  static Json TextSchema(const Type& type) {
    Json kinds = Json::Array({Text("string")});
    if (type.pattern == nullptr || type.pattern->matches("1")) kinds.items.push_back(Text("number"));
    if (type.pattern == nullptr || type.pattern->matches("true")) kinds.items.push_back(Text("boolean"));
    Json schema;
    schema.Set("type", kinds.items.size() == 1 ? kinds.items[0] : std::move(kinds));
    if (type.pattern == nullptr) return schema;
    schema.Set("pattern", Text(type.pattern->regex));
    return type.pattern->matches("$k") ? schema : OrChoice(std::move(schema));
  }

  static Json WordSchema(const Type& type) {
    Json words = Texts(type.words);
    for (const auto& word : type.words) {
      if (word == "true" || word == "false") words.items.push_back(Json::Literal(word));
    }
    Json schema;
    schema.Set("enum", std::move(words));
    return schema;
  }

  static Json IntegerSchema(const Type& type) {
    Json schema = Typed("integer");
    if (type.low != INT64_MIN) schema.Set("minimum", Number(type.low));
    if (type.high != INT64_MAX) schema.Set("maximum", Number(type.high));
    return schema;
  }

  Json Object(const Type& type, const std::vector<Field>& fields, const Type* rest) {
    Json object = Typed("object");
    Json properties, required = Json::Array();
    for (const Field& field : fields) {
      properties.Set(std::string(field.key), Property(field));
      if (field.presence == Presence::kRequired) required.items.push_back(Text(field.key));
    }
    if (!required.empty()) object.Set("required", std::move(required));
    if (type.exactly_keys != 0) {
      object.Set("minProperties", Number(static_cast<int64_t>(type.exactly_keys)));
      object.Set("maxProperties", Number(static_cast<int64_t>(type.exactly_keys)));
    }
    if (!properties.empty()) object.Set("properties", std::move(properties));
    if (rest != nullptr && type.rest_key != nullptr)
      object.Set("patternProperties", Rest(fields, *type.rest_key, *rest));
    if (rest == nullptr || type.rest_key != nullptr) object.Set("additionalProperties", False());
    return object;
  }

  /// patternProperties apply beside properties, so the fixed keys are taken out of the pattern.
  Json Rest(const std::vector<Field>& fields, const Pattern& key, const Type& rest) {
    std::string regex(key.regex);
    if (!fields.empty()) {
      std::string fixed;
      for (const Field& field : fields) fixed += (fixed.empty() ? "" : "|") + std::string(field.key);
      regex = "^(?!(" + fixed + ")$)" + regex.substr(1);
    }
    Json patterns;
    patterns.Set(regex, Schema(rest));
    return patterns;
  }

  Json Property(const Field& field) {
    Json schema = Schema(*field.type);
    if (field.about.empty()) return schema;
    Json property;
    property.Set("description", Text(field.about));
    if (!schema.keys.empty() && schema.keys[0].first == "$ref") {  // draft-07 reads nothing beside $ref
      property.Set("allOf", Json::Array({std::move(schema)}));
      return property;
    }
    for (const auto& [key, index] : schema.keys) property.Set(key, schema.items[index]);
    return property;
  }

  Json Tagged(const Type& type) {
    std::vector<std::string> words;
    Json cases = Json::Array();
    for (const Type::Variant& variant : type.variants) {
      Json tag;
      if (variant.word.ends_with("*")) {
        tag.Set("pattern", Text(OpPattern().regex));
      } else {
        words.emplace_back(variant.word);
        tag.Set("const", Text(variant.word));
      }
      Json condition, one;
      condition.Set("properties", Json().Set(std::string(type.tag), std::move(tag)));
      one.Set("if", std::move(condition));
      one.Set("then", Object(type, variant.fields, variant.rest));
      cases.items.push_back(std::move(one));
    }
    Json known, open;
    known.Set("enum", Texts(words));
    open.Set("type", Text("string"));
    open.Set("pattern", Text(OpPattern().regex));
    Json schema = Typed("object");
    schema.Set("required", Json::Array({Text(type.tag)}));
    schema.Set("properties", Json().Set(std::string(type.tag), AnyOf({std::move(known), std::move(open)})));
    schema.Set("allOf", std::move(cases));
    return schema;
  }

  std::set<std::string_view> named_;
  std::vector<const Type*> wanted_;
};

}  // namespace

std::string JsonSchema() { return Writer().Write(); }

}  // namespace ulpscope
