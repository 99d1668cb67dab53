// The two ways into cuBLAS that this adapter serves: cublasGemmEx and cublasLtMatmul, behind one interface.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/cublas/api.h"
#include "backends/sdk/glue.h"

namespace ulpscope::cublas {

/// Settings that the products of one program ran with, knob by knob; several values if they differed.
class UsedSettings {
 public:
  void Clear() { used_.clear(); }
  void Add(const std::string& knob, const std::string& value);
  /// "32F", or "32F, 64F".
  std::map<std::string, std::string> Text() const;

 private:
  std::map<std::string, std::vector<std::string>> used_;
};

class Library {
 public:
  virtual ~Library() = default;
  /// "13.1.1"
  virtual std::string Version() const = 0;
  /// Before every program: "" or what is wrong with a value. Knobs that are not set keep their defaults.
  virtual std::string SetKnobs(const std::map<std::string, std::string>& knobs) = 0;
  /// The library's own statement of its settings, and of the last product that it ran. A knob that cannot be
  /// read is left out.
  virtual std::map<std::string, std::string> ReadBack() const = 0;
  /// The kernel for sdk::RunWithGlue.
  virtual std::optional<sdk::StepResult> Run(const sdk::Step& step, sdk::GlueContext& context) = 0;
};

/// Knob -> values, default first; `threads` apart.
using KnobTable = std::map<std::string, std::vector<std::string>>;
KnobTable GemmExKnobs();
KnobTable LtKnobs();

/// Throws CudaError where the library cannot be initialised. `api` must outlive it.
std::unique_ptr<Library> OpenGemmEx(const Api& api);
std::unique_ptr<Library> OpenLt(const Api& api);

}  // namespace ulpscope::cublas
