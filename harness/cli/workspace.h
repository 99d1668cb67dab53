// Workspace: the backends that are known, the cases that were asked for, and the deviations that are listed.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "harness/base/result.h"
#include "harness/model/case.h"
#include "harness/model/deviation.h"
#include "harness/run/registry.h"

namespace ulpscope {

struct Workspace {
  Registry registry;
  std::filesystem::path root = {};    ///< folder of the suite; ids of its cases are relative to it
  std::vector<std::string> adapters;  ///< --adapter, as given
  std::vector<Case> cases = {};
  std::map<std::string, std::string> selectors =
      {};  ///< id -> what to write after `ulpscope run` to get just this case
  std::vector<Deviation> deviations = {};

  const Case* Find(std::string_view id) const;
  /// What a repro line says besides id, backend and seed.
  std::string ExtraFlags() const;
};

/// Where the cases of a workspace stand, for who asks for many of them. `workspace` must outlive this, and keep its cases.
class CaseIndex {
 public:
  explicit CaseIndex(const Workspace& workspace);
  const Case* Find(std::string_view id) const;

 private:
  std::unordered_map<std::string_view, const Case*> cases_;
};

/// The registry with the adapters that lie outside the tree.
Result<Workspace> OpenWorkspace(const std::vector<std::string>& adapters);

/// Loads the cases of `arguments` (ids, id prefixes, files, folders; nothing is the whole suite) into the
/// workspace. Files and folders outside the suite are roots of their own. Returns every error of every file.
std::vector<Error> LoadInto(Workspace* workspace, const std::vector<std::string>& arguments);

/// The deviations that the suite lists; LoadInto reads them too.
std::vector<Error> LoadDeviationsInto(Workspace* workspace);

}  // namespace ulpscope
