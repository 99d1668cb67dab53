// ulpscope-faulty: a small, correct adapter that misbehaves on request (`faulty:fault=hang,case=square`).
//
// The correct part is an ordinary SDK adapter, served over a socket pair inside the process. A relay between
// it and the harness forwards messages and answers, and commits the faults that an adapter built on the SDK
// could not.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "backends/faulty/faults.h"
#include "backends/faulty/matmul.h"
#include "backends/sdk/wire.h"
#include "harness/base/build_info.h"
#include "harness/base/find.h"

namespace ulpscope::faulty {
namespace {

const std::vector<std::string> kOffOn{"off", "on"};

class FaultyAdapter : public sdk::Adapter {
 public:
  explicit FaultyAdapter(const FaultPlan& plan) : plan_(plan) {}

  sdk::Capabilities Hello(const sdk::HelloRequest& request) override {
    sdk::Capabilities can;
    can.name = "faulty";
    can.backends = {"faulty"};
    can.versions = {{"faulty", std::string(Version())}};
    can.knobs = {{"threads", {"1"}},       {"fault", FaultNames()},
                 {"case", {""}},           {"flush_denormal", {"off", "on"}},
                 {"planted_idle", kOffOn}, {"planted_lie", kOffOn},
                 {"planted_act", kOffOn},  {"planted_refusal", kOffOn}};
    can.ops = sdk::GlueOps();
    can.ops.emplace_back("matmul");
    for (const auto& name : AllDTypeNames()) can.dtypes.push_back(name);
    can.scopes = {"no_grad", "enable_grad"};
    can.capabilities = {"out"};
    const auto names = FaultNames();
    if (!Contains(names, plan_.fault)) can.error = "unknown fault '" + plan_.fault + "'";
    can.error += CheckPlanted(request.knobs);
    if (request.device != "cpu") can.error = "faulty runs on the cpu, not on '" + request.device + "'";
    return can;
  }

  sdk::RunReply Run(const sdk::RunRequest& request) override {
    CountCase();
    const RunFault* fault = plan_.Strikes(request.case_id) ? FindRunFault(plan_.fault) : nullptr;
    if (fault != nullptr && fault->before != nullptr) fault->before();
    sdk::RunReply reply = sdk::RunWithGlue(request, MatmulKernel);
    reply.knobs = {{"threads", "1"}};
    AnswerPlanted(request.knobs, reply);
    if (fault != nullptr && fault->after != nullptr) fault->after(reply);
    if (fault != nullptr && plan_.fault == "threads") threads_ = 7;
    return reply;
  }

  int64_t Threads() override { return threads_; }

 private:
  /// "" or why a planted knob is refused.
  static std::string CheckPlanted(const std::map<std::string, std::string>& knobs) {
    for (const auto& [knob, value] : knobs) {
      if (!knob.starts_with("planted_") && knob != "flush_denormal") continue;
      if (!Contains(kOffOn, value)) return "knob " + knob + "=" + value + ": off or on";
      if (knob == "planted_refusal" && value == "on") return "knob planted_refusal=on: refused, as planted";
    }
    return "";
  }

  /// Four knobs of known behaviour: `idle` is accepted, read back and does nothing; `lie` reads back as off
  /// whatever is requested; `act` changes the last bit of every value; `refusal` is never served.
  static void AnswerPlanted(const std::map<std::string, std::string>& knobs, sdk::RunReply& reply) {
    const auto asked = [&](const char* knob) { return LookupOr(knobs, knob, std::string("off")); };
    reply.knobs["planted_idle"] = asked("planted_idle");
    reply.knobs["planted_lie"] = "off";
    reply.knobs["planted_act"] = asked("planted_act");
    if (asked("planted_act") != "on") return;
    for (auto& [name, tensor] : reply.tensors) {
      if (!tensor.bytes.empty()) tensor.bytes.front() ^= std::byte{1};
    }
  }

  const FaultPlan& plan_;
  int64_t threads_ = 1;
};

std::string TextOf(const sdk::Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

/// Between the harness (`outside`) and the correct adapter (`inside`), until either is gone.
int Relay(int outside, int inside, FaultPlan& plan) {
  sdk::LineReader questions(outside), answers(inside);
  while (true) {
    auto question = questions.Read();
    if (!question) return 3;
    if (question->state != sdk::ReadState::kLine) return 0;
    const auto message = sdk::ParseMessage(question->line);
    if (!message) return 3;
    const std::string verb = TextOf(*message, "verb");
    if (verb == "bye") return 0;
    const WireFault* fault = nullptr;
    if (verb == "hello") {
      const sdk::Json knobs = message->value("knobs", sdk::Json::object());
      plan = {.fault = knobs.contains("fault") ? TextOf(knobs, "fault") : "none",
              .case_text = TextOf(knobs, "case")};
      if (const StartFault* start = FindStartFault(plan.fault)) start->start(outside);
    } else if (plan.Strikes(TextOf(*message, "case"))) {
      fault = FindWireFault(plan.fault);
    }
    if (!sdk::WriteLine(inside, question->line + "\n")) return 3;
    auto answer = answers.Read();
    if (!answer || answer->state != sdk::ReadState::kLine) return 3;
    answer->line += '\n';
    if (fault != nullptr)
      fault->send(outside, std::move(answer->line), TextOf(*message, "outputs"));
    else if (!sdk::WriteLine(outside, answer->line))
      return 0;
  }
}

int Main() {
  const char* fd = std::getenv("ULPSCOPE_FD");
  int pair[2];
  if (fd == nullptr || ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    std::fprintf(stderr, "ulpscope-faulty is started by ulpscope: ulpscope run CASE -b faulty:fault=NAME\n");
    return 4;
  }
  FaultPlan plan;
  std::thread server([&plan, inside = pair[1]] {
    FaultyAdapter adapter(plan);
    sdk::ServeAdapter(adapter, inside);
    ::close(inside);
  });
  const int code = Relay(std::atoi(fd), pair[0], plan);
  // The server returns at a bye; the end of the stream alone may be hidden by an orphan that holds the other
  // end too.
  (void)sdk::WriteLine(pair[0], "{\"verb\": \"bye\"}\n");
  ::close(pair[0]);
  server.join();
  return code;
}

}  // namespace
}  // namespace ulpscope::faulty

// NOLINTNEXTLINE(bugprone-exception-escape): an adapter made to fail may end by std::terminate
int main() { return ulpscope::faulty::Main(); }
