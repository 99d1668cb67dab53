// Carriers: backends that are kept started and compute programs some of whose values are given (harness/ledger/hybrid.h).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "harness/base/result.h"
#include "harness/ledger/hybrid.h"
#include "harness/model/observation.h"
#include "harness/run/registry.h"
#include "harness/run/run_options.h"
#include "harness/run/scratch.h"

namespace ulpscope {

/// Warm adapters: one for each carrier and set of knobs. `registry` must outlive it.
class Carriers {
 public:
  Carriers(const Registry& registry, RunOptions options, int interrupt_fd);
  ~Carriers();

  /// Makes its scratch folder, which Run does otherwise. Making it forks, so a process calls this while it has one
  /// thread.
  Result<void> Prepare();
  /// Nothing if the run was interrupted. Adapters end with the thread that calls this first for a carrier.
  Result<std::optional<Observation>> Run(const std::string& carrier, const GivenProgram& given);

 private:
  struct Started;

  const Registry& registry_;
  RunOptions options_;
  int interrupt_fd_;
  std::unique_ptr<Scratch> scratch_;
  std::map<std::string, std::unique_ptr<Started>> started_;
};

/// The reason why no hybrids are computed if FindCarrier finds nothing.
inline constexpr const char* kNoCarrier = "no backend that computes op by op is here and takes the program";

struct FoundCarrier {
  std::string backend;
  Observation run;  ///< of the whole program
};
/// The first backend of `registry` that computes op by op, is installed and completes `program`; nothing without one.
Result<std::optional<FoundCarrier>> FindCarrier(Carriers* carriers, const Registry& registry,
                                                const GivenProgram& program);

/// An instrumented program, the given values of its steps, and the observed values for which hybrids are made.
struct GivenValues {
  const Case& opened;
  const NamedTensors& inputs;
  const std::set<std::string>& observed;
  const NamedTensors& values;
};

/// The hybrids of `given` on `carrier`, whose own result for the observed values is `start`: K/VALUE is VALUE with the
/// given values up to step/K and the rest computed, for each step whose given value is not what the carrier computes
/// from the same operands, which is again/K. The observation "carrier" names it; if there are no hybrids, "left_out"
/// gives the reason instead. Nothing at all if the run was interrupted.
Result<std::optional<Observation>> WalkHybrids(Carriers* carriers, const std::string& carrier,
                                               const GivenValues& given, const NamedTensors& start);

}  // namespace ulpscope
