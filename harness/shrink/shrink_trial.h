// Trials of a search for a smaller case: a candidate is run on two backends and judged as `run` would judge it.
//
// The adapters stay warm from one candidate to the next, and nothing is journalled: what a trial shows is kept in memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "harness/model/run_report.h"
#include "harness/run/backend.h"
#include "harness/workspace/workspace.h"

namespace ulpscope {

/// Results of one candidate on both backends, in the order in which they were named.
struct ShrinkTrial {
  RunReport report;
  std::vector<Observation> observations = {};
};

class Trials {
 public:
  struct Options {
    int64_t seed = 0;
    double timeout_s = 120;
    bool trace = false;  ///< conversions are asked for
  };
  /// Starts nothing yet. `first`: the case whose knobs the adapters are started with.
  static Result<std::unique_ptr<Trials>> Open(const Workspace& workspace, std::vector<BackendSpec> backends,
                                              const Case& first, const Options& options);
  ~Trials();

  /// Whether the second backend runs a candidate that the first one does not complete.
  enum class IfRefused { kAskBoth, kStop };
  /// Runs and judges `candidate`. An error only if it cannot be run at all (its inputs cannot be made, with
  /// kStop: the first backend refuses it), or if the user interrupts.
  Result<ShrinkTrial> Run(const Case& candidate, IfRefused if_refused = IfRefused::kAskBoth);
  /// The result of `backend` for the values that `candidate` observes; with the outcome, nothing is judged.
  Result<Observation> Observe(const Case& candidate, size_t backend);

  bool interrupted() const;
  int64_t ran() const;
  /// Package -> version, of the backends that have answered.
  std::map<std::string, std::string> Versions(size_t backend) const;

 private:
  class Impl;
  explicit Trials(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ulpscope
