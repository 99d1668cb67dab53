// One of two programs that are compared (harness/compare/compare_programs.h): its run, and its results next to those of
// the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "harness/base/find.h"
#include "harness/ledger/alignment.h"
#include "harness/ledger/hybrid.h"
#include "harness/model/case.h"
#include "harness/model/classification.h"
#include "harness/model/observation.h"

namespace ulpscope {

struct CompareOptions {
  std::string backend;  ///< that computes both
  int64_t seed = 0;
  double timeout_s = 120;
};

/// Two results that correspond to each other.
struct ComparedResult {
  std::string f, g;
  Shape shape;
  int64_t elements = 0, compared = 0;  ///< of the exact results
  int64_t undecided = 0;               ///< of those compared: exact arithmetic does not decide
  int64_t different = 0;               ///< of those compared: exactly
  double largest = 0;                  ///< of those differences
  int64_t differing = 0;  ///< elements whose computed bits differ; -1 if the two have different dtypes
};

/// One program, and the backend's results for it.
struct ProgramRun {
  std::string name;
  Case asked;
  std::optional<Case> opened;  ///< with every step observed; nothing if they cannot be
  NamedTensors inputs;
  Observation own, steps;
  bool keeps = false;  ///< observing the steps changes no result
  ExactProgram exact;
  std::optional<std::map<std::string, Classification>> judged = {};

  const ProgramValue& Exactly(const std::string& value) const {
    return *std::ranges::find(exact, value, &ProgramValue::name);
  }
  const TensorData* StepValue(const std::string& value) const {
    const TensorData* step = Lookup(steps.values, value);
    return step != nullptr ? step : Lookup(inputs, value);
  }
};

}  // namespace ulpscope
