// CaseRunner: runs cases on one backend with one knob set, through one warm worker at a time.
//
// It turns everything that can happen into an Observation. A worker is discarded after anything unusual, so that its
// state cannot affect the next case. A case that kills its worker is run once more alone, in a fresh one: if it then
// completes, that is a finding (order dependence), not a rescue. An adapter that does not start is not tried again for
// every case.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "backends/sdk/safetensors.h"
#include "harness/run/backend.h"
#include "harness/run/protocol.h"
#include "harness/run/run_options.h"
#include "harness/run/scratch.h"
#include "harness/run/worker.h"

namespace ulpscope {

/// One (backend, device, knob set), shared by the threads that serve it.
struct WorkerKey {
  BackendSpec backend;  ///< as requested
  KnobSet knobs_asked;  ///< of the case, the command line and the backend string
  RegistryRow row;
  std::string refusal;  ///< not empty: nothing is started, every case is unsupported for this reason

  /// Why its workers cannot be started, once that is known.
  std::optional<Outcome> start_failure;
  std::string start_log;
  int start_failures = 0;
  std::optional<BackendInfo> info;
  std::mutex mutex;  ///< guards the four above
};

class CaseRunner {
 public:
  CaseRunner(WorkerKey& key, const Registry& registry, const Scratch& scratch, const RunOptions& options,
             int interrupt_fd);
  ~CaseRunner();

  /// Nothing when the run was interrupted in the meantime.
  std::optional<Observation> Run(const Case& test_case, const sdk::TensorMap& inputs);

 private:
  struct Attempt;
  /// All runs of one case, with its tensors in files in `folder`.
  Attempt RunIn(const std::filesystem::path& folder, const Case& test_case, const sdk::TensorMap& inputs);
  std::optional<Outcome> EnsureWorker(bool& interrupted);
  std::optional<Outcome> SayHello(bool& interrupted);
  Attempt RunOnce(const Case& test_case, const std::string& inputs_file, bool trace);
  Attempt RunRepeated(const Case& test_case, const std::string& inputs_file);
  std::string ReadOutputs(const Case& test_case, const std::string& file, Observation& observation) const;
  void RunAloneAfterCrash(const Case& test_case, const std::string& inputs_file, Observation& crashed,
                          bool& interrupted);
  WorkerLimits Limits(double seconds) const;
  void Discard();

  WorkerKey& key_;
  const Registry& registry_;
  const Scratch& scratch_;
  const RunOptions& options_;
  int interrupt_fd_;
  std::filesystem::path shm_, tmp_,
      disk_;  ///< this runner's own folders; disk_ takes tensors that find no room in shm_
  std::filesystem::path exchange_;  ///< the folder of the case's tensors: shm_ or disk_
  std::unique_ptr<Worker> worker_;
  int cases_served_ = 0;
  int64_t next_id_ = 1;
};

/// Requirements of a case that the backend does not meet: "requires device cuda"; else empty. `info` may be null: then
/// only requirements that need no worker are decided.
std::string UnmetRequirement(const Case& test_case, const BackendSpec& backend, const BackendInfo* info);

}  // namespace ulpscope
