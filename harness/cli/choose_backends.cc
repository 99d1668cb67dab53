// The columns of a run.
#include "harness/cli/choose_backends.h"

#include "harness/base/text.h"
#include "harness/words/knobs.h"

namespace ulpscope {
namespace {

/// --knob K=V becomes part of each backend's name that takes K and does not set it: what differs stands in
/// the column head, in the repro line and in the key that expectations are looked up by.
Result<void> FoldKnobs(const std::vector<std::string>& knobs, const Registry& registry,
                       std::vector<BackendSpec>* backends) {
  for (const auto& text : knobs) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return Fail(Problem("--knob cannot be read", "'" + text + "'", "K=V"));
    }
    const std::string knob = text.substr(0, equals);
    ULPSCOPE_TRY(CheckKnobValue(knob, text.substr(equals + 1)));
    bool taken = false;
    std::vector<std::string> known;
    for (BackendSpec& backend : *backends) {
      const RegistryRow* row = registry.Find(backend.name);
      if (row == nullptr) continue;
      known.insert(known.end(), row->knobs.begin(), row->knobs.end());
      if (!row->TakesKnob(knob)) continue;
      taken = true;
      backend.knobs.try_emplace(knob, text.substr(equals + 1));
    }
    if (!taken)
      return Fail(
          Problem("no backend of this run has a knob '" + knob + "'", {}, {}, DidYouMean(knob, known)));
  }
  return {};
}

}  // namespace

Result<void> CheckInstalled(const BackendSpec& backend, const std::string& shown, const Registry& registry) {
  const RegistryRow* row = registry.Find(backend.name);
  if (row == nullptr) return {};
  const Availability availability = registry.Check(InEnvironment(*row, backend.knobs));
  if (availability.installed) return {};
  return Fail(Problem("backend " + shown + " is not installed: " + availability.reason, {}, {},
                      availability.install.empty() ? "" : "install it: " + availability.install));
}

std::string WhyAbsent(const Availability& availability) {
  return availability.reason + (availability.install.empty() ? "" : "; install it: " + availability.install);
}

Result<ChosenBackends> ChooseBackends(const BackendChoice& choice, const Registry& registry) {
  ChosenBackends chosen;
  if (choice.list.empty()) {
    chosen.backends = DefaultBackends(registry);
    for (const auto& row : registry.rows()) {
      if (row.hidden || (!row.is_default && row.absent.empty())) continue;
      const Availability availability = registry.Check(row);
      if (!availability.installed) chosen.not_installed[row.backend] = WhyAbsent(availability);
    }
  } else if (choice.list == "all") {
    chosen.backends = AllBackends(registry);
  } else {
    chosen.backends = ULPSCOPE_TRY(ParseBackendList(choice.list, registry));
    for (const auto& backend : chosen.backends)
      ULPSCOPE_TRY(CheckInstalled(backend, backend.Text(), registry));
  }
  ULPSCOPE_TRY(FoldKnobs(choice.knobs, registry, &chosen.backends));
  return chosen;
}

}  // namespace ulpscope
