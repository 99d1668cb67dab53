// torch-traced: stretches of the program as TorchScript traces, run until the executor has optimised them.
//
// A trace records tensor ops and nothing else: set_data is silently left out of it, and backward() is no op.
// So the program is divided. Steps that a trace cannot hold run eagerly between the regions, and the notes
// name them. Every other stretch is traced as one function and run three times (the profiling executor
// watches the first run and optimises for the second); the runs are compared bit by bit. Only the last run
// works on the program's own tensors: the others get copies, since a step may write to a buffer.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "backends/torch/machine.h"

namespace ulpscope::torch_backend {

class TracedRunner {
 public:
  enum class Trace { kWanted, kNot };
  /// Writes notes, nodes and casts (stage "torchscript") into `reply`; both must outlive the runner.
  TracedRunner(Machine& machine, sdk::RunReply& reply, Trace trace)
      : machine_(machine), reply_(reply), trace_(trace) {}

  /// Throws Unsupported, or what PyTorch raises.
  void Run(const std::vector<sdk::Step>& steps);

  /// Says for each observed value which part made it: compiled, eager, backward.
  void FillParts(const std::vector<std::string>& observe);

 private:
  struct Region;

  void RunRegion(const std::vector<sdk::Step>& steps);
  void HoistEmpty(const std::vector<sdk::Step>& steps);
  void RunInRegion(const std::vector<sdk::Step>& steps);
  void Compare(const Region& region, const std::vector<at::Tensor>& outputs, const std::string& run);

  Machine& machine_;
  sdk::RunReply& reply_;
  Trace trace_;
  std::set<std::string> compiled_;
  int64_t regions_ = 0;
};

}  // namespace ulpscope::torch_backend
