// A script's part for one backend: how its framework is set up as it was recorded, and what it then computes.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "harness/base/result.h"
#include "harness/model/case.h"
#include "harness/model/observation.h"

namespace ulpscope {

struct ReproSubject {
  std::string backend;                          ///< as in the matrix
  std::map<std::string, std::string> versions;  ///< package -> version, as recorded
  std::map<std::string, std::string> knobs;     ///< asked
  Outcome outcome;
};

class ScriptSide {
 public:
  /// Both outlive it.
  ScriptSide(const Case& test_case, const ReproSubject& subject);

  /// Whether the backend is a Python stack. Another one has no script at all.
  bool IsPython() const;
  /// "torch" or "jax".
  std::string Framework() const;
  /// "torch 2.13.0, numpy 2.2.6"
  std::string Versions() const;
  /// The framework's imports, with the variables that it reads before and its knobs after; needs `os`.
  std::string Imports() const;
  /// DTYPES, by the names that safetensors has, and the functions tensor(data, dtype, shape) and bits(value), which gives
  /// the patterns, the numbers and the dtype of a value; needs Imports.
  std::string_view Tensors() const;
  /// compute(given), see compute.h; needs both of the above. An error where the backend or a step has no such form.
  Result<std::string> Compute() const;

 private:
  bool IsJax() const;
  std::string Knobs() const;

  const Case& case_;
  const ReproSubject& subject_;
  std::string name_;  ///< of the backend, without its device and knobs
};

}  // namespace ulpscope
