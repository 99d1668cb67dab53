// Lines of the deviations file.
#include "harness/cli/baseline_file.h"

#include <chrono>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "harness/base/text.h"

namespace ulpscope {
namespace {

/// A JSON string is one of YAML too; what it escapes cannot end the line or the map.
std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

bool IsEntry(const std::string& line) { return line.starts_with("-"); }
bool IsEmptyList(const std::string& line) { return line == "[]"; }

}  // namespace

std::string DeviationLine(const Deviation& deviation) {
  std::string line = "- {";
  const auto add = [&](const char* key, const std::string& value) {
    if (value.empty()) return;
    line += (line.size() > 3 ? ", " : "") + std::string(key) + ": " + value;
  };
  const auto quoted = [](const std::string& text) { return text.empty() ? "" : Quoted(text); };
  add("case", quoted(deviation.case_id));
  add("backend", quoted(deviation.backend));
  add("value", quoted(deviation.value));
  add("versions", quoted(deviation.versions));
  add("found", quoted(deviation.found));
  add("reason", quoted(deviation.reason));
  add("link", quoted(deviation.link));
  add("expires", deviation.expires);
  return line + "}";
}

std::string WithDeviations(const std::string& text, const std::vector<Deviation>& added) {
  std::string edited;
  for (const auto& line : LinesOf(text)) {
    if (!IsEmptyList(line)) edited += line + "\n";
  }
  for (const Deviation& deviation : added) edited += DeviationLine(deviation) + "\n";
  return edited;
}

std::string WithoutLines(const std::string& text, const std::set<int>& lines) {
  std::string edited;
  int number = 0;
  bool entries = false;
  for (const auto& line : LinesOf(text)) {
    if (lines.contains(++number)) continue;
    entries = entries || IsEntry(line) || IsEmptyList(line);
    edited += line + "\n";
  }
  if (!entries) edited += "[]\n";
  return edited;
}

std::string Today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", &parts);
  return text;
}

bool IsDay(const std::string& text) {
  int year = 0, month = 0, day = 0, used = 0;
  if (text.size() != 10 || std::sscanf(text.c_str(), "%4d-%2d-%2d%n", &year, &month, &day, &used) != 3 ||
      used != 10)
    return false;
  return std::chrono::year_month_day(std::chrono::year(year),
                                     std::chrono::month(static_cast<unsigned>(month)),
                                     std::chrono::day(static_cast<unsigned>(day)))
      .ok();
}

}  // namespace ulpscope
