// A strict validator for the part of JSON Schema draft-07 that our schemas use. Stricter than the draft in
// one point: where an object schema lists `properties` and no `additionalProperties`, any other key is an
// error, so that a field that a writer adds without documenting it is found.
#pragma once

#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

namespace ulpscope::testing {

class SchemaValidator {
 public:
  explicit SchemaValidator(nlohmann::json schema) : root_(std::move(schema)) {}

  std::vector<std::string> Validate(const nlohmann::json& document) {
    errors_.clear();
    checks_ = 0;
    Check(root_, document, "$");
    return errors_;
  }
  int checks() const { return checks_; }

 private:
  using Json = nlohmann::json;

  static bool IsOfType(const Json& value, const std::string& type) {
    return (type == "object" && value.is_object()) || (type == "array" && value.is_array()) ||
           (type == "string" && value.is_string()) || (type == "boolean" && value.is_boolean()) ||
           (type == "integer" && value.is_number_integer()) || (type == "number" && value.is_number()) ||
           (type == "null" && value.is_null());
  }

  void Fail(const std::string& path, const std::string& what) { errors_.push_back(path + ": " + what); }

  void Check(const Json& schema, const Json& value, const std::string& path) {
    ++checks_;
    static const std::vector<std::string> kKnown = {
        "$schema",       "$id",      "title",       "description",
        "type",          "required", "properties",  "additionalProperties",
        "propertyNames", "items",    "enum",        "const",
        "anyOf",         "$ref",     "definitions", "pattern",
        "minimum",       "minItems", "maxItems"};
    for (const auto& [key, unused] : schema.items()) {
      if (std::find(kKnown.begin(), kKnown.end(), key) == kKnown.end()) Fail(path, "the schema uses " + key);
    }
    if (schema.contains("$ref")) {
      const std::string name = schema["$ref"].get<std::string>().substr(std::string("#/definitions/").size());
      Check(root_.at("definitions").at(name), value, path);
      return;
    }
    if (schema.contains("const") && schema["const"] != value) Fail(path, "not " + schema["const"].dump());
    if (schema.contains("enum") &&
        std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end()) {
      Fail(path, value.dump() + " is not in " + schema["enum"].dump());
    }
    if (schema.contains("type")) {
      const Json types = schema["type"].is_array() ? schema["type"] : Json::array({schema["type"]});
      const bool fits =
          std::any_of(types.begin(), types.end(), [&](const Json& type) { return IsOfType(value, type); });
      if (!fits) return Fail(path, value.dump().substr(0, 60) + " is no " + types.dump());
    }
    if (schema.contains("anyOf")) CheckAnyOf(schema["anyOf"], value, path);
    if (schema.contains("minimum") && value < schema["minimum"]) Fail(path, "below the minimum");
    if (schema.contains("pattern") &&
        !std::regex_search(value.get<std::string>(), std::regex(schema["pattern"].get<std::string>()))) {
      Fail(path, value.dump() + " does not match");
    }
    if (value.is_array()) CheckArray(schema, value, path);
    if (value.is_object()) CheckObject(schema, value, path);
  }

  void CheckAnyOf(const Json& choices, const Json& value, const std::string& path) {
    for (const auto& choice : choices) {
      SchemaValidator inner(root_);
      inner.Check(choice, value, path);
      if (inner.errors_.empty()) return;
    }
    Fail(path, value.dump() + " fits no choice");
  }

  void CheckArray(const Json& schema, const Json& value, const std::string& path) {
    if (schema.contains("minItems") && value.size() < schema["minItems"]) Fail(path, "too few items");
    if (schema.contains("maxItems") && value.size() > schema["maxItems"]) Fail(path, "too many items");
    if (!schema.contains("items")) return;
    for (size_t i = 0; i < value.size(); ++i)
      Check(schema["items"], value[i], path + "[" + std::to_string(i) + "]");
  }

  void CheckObject(const Json& schema, const Json& value, const std::string& path) {
    for (const auto& key : schema.value("required", Json::array())) {
      if (!value.contains(key.get<std::string>())) Fail(path, "lacks " + key.dump());
    }
    for (const auto& [key, child] : value.items()) {
      if (schema.contains("propertyNames")) Check(schema["propertyNames"], key, path + "." + key);
      if (schema.contains("properties") && schema["properties"].contains(key)) {
        Check(schema["properties"][key], child, path + "." + key);
      } else if (schema.contains("additionalProperties")) {
        Check(schema["additionalProperties"], child, path + "." + key);
      } else {
        Fail(path, "the key " + key + " is not in the schema");
      }
    }
  }

  Json root_;
  std::vector<std::string> errors_;
  int checks_ = 0;
};

}  // namespace ulpscope::testing
