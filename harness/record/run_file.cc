// Opening files of a run folder, one component of their names at a time.
#include "harness/record/run_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>

#include "harness/base/check.h"

namespace ulpscope {
namespace {

constexpr const char* kJournal = "journal.jsonl";
constexpr int kReading = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

/// An open folder.
struct Directory {
  int fd = -1;
  Directory() = default;
  Directory(Directory&& other) noexcept : fd(std::exchange(other.fd, -1)) {}
  Directory& operator=(Directory&& other) noexcept {
    std::swap(fd, other.fd);
    return *this;
  }
  ~Directory() {
    if (fd >= 0) ::close(fd);
  }
};

enum class Missing { kIsNothing, kIsMade };

tl::unexpected<Error> CannotOpen(const char* what, const std::filesystem::path& path, int error) {
  const std::string shown = path.string();
  if (error == ELOOP)
    return Fail(Problem("cannot " + std::string(what) + " " + shown, "a symbolic link",
                        "a file of the run folder itself"));
  return Fail("cannot " + std::string(what) + " " + shown + ": " + std::strerror(error));
}

/// Folder `name` in `in`; nothing if there is none.
Result<std::optional<Directory>> Enter(const Directory& in, const std::string& name,
                                       const std::filesystem::path& shown, Missing missing) {
  Directory inner;
  if (missing == Missing::kIsMade && ::mkdirat(in.fd, name.c_str(), 0777) != 0 && errno != EEXIST)
    return CannotOpen("make", shown, errno);
  inner.fd = ::openat(in.fd, name.c_str(), kFolder | O_NOFOLLOW);
  if (inner.fd >= 0) return std::optional(std::move(inner));
  const int error = errno;
  if (error == ENOENT) return std::optional<Directory>();
  // With O_DIRECTORY a link is ENOTDIR.
  struct stat status {};
  const bool link =
      ::fstatat(in.fd, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
  return CannotOpen("open", shown, link ? ELOOP : error);
}

/// The folder that `file` lies in, and its last name. Nothing if there is no such folder.
struct Placed {
  Directory folder;
  std::string name;
};

Result<std::optional<Placed>> PlaceOf(const RunFile& file, Missing missing = Missing::kIsNothing) {
  const std::filesystem::path name(file.name);
  const bool inside = !name.empty() && name.is_relative() && std::ranges::all_of(name, [](const auto& part) {
    return !part.empty() && part != "." && part != "..";
  });
  ULPSCOPE_CHECK(inside, "a file of a run folder lies in it");
  Placed placed;
  placed.folder.fd = ::open(file.folder.empty() ? "." : file.folder.c_str(), kFolder);
  if (placed.folder.fd < 0 && errno == ENOENT) return std::optional<Placed>();
  if (placed.folder.fd < 0) return CannotOpen("open", file.folder, errno);
  std::filesystem::path shown = file.folder;
  for (auto part = name.begin(); part != name.end(); ++part) {
    shown /= *part;
    if (std::next(part) == name.end()) {
      placed.name = part->string();
      break;
    }
    auto inner = ULPSCOPE_TRY(Enter(placed.folder, part->string(), shown, missing));
    if (!inner) return std::optional<Placed>();
    placed.folder = *std::move(inner);
  }
  return std::optional(std::move(placed));
}

Result<Placed> MustPlace(const RunFile& file, const char* what) {
  auto placed = ULPSCOPE_TRY(PlaceOf(file));
  if (!placed) return CannotOpen(what, file.path(), ENOENT);
  return *std::move(placed);
}

Result<FileHandle> MakeIn(const Placed& placed, const std::string& name, const RunFile& file, FileMode mode) {
  if (::unlinkat(placed.folder.fd, name.c_str(), 0) != 0 && errno != ENOENT)
    return CannotOpen("write", file.path(), errno);
  const int fd = ::openat(placed.folder.fd, name.c_str(),
                          O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, static_cast<mode_t>(mode));
  if (fd < 0) return CannotOpen("write", file.path(), errno);
  return FileHandle::Take(fd, file.path().string());
}

Result<bool> IsOfKind(const RunFile& file, mode_t kind, const char* expected) {
  const auto placed = ULPSCOPE_TRY(PlaceOf(file));
  struct stat status {};
  if (!placed) return false;
  if (::fstatat(placed->folder.fd, placed->name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return false;
    return CannotOpen("read", file.path(), errno);
  }
  if ((status.st_mode & S_IFMT) == kind) return true;
  return Fail(Problem("cannot read " + file.path().string(),
                      S_ISLNK(status.st_mode) ? "a symbolic link" : "something else", expected));
}

}  // namespace

Result<bool> IsThere(const RunFile& file) { return IsOfKind(file, S_IFREG, "a regular file"); }

Result<bool> IsFolderThere(const RunFile& folder) { return IsOfKind(folder, S_IFDIR, "a folder"); }

Result<std::vector<std::string>> NamesIn(const RunFile& folder) {
  std::vector<std::string> names;
  const auto placed = ULPSCOPE_TRY(PlaceOf({.folder = folder.folder, .name = folder.name + "/any"}));
  if (!placed) return names;
  const int copy = ::fcntl(placed->folder.fd, F_DUPFD_CLOEXEC, 0);
  DIR* listed = copy < 0 ? nullptr : ::fdopendir(copy);
  if (listed == nullptr) return CannotOpen("read", folder.path(), errno);
  while (const dirent* entry = ::readdir(listed)) names.emplace_back(entry->d_name);
  ::closedir(listed);
  std::erase_if(names, [](const std::string& name) { return name == "." || name == ".."; });
  std::ranges::sort(names);
  return names;
}

Result<FileHandle> OpenRunFile(const RunFile& file) {
  const auto placed = ULPSCOPE_TRY(MustPlace(file, "read"));
  const int fd = ::openat(placed.folder.fd, placed.name.c_str(), kReading);
  if (fd < 0) return CannotOpen("read", file.path(), errno);
  return FileHandle::Take(fd, file.path().string());
}

Result<std::string> ReadRunFile(const RunFile& file, int64_t limit) {
  const auto handle = ULPSCOPE_TRY(OpenRunFile(file));
  return handle.Read(limit);
}

Result<void> MakeFoldersOf(const RunFile& file) {
  const auto placed = ULPSCOPE_TRY(PlaceOf(file, Missing::kIsMade));
  if (!placed) return CannotOpen("make", file.folder, ENOENT);
  return {};
}

Result<void> CreateRunFile(const RunFile& file, std::string_view bytes, FileMode mode) {
  const auto placed = ULPSCOPE_TRY(MustPlace(file, "write"));
  const auto handle = ULPSCOPE_TRY(MakeIn(placed, placed.name, file, mode));
  return handle.Write(bytes);
}

Result<void> ReplaceRunFile(const RunFile& file, std::string_view bytes, FileMode mode) {
  const auto placed = ULPSCOPE_TRY(MustPlace(file, "write"));
  // Two processes that render the same page at once must not take each other's file away.
  const std::string fresh = placed.name + "." + std::to_string(::getpid()) + ".new";
  const auto handle = ULPSCOPE_TRY(MakeIn(placed, fresh, file, mode));
  auto written = handle.Write(bytes);
  if (written && ::renameat(placed.folder.fd, fresh.c_str(), placed.folder.fd, placed.name.c_str()) != 0)
    written = CannotOpen("write", file.path(), errno);
  if (!written) ::unlinkat(placed.folder.fd, fresh.c_str(), 0);
  return written;
}

Result<FileHandle> OpenRunFileToAppend(const RunFile& file) {
  const auto placed = ULPSCOPE_TRY(MustPlace(file, "write"));
  const int fd = ::openat(placed.folder.fd, placed.name.c_str(),
                          O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return CannotOpen("write", file.path(), errno);
  auto handle = ULPSCOPE_TRY(FileHandle::Take(fd, file.path().string()));
  struct stat status {};
  if (::fstat(fd, &status) == 0 && status.st_nlink > 1)
    return Fail(Problem("cannot append to " + file.path().string(),
                        std::to_string(status.st_nlink) + " names of one file (hard links)", "one name",
                        "copy the folder"));
  return handle;
}

Result<std::shared_ptr<RunLock>> RunLock::Lock(const std::filesystem::path& folder, FileHandle journal) {
  if (::flock(journal.fd(), LOCK_EX | LOCK_NB) != 0) {
    const std::string why = errno == EWOULDBLOCK ? " is in use: another process writes into it"
                                                 : ": " + std::string(std::strerror(errno));
    return Fail(folder.string() + why);
  }
  return std::shared_ptr<RunLock>(new RunLock(folder, std::move(journal)));
}

Result<std::shared_ptr<RunLock>> RunLock::TakeNew(const std::filesystem::path& folder) {
  const RunFile file{.folder = folder, .name = kJournal};
  const auto placed = ULPSCOPE_TRY(MustPlace(file, "write"));
  const int made = ::openat(placed.folder.fd, kJournal, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                            static_cast<mode_t>(FileMode::kShared));
  if (made < 0 && errno != EEXIST) return CannotOpen("write", file.path(), errno);
  if (made >= 0) ::close(made);
  auto journal = ULPSCOPE_TRY(OpenRunFileToAppend(file));
  return Lock(folder, std::move(journal));
}

Result<std::shared_ptr<RunLock>> RunLock::Take(const std::filesystem::path& folder) {
  const RunFile file{.folder = folder, .name = kJournal};
  const auto no_run = [&](const Error& error) {
    return Fail(folder.string() + " is no run folder: " + error.Text());
  };
  const auto placed = MustPlace(file, "read");
  if (!placed) return no_run(placed.error());
  // Some network file systems lock only files that are open for writing; a write-protected record can be judged all the
  // same.
  int fd = ::openat(placed->folder.fd, kJournal, (kReading & ~O_ACCMODE) | O_RDWR | O_APPEND);
  if (fd < 0 && (errno == EACCES || errno == EROFS || errno == EPERM))
    fd = ::openat(placed->folder.fd, kJournal, kReading);
  if (fd < 0) return no_run(CannotOpen("read", file.path(), errno).value());
  auto journal = FileHandle::Take(fd, file.path().string());
  if (!journal) return no_run(journal.error());
  return Lock(folder, *std::move(journal));
}

}  // namespace ulpscope
