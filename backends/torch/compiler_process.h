// The Python process that makes AOTInductor packages: started at the first request, kept for the next.
#pragma once

#include <string>
#include <vector>

#include "backends/sdk/wire.h"

namespace ulpscope::torch_backend {

/// Not started before the first Ask; ends when this does. One question at a time.
class CompilerProcess {
 public:
  /// `command`: the interpreter and the program (backends/torch_compile/aoti_compiler.py).
  explicit CompilerProcess(std::vector<std::string> command) : command_(std::move(command)) {}
  ~CompilerProcess();
  CompilerProcess(const CompilerProcess&) = delete;
  CompilerProcess& operator=(const CompilerProcess&) = delete;

  /// Sends one message and waits for its answer, for as long as that takes. Errors: no command, a program
  /// that does not start, or one that goes away.
  Result<sdk::Json> Ask(const sdk::Json& message);

 private:
  Result<void> Start();
  void Stop();

  std::vector<std::string> command_;
  int socket_ = -1;
  int pid_ = -1;
};

}  // namespace ulpscope::torch_backend
