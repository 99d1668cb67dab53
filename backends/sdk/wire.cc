// The wire: framing, limits and time-outs.
#include "backends/sdk/wire.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <set>
#include <vector>

#include "backends/sdk/json_sax.h"

namespace ulpscope::sdk {
namespace {

using Clock = std::chrono::steady_clock;

/// The moment at which a wait ends, or never.
class Deadline {
 public:
  explicit Deadline(int timeout_ms)
      : never_(timeout_ms < 0), at_(Clock::now() + std::chrono::milliseconds(timeout_ms)) {}
  /// For poll(): -1 for ever, else what is left, rounded up so that a wait never spins.
  int LeftMs() const {
    if (never_) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(at_ - Clock::now()).count();
    return static_cast<int>(std::max<int64_t>(left, 0));
  }

 private:
  bool never_;
  Clock::time_point at_;
};

std::string SystemError(const char* what) { return std::string(what) + ": " + std::strerror(errno); }

enum class Waited { kReady, kTimedOut, kFailed };

Waited WaitFor(int fd, short events, const Deadline& deadline) {
  while (true) {
    pollfd entry{.fd = fd, .events = events, .revents = 0};
    const int ready = poll(&entry, 1, deadline.LeftMs());
    if (ready > 0) return Waited::kReady;
    if (ready == 0) return Waited::kTimedOut;
    if (errno != EINTR) return Waited::kFailed;
  }
}

/// Stops at a key that its object has already: the library keeps the last of two equal ones without a word, and two
/// readers could then see two different messages. By itself, because the library's parser with a callback looks
/// through all of an array's objects at the end of each.
class KeysOnce : public JsonEvents {
 public:
  const std::string& twice() const { return twice_; }

  bool key(string_t& name) override {
    if (keys_.back().insert(name).second) return true;
    twice_ = name;
    return false;
  }
  bool start_object(std::size_t) override {
    keys_.emplace_back();
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    return true;
  }

 private:
  std::vector<std::set<std::string>> keys_;
  std::string twice_;
};

/// The deepest nesting of brackets outside strings; enough to refuse a message before a parser builds it.
int NestingDepth(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

Result<ReadOutcome> LineReader::TakeLine(size_t newline) {
  if (newline > limits_.max_bytes) {
    return Fail("message of " + std::to_string(newline) + " bytes; the limit is " +
                std::to_string(limits_.max_bytes));
  }
  ReadOutcome outcome{.state = ReadState::kLine, .line = buffer_.substr(0, newline)};
  buffer_.erase(0, newline + 1);
  searched_ = 0;
  return outcome;
}

Result<ReadOutcome> LineReader::Read(int timeout_ms) {
  const Deadline deadline(timeout_ms);
  std::vector<char> chunk(size_t{64} << 10);
  while (true) {
    const size_t newline = buffer_.find('\n', searched_);
    if (newline != std::string::npos) return TakeLine(newline);
    searched_ = buffer_.size();
    if (buffer_.size() > limits_.max_bytes) {
      return Fail("message longer than the limit of " + std::to_string(limits_.max_bytes) + " bytes");
    }
    switch (WaitFor(fd_, POLLIN, deadline)) {
      case Waited::kTimedOut:
        return ReadOutcome{.state = ReadState::kTimedOut};
      case Waited::kFailed:
        return Fail(SystemError("cannot wait for a message"));
      case Waited::kReady:
        break;
    }
    const ssize_t got = read(fd_, chunk.data(), chunk.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    // A peer that died with unread data resets the stream; for the reader that is an end like any other.
    if (got == 0 || (got < 0 && errno == ECONNRESET)) {
      if (buffer_.empty()) return ReadOutcome{.state = ReadState::kClosed};
      return Fail("the stream ended inside a message, after " + std::to_string(buffer_.size()) +
                  " bytes of it");
    }
    if (got < 0) return Fail(SystemError("cannot read a message"));
    buffer_.append(chunk.data(), static_cast<size_t>(got));
  }
}

Result<Json> ParseMessage(std::string_view line, const WireLimits& limits) {
  if (line.size() > limits.max_bytes) {
    return Fail("message of " + std::to_string(line.size()) + " bytes; the limit is " +
                std::to_string(limits.max_bytes));
  }
  const int depth = NestingDepth(line);
  if (depth > limits.max_depth) {
    return Fail("message nested " + std::to_string(depth) + " deep; the limit is " +
                std::to_string(limits.max_depth));
  }
  Json message = Json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (message.is_discarded()) {
    return Fail("message is no JSON: " +
                FormatMessage(Json(std::string(line.substr(0, 80))))->substr(0, 120));
  }
  KeysOnce keys;
  if (!Json::sax_parse(line, &keys)) return Fail("message has the key '" + keys.twice() + "' twice");
  if (!message.is_object()) return Fail(std::string("message is no JSON object but ") + message.type_name());
  return message;
}

Result<std::string> FormatMessage(const Json& message, const WireLimits& limits) {
  std::string line = message.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (line.size() > limits.max_bytes) {
    return Fail("message of " + std::to_string(line.size()) + " bytes; the limit is " +
                std::to_string(limits.max_bytes));
  }
  line += '\n';
  return line;
}

Result<void> WriteLine(int fd, std::string_view line, int timeout_ms) {
  const Deadline deadline(timeout_ms);
  bool is_socket = true;
  while (!line.empty()) {
    // MSG_DONTWAIT makes the deadline hold on a blocking socket; MSG_NOSIGNAL turns SIGPIPE into an error
    // value.
    const ssize_t sent = is_socket ? send(fd, line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT)
                                   : write(fd, line.data(), line.size());
    if (sent >= 0) {
      line.remove_prefix(static_cast<size_t>(sent));
      continue;
    }
    if (errno == ENOTSOCK) {
      is_socket = false;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      const Waited waited = WaitFor(fd, POLLOUT, deadline);
      if (waited == Waited::kTimedOut) return Fail("the other end takes no more: time out while writing");
      if (waited == Waited::kFailed) return Fail(SystemError("cannot wait to write"));
    } else if (errno != EINTR) {
      return Fail(SystemError("cannot write a message"));
    }
  }
  return {};
}

Result<void> WriteMessage(int fd, const Json& message, int timeout_ms, const WireLimits& limits) {
  const std::string line = ULPSCOPE_TRY(FormatMessage(message, limits));
  return WriteLine(fd, line, timeout_ms);
}

Json FloatToJson(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

}  // namespace ulpscope::sdk
