// Reads the registry and looks for the files that it names.
#include "harness/run/registry.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/record/json_fields.h"
#include "harness/record/observation_json.h"
#include "harness/run/python_probe.h"
#include "harness/words/knobs.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kKeys{"backend",   "title",    "adapter", "requires", "python_packages",
                                     "variables", "install",  "absent",  "device",   "default",
                                     "hidden",    "packaged", "op_by_op"};

/// A checkout has scripts that set backends up; an installation only has its own files.
enum class Tree { kCheckout, kInstalled };

Result<RegistryRow> RowFromJson(const nlohmann::json& object, Tree tree) {
  std::string error;
  JsonFields fields(object, error);
  fields.Require("backend");
  if (!error.empty()) return Fail(error);
  for (const auto& [key, value] : object.items()) {
    if (!Contains(kKeys, key)) {
      return Fail(Problem("unknown key '" + key + "'", {}, {}, DidYouMean(key, kKeys)));
    }
  }
  RegistryRow row{.backend = fields.Text("backend"),
                  .title = fields.Text("title"),
                  .adapter = fields.Texts("adapter"),
                  .requires_file = fields.Text("requires"),
                  .python_packages = fields.Texts("python_packages"),
                  .variables = fields.Texts("variables"),
                  .install = fields.Text("install"),
                  .absent = fields.Text("absent"),
                  .device = "cpu",
                  .is_default = fields.Flag("default"),
                  .op_by_op = fields.Flag("op_by_op"),
                  .hidden = fields.Flag("hidden")};
  if (const std::string packaged = fields.Text("packaged"); !packaged.empty() && tree == Tree::kInstalled)
    row.install = packaged;
  if (const std::string device = fields.Text("device"); !device.empty()) row.device = device;
  for (const KnobRow& knob : KnobRows()) {
    const auto devices = DevicesOf(knob, row.backend);
    if (devices.empty()) continue;
    row.knobs.emplace_back(knob.name);
    if (!devices.front().empty()) row.knob_devices[row.knobs.back()] = devices.front();
  }
  if (!error.empty()) return Fail(error);
  if (row.adapter.empty() && row.absent.empty())
    return Fail("backend " + row.backend + " has neither 'adapter' nor 'absent'");
  return row;
}

}  // namespace

bool RegistryRow::TakesKnob(std::string_view knob) const { return knobs.empty() || Contains(knobs, knob); }

RegistryRow InEnvironment(RegistryRow row, const std::map<std::string, std::string>& knobs) {
  const std::string* env = Lookup(knobs, std::string(kEnvKnob));
  if (env == nullptr || row.adapter.empty() || row.adapter.front() != "{python}") return row;
  row.adapter.front() = std::string(kVenvPlace) + *env + "}";
  // The environments that a version makes are called PACKAGE-VERSION: ci/setup --with PACKAGE==VERSION.
  const size_t dash = env->find('-');
  const std::string package = env->substr(0, dash);
  const bool version = dash != std::string::npos && (package == "torch" || package == "jax");
  row.install = "ci/setup --with " + (version ? package + "==" + env->substr(dash + 1) : *env);
  return row;
}

Result<Registry> Registry::Load(const fs::path& file, Places places) {
  std::ifstream stream(file);
  if (!stream) return Fail("cannot read " + file.string());
  Registry registry;
  std::error_code none;
  const Tree tree = fs::exists(places.root / "ci/setup", none) ? Tree::kCheckout : Tree::kInstalled;
  registry.places_ = std::move(places);
  std::string line;
  for (int number = 1; std::getline(stream, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto object = sdk::ParseMessage(line);
    auto row = object ? RowFromJson(*object, tree) : tl::unexpected(object.error());
    if (row && registry.Find(row->backend) != nullptr)
      row = Fail("backend " + row->backend + " stands here twice");
    if (!row) {
      Error error = row.error();
      error.pos = {.file = file.string(), .line = number, .column = 1};
      return Fail(error);
    }
    registry.rows_.push_back(std::move(*row));
  }
  if (registry.rows_.empty()) return Fail(file.string() + " names no backend");
  return registry;
}

Result<Registry> Registry::LoadDefault() {
  Places places = Places::Detect();
  const fs::path file = places.root / "backends/registry.jsonl";
  return Load(file, std::move(places));
}

const RegistryRow* Registry::Find(std::string_view backend) const {
  return FindIf(rows_, [&](const RegistryRow& row) { return row.backend == backend; });
}

std::vector<std::string> Registry::Names() const { return Mapped(rows_, &RegistryRow::backend); }

void Registry::AddRow(RegistryRow row) {
  if (auto* old = FindIf(rows_, [&](const RegistryRow& each) { return each.backend == row.backend; }))
    *old = std::move(row);
  else
    rows_.push_back(std::move(row));
}

std::vector<std::string> Registry::Command(const RegistryRow& row) const {
  return Mapped(row.adapter, [&](const std::string& part) { return places_.Expand(part); });
}

fs::path Registry::Interpreter(const RegistryRow& row) const {
  const bool own = !row.adapter.empty() && row.adapter.front().starts_with(kVenvPlace);
  return own ? fs::path(places_.Expand(row.adapter.front())) : places_.python;
}

const Registry::Packages& Registry::PackagesOf(const fs::path& interpreter) const {
  if (const Packages* known = Lookup(packages_, interpreter)) return *known;
  std::set<std::string> modules;
  for (const auto& row : rows_) {
    // Any environment may be named for a row that has none of its own.
    const bool movable = !row.adapter.empty() && row.adapter.front() == "{python}";
    if (movable || Interpreter(row) == interpreter)
      modules.insert(row.python_packages.begin(), row.python_packages.end());
  }
  Packages packages;
  if (auto found = FindPythonModules(interpreter, modules))
    packages.found = std::move(*found);
  else
    packages.problem = found.error().message;
  return packages_.emplace(interpreter, std::move(packages)).first->second;
}

Availability Registry::Check(const RegistryRow& row) const {
  Availability availability{.installed = false, .reason = row.absent, .install = row.install};
  if (!row.absent.empty()) return availability;
  const std::string file = places_.Expand(row.requires_file);
  if (!file.empty() && ::access(file.c_str(), R_OK) != 0) {
    availability.reason = "no " + file;
    return availability;
  }
  if (!row.python_packages.empty()) {
    const fs::path interpreter = Interpreter(row);
    const Packages& packages = PackagesOf(interpreter);
    for (const auto& package : row.python_packages) {
      const auto it = packages.found.find(package);
      if (it == packages.found.end()) {
        availability.reason = !packages.problem.empty()
                                  ? packages.problem
                                  : "no Python package " + package + " for " + interpreter.string();
        return availability;
      }
      availability.versions.insert(*it);
    }
  }
  availability.installed = true;
  return availability;
}

}  // namespace ulpscope
