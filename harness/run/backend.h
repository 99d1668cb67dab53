// BackendSpec: one backend as a person names it, NAME[@DEVICE][:knob=value,...].
//
// The same string stands in -b, in `expect`, in the JSON report and in column heads. Text() is its canonical
// spelling.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/result.h"
#include "harness/run/registry.h"

namespace ulpscope {

struct BackendSpec {
  std::string name;
  std::string device = "cpu";
  std::map<std::string, std::string> knobs;

  /// Canonical: "@cpu" is left out, knobs stand in alphabetical order, `model` last (its value runs to the
  /// end).
  std::string Text() const;
  bool operator==(const BackendSpec&) const = default;
};

/// Parses one backend string. Commas inside () do not separate; the value of `model=` is the rest of the
/// string. Unknown names and unknown knobs fail with the nearest one.
Result<BackendSpec> ParseBackend(std::string_view text, const Registry& registry);

/// Parses the argument of -b: backend strings joined by commas. `knob=value` parts continue the backend
/// before them: "torch-eager,faulty:fault=hang,case=x,openblas" is three backends. "all" and "" are not
/// handled here.
Result<std::vector<BackendSpec>> ParseBackendList(std::string_view text, const Registry& registry);

/// Every installed backend that a run without -b takes.
std::vector<BackendSpec> DefaultBackends(const Registry& registry);
/// `-b all`: every backend that is not hidden, installed or not.
std::vector<BackendSpec> AllBackends(const Registry& registry);

}  // namespace ulpscope
