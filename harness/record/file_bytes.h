// Whole files as strings, read without trust: regular files only, of a bounded size, never through a link.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "harness/base/result.h"

namespace ulpscope {

/// Never follows a link, never blocks on a pipe.
Result<std::string> ReadFileBytes(const std::filesystem::path& file, int64_t limit);

/// `size` bytes from `offset` on, under the same rules; fewer are an error.
Result<std::string> ReadBytesAt(const std::filesystem::path& file, int64_t offset, size_t size);

/// A line of a file, without its newline. `line` is valid during the call.
struct FileLine {
  std::string_view line;
  int64_t offset = 0;
  bool whole = true;  ///< false of a last line that has no newline
};

/// Each line of a file of at most `limit` bytes, under the same rules; the first error ends it. What lies in memory is a few lines.
Result<void> ForEachLine(const std::filesystem::path& file, int64_t limit,
                         const std::function<Result<void>(const FileLine& line)>& take);

/// Makes `folder` and those above it; `what` it is stands before its name in the error.
Result<void> MakeFolders(const std::filesystem::path& folder, const std::string& what = "");

/// Creates `file` (mode 0600) or replaces what it holds.
Result<void> WriteFileBytes(const std::filesystem::path& file, std::string_view bytes);

/// The same in one step: whoever reads sees the old bytes or the new ones.
Result<void> ReplaceFileBytes(const std::filesystem::path& file, std::string_view bytes);

}  // namespace ulpscope
