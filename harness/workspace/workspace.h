// Workspace: the backends that are known, the selected cases, and the deviations that are listed.
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
  std::filesystem::path root = {};  ///< folder of the suite; ids of its cases are relative to it
  std::vector<std::string> adapters =
      {};  ///< --adapter, as given, but for those that end with the process that called
  std::vector<Case> cases = {};
  std::map<std::string, std::string> selectors =
      {};  ///< id -> the argument of `ulpscope run` for just this case
  std::vector<Deviation> deviations = {};
  std::vector<std::string> notes = {};  ///< sentences for stderr, of adapters that were added
  bool any_backend =
      false;  ///< before adapters have reported what they serve, no backend name in a case is unknown

  const Case* Find(std::string_view id) const;
  /// Flags of a repro line besides id, backend and seed.
  std::string ExtraFlags() const;
};

/// An index of a workspace's cases, for repeated look-ups. `workspace` must outlive this, and keep its cases.
class CaseIndex {
 public:
  explicit CaseIndex(const Workspace& workspace);
  const Case* Find(std::string_view id) const;

 private:
  std::unordered_map<std::string_view, const Case*> cases_;
};

/// The registry with the adapters that lie outside the tree, which are started for it.
Result<Workspace> OpenWorkspace(const std::vector<std::string>& adapters);

/// The same with the cases of `arguments`, as in LoadInto. The cases are read before an adapter is started, and none is
/// started if they have `errors`.
Result<Workspace> OpenWithCases(const std::vector<std::string>& adapters,
                                const std::vector<std::string>& arguments, std::vector<Error>* errors);

/// The registry only, for commands that read a case before adapters that serve backends of any name.
Result<Workspace> OpenBeforeAdapters();

/// Loads the cases of `arguments` (ids, id prefixes, files, folders; nothing is the whole suite) into the
/// workspace. Files and folders outside the suite are roots of their own. Returns every error of every file.
std::vector<Error> LoadInto(Workspace* workspace, const std::vector<std::string>& arguments);

/// The deviations that the suite lists; LoadInto reads them too.
std::vector<Error> LoadDeviationsInto(Workspace* workspace);

}  // namespace ulpscope
