// torch-aoti: a program as an AOTInductor package, compiled by Python, loaded and run here.
//
// Parameters that are prepared first (set_data, module_to and what stands before them) run eagerly;
// everything after is one package, backward() included: inside the package it is torch.autograd.grad with
// respect to the package's inputs, and what is above those inputs (a leaf's accumulation, the engine's casts)
// is autograd's here. A package is kept in a cache under a key that spells out all that it depends on, with
// the evidence that its compilation left; a second run starts no Python. A refusal by the compiler is kept
// too.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "backends/torch/compiler_process.h"
#include "backends/torch/machine.h"

namespace ulpscope::torch_backend {

/// Settings that the packages of one worker have in common.
struct AotiSetup {
  std::filesystem::path cache;               ///< folder of the packages; made when needed
  std::string stamp;                         ///< everything outside the program that a package depends on
  std::map<std::string, std::string> knobs;  ///< as asked; the compiler applies them
};

/// The cache's folder ($ULPSCOPE_AOTI_CACHE, else in $TORCHINDUCTOR_CACHE_DIR, else the user's), and a stamp
/// of this CPU, this PyTorch, the compiler's own sources and the knobs.
AotiSetup MakeAotiSetup(const std::vector<std::string>& compiler, const std::string& torch_version,
                        const std::map<std::string, std::string>& knobs);

class AotiRunner {
 public:
  /// All must outlive the runner; casts, nodes, notes and the compiler's knobs are added to `reply`.
  AotiRunner(Machine& machine, const AotiSetup& setup, CompilerProcess& compiler, sdk::RunReply& reply)
      : machine_(machine), setup_(setup), compiler_(compiler), reply_(reply) {}

  /// Throws Unsupported, Raised, or what PyTorch raises.
  void Run(const sdk::Program& program);

  /// Says for each observed value which part made it: compiled, eager, backward.
  void FillParts(const std::vector<std::string>& observe);

 private:
  struct Package;

  std::vector<sdk::Step> RunPrologue(const std::vector<sdk::Step>& steps);
  Package Describe(const std::vector<sdk::Step>& steps, const std::vector<std::string>& observe) const;
  sdk::Json Compiled(const Package& package);
  void Execute(const Package& package, const sdk::Json& answer);

  Machine& machine_;
  const AotiSetup& setup_;
  CompilerProcess& compiler_;
  sdk::RunReply& reply_;
  std::set<std::string> compiled_;  ///< values that the package made
};

}  // namespace ulpscope::torch_backend
