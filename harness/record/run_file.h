// The one place that opens files of a run folder.
//
// A run folder may come from anybody: an archive, a shared disk, a folder that another user can write to. So none of its files is
// read or written through a link, and nothing but a regular file is ever read or appended to: a pipe would hang whoever opens it, and
// a link would have a file outside read or overwritten. That holds for the folders in it (tensors, traces, inputs) too. The folder
// itself is named by the user, and may be a link (runs/latest is one).
//
// Writing replaces the name: a file with several names (hard links) keeps its bytes under the others.
// tests/hostile/test_run_folder_sources.py searches the sources for files that are opened elsewhere.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/result.h"
#include "harness/record/file_bytes.h"

namespace ulpscope {

struct RunFile {
  std::filesystem::path folder;  ///< the run folder
  std::string name;              ///< in it: report.json, tensors/000001.safetensors

  std::filesystem::path path() const { return folder / name; }
};

/// Permissions of the file: for its owner alone, or readable by others.
enum class FileMode : mode_t { kOwn = 0600, kShared = 0644 };

/// False if nothing has the name; an error if it is no regular file.
Result<bool> IsThere(const RunFile& file);
/// The same for a folder in the run folder.
Result<bool> IsFolderThere(const RunFile& folder);
/// The names in a folder of the run folder.
Result<std::vector<std::string>> NamesIn(const RunFile& folder);

Result<FileHandle> OpenRunFile(const RunFile& file);
Result<std::string> ReadRunFile(const RunFile& file, int64_t limit);

/// Makes the folders that `file` lies in.
Result<void> MakeFoldersOf(const RunFile& file);
/// Writes a file that nothing refers to yet; whatever has its name goes first.
Result<void> CreateRunFile(const RunFile& file, std::string_view bytes, FileMode mode = FileMode::kOwn);
/// Atomic: a reader sees the old bytes or the new ones.
Result<void> ReplaceRunFile(const RunFile& file, std::string_view bytes, FileMode mode = FileMode::kOwn);
/// Appends; a file of several names (hard links) is refused.
Result<FileHandle> OpenRunFileToAppend(const RunFile& file);

/// The right to write into a run folder: one process has it at a time, from before it reads the data to continue from
/// until its last report is written. It is a lock on the journal, which ends with the process.
class RunLock {
 public:
  /// Locks a folder that may hold no run yet: its journal is made, empty.
  static Result<std::shared_ptr<RunLock>> TakeNew(const std::filesystem::path& folder);
  /// Locks a folder that holds a journal.
  static Result<std::shared_ptr<RunLock>> Take(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  const FileHandle& journal() const { return journal_; }

 private:
  RunLock(std::filesystem::path folder, FileHandle journal)
      : folder_(std::move(folder)), journal_(std::move(journal)) {}
  static Result<std::shared_ptr<RunLock>> Lock(const std::filesystem::path& folder, FileHandle journal);

  std::filesystem::path folder_;
  FileHandle journal_;
};

}  // namespace ulpscope
