// Judges an external trace: the dtype conversions in a chrome trace of torch.profiler, the bytes that they move and
// their cost.
//
// Such a file is untrusted text: it is read event by event, within limits, and a contradiction of the format is an
// error with its place. It holds no data flow, so two conversions that undo each other by dtypes and shape are pairs
// that may undo each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/result.h"

namespace ulpscope {

struct UserTraceLimits {
  size_t max_bytes = size_t{1} << 30;   ///< of the file
  size_t max_events = size_t{4} << 20;  ///< of traceEvents
  size_t max_conversions = size_t{1} << 20;
  int max_depth = 64;  ///< of nested arrays and objects
};

struct UserConversion {
  std::string op;        ///< "aten::copy_"
  std::string under;     ///< the nearest op around it outside the conversion; else its own name
  std::string from, to;  ///< dtypes, long names
  std::vector<int64_t> shape = {};
  int64_t bytes = 0;     ///< read and written
  double us = 0;         ///< of the whole conversion, the memory for its result included
  double kernel_us = 0;  ///< of its kernels, on the device
  std::vector<std::string> kernels = {};
  double at = 0;                         ///< when it began, as the trace counts
  std::optional<size_t> undone_by = {};  ///< a later conversion back, of as many elements
};

struct UserTrace {
  int64_t events = 0, ops = 0, typed_ops = 0, kernels = 0, steps = 0;
  double us = 0;  ///< of the ops that no other op encloses
  std::vector<UserConversion> conversions = {};
  /// Kernels by the op that launched them: "aten::mm" and its kernels, in the order of their time.
  struct OpKernels {
    std::string op, kernel;
    int64_t count = 0;
    double us = 0;
  };
  std::vector<OpKernels> op_kernels = {};
};

/// Errors: no JSON, no chrome trace, an event that contradicts itself, a limit, no op of PyTorch, ops without their dtypes.
Result<UserTrace> ReadUserTrace(std::string_view text, const UserTraceLimits& limits = {});

/// For people; `all`: every conversion by itself and not by kind.
enum class UserTraceDetail { kKinds, kAll };
std::string WriteUserTrace(const UserTrace& trace, UserTraceDetail detail);
std::string UserTraceJson(const UserTrace& trace);

}  // namespace ulpscope
