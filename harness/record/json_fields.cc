// Checked access to JSON from outside.
#include "harness/record/json_fields.h"

#include <limits>
#include <optional>

namespace ulpscope {
namespace {

using nlohmann::json;

std::string Cut(const std::string& text, size_t limit) {
  if (text.size() <= limit) return text;
  size_t end = limit;
  // Never in the middle of a UTF-8 sequence.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

/// Each reads one value: nothing if it has another type.
auto TextUpTo(size_t limit) {
  return [limit](const json& value) {
    return value.is_string() ? std::optional(Cut(value.get_ref<const std::string&>(), limit)) : std::nullopt;
  };
}

std::optional<double> NumberOf(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "inf") return std::numeric_limits<double>::infinity();
  if (value == "-inf") return -std::numeric_limits<double>::infinity();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

std::optional<int64_t> IntegerOf(const json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() &&
      value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    return std::nullopt;
  return value.get<int64_t>();
}

/// The results of `read` for the elements of a list.
template <class Read>
auto ListOf(Read read) {
  return [read](const json& list) {
    std::optional<std::vector<typename decltype(read(list))::value_type>> elements;
    if (!list.is_array()) return elements;
    elements.emplace();
    for (const json& entry : list) {
      auto element = read(entry);
      if (!element) return decltype(elements)();
      elements->push_back(*std::move(element));
    }
    return elements;
  };
}

/// The results of `read` for the values of an object.
template <class Read>
auto MapOf(Read read) {
  return [read](const json& object) {
    std::optional<std::map<std::string, typename decltype(read(object))::value_type>> values;
    if (!object.is_object()) return values;
    values.emplace();
    for (const auto& [name, entry] : object.items()) {
      auto value = read(entry);
      if (!value) return decltype(values)();
      values->emplace(name, *std::move(value));
    }
    return values;
  };
}

}  // namespace

JsonFields::JsonFields(const json& object, std::string& error) : object_(object), error_(error) {
  if (!object_.is_object() && error_.empty()) error_ = "an object was expected";
}

const json* JsonFields::Find(std::string_view key) const {
  if (!object_.is_object()) return nullptr;
  const auto it = object_.find(key);
  return it == object_.end() ? nullptr : &*it;
}

void JsonFields::Complain(std::string_view key, std::string_view expected) {
  if (error_.empty()) error_ = "'" + std::string(key) + "' is no " + std::string(expected);
}

void JsonFields::Require(std::string_view key) {
  if (Find(key) == nullptr && error_.empty()) error_ = "'" + std::string(key) + "' is missing";
}

template <class Read, class Value>
Value JsonFields::Take(std::string_view key, std::string_view expected, Read read, Value otherwise) {
  const json* value = Find(key);
  if (value == nullptr) return otherwise;
  if (std::optional<Value> taken = read(*value)) return *std::move(taken);
  Complain(key, expected);
  return otherwise;
}

std::string JsonFields::Text(std::string_view key, size_t limit) {
  return Take(key, "string", TextUpTo(limit), std::string());
}

int64_t JsonFields::Integer(std::string_view key, int64_t fallback) {
  return Take(key, "integer", IntegerOf, fallback);
}

bool JsonFields::Flag(std::string_view key) {
  const auto flag = [](const json& value) {
    return value.is_boolean() ? std::optional(value.get<bool>()) : std::nullopt;
  };
  return Take(key, "boolean", flag, false);
}

double JsonFields::Number(std::string_view key) { return Take(key, "number", NumberOf, 0.0); }

std::vector<std::string> JsonFields::Texts(std::string_view key, size_t limit) {
  return Take(key, "array of strings", ListOf(TextUpTo(limit)), std::vector<std::string>());
}

std::map<std::string, std::vector<std::string>> JsonFields::TextLists(std::string_view key, size_t limit) {
  std::map<std::string, std::vector<std::string>> lists;
  const json* value = Find(key);
  if (value == nullptr) return lists;
  JsonFields fields(*value, error_);
  if (!error_.empty()) return lists;
  for (const auto& [name, entries] : value->items()) lists[name] = fields.Texts(name, limit);
  return lists;
}

std::vector<int64_t> JsonFields::Integers(std::string_view key) {
  return Take(key, "array of integers", ListOf(IntegerOf), std::vector<int64_t>());
}

std::vector<double> JsonFields::Numbers(std::string_view key) {
  return Take(key, "array of numbers", ListOf(NumberOf), std::vector<double>());
}

std::map<std::string, std::string> JsonFields::TextMap(std::string_view key, size_t limit) {
  return Take(key, "object of strings", MapOf(TextUpTo(limit)), std::map<std::string, std::string>());
}

std::map<std::string, double> JsonFields::NumberMap(std::string_view key) {
  return Take(key, "object of numbers", MapOf(NumberOf), std::map<std::string, double>());
}

}  // namespace ulpscope
