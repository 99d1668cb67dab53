// The parts of a side that sentences use.
#include "harness/judge/side.h"

#include <fmt/format.h>

#include <cmath>

#include "harness/base/text.h"

namespace ulpscope {

std::string_view Verb(const Side& side, std::string_view singular, std::string_view plural) {
  return side.names.size() == 1 ? singular : plural;
}

std::string JoinNames(const std::vector<std::string>& names) {
  if (names.size() < 2) return names.empty() ? "" : names.front();
  const std::vector<std::string> head(names.begin(), names.end() - 1);
  return Join(head, ", ") + " and " + names.back();
}

std::string JoinCode(const std::vector<std::string>& names) {
  std::vector<std::string> quoted;
  for (const std::string& name : names) quoted.push_back(Code(name));
  return JoinNames(quoted);
}

std::string Ulps(double distance) {
  constexpr double kWhole = 100, kMostDigits = 1e6;  // chosen: two digits, and at most six
  if (distance == std::floor(distance) && distance < kMostDigits) return fmt::format("{:.0f}", distance);
  if (distance < kWhole) return fmt::format("{:.2g}", distance);
  return distance < kMostDigits ? fmt::format("{:.0f}", distance) : fmt::format("{:.3g}", distance);
}

std::string Bracketed(const std::vector<int64_t>& coordinates) { return "[" + Join(coordinates, ",") + "]"; }

std::string FirstLine(std::string_view text, size_t limit) {
  std::string line;
  for (const char c : FirstLineOf(text)) {
    line += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  }
  if (line.size() <= limit) return line;
  while (limit > 0 && (static_cast<unsigned char>(line[limit]) & 0xc0) == 0x80)
    --limit;  // not inside a UTF-8 character
  return line.substr(0, limit) + "...";
}

const ValueResult& ValueOf(const Side& side, const std::string& value) {
  return side.speaker.result->values.at(value);
}

const TensorData* TensorOf(const Side& side, const std::string& value) {
  if (side.speaker.observation == nullptr) return nullptr;
  const auto found = side.speaker.observation->values.find(value);
  return found == side.speaker.observation->values.end() ? nullptr : &found->second;
}

}  // namespace ulpscope
