// A reader of JSON's events that accepts all of them and does nothing; readers override those that they need.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace ulpscope::sdk {

/// Text that is not JSON ends the reading.
class JsonEvents : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool key(string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;
  }
};

}  // namespace ulpscope::sdk
