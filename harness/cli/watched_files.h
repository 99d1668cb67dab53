// WatchedFiles: what a run read, and whether any of it has changed since; for `run --watch`. A file is the same as long as its number,
// its size and the time of its last change are: an editor that puts a new file in its place changes it too.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/workspace/workspace.h"

namespace ulpscope {

class WatchedFiles {
 public:
  /// As it is now, unless it is watched already.
  void Add(const std::filesystem::path& file);
  /// The files of the cases, and those that hold their tensors.
  void Add(const Workspace& workspace);
  /// The first that is not as it was, or is gone, or has come; empty while all are as they were.
  std::string Changed() const;
  std::vector<std::filesystem::path> files() const;

 private:
  struct Stamp {
    bool there = false;
    uint64_t number = 0;
    int64_t size = 0, seconds = 0, nanoseconds = 0;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  static Stamp StampOf(const std::string& file);
  std::map<std::string, Stamp> stamps_;
};

}  // namespace ulpscope
