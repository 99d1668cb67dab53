// Whole files as strings, read without trust: regular files only, of a bounded size, never through a link.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "harness/base/result.h"

namespace ulpscope {

/// Never follows a link, never blocks on a pipe.
Result<std::string> ReadFileBytes(const std::filesystem::path& file, int64_t limit);

/// Creates `file` (mode 0600) or replaces what it holds.
Result<void> WriteFileBytes(const std::filesystem::path& file, std::string_view bytes);

/// The same in one step: whoever reads sees the old bytes or the new ones.
Result<void> ReplaceFileBytes(const std::filesystem::path& file, std::string_view bytes);

}  // namespace ulpscope
