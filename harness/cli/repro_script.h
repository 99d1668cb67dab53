// A case as a script for its own framework: PyTorch or JAX, and nothing of ulpscope.
#pragma once

#include <map>
#include <string>

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

/// A Python script that reads inputs.safetensors beside it, does what the backend did, and says for each value whether it has
/// the bits of observed.safetensors (or whether what was raised is raised). An error that says why, where the backend is no
/// Python stack or a step has no such form.
Result<std::string> WriteReproScript(const Case& test_case, const ReproSubject& subject);

/// One of two sides that part.
struct PartingSide {
  ReproSubject subject;
  std::map<std::string, TensorData> values;  ///< observed
};

/// One Python script that holds its inputs, computes what both sides did, each in a process of its own (settings of one framework
/// are no business of the other), and says where they part: exit code 0 where they do. A side that is no Python stack stands in
/// it by the values that were recorded; an error where neither is one, or a step has no such form. `about`: what parts.
Result<std::string> WritePartingScript(const Case& test_case, const std::map<std::string, TensorData>& inputs,
                                       const PartingSide& first, const PartingSide& second,
                                       const std::string& about);

}  // namespace ulpscope
