// BackendSpec: one backend as a person names it, NAME[@DEVICE[:INDEX]][:knob=value,...].
//
// The one grammar of -b, of the keys of `expect`, of deviations, of the report's columns and of ID@BACKEND. A
// value has no space; commas inside () are its own, and the value of the knob `model` runs to the end. Text()
// is the canonical spelling:
// "@cpu" is left out, the knobs stand in alphabetical order, `model` last.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "harness/base/result.h"

namespace ulpscope {

struct BackendSpec {
  std::string name;
  std::string device = "cpu";  ///< "cuda", "cuda:1"
  std::map<std::string, std::string> knobs = {};

  /// `device` is where a backend runs that names none.
  static Result<BackendSpec> Parse(std::string_view text, std::string_view device = "cpu");
  /// The name at the head of a backend string, whatever follows.
  static std::string_view NameOf(std::string_view text) { return text.substr(0, text.find_first_of("@:")); }
  /// The same grammar as an ECMAScript pattern, for the JSON Schema.
  static std::string_view Pattern();

  std::string Text() const;
  /// "cuda" of "cuda:1".
  std::string_view DeviceKind() const { return std::string_view(device).substr(0, device.find(':')); }
  bool operator==(const BackendSpec&) const = default;
};

/// The backend string in its canonical spelling; one that cannot be read, as it stands.
std::string CanonicalBackend(std::string_view text);

}  // namespace ulpscope
