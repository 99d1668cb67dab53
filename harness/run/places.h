// Locations of the harness, its backends and their interpreters.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace ulpscope {

/// The start of the placeholder for the interpreter of an additional environment.
inline constexpr std::string_view kVenvPlace = "{venv:";

/// The values of {bin}, {root}, {python} and {venv:NAME} in a registry row. {venv:NAME} is the interpreter of the
/// additional environment that `ci/setup --with NAME` makes, {root}/.venv-NAME/bin/python: some frameworks cannot share
/// one.
struct Places {
  std::filesystem::path bin;  ///< folder of the running executable
  std::filesystem::path
      root;  ///< holds backends/ and cases/: $ULPSCOPE_ROOT, else the tree that the executable lies in
  std::filesystem::path python;  ///< $ULPSCOPE_PYTHON, else {root}/.venv/bin/python

  static Places Detect();
  /// Replaces {bin}, {root}, {python} and {venv:NAME}.
  std::string Expand(std::string_view text) const;
};

}  // namespace ulpscope
