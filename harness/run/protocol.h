// The words of the adapter protocol (backends/PROTOCOL.md): messages out, answers in, checked field by field.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/result.h"
#include "harness/model/case.h"
#include "harness/model/observation.h"
#include "harness/run/backend.h"

namespace ulpscope {

/// Observed by the harness alone: the values of steps that a compiled program writes to memory (backends/PROTOCOL.md). No name of a case
/// begins with a dot.
inline constexpr std::string_view kStoredWord = ".stored";

inline constexpr int kProtocolVersion = 1;

/// An adapter's description of itself.
struct BackendInfo {
  std::string adapter;  ///< its name
  std::vector<std::string> backends, devices, ops, dtypes, scopes, capabilities;
  std::map<std::string, std::string> versions;
  std::map<std::string, std::vector<std::string>> knobs;
  std::string error;  ///< why it cannot serve the backend, device or knobs
};

using KnobSet = std::map<std::string, std::string>;
/// The knobs as they go over the wire: as requested, and threads = 1 unless another number is requested.
KnobSet WireKnobs(KnobSet asked);

std::string HelloMessage(const BackendSpec& backend, const KnobSet& knobs);
/// An error here means that the worker is broken; the `error` field of the answer is not one.
Result<BackendInfo> ParseHello(std::string_view line);

/// One run of a case: everything that the message holds.
struct RunRequest {
  int64_t id = 0;
  const Case* test_case = nullptr;
  std::string device;
  int64_t seed = 0;
  bool trace = false;
  std::vector<int> schedule = {};  ///< wait, warm-up, active; empty: the adapter's own
  std::string inputs, outputs;     ///< paths of tensor files
  KnobSet knobs;
};
std::string RunMessage(const RunRequest& request);

/// The answer without the tensors' data.
Result<Observation> ParseRunAnswer(std::string_view line, const RunRequest& request);

/// The tensors that must lie in the outputs of a completed run: observed names that are neither answered in
/// `observations` (dtypes, peak_bytes, values that do not exist) nor a trace.
std::set<std::string> ExpectedTensors(const Case& test_case, const Observation& observation);

}  // namespace ulpscope
