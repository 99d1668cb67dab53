// Scratch: the folders for data that must not outlive a run, and the janitor that removes them.
//
// Tensors on the wire are on /dev/shm, the workers' TMPDIR is with other temporary files. Both folders, and every
// process that a worker started, are removed when the run ends, however it ends. Such processes carry the run's token
// in their environment; those that have dropped it descend from the harness, which adopts the orphans among them
// (PR_SET_CHILD_SUBREAPER). A small janitor process holds the other end of a pipe and cleans up when the harness is
// gone, after kill -9 too; of the processes without the token it knows those in its last scan. A folder that a janitor
// could not remove is swept by the next run: a folder is alive as long as a process holds the lock inside it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <memory>
#include <string>

#include "harness/base/result.h"

namespace ulpscope {

class Scratch {
 public:
  /// Makes both folders and starts the janitor.
  static Result<std::unique_ptr<Scratch>> Create();
  /// Kills whatever carries the token and removes both folders.
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::filesystem::path& shm() const { return shm_; }  ///< on tmpfs
  const std::filesystem::path& tmp() const { return tmp_; }
  /// Unique among runs. The token of a worker is this one, a dot and a number.
  const std::string& token() const { return token_; }

 private:
  Scratch() = default;
  void Clean() const;

  std::filesystem::path shm_, tmp_;
  std::string token_;
  int lock_fd_ = -1;
  int janitor_pipe_ = -1;
  pid_t janitor_ = -1;
};

}  // namespace ulpscope
