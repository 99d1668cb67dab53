// AdapterSession: one started adapter, driven message by message, whose every answer is checked.
//
// A run of cases goes through CaseRunner, which makes the best of whatever an adapter does. The conformance
// test of adapters wants the opposite: to see each answer as it came, to send what no harness would send, and
// to know how the process ended.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "backends/sdk/safetensors.h"
#include "harness/run/backend.h"
#include "harness/run/child_process.h"
#include "harness/run/protocol.h"
#include "harness/run/scratch.h"
#include "harness/run/worker.h"

namespace ulpscope {

/// The adapter that is started, and the limits on its answers.
struct AdapterSubject {
  BackendSpec backend;
  RegistryRow row;
  double timeout_s = 60;
  int64_t memory_bytes = int64_t{2} << 30;  ///< resident; tiny programs need none but the framework's own
  std::vector<DType> dtypes;                ///< only these of the dtypes that it claims; all when empty
};

/// One run: the observation with its tensors, or what of the protocol the answer broke.
struct SessionRun {
  Observation observation = {};
  std::string broken;  ///< not empty: the worker or its answer; the observation then says nothing
  bool Completed() const { return broken.empty() && observation.outcome.kind == OutcomeKind::kCompleted; }
  bool Refused() const { return broken.empty() && observation.outcome.kind == OutcomeKind::kUnsupported; }
};

/// The answer to a raw message: a line, or the words for what happened instead.
struct SessionAnswer {
  std::optional<std::string> line;
  std::string otherwise;
  std::optional<Outcome> outcome;
};

class AdapterSession {
 public:
  AdapterSession(const AdapterSubject& subject, const Registry& registry, const Scratch& scratch);
  ~AdapterSession();

  /// Starts the process and sends a hello with these knobs, backend and device. A refusal is in
  /// `info().error`. "" or what went wrong instead of an answer.
  std::string Start(const BackendSpec& spec);
  /// The same with a line of the caller's own for the hello.
  SessionAnswer StartWith(const BackendSpec& spec, std::string_view hello);

  const BackendInfo& info() const { return info_; }
  const std::string& hello_line() const { return hello_line_; }

  enum class Trace { kOff, kOn };
  SessionRun Run(const Case& test_case, const sdk::TensorMap& inputs, Trace trace = Trace::kOff);
  /// The same with another file in place of the inputs.
  SessionRun RunOn(const Case& test_case, const std::string& inputs_file, Trace trace = Trace::kOff);
  /// Any line. With `seconds` < 0 the subject's timeout.
  SessionAnswer Send(std::string_view line, double seconds = -1);

  bool IsAlive();
  /// Says bye and waits for the end.
  Ending Bye();
  std::string Log() const { return worker_ == nullptr ? "" : worker_->Log(); }
  /// A path for a file of this session.
  std::string File(const std::string& name) const { return (shm_ / name).string(); }

 private:
  std::string ReadOutputs(const Case& test_case, const std::string& file, Observation* observation) const;

  const AdapterSubject& subject_;
  const Registry& registry_;
  const Scratch& scratch_;
  std::filesystem::path shm_, tmp_;
  BackendSpec spec_;
  BackendInfo info_;
  std::string hello_line_;
  std::unique_ptr<Worker> worker_;
  int64_t next_id_ = 1;
};

}  // namespace ulpscope
