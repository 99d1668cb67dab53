// Reading and writing whole files.
#include "harness/record/file_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace ulpscope {
namespace {

Error TooLarge(const std::string& shown, int64_t limit) {
  return {.message = shown + " is larger than " + std::to_string(limit) + " bytes"};
}

/// How many bytes there were, up to `size`.
Result<size_t> ReadInto(const FileHandle& file, int64_t offset, char* bytes, size_t size) {
  size_t at = 0;
  while (at < size) {
    const ssize_t got = ::pread(file.fd(), bytes + at, size - at, offset + static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Fail("cannot read " + file.shown() + ": " + std::strerror(errno));
    if (got == 0) break;
    at += static_cast<size_t>(got);
  }
  return at;
}

}  // namespace

Result<FileHandle> FileHandle::Take(int fd, const std::string& shown) {
  FileHandle file(fd, shown);
  struct stat status {};
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return Fail(shown + " is no regular file");
  return file;
}

FileHandle& FileHandle::operator=(FileHandle&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(shown_, other.shown_);
  return *this;
}

FileHandle::~FileHandle() {
  if (fd_ >= 0) ::close(fd_);
}

Result<std::string> FileHandle::Read(int64_t limit) const {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) return Fail("cannot read " + shown_ + ": " + std::strerror(errno));
  if (status.st_size > limit) return Fail(TooLarge(shown_, limit));
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  const auto got = ULPSCOPE_TRY(ReadInto(*this, 0, bytes.data(), bytes.size()));
  bytes.resize(got);
  return bytes;
}

Result<std::string> FileHandle::ReadAt(int64_t offset, size_t size) const {
  std::string bytes(size, '\0');
  const auto got = ULPSCOPE_TRY(ReadInto(*this, offset, bytes.data(), size));
  if (got != size) return Fail(shown_ + " has become shorter while it was read");
  return bytes;
}

Result<void> FileHandle::Write(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return Fail("cannot write " + shown_ + ": " + std::strerror(errno));
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

Result<FileExtent> FileHandle::Extent() const {
  struct stat status {};
  if (::fstat(fd_, &status) != 0) return Fail("cannot read " + shown_ + ": " + std::strerror(errno));
  return FileExtent{.size = status.st_size, .stored = int64_t{status.st_blocks} * 512};
}

Result<void> ForEachLine(const FileHandle& file, int64_t limit,
                         const std::function<Result<void>(const FileLine& line)>& take) {
  constexpr size_t kChunk = size_t{256} << 10;
  // The longest lines name every case of a run: a million take 100 MB.
  constexpr size_t kMostLine = size_t{128} << 20;
  std::string held;     // from the start of a line on
  int64_t held_at = 0;  // its position in the file
  size_t searched = 0;  // bytes of it that hold no newline
  while (true) {
    const size_t before = held.size();
    held.resize(before + kChunk);
    const auto got =
        ULPSCOPE_TRY(ReadInto(file, held_at + static_cast<int64_t>(before), held.data() + before, kChunk));
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
    if (held_at + static_cast<int64_t>(searched) > limit) return Fail(TooLarge(file.shown(), limit));
    if (held.size() > kMostLine)
      return Fail(file.shown() + " has a line of more than " + std::to_string(kMostLine) + " bytes");
    if (got == kChunk) continue;
    if (!held.empty()) return take({.line = held, .offset = held_at, .whole = false});
    return {};
  }
}

Result<std::string> ReadFileBytes(const std::filesystem::path& file, int64_t limit) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return Fail("cannot read " + file.string() + ": " + std::strerror(errno));
  const auto handle = ULPSCOPE_TRY(FileHandle::Take(fd, file.string()));
  return handle.Read(limit);
}

Result<void> MakeFolders(const std::filesystem::path& folder, const std::string& what) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Fail("cannot make " + what + folder.string() + ": " + error.message());
  return {};
}

Result<void> WriteFileBytes(const std::filesystem::path& file, std::string_view bytes) {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
  if (fd < 0) return Fail("cannot write " + file.string() + ": " + std::strerror(errno));
  const auto handle = ULPSCOPE_TRY(FileHandle::Take(fd, file.string()));
  if (::ftruncate(fd, 0) != 0) return Fail("cannot write " + file.string() + ": " + std::strerror(errno));
  return handle.Write(bytes);
}

}  // namespace ulpscope
