// Checked access to JSON from outside.
#include "harness/record/json_fields.h"

#include <limits>

namespace ulpscope {
namespace {

std::string Cut(const std::string& text, size_t limit) {
  if (text.size() <= limit) return text;
  size_t end = limit;
  // Never in the middle of a UTF-8 sequence.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

bool ReadNumber(const nlohmann::json& value, double& number) {
  if (value.is_number()) {
    number = value.get<double>();
    return true;
  }
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  if (text == "inf")
    number = std::numeric_limits<double>::infinity();
  else if (text == "-inf")
    number = -std::numeric_limits<double>::infinity();
  else if (text == "nan")
    number = std::numeric_limits<double>::quiet_NaN();
  else
    return false;
  return true;
}

bool IsInt64(const nlohmann::json& value) {
  if (!value.is_number_integer()) return false;
  return !value.is_number_unsigned() ||
         value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
}

}  // namespace

JsonFields::JsonFields(const nlohmann::json& object, std::string& error) : object_(object), error_(error) {
  if (!object_.is_object() && error_.empty()) error_ = "an object was expected";
}

const nlohmann::json* JsonFields::Find(std::string_view key) const {
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

std::string JsonFields::Text(std::string_view key, size_t limit) {
  const auto* value = Find(key);
  if (value == nullptr) return "";
  if (!value->is_string()) {
    Complain(key, "string");
    return "";
  }
  return Cut(value->get_ref<const std::string&>(), limit);
}

int64_t JsonFields::Integer(std::string_view key, int64_t fallback) {
  const auto* value = Find(key);
  if (value == nullptr) return fallback;
  if (!IsInt64(*value)) {
    Complain(key, "integer");
    return fallback;
  }
  return value->get<int64_t>();
}

bool JsonFields::Flag(std::string_view key) {
  const auto* value = Find(key);
  if (value == nullptr) return false;
  if (!value->is_boolean()) {
    Complain(key, "boolean");
    return false;
  }
  return value->get<bool>();
}

double JsonFields::Number(std::string_view key) {
  const auto* value = Find(key);
  double number = 0;
  if (value != nullptr && !ReadNumber(*value, number)) Complain(key, "number");
  return number;
}

std::vector<std::string> JsonFields::Texts(std::string_view key, size_t limit) {
  std::vector<std::string> texts;
  const auto* value = Find(key);
  if (value == nullptr) return texts;
  if (!value->is_array()) {
    Complain(key, "array of strings");
    return texts;
  }
  for (const auto& entry : *value) {
    if (!entry.is_string()) {
      Complain(key, "array of strings");
      return {};
    }
    texts.push_back(Cut(entry.get_ref<const std::string&>(), limit));
  }
  return texts;
}

std::map<std::string, std::vector<std::string>> JsonFields::TextLists(std::string_view key, size_t limit) {
  std::map<std::string, std::vector<std::string>> lists;
  const auto* value = Find(key);
  if (value == nullptr) return lists;
  JsonFields fields(*value, error_);
  if (!error_.empty()) return lists;
  for (const auto& [name, entries] : value->items()) lists[name] = fields.Texts(name, limit);
  return lists;
}

std::vector<int64_t> JsonFields::Integers(std::string_view key) {
  std::vector<int64_t> integers;
  const auto* value = Find(key);
  if (value == nullptr) return integers;
  if (!value->is_array()) {
    Complain(key, "array of integers");
    return integers;
  }
  for (const auto& entry : *value) {
    if (!IsInt64(entry)) {
      Complain(key, "array of integers");
      return {};
    }
    integers.push_back(entry.get<int64_t>());
  }
  return integers;
}

std::vector<double> JsonFields::Numbers(std::string_view key) {
  std::vector<double> numbers;
  const auto* value = Find(key);
  if (value == nullptr) return numbers;
  for (const auto& entry : *value) {
    if (double number = 0; value->is_array() && ReadNumber(entry, number)) {
      numbers.push_back(number);
      continue;
    }
    Complain(key, "array of numbers");
    return {};
  }
  return numbers;
}

std::map<std::string, std::string> JsonFields::TextMap(std::string_view key, size_t limit) {
  std::map<std::string, std::string> texts;
  const auto* value = Find(key);
  if (value == nullptr) return texts;
  if (!value->is_object()) {
    Complain(key, "object of strings");
    return texts;
  }
  for (const auto& [name, entry] : value->items()) {
    if (!entry.is_string()) {
      Complain(key, "object of strings");
      return {};
    }
    texts[name] = Cut(entry.get_ref<const std::string&>(), limit);
  }
  return texts;
}

std::map<std::string, double> JsonFields::NumberMap(std::string_view key) {
  std::map<std::string, double> numbers;
  const auto* value = Find(key);
  if (value == nullptr) return numbers;
  if (!value->is_object()) {
    Complain(key, "object of numbers");
    return numbers;
  }
  for (const auto& [name, entry] : value->items()) {
    double number = 0;
    if (!ReadNumber(entry, number)) {
      Complain(key, "object of numbers");
      return {};
    }
    numbers[name] = number;
  }
  return numbers;
}

}  // namespace ulpscope
