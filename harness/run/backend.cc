// Backend strings against the registry.
#include "harness/run/backend.h"

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/words/knobs.h"

namespace ulpscope {
namespace {

Error Misnamed(std::string message, std::string_view word, const std::vector<std::string>& candidates) {
  return Problem(std::move(message), {}, {}, DidYouMean(word, candidates));
}

}  // namespace

Result<BackendSpec> ParseBackend(std::string_view text, const Registry& registry) {
  const std::string name(BackendSpec::NameOf(text));
  const RegistryRow* row = registry.Find(name);
  if (row == nullptr) return Fail(Misnamed("unknown backend '" + name + "'", name, registry.Names()));
  auto spec = BackendSpec::Parse(text, row->device);
  if (!spec) return spec;
  for (const auto& [knob, value] : spec->knobs) {
    if (!row->TakesKnob(knob))
      return Fail(Misnamed("backend " + name + " has no knob '" + knob + "'", knob, row->knobs));
    ULPSCOPE_TRY(CheckKnobValue(knob, value));
  }
  return spec;
}

Result<std::vector<BackendSpec>> ParseBackendList(std::string_view text, const Registry& registry) {
  std::vector<std::string> items;
  bool in_model = false;  // the value of model= holds commas; only the name of a backend ends it
  for (const auto& part : SplitOutsideParentheses(text, ',')) {
    const bool known = registry.Find(BackendSpec::NameOf(part)) != nullptr;
    const bool continues = !items.empty() && !known && (in_model || part.find('=') != std::string::npos);
    if (continues) {
      items.back() += "," + part;
    } else {
      items.push_back(part);
      in_model = false;
    }
    in_model = in_model || part.starts_with("model=") || part.find(":model=") != std::string::npos;
  }
  std::vector<BackendSpec> specs;
  for (const auto& item : items) {
    auto spec = ULPSCOPE_TRY(ParseBackend(item, registry));
    if (!Contains(specs, spec)) specs.push_back(std::move(spec));
  }
  return specs;
}

std::vector<BackendSpec> DefaultBackends(const Registry& registry) {
  std::vector<BackendSpec> specs;
  for (const auto& row : registry.rows()) {
    if (row.is_default && registry.Check(row).installed)
      specs.push_back({.name = row.backend, .device = row.device});
  }
  return specs;
}

std::vector<BackendSpec> AllBackends(const Registry& registry) {
  std::vector<BackendSpec> specs;
  for (const auto& row : registry.rows()) {
    if (!row.hidden) specs.push_back({.name = row.backend, .device = row.device});
  }
  return specs;
}

}  // namespace ulpscope
