// Reading and writing whole files.
#include "harness/record/file_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>

namespace ulpscope {
namespace {

struct FileHandle {
  int fd = -1;
  ~FileHandle() {
    if (fd >= 0) ::close(fd);
  }
};

/// Its size.
Result<int64_t> OpenRegular(const std::filesystem::path& file, int64_t limit, FileHandle* handle) {
  handle->fd = ::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (handle->fd < 0) return Fail("cannot read " + file.string() + ": " + std::strerror(errno));
  struct stat status {};
  if (::fstat(handle->fd, &status) != 0 || !S_ISREG(status.st_mode))
    return Fail(file.string() + " is no regular file");
  if (status.st_size > limit)
    return Fail(file.string() + " is larger than " + std::to_string(limit) + " bytes");
  return static_cast<int64_t>(status.st_size);
}

/// How many bytes there were, up to `size`.
Result<size_t> ReadInto(const FileHandle& handle, const std::filesystem::path& file, int64_t offset,
                        char* bytes, size_t size) {
  size_t at = 0;
  while (at < size) {
    const ssize_t got = ::pread(handle.fd, bytes + at, size - at, offset + static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Fail("cannot read " + file.string() + ": " + std::strerror(errno));
    if (got == 0) break;
    at += static_cast<size_t>(got);
  }
  return at;
}

}  // namespace

Result<std::string> ReadFileBytes(const std::filesystem::path& file, int64_t limit) {
  FileHandle handle;
  const auto size = ULPSCOPE_TRY(OpenRegular(file, limit, &handle));
  std::string bytes(static_cast<size_t>(size), '\0');
  const auto got = ULPSCOPE_TRY(ReadInto(handle, file, 0, bytes.data(), bytes.size()));
  bytes.resize(got);
  return bytes;
}

Result<std::string> ReadBytesAt(const std::filesystem::path& file, int64_t offset, size_t size) {
  FileHandle handle;
  ULPSCOPE_TRY(OpenRegular(file, std::numeric_limits<int64_t>::max(), &handle));
  std::string bytes(size, '\0');
  const auto got = ULPSCOPE_TRY(ReadInto(handle, file, offset, bytes.data(), size));
  if (got != size) return Fail(file.string() + " has become shorter while it was read");
  return bytes;
}

Result<void> ForEachLine(const std::filesystem::path& file, int64_t limit,
                         const std::function<Result<void>(const FileLine& line)>& take) {
  constexpr size_t kChunk = size_t{256} << 10;
  FileHandle handle;
  ULPSCOPE_TRY(OpenRegular(file, limit, &handle));
  std::string held;     // from the start of a line on
  int64_t held_at = 0;  // where it stands in the file
  size_t searched = 0;  // bytes of it that hold no newline
  while (true) {
    const size_t before = held.size();
    held.resize(before + kChunk);
    const auto got = ULPSCOPE_TRY(
        ReadInto(handle, file, held_at + static_cast<int64_t>(before), held.data() + before, kChunk));
    held.resize(before + got);
    size_t start = 0;
    for (size_t end; (end = held.find('\n', std::max(start, searched))) != held.npos; start = end + 1) {
      const FileLine line{.line = std::string_view(held).substr(start, end - start),
                          .offset = held_at + static_cast<int64_t>(start)};
      ULPSCOPE_TRY(take(line));
    }
    held.erase(0, start);
    held_at += static_cast<int64_t>(start);
    searched = held.size();
    if (held_at + static_cast<int64_t>(searched) > limit)
      return Fail(file.string() + " is larger than " + std::to_string(limit) + " bytes");
    if (got == kChunk) continue;
    if (!held.empty()) return take({.line = held, .offset = held_at, .whole = false});
    return {};
  }
}

Result<void> MakeFolders(const std::filesystem::path& folder, const std::string& what) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Fail("cannot make " + what + folder.string() + ": " + error.message());
  return {};
}

Result<void> WriteFileBytes(const std::filesystem::path& file, std::string_view bytes) {
  const FileHandle handle{::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600)};
  if (handle.fd < 0) return Fail("cannot write " + file.string() + ": " + std::strerror(errno));
  while (!bytes.empty()) {
    const ssize_t written = ::write(handle.fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return Fail("cannot write " + file.string() + ": " + std::strerror(errno));
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

Result<void> ReplaceFileBytes(const std::filesystem::path& file, std::string_view bytes) {
  const std::filesystem::path fresh = file.string() + ".new";
  ULPSCOPE_TRY(WriteFileBytes(fresh, bytes));
  std::error_code error;
  std::filesystem::rename(fresh, file, error);
  if (error) return Fail("cannot write " + file.string() + ": " + error.message());
  return {};
}

}  // namespace ulpscope
