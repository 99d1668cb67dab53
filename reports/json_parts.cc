// Texts, numbers and lists of them as JSON.
#include "reports/json_parts.h"

#include <cmath>

#include "reports/text_safe.h"

namespace ulpscope::json_parts {

Json Text(std::string_view text) { return Utf8Safe(text); }

Json Number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

Json Texts(const std::vector<std::string>& texts) {
  Json list = Json::array();
  for (const auto& text : texts) list.push_back(Text(text));
  return list;
}

Json TextMap(const std::map<std::string, std::string>& entries) {
  Json object = Json::object();
  for (const auto& [key, text] : entries) object[Utf8Safe(key)] = Text(text);
  return object;
}

/// Durations, to the thousandth: the rest is noise.
Json Durations(const std::map<std::string, double>& entries) {
  Json object = Json::object();
  for (const auto& [key, number] : entries)
    object[Utf8Safe(key)] = std::isfinite(number) ? Json(std::round(number * 1e3) / 1e3) : Number(number);
  return object;
}

Json Words(const std::map<std::string, std::vector<std::string>>& entries) {
  Json object = Json::object();
  for (const auto& [key, words] : entries) object[Utf8Safe(key)] = Texts(words);
  return object;
}

}  // namespace ulpscope::json_parts
