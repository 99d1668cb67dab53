// Whole files as strings, read without trust: regular files only, of a bounded size, never through a link. Files of a run folder are
// opened by harness/record/run_file.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "harness/base/result.h"

namespace ulpscope {

/// Size of a file, known before its bytes are read.
struct FileExtent {
  int64_t size = 0;
  int64_t stored = 0;  ///< bytes of it that take room on the disk: few of a file that is mostly a hole
};

/// An open regular file; its owner's destructor closes it.
class FileHandle {
 public:
  /// Takes the result of open or openat, called with O_NONBLOCK: a pipe is refused here, without waiting for its other
  /// end. `shown` names the file in errors.
  static Result<FileHandle> Take(int fd, const std::string& shown);
  FileHandle(FileHandle&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), shown_(std::move(other.shown_)) {}
  FileHandle& operator=(FileHandle&& other) noexcept;
  ~FileHandle();

  int fd() const { return fd_; }
  const std::string& shown() const { return shown_; }

  /// All of it; more than `limit` bytes are an error.
  Result<std::string> Read(int64_t limit) const;
  /// `size` bytes from `offset` on; fewer are an error.
  Result<std::string> ReadAt(int64_t offset, size_t size) const;
  Result<void> Write(std::string_view bytes) const;
  Result<FileExtent> Extent() const;

 private:
  FileHandle(int fd, std::string shown) : fd_(fd), shown_(std::move(shown)) {}

  int fd_ = -1;
  std::string shown_;
};

/// A line of a file, without its newline. `line` is valid during the call.
struct FileLine {
  std::string_view line;
  int64_t offset = 0;
  bool whole = true;  ///< false of a last line that has no newline
};

/// Calls `take` for each line of a file of at most `limit` bytes; the first error ends it. Memory holds a few lines at
/// a time.
Result<void> ForEachLine(const FileHandle& file, int64_t limit,
                         const std::function<Result<void>(const FileLine& line)>& take);

/// Never follows a link, never blocks on a pipe.
Result<std::string> ReadFileBytes(const std::filesystem::path& file, int64_t limit);

/// Makes `folder` and its parents; `what` precedes its name in the error.
Result<void> MakeFolders(const std::filesystem::path& folder, const std::string& what = "");

/// Creates `file` (mode 0600) or replaces its contents.
Result<void> WriteFileBytes(const std::filesystem::path& file, std::string_view bytes);

}  // namespace ulpscope
