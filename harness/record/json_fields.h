// JsonFields: reads the fields of an object from an untrusted source.
//
// The first field of a wrong type is remembered and every reader then returns an empty value, so that a
// decoder stays a plain list of fields and checks once, at the end, whether all was well. Missing fields are
// empty unless Require names them.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace ulpscope {

class JsonFields {
 public:
  /// `error` keeps the first problem, such as "'key' is no string". It must outlive the reader.
  JsonFields(const nlohmann::json& object, std::string& error);

  /// Strings longer than `limit` bytes are truncated.
  std::string Text(std::string_view key, size_t limit = 1 << 16);
  int64_t Integer(std::string_view key, int64_t fallback = 0);
  bool Flag(std::string_view key);
  /// A number, or one of the strings "inf" "-inf" "nan".
  double Number(std::string_view key);
  std::vector<std::string> Texts(std::string_view key, size_t limit = 1 << 16);
  std::vector<int64_t> Integers(std::string_view key);
  /// Each as Number has it.
  std::vector<double> Numbers(std::string_view key);
  std::map<std::string, std::string> TextMap(std::string_view key, size_t limit = 1 << 16);
  std::map<std::string, std::vector<std::string>> TextLists(std::string_view key, size_t limit = 1 << 16);
  std::map<std::string, double> NumberMap(std::string_view key);

  /// The value itself; null when it is missing.
  const nlohmann::json* Find(std::string_view key) const;
  void Require(std::string_view key);
  void Complain(std::string_view key, std::string_view expected);
  std::string& error() { return error_; }

 private:
  /// The result of `read` for the value of `key`; `otherwise` if it is missing or not as `expected`.
  template <class Read, class Value>
  Value Take(std::string_view key, std::string_view expected, Read read, Value otherwise);

  const nlohmann::json& object_;
  std::string& error_;
};

}  // namespace ulpscope
