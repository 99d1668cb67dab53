// Which processes a run has started, and how they are ended: by the token in their environment, and by their descent.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ulpscope {

/// From here on whatever a worker started comes to be a child of this process once its own parents are gone, whatever it did to its
/// environment, group and session.
void AdoptOrphans();
/// Ends the children of this process that are neither workers nor kept, and theirs, until none is left.
void KillOrphans();
/// Starts a child that KillOrphans spares: fork(), whose result it returns.
pid_t ForkKept();
/// Once it was reaped.
void ForgetKept(pid_t pid);

/// A process that may have to be ended later: the number alone may be another one's by then.
struct ProcessId {
  pid_t pid = 0;
  uint64_t started = 0;  ///< in clock ticks since boot
};
/// All that descend from `ancestor`, which is not among them.
std::vector<ProcessId> DescendantsOf(pid_t ancestor);
void KillIfStill(const ProcessId& process);

/// Kills every process whose environment contains the token: of one worker, or of a whole run ("TOKEN." as a prefix).
/// Processes that changed their group or session are found too. Returns the number killed.
int KillMarked(const std::string& token);

/// The same until none is left, those included that come to be meanwhile.
void KillAllMarked(const std::string& token);

/// At most some 8 KiB more than `bytes`. Reading an open file may still fail: a file of /proc whose process has ended
/// since then gives ESRCH, and the text ends there. (A stream throws on that.)
std::string ReadUpTo(int fd, size_t bytes);
/// A file of /proc, in about a MiB at most; empty if it cannot be read.
std::string ReadProc(const std::filesystem::path& path);

/// A process as /proc describes it.
struct ProcessStat {
  char state = 0;
  pid_t parent = 0, group = 0;
  uint64_t started = 0;
};
/// Nothing if there is no such process.
std::optional<ProcessStat> ReadStat(pid_t pid);
std::map<pid_t, ProcessStat> AllProcesses();

}  // namespace ulpscope
