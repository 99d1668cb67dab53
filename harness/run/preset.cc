// Variables that were set, and were not passed on.
#include "harness/run/preset.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

extern char** environ;

namespace ulpscope {
namespace {

/// A report is passed on; of what may be a secret it says only that it is set.
bool MayBeSecret(std::string_view name) {
  static constexpr std::array<std::string_view, 9> kWords{
      "KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "AUTH", "COOKIE", "SIGNATURE", "PRIVATE"};
  std::string upper(name);
  for (char& c : upper) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return std::ranges::any_of(kWords, [&](std::string_view word) { return upper.find(word) != upper.npos; });
}

}  // namespace

std::map<std::string, std::optional<std::string>> PresetEnvironment(const Registry& registry) {
  std::map<std::string, std::optional<std::string>> preset;
  std::vector<std::string_view> prefixes;
  for (const RegistryRow& row : registry.rows()) {
    for (const std::string& variable : row.variables) {
      if (variable.ends_with('*')) {
        prefixes.push_back(std::string_view(variable).substr(0, variable.size() - 1));
      } else {
        preset[variable] = std::nullopt;
      }
    }
  }
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    for (const auto prefix : prefixes) {
      if (name.starts_with(prefix) && name.size() < text.size())
        preset[std::string(name)] = MayBeSecret(name) ? std::string("(set, not recorded)")
                                                      : std::string(text.substr(name.size() + 1));
    }
  }
  return preset;
}

}  // namespace ulpscope
