// Faults inside a run: deaths, silences, memory, noise, numbers, and what is left changed behind.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cfenv>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>

#include "backends/faulty/faults.h"
#include "harness/base/find.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace ulpscope::faulty {

void Hang() {
  while (true) ::pause();
}

namespace {

int64_t g_cases = 0;

void Segv() {
  // By the signal itself: a wild write is undefined, and the sanitizers would make something else of it.
  ::signal(SIGSEGV, SIG_DFL);
  ::raise(SIGSEGV);
}
void Fpe() {
  ::signal(SIGFPE, SIG_DFL);
  ::raise(SIGFPE);
}
void Abort() {
  ::signal(SIGABRT, SIG_DFL);
  ::raise(SIGABRT);
}
void KillSelf() { ::raise(SIGKILL); }
void Exit0() { ::_exit(0); }
void Exit3() { ::_exit(3); }
void Stop() {
  ::raise(SIGSTOP);
  Hang();
}

void Memory() {
  constexpr size_t kChunk = size_t{64} << 20, kPage = 4096;
  // Bounded, so that a harness without a memory watch fails its test and not the machine.
  for (int i = 0; i < 64; ++i) {
    // Volatile: a compiler may leave out memory that is never read again, and Clang does.
    auto* chunk = static_cast<volatile char*>(std::malloc(kChunk));
    if (chunk == nullptr) break;
    for (size_t at = 0; at < kChunk; at += kPage) chunk[at] = 1;
    ::usleep(2000);
  }
  Hang();
}

/// The memory is taken by a process that this one starts.
void ChildMemory() {
  if (::fork() == 0) Memory();
  Hang();
}

void Flood(int fd) {
  static std::array<char, 1 << 20> block;
  block.fill('x');
  for (int i = 0; i < 1024; ++i) {
    for (size_t at = 0; at < block.size();) {
      const ssize_t put = ::write(fd, block.data() + at, block.size() - at);
      if (put <= 0) return;
      at += static_cast<size_t>(put);
    }
  }
}
void FloodStdout() { Flood(1); }
void FloodStderr() { Flood(2); }

/// A process in a session of its own that keeps every descriptor open and never ends.
void Orphan() {
  if (::fork() == 0) {
    ::setsid();
    if (::fork() == 0) Hang();
    ::_exit(0);
  }
  ::wait(nullptr);
}
void OrphanThenDie() {
  Orphan();
  Segv();
}

void Throw() { throw std::runtime_error("raised on request"); }
void ThrowBytes() { throw std::runtime_error("raised on request: \xff\xfe"); }
void ThrowBadAlloc() { throw std::bad_alloc(); }

void SegvUnlessFirst() {
  if (CasesRun() > 1) Segv();
}

void TemporaryFiles() {
  const char* tmp = std::getenv("TMPDIR");
  const std::string file = std::string(tmp == nullptr ? "." : tmp) + "/left-behind";
  if (std::FILE* stream = std::fopen(file.c_str(), "w")) {
    std::fputs("left behind\n", stream);
    std::fclose(stream);
  }
}

#if defined(__x86_64__)
void FlushSubnormals() { _mm_setcsr(_mm_getcsr() | 0x8040U); }
#else
void FlushSubnormals() {}
#endif
void RoundUp() { std::fesetround(FE_UPWARD); }

template <class Change>
void ForEachFloat(sdk::RunReply& reply, Change change) {
  for (auto& [name, tensor] : reply.tensors) {
    if (IsFloating(tensor.dtype)) change(tensor);
  }
}

void SprayNan(sdk::RunReply& reply) {
  ForEachFloat(reply, [](TensorData& tensor) {
    for (int64_t i = 0; i < tensor.size(); i += 2) tensor.Set(i, std::numeric_limits<double>::quiet_NaN());
  });
}

void LeaveLastUnwritten(sdk::RunReply& reply) {
  ForEachFloat(reply, [](TensorData& tensor) {
    if (tensor.bytes.empty()) return;
    const size_t width = SizeOf(tensor.dtype);
    sdk::FillPoison(std::span(tensor.bytes).last(width), width);
  });
}

/// Another last bit in every other run of this process.
void Waver(sdk::RunReply& reply) {
  if (CasesRun() % 2 == 0) return;
  ForEachFloat(reply, [](TensorData& tensor) {
    if (!tensor.bytes.empty()) tensor.bytes.front() ^= std::byte{1};
  });
}

void AnswerLess(sdk::RunReply& reply) { reply.tensors.erase(reply.tensors.begin()); }
void AnswerMore(sdk::RunReply& reply) { reply.tensors["unasked"] = reply.tensors.begin()->second; }
void MeasureNan(sdk::RunReply& reply) {
  reply.durations_ms["kernel"] = std::numeric_limits<double>::quiet_NaN();
}

// Traces that lie, or that show what costs without need. Each stands for every float32 value of the reply.

/// A node of an invented graph; the first one has no operand.
void AddNode(sdk::RunReply& reply, TraceKind kind, const char* op, const char* dtype, const Shape& shape) {
  const auto id = static_cast<int64_t>(reply.nodes.size());
  TraceNode node{.id = id, .parent = -1, .stage = "hlo", .kind = kind, .op = op, .outputs = {{dtype, shape}}};
  if (id > 0) {
    node.from = {id - 1};
    node.inputs = reply.nodes.back().outputs;
  }
  reply.nodes.push_back(std::move(node));
}

/// A conversion of what the last node made.
void AddConvert(sdk::RunReply& reply, DType to, const Shape& shape) {
  const std::string from = reply.nodes.back().outputs.front().dtype;
  AddNode(reply, TraceKind::kConvert, "convert", std::string(Name(to)).c_str(), shape);
  reply.casts.push_back({.from = from,
                         .to = std::string(Name(to)),
                         .shape = shape,
                         .bytes = ElementCount(shape) * static_cast<int64_t>(SizeOf(to)),
                         .under = "dot",
                         .stage = "hlo",
                         .node = reply.nodes.back().id});
}

template <class Change>
void ForEachFloat32(sdk::RunReply& reply, Change change) {
  ForEachFloat(reply, [&](TensorData& tensor) {
    if (tensor.dtype == DType::kFloat32) change(tensor);
  });
}

/// Removes the true trace.
void ForgetTrace(sdk::RunReply& reply) {
  reply.nodes.clear();
  reply.casts.clear();
}

/// The graph rounds the product to bfloat16 and widens it again; nothing does.
void ShowRoundingThatIsNone(sdk::RunReply& reply) {
  ForgetTrace(reply);
  ForEachFloat32(reply, [&](const TensorData& tensor) {
    AddNode(reply, TraceKind::kInput, "parameter", "bfloat16", tensor.shape);
    AddNode(reply, TraceKind::kProduct, "dot", "bfloat16", tensor.shape);
    AddConvert(reply, DType::kFloat32, tensor.shape);
  });
}

/// The graph keeps float32 throughout; the values are rounded through bfloat16.
void HideRounding(sdk::RunReply& reply) {
  ForgetTrace(reply);
  ForEachFloat32(reply, [&](TensorData& tensor) {
    AddNode(reply, TraceKind::kInput, "parameter", "float32", tensor.shape);
    AddNode(reply, TraceKind::kProduct, "dot", "float32", tensor.shape);
    for (int64_t i = 0; i < tensor.size(); ++i) tensor.Set(i, RoundTo(tensor.At(i), Bfloat16()));
  });
}

/// bfloat16 -> float32 -> bfloat16 with nothing between.
void ShowRedundantPair(sdk::RunReply& reply) {
  ForgetTrace(reply);
  ForEachFloat32(reply, [&](const TensorData& tensor) {
    AddNode(reply, TraceKind::kInput, "parameter", "bfloat16", tensor.shape);
    AddConvert(reply, DType::kFloat32, tensor.shape);
    AddConvert(reply, DType::kBfloat16, tensor.shape);
  });
}

void ShowNodeInItself(sdk::RunReply& reply) {
  reply.nodes = {{.id = 1, .parent = 2, .stage = "hlo", .op = "fusion"},
                 {.id = 2, .parent = 1, .stage = "hlo", .op = "fusion"}};
}

constexpr std::array kFaults{
    RunFault{"segv", Segv},
    RunFault{"fpe", Fpe},
    RunFault{"abort", Abort},
    RunFault{"sigkill", KillSelf},
    RunFault{"exit0", Exit0},
    RunFault{"exit3", Exit3},
    RunFault{"hang", Hang},
    RunFault{"sigstop", Stop},
    RunFault{"memory", Memory},
    RunFault{"child_memory", ChildMemory},
    RunFault{"stdout_flood", FloodStdout},
    RunFault{"stderr_flood", FloodStderr},
    RunFault{"orphan", Orphan},
    RunFault{"orphan_segv", OrphanThenDie},
    RunFault{"raise", Throw},
    RunFault{"raise_bytes", ThrowBytes},
    RunFault{"bad_alloc", ThrowBadAlloc},
    RunFault{"order", SegvUnlessFirst},
    RunFault{"temporary_files", TemporaryFiles},
    RunFault{"ftz", FlushSubnormals},
    RunFault{"rounding", RoundUp},
    RunFault{"threads"},  // the adapter's Threads() tells another number
    RunFault{"nan", nullptr, SprayNan},
    RunFault{"unwritten", nullptr, LeaveLastUnwritten},
    RunFault{"nondeterministic", nullptr, Waver},
    RunFault{"answer_less", nullptr, AnswerLess},
    RunFault{"answer_more", nullptr, AnswerMore},
    RunFault{"nan_duration", nullptr, MeasureNan},
    RunFault{"trace_rounds", nullptr, ShowRoundingThatIsNone},
    RunFault{"trace_hides", nullptr, HideRounding},
    RunFault{"trace_redundant", nullptr, ShowRedundantPair},
    RunFault{"trace_circle", nullptr, ShowNodeInItself},
};

}  // namespace

const RunFault* FindRunFault(std::string_view name) {
  for (const auto& fault : kFaults) {
    if (fault.name == name) return &fault;
  }
  return nullptr;
}

int64_t CasesRun() { return g_cases; }
void CountCase() { ++g_cases; }

std::vector<std::string> RunFaultNames() {
  return Mapped<std::string>(kFaults, [](const auto& fault) { return fault.name; });
}

}  // namespace ulpscope::faulty
