// Reading and writing whole files.
#include "harness/record/file_bytes.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace ulpscope {
namespace {

struct FileHandle {
  int fd = -1;
  ~FileHandle() {
    if (fd >= 0) ::close(fd);
  }
};

}  // namespace

Result<std::string> ReadFileBytes(const std::filesystem::path& file, int64_t limit) {
  const FileHandle handle{::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)};
  if (handle.fd < 0) return Fail("cannot read " + file.string() + ": " + std::strerror(errno));
  struct stat status {};
  if (::fstat(handle.fd, &status) != 0 || !S_ISREG(status.st_mode))
    return Fail(file.string() + " is no regular file");
  if (status.st_size > limit)
    return Fail(file.string() + " is larger than " + std::to_string(limit) + " bytes");
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t got = ::read(handle.fd, bytes.data() + at, bytes.size() - at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Fail("cannot read " + file.string() + ": " + std::strerror(errno));
    if (got == 0) break;
    at += static_cast<size_t>(got);
  }
  bytes.resize(at);
  return bytes;
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
  if (auto written = WriteFileBytes(fresh, bytes); !written) return written;
  std::error_code error;
  std::filesystem::rename(fresh, file, error);
  if (error) return Fail("cannot write " + file.string() + ": " + error.message());
  return {};
}

}  // namespace ulpscope
