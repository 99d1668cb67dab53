// A run to read results from: a recorded one, or one that is made now and goes away.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "harness/record/journal.h"
#include "harness/workspace/workspace.h"

namespace ulpscope {

/// ID@BACKEND, split at the first @: ids hold none, backends may.
struct ResultName {
  std::string id, backend = {};  ///< backend empty: all of them
};
ResultName ParseResultName(const std::string& what);

/// A folder that goes away with its owner.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> Make();
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

/// A run that holds one case as it is in the workspace.
struct FoundRun {
  RecordedRun run;
  std::optional<TemporaryFolder> folder;  ///< of a run made now
};

/// Lists the results of the run in `dir`, or of the newest run, as lines that follow "ulpscope: ...": `command` for a
/// few of them, and their number. States if there is no run.
std::vector<std::string> ResultsAtHand(const std::string& dir, const std::string& command);

/// OpenWorkspace, but the case `id` of FindRun is read before an adapter is started.
Result<Workspace> OpenForCase(const std::string& dir, const std::string& id,
                              const std::vector<std::string>& adapters);

/// The run in `dir`; else runs/latest if it holds `name` for the current version of the case; else one made now with
/// `seed`. Adds the case to the workspace, and its id and the backend's full name to `name`.
Result<FoundRun> FindRun(const std::string& dir, std::optional<int64_t> seed, ResultName* name,
                         Workspace* workspace);

}  // namespace ulpscope
