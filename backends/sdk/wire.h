// The wire: one JSON object per line over a file descriptor, read with limits on size, depth and time.
//
// Both ends of the protocol (backends/PROTOCOL.md) use this file, and neither trusts the other: a line is
// refused when it is too long, too deep, no object, has a key twice, or holds bytes that are no UTF-8.
// Failures are values; nothing here throws, nothing here raises SIGPIPE.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "harness/base/result.h"

namespace ulpscope::sdk {

using Json = nlohmann::json;

struct WireLimits {
  size_t max_bytes = size_t{16} << 20;  ///< of one message, its newline not counted
  int max_depth = 64;                   ///< of nested arrays and objects
};

inline constexpr int kNoTimeout = -1;

enum class ReadState {
  kLine,      ///< `line` holds one line without its newline
  kClosed,    ///< the other end closed the stream between two lines
  kTimedOut,  ///< the time passed; what arrived so far is kept for the next call
};

struct ReadOutcome {
  ReadState state = ReadState::kClosed;
  std::string line = {};
};

/// Reads lines from a stream socket or pipe; keeps what follows a line for the next call. Does not own `fd`.
/// Works with blocking and non-blocking descriptors.
class LineReader {
 public:
  explicit LineReader(int fd, WireLimits limits = {}) : fd_(fd), limits_(limits) {}

  /// The next line, waiting at most `timeout_ms` for all of it (kNoTimeout: for ever). Errors: a line longer
  /// than the limit, a stream that ends inside a line, a failed read. After an error the stream is of no
  /// further use.
  Result<ReadOutcome> Read(int timeout_ms = kNoTimeout);

 private:
  Result<ReadOutcome> TakeLine(size_t newline);

  int fd_;
  WireLimits limits_;
  std::string buffer_;
  size_t searched_ = 0;  ///< bytes of buffer_ known to hold no newline
};

/// One message: a JSON object within the limits, without duplicate keys. The error names the fault and its
/// place.
Result<Json> ParseMessage(std::string_view line, const WireLimits& limits = {});

/// The message as one line with its newline. Bytes that are no UTF-8 (a framework's error text may hold any)
/// become U+FFFD. Error: longer than the limit.
Result<std::string> FormatMessage(const Json& message, const WireLimits& limits = {});

/// Writes all of `line` (which ends in a newline), waiting at most `timeout_ms`. Errors: closed, timed out,
/// failed.
Result<void> WriteLine(int fd, std::string_view line, int timeout_ms = kNoTimeout);

/// FormatMessage and WriteLine.
Result<void> WriteMessage(int fd, const Json& message, int timeout_ms = kNoTimeout,
                          const WireLimits& limits = {});

/// A float as JSON carries it: numbers, and "inf" "-inf" "nan" for the values that JSON has no words for.
Json FloatToJson(double value);

}  // namespace ulpscope::sdk
