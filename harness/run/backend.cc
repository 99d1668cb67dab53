// Parsing and spelling of backend strings.
#include "harness/run/backend.h"

#include <algorithm>

#include "harness/base/text.h"

namespace ulpscope {
namespace {

constexpr std::string_view kModel = "model=";

Error Misnamed(std::string message, std::string_view word, const std::vector<std::string>& candidates) {
  return {.message = std::move(message),
          .pos = SourcePos(),
          .found = {},
          .expected = {},
          .hint = DidYouMean(word, candidates)};
}

/// The name at the head of a backend string: up to '@' or ':'.
std::string_view Head(std::string_view text) { return text.substr(0, text.find_first_of("@:")); }

Result<void> ParseKnob(std::string_view text, const RegistryRow& row, BackendSpec& spec) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return Fail(Error{.message = "knob of backend " + spec.name,
                      .pos = SourcePos(),
                      .found = "'" + std::string(text) + "'",
                      .expected = "knob=value",
                      .hint = {}});
  }
  const std::string knob(text.substr(0, equals));
  if (!row.knobs.empty() && std::find(row.knobs.begin(), row.knobs.end(), knob) == row.knobs.end()) {
    return Fail(Misnamed("backend " + spec.name + " has no knob '" + knob + "'", knob, row.knobs));
  }
  if (!spec.knobs.emplace(knob, text.substr(equals + 1)).second) {
    return Fail("knob '" + knob + "' of backend " + spec.name + " is set twice");
  }
  return {};
}

Result<void> ParseKnobs(std::string_view text, const RegistryRow& row, BackendSpec& spec) {
  while (true) {
    if (text.starts_with(kModel)) return ParseKnob(text, row, spec);
    const auto parts = SplitOutsideParentheses(text, ',');
    if (parts.empty()) return Fail("backend " + spec.name + ": a knob=value is missing after ':' or ','");
    if (auto parsed = ParseKnob(parts.front(), row, spec); !parsed) return parsed;
    if (parts.size() == 1) return {};
    text.remove_prefix(parts.front().size() + 1);
  }
}

}  // namespace

std::string BackendSpec::Text() const {
  std::string text = name;
  if (device != "cpu") text += "@" + device;
  char separator = ':';
  const auto add = [&](const std::string& knob, const std::string& value) {
    text += separator + knob + "=" + value;
    separator = ',';
  };
  for (const auto& [knob, value] : knobs) {
    if (knob != "model") add(knob, value);
  }
  if (const auto model = knobs.find("model"); model != knobs.end()) add(model->first, model->second);
  return text;
}

Result<BackendSpec> ParseBackend(std::string_view text, const Registry& registry) {
  BackendSpec spec;
  spec.name = Head(text);
  const RegistryRow* row = registry.Find(spec.name);
  if (row == nullptr)
    return Fail(Misnamed("unknown backend '" + spec.name + "'", spec.name, registry.Names()));
  spec.device = row->device;
  text.remove_prefix(spec.name.size());
  if (text.starts_with('@')) {
    text.remove_prefix(1);
    // A device may carry an index: cuda:0. A knob never begins with a digit, so the colon is unambiguous.
    size_t end = text.find(':');
    if (end != std::string_view::npos && end + 1 < text.size() && text[end + 1] >= '0' &&
        text[end + 1] <= '9') {
      end = text.find(':', end + 1);
    }
    spec.device = text.substr(0, end);
    if (spec.device.empty()) return Fail("backend " + spec.name + ": a device is missing after '@'");
    text = end == std::string_view::npos ? std::string_view() : text.substr(end);
  }
  if (text.starts_with(':')) {
    if (auto parsed = ParseKnobs(text.substr(1), *row, spec); !parsed) return tl::unexpected(parsed.error());
  }
  return spec;
}

Result<std::vector<BackendSpec>> ParseBackendList(std::string_view text, const Registry& registry) {
  std::vector<std::string> items;
  bool in_model = false;  // the value of model= holds commas; only the name of a backend ends it
  for (const auto& part : SplitOutsideParentheses(text, ',')) {
    const bool known = registry.Find(Head(part)) != nullptr;
    const bool continues = !items.empty() && !known && (in_model || part.find('=') != std::string::npos);
    if (continues) {
      items.back() += "," + part;
    } else {
      items.push_back(part);
      in_model = false;
    }
    in_model = in_model || part.starts_with(kModel) || part.find(":model=") != std::string::npos;
  }
  std::vector<BackendSpec> specs;
  for (const auto& item : items) {
    auto spec = ParseBackend(item, registry);
    if (!spec) return tl::unexpected(spec.error());
    if (std::find(specs.begin(), specs.end(), *spec) == specs.end()) specs.push_back(std::move(*spec));
  }
  return specs;
}

std::vector<BackendSpec> DefaultBackends(const Registry& registry) {
  std::vector<BackendSpec> specs;
  for (const auto& row : registry.rows()) {
    if (row.is_default && registry.Check(row).installed)
      specs.push_back({.name = row.backend, .device = row.device, .knobs = {}});
  }
  return specs;
}

std::vector<BackendSpec> AllBackends(const Registry& registry) {
  std::vector<BackendSpec> specs;
  for (const auto& row : registry.rows()) {
    if (!row.hidden) specs.push_back({.name = row.backend, .device = row.device, .knobs = {}});
  }
  return specs;
}

}  // namespace ulpscope
