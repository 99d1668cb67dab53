// The known backends: one line of backends/registry.jsonl each, and whether this machine can start them.
//
// A row describes how an adapter is started and what must be there first. Nothing is started to read it. A backend
// whose executable or Python package is absent stays in the list, as "not installed", with the line that installs it:
// nothing is silently dropped. Adapters outside this tree are added with AddAdapter (hello.h): their hello names what
// they serve.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/result.h"
#include "harness/run/places.h"

namespace ulpscope {

struct RegistryRow {
  std::string backend;
  std::string title;                              ///< one phrase for lists
  std::vector<std::string> adapter;               ///< argv, with {bin} {root} {python} {venv:NAME}
  std::string requires_file;                      ///< a file that must exist; empty = none
  std::vector<std::string> python_packages = {};  ///< modules that its interpreter must find
  std::vector<std::string> knobs =
      {};  ///< that it takes: harness/words/knobs.h, or those its hello offers; empty = any
  std::map<std::string, std::string> knob_devices = {};  ///< of the knobs that one device alone has: which
  std::vector<std::string> variables = {};  ///< that its libraries read; NAME* is every one that begins so
  std::string install;         ///< the line that installs it; outside a checkout the row's `packaged`
  std::string absent;          ///< not empty: this version cannot run it, and why
  std::string device = "cpu";  ///< the device if the backend string names none
  bool is_default = false;     ///< part of a run without -b
  bool op_by_op = false;       ///< computes each step by itself as expected: it can carry a ledger
  bool hidden = false;         ///< left out of `-b all` (the harness's own test subjects)
  bool of_caller = false;      ///< served by the process that called ulpscope: nothing else can start it

  bool TakesKnob(std::string_view knob) const;
};

/// The row as these knobs require it: with `env=NAME`, on the interpreter of .venv-NAME in place of {python}.
RegistryRow InEnvironment(RegistryRow row, const std::map<std::string, std::string>& knobs);

/// Can this machine start the backend? `reason` names the missing parts, `install` the command to paste.
struct Availability {
  bool installed = false;
  std::string reason;
  std::string install;
  std::map<std::string, std::string> versions = {};  ///< of its Python packages, if they were found
};

class Registry {
 public:
  /// Reads a registry; errors carry file and line.
  static Result<Registry> Load(const std::filesystem::path& file, Places places);
  /// {root}/backends/registry.jsonl of this installation.
  static Result<Registry> LoadDefault();

  const std::vector<RegistryRow>& rows() const { return rows_; }
  const RegistryRow* Find(std::string_view backend) const;
  /// Every name, in the order of the file.
  std::vector<std::string> Names() const;
  const Places& places() const { return places_; }

  /// A row of the same name is replaced.
  void AddRow(RegistryRow row);

  /// Looks for the executable and the Python packages (each interpreter is started once for all rows, and
  /// remembered).
  Availability Check(const RegistryRow& row) const;

  /// The argv of a row with its places filled in.
  std::vector<std::string> Command(const RegistryRow& row) const;

 private:
  struct Packages {
    std::map<std::string, std::string> found;  ///< Python modules -> version
    std::string problem;                       ///< why the query of the interpreter failed
  };
  /// The interpreter that a row runs on: its own environment's, else {python}.
  std::filesystem::path Interpreter(const RegistryRow& row) const;
  const Packages& PackagesOf(const std::filesystem::path& interpreter) const;

  std::vector<RegistryRow> rows_;
  Places places_;
  mutable std::map<std::filesystem::path, Packages> packages_;
};

}  // namespace ulpscope
