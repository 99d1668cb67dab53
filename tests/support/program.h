// Running the program itself: its exit code, stdout and stderr.
#pragma once

#include <stdlib.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

#include "harness/base/text.h"
#include "harness/judge/judge.h"
#include "tests/golden_file.h"
#include "tests/support/bin_dir.h"

namespace ulpscope::testing {

struct ProgramOutcome {
  int code = -1;
  std::string out, err;
};

/// `ulpscope ARGUMENTS` (a shell command line) in `dir`. `before` stands in front of it: variables ("A=b
/// C=d"), or a command that runs it.
inline ProgramOutcome RunProgram(const std::filesystem::path& dir, const std::string& arguments,
                                 const std::string& before = "") {
  const std::filesystem::path errors = dir / ".stderr";
  const std::string command = "cd " + ShellQuote(dir.string()) + " && env " + before + " " +
                              ShellQuote(testing::BinDir() + "/ulpscope") + " " + arguments + " 2>" +
                              ShellQuote(errors.string()) + " </dev/null";
  ProgramOutcome outcome;
  FILE* pipe = ::popen(command.c_str(), "r");
  std::array<char, 4096> buffer;
  while (const size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe))
    outcome.out.append(buffer.data(), count);
  const int status = ::pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.err = ReadAll(errors.string());
  std::filesystem::remove(errors);
  return outcome;
}

/// A folder that goes with the test.
class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "ulpscope-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data()) == nullptr ? "" : name;
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace ulpscope::testing
