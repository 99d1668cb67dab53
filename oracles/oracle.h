// The concrete oracle: exact references by Boost.Multiprecision, the candidate models, their enclosures and
// emulations.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "harness/model/oracle.h"

namespace ulpscope {

enum class OracleEngine {
  kFast,   ///< the certified fast path where it applies, compared with Boost (oracles/fast/references.h)
  kBoost,  ///< Boost.Multiprecision, the definition of truth, alone
};

struct OracleOptions {
  OracleEngine engine = OracleEngine::kFast;
  /// Intermediates whose readers use them before they are rounded to their dtype, in float32 or wider.
  std::set<std::string> unrounded = {};
  /// Bank gives only sums in float32, with no rounding that the program does not have.
  bool natural = false;
  /// Bank gives one model: sums in float32, each intermediate rounded to its dtype except those in `unrounded`.
  bool as_written = false;
  /// No cast of the program between floating dtypes rounds, whether a step or a scope requests it.
  /// Intermediates inside its ops have references too (NamesInside).
  bool real = false;
  /// Only tests: may change the fast path's results, to see that the comparison with Boost finds it.
  std::function<void(int64_t element, Reference*)> plant_fault = {};
};

/// Binds the library that the fast path calls. For a process that has no other thread yet; without it, the
/// library is bound at its first use.
void BindOracleLibraries();

/// Expands the program and keeps the inputs. Values that the oracle cannot define answer Describe with the
/// reason.
Result<std::unique_ptr<CaseOracle>> OpenCaseOracle(const Case& c, std::map<std::string, TensorData> inputs,
                                                   OracleOptions options = {});

/// Names of the steps inside the program's ops: "y.mean" of a layer_norm that gives y.
std::vector<std::string> NamesInside(const Case& c);

/// Runs the whole program at one precision model in one accumulation order (SumOrders' names): the emulated
/// backend. Observed values by name, stored in the dtype that PyTorch's type rules declare.
Result<std::map<std::string, TensorData>> EmulateProgram(const Case& c,
                                                         const std::map<std::string, TensorData>& inputs,
                                                         const PrecisionModel& model,
                                                         const std::string& order);

/// The model of one value stored as `observed` when the whole program runs at `model`: the name that the
/// classifier has to find.
Result<PrecisionModel> TrueModel(const Case& c, const std::string& value, const PrecisionModel& model,
                                 DType observed);

/// Multiply-adds that EmulateProgram would do; large posted sizes are refused by their adapters.
Result<int64_t> EmulationCost(const Case& c);

}  // namespace ulpscope
