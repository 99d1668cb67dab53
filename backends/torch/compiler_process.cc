// Starts the compiler with one end of a socket pair as its standard input, on which it answers too.
#include "backends/torch/compiler_process.h"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace ulpscope::torch_backend {
namespace {

/// This process's environment and where to answer.
std::vector<std::string> Environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::strncmp(*entry, "ULPSCOPE_FD=", 12) != 0) entries.emplace_back(*entry);
  }
  entries.emplace_back("ULPSCOPE_REPLY_FD=0");
  return entries;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

CompilerProcess::~CompilerProcess() { Stop(); }

void CompilerProcess::Stop() {
  if (socket_ >= 0) close(socket_);  // the end of its input is the end of it
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
  socket_ = pid_ = -1;
}

Result<void> CompilerProcess::Start() {
  if (command_.empty())
    return Fail("no compiler was named (the registry names an interpreter and a program)");
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return Fail(std::string("no socket for the compiler: ") + std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  std::vector<std::string> environment = Environment();
  const int error = posix_spawn(&pid_, command_.front().c_str(), &actions, nullptr, Pointers(command_).data(),
                                Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  socket_ = ends[0];
  if (error == 0) return {};
  pid_ = -1;
  Stop();
  return Fail("the compiler " + command_.front() + " does not start: " + std::strerror(error));
}

Result<sdk::Json> CompilerProcess::Ask(const sdk::Json& message) {
  if (pid_ < 0) {
    ULPSCOPE_TRY(Start());
  }
  auto written = sdk::WriteMessage(socket_, message);
  auto answer =
      written ? sdk::LineReader(socket_).Read() : Result<sdk::ReadOutcome>(tl::unexpected(written.error()));
  if (answer && answer->state == sdk::ReadState::kLine) return sdk::ParseMessage(answer->line);
  Stop();
  return Fail("the compiler went away" + (answer ? std::string() : ": " + answer.error().message));
}

}  // namespace ulpscope::torch_backend
