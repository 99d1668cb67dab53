// The faults that `faulty:fault=NAME[,case=TEXT]` can commit, in three tables by the place they happen at.
//
// A fault strikes the cases whose id contains TEXT (all without one); everything else is answered as a
// well-behaved adapter would. Start-up faults have no case. tests/faults.yaml says what the harness must make
// of each. Beside the faults stand four planted knobs (main.cc).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backends/sdk/adapter.h"

namespace ulpscope::faulty {

/// The requested fault, from the knobs of the hello.
struct FaultPlan {
  std::string fault = "none";
  std::string case_text;

  bool Strikes(std::string_view case_id) const { return case_id.find(case_text) != std::string_view::npos; }
};

/// Inside Run: `before` may not return at all; `after` spoils a reply.
struct RunFault {
  std::string_view name;
  void (*before)() = nullptr;
  void (*after)(sdk::RunReply& reply) = nullptr;
};
const RunFault* FindRunFault(std::string_view name);
std::vector<std::string> RunFaultNames();

/// On the wire: sends `answer` (a line with its newline) its own way. `outputs` is the path of the written
/// tensors.
struct WireFault {
  std::string_view name;
  void (*send)(int fd, std::string answer, const std::string& outputs);
};
const WireFault* FindWireFault(std::string_view name);

/// Before or instead of the answer to hello.
struct StartFault {
  std::string_view name;
  void (*start)(int fd);
};
const StartFault* FindStartFault(std::string_view name);

/// All names, "none" first.
std::vector<std::string> FaultNames();

[[noreturn]] void Hang();

/// Cases this process has run; the `order` fault kills all but the first.
int64_t CasesRun();
void CountCase();

}  // namespace ulpscope::faulty
