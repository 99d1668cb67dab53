// The reader of an adapter's lines on any bytes: cut into lines as they come over a pipe, each read as the answer to hello and
// as the answer to run.
#include <unistd.h>

#include <algorithm>

#include "backends/sdk/wire.h"
#include "harness/model/trace.h"
#include "harness/run/protocol.h"
#include "tests/fuzz/targets.h"

namespace ulpscope::fuzz {
namespace {

constexpr size_t kPipe = 65536;  // what a pipe holds without a reader

Reached Answer(const std::string& line) {
  static const Case asked = [] {
    Case c;
    c.observe = {"y", "y_dtype", "peak_bytes", "trace"};
    return c;
  }();
  const auto hello = ParseHello(line);
  RunRequest request;
  request.id = 1;
  request.test_case = &asked;
  const auto answer = ParseRunAnswer(line, request);
  Demand(!hello || !hello->adapter.empty() || hello->error.size() <= 4096, "hello's texts are cut");
  if (!answer) return hello ? Reached::kAccepted : Reached::kRefused;
  Demand(answer->outcome.kind != OutcomeKind::kCrashed && answer->outcome.kind != OutcomeKind::kTimedOut &&
             answer->outcome.kind != OutcomeKind::kProtocolBroken,
         "an adapter cannot say that it crashed");
  Demand(TraceProblem(answer->trace, answer->casts).empty(), "an accepted trace is sound");
  for (const auto& [name, text] : answer->observations)
    Demand(std::find(asked.observe.begin(), asked.observe.end(), name) != asked.observe.end(),
           "only what was asked for is observed");
  CostOfCasts(answer->casts, answer->trace);
  Demand(ExpectedTensors(asked, *answer).size() <= 1, "texts are no tensors");
  Plant(IsPlantedLength(line.size()));
  return Reached::kAccepted;
}

}  // namespace

Reached Protocol(std::string_view input) {
  input = input.substr(0, kPipe);
  int ends[2];
  if (::pipe(ends) != 0) return Reached::kRefused;
  const bool sent = input.empty() || ::write(ends[1], input.data(), input.size()) >= 0;
  ::close(ends[1]);
  sdk::LineReader reader(ends[0]);
  Reached reached = Reached::kRefused;
  while (sent) {
    const auto outcome = reader.Read(0);
    if (!outcome || outcome->state != sdk::ReadState::kLine) break;
    Demand(outcome->line.find('\n') == std::string::npos, "a line holds no newline");
    if (Answer(outcome->line) == Reached::kAccepted) reached = Reached::kAccepted;
  }
  ::close(ends[0]);
  return reached;
}

}  // namespace ulpscope::fuzz
