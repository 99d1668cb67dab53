// RunCases: every case on every backend, each in a warm worker process of its own, journalled before anything else.
//
// Threads of this process drive the workers; one worker serves one (backend, device, knob set) and stays warm until
// something unusual happens (a crash, a timeout, a broken protocol, a changed FP environment); then it is discarded.
// Facts go to the journal first, then to the RunObserver, which the calling thread runs, so progress and judging cost
// the workers nothing. Whatever happens to the harness, no process and no file of a worker outlives it (see scratch.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/model/case.h"
#include "harness/model/observation.h"
#include "harness/record/run_file.h"
#include "harness/run/backend.h"
#include "harness/run/interrupt.h"
#include "harness/run/run_options.h"

namespace ulpscope {

/// The bits of every tensor of a case. Called from one thread at a time.
using InputProvider = std::function<Result<std::map<std::string, TensorData>>(const Case&)>;

struct RunSummary {
  std::filesystem::path dir = {};  ///< the run folder
  std::string id, started;         ///< volatile
  bool interrupted = false;
  int64_t stopped_after = 0;  ///< the last return value of RunObserver::StopAfter
  int64_t total = 0;          ///< cases times backends, without those that a sweep leaves out
  int64_t ran = 0;
  int64_t resumed = 0;  ///< taken from the journal
  std::map<std::string, std::map<std::string, std::string>> versions =
      {};  ///< backend string -> package -> version
  std::map<std::string, std::optional<std::string>>
      environment;  ///< variables that change numerics, as preset
};

/// Resources that a run holds: its folder, and the signals that end it. The caller keeps them until it has
/// judged the run and written its reports.
struct RunHold {
  std::unique_ptr<Interrupt> interrupt;
  std::shared_ptr<RunLock> lock;
};

/// An observer of a run. Every call comes from the thread that called RunCases, one at a time.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  /// The folder is this run's now, and its journal has no record of this run yet. The observer writes the
  /// files that results rest on here; an error ends the run, and leaves the journal as it was.
  virtual Result<void> OnFolder(const RunSummary& /*summary*/) { return {}; }
  virtual void OnStart(int64_t /*total*/, const RunSummary& /*summary*/) {}
  /// Versions that a backend's adapter reports; called before the first of its new results.
  virtual void OnVersions(const BackendSpec& /*backend*/,
                          const std::map<std::string, std::string>& /*versions*/) {}
  virtual void OnBegin(const Case& /*test_case*/, const BackendSpec& /*backend*/) {}
  virtual void OnResult(const Case& test_case, const BackendSpec& backend,
                        const Observation& observation) = 0;
  /// A result that a resumed run takes from its journal; these come first.
  virtual void OnRecorded(const Case& test_case, const BackendSpec& backend, const Observation& observation) {
    OnResult(test_case, backend, observation);
  }
  /// Called after each new result: returns the number of failures once there are enough. Then nothing new is started,
  /// and running cases end normally. 0: the run goes on.
  virtual int64_t StopAfter() { return 0; }
  virtual void OnEnd(const RunSummary& /*summary*/) {}
};

/// Runs everything. Fails only if nothing could be run at all (an unusable run folder, inputs that cannot be made):
/// whatever a backend does is data in its Observation. SIGINT and SIGTERM end the run: nothing more is started, running
/// workers are killed, the journal is complete up to there. `hold`, if given, receives its resources.
Result<RunSummary> RunCases(const std::vector<Case>& cases, const std::vector<BackendSpec>& backends,
                            const Registry& registry, const InputProvider& inputs, const RunOptions& options,
                            RunObserver& observer, RunHold* hold = nullptr);

}  // namespace ulpscope
