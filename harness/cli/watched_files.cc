// Stamps of files.
#include "harness/cli/watched_files.h"

#include <sys/stat.h>

#include "harness/casefile/fill_data.h"

namespace ulpscope {

WatchedFiles::Stamp WatchedFiles::StampOf(const std::string& file) {
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0) return {};
  return {.there = true,
          .number = status.st_ino,
          .size = status.st_size,
          .seconds = status.st_mtim.tv_sec,
          .nanoseconds = status.st_mtim.tv_nsec};
}

void WatchedFiles::Add(const std::filesystem::path& file) {
  if (!file.empty()) stamps_.try_emplace(file.string(), StampOf(file.string()));
}

void WatchedFiles::Add(const Workspace& workspace) {
  for (const Case& test_case : workspace.cases) {
    Add(std::filesystem::path(test_case.pos.file));
    for (const TensorSpec& tensor : test_case.tensors) Add(FileOfFill(tensor));
  }
}

std::vector<std::filesystem::path> WatchedFiles::files() const {
  std::vector<std::filesystem::path> files;
  for (const auto& [file, stamp] : stamps_) files.emplace_back(file);
  return files;
}

std::string WatchedFiles::Changed() const {
  for (const auto& [file, stamp] : stamps_) {
    if (StampOf(file) != stamp) return file;
  }
  return "";
}

}  // namespace ulpscope
