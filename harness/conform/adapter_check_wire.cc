// The trace, the knobs, and messages that no harness sends.
#include <fmt/format.h>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/conform/adapter_check.h"
#include "harness/conform/adapter_programs.h"
#include "harness/words/knobs.h"

namespace ulpscope {
namespace {

/// A program of casts where `cast` is claimed, else of any op.
std::optional<Prepared> TraceProgram(CheckContext& context) {
  const auto dtypes = ClaimedDTypes(context);
  if (dtypes.empty()) return std::nullopt;
  std::string body =
      "    tensors:\n      a: {dtype: $d, shape: [2, 2], fill: {values: [1, 2, -1, 1]}}\n    program:\n";
  if (Contains(context.info().ops, "cast")) {
    body += fmt::format("      - {{op: cast, of: [a], dtype: {}, as: other}}\n", Name(dtypes.back()));
    body += "      - {op: cast, of: [other], dtype: $d, as: r}\n    observe: [r]\n";
  } else {
    for (const OpRow& row : Ops()) {
      if (!row.example.starts_with("of: [a]") || !Contains(context.info().ops, row.name)) continue;
      body += fmt::format("      - {{op: {}, {}, as: r}}\n    observe: [r]\n", row.name, row.example);
      break;
    }
  }
  auto test_case = SmallProgram(body, dtypes.front());
  if (!test_case) return std::nullopt;
  auto exact = AnswerExactly(*test_case);
  if (!exact) return std::nullopt;
  return Prepared{.test_case = std::move(*test_case), .exact = std::move(*exact)};
}

/// Casts whose bytes are not those of their result.
std::string WrongCast(const std::vector<Cast>& casts) {
  for (const Cast& cast : casts) {
    const auto to = ParseDType(cast.to);
    if (!to) continue;  // a stack's own dtype
    int64_t elements = 1;
    for (const int64_t extent : cast.shape) elements *= extent;
    const auto bytes = elements * static_cast<int64_t>(SizeOf(*to));
    if (cast.bytes != bytes)
      return fmt::format("a cast to {} of {} elements says {} bytes", cast.to, elements, cast.bytes);
    if (cast.under.empty()) return fmt::format("a cast to {} says not under what", cast.to);
  }
  return "";
}

/// Asks for one value of one knob in a worker of its own.
void CheckKnob(CheckContext& context, const std::string& knob, const std::string& value,
               const Prepared& probe) {
  const std::string check = fmt::format("knob {}={}", knob, value);
  BackendSpec spec = context.subject().backend;
  spec.knobs[knob] = value;
  const auto session = context.Fresh();
  if (const std::string broken = session->Start(spec); !broken.empty())
    return context.Fail(check, broken, "served, or refused with a reason");
  if (!session->info().error.empty()) {
    const bool named = session->info().error.find(knob) != std::string::npos;
    if (named) return context.Skip(check, "refused: " + session->info().error);
    return context.Fail(check, session->info().error, "the knob's name in the reason");
  }
  const SessionRun run = session->Run(probe.test_case, probe.exact.inputs);
  if (!run.broken.empty()) return context.Fail(check, run.broken, "an answer");
  const std::string* back = Lookup(run.observation.knobs_effective, knob);
  if (!run.observation.tainted.empty())
    return context.Fail(check, run.observation.tainted, "the state that was asked for");
  if (back == nullptr) return context.Skip(check, "accepted, not read back");
  context.Expect(check, *back == value ? "" : "reads back " + *back, value, "reads back " + *back);
}

/// A message that is none: the adapter has to end by itself, or to answer; not to hang, nor to die by a
/// signal.
void ExpectSurvived(CheckContext& context, const std::string& check, std::string_view message) {
  const auto session = context.Fresh();
  const SessionAnswer answer = session->StartWith(context.subject().backend, message);
  if (answer.line) return context.Ok(check, "answered");
  const bool exited = answer.outcome && answer.outcome->kind == OutcomeKind::kCrashed &&
                      answer.outcome->error_class.starts_with("exit ") &&
                      answer.outcome->error_class != "exit 0";
  context.Expect(check, exited ? "" : answer.otherwise, "refused: an exit status that is not 0, or an answer",
                 exited ? answer.outcome->error_class : "");
}

}  // namespace

void CheckTrace(CheckContext& context) {
  const auto probe = TraceProgram(context);
  if (!probe) return context.Skip("trace", "no program for it");
  const SessionRun run =
      context.Warm().Run(probe->test_case, probe->exact.inputs, AdapterSession::Trace::kOn);
  if (!run.broken.empty()) return context.Fail("trace", run.broken, "ids unique, parents and stages known");
  if (!run.Completed()) return context.Skip("trace", run.observation.outcome.text);
  const auto& [casts, nodes] = std::pair(run.observation.casts, run.observation.trace);
  if (casts.empty() && nodes.empty()) {
    context.Skip("trace", "this adapter shows none");
  } else {
    context.Expect("trace", WrongCast(casts), "casts whose bytes and place are right",
                   fmt::format("{} nodes, {} casts", nodes.size(), casts.size()));
  }
  const SessionRun quiet =
      context.Warm().Run(probe->test_case, probe->exact.inputs, AdapterSession::Trace::kOff);
  const size_t told = quiet.observation.trace.size();
  context.Expect("trace.off",
                 !quiet.Completed() ? "no result without it"
                 : told > 0         ? fmt::format("{} nodes", told)
                                    : "",
                 "no nodes without being asked", "silent");
}

void CheckKnobs(CheckContext& context) {
  const auto probe = TraceProgram(context);
  if (!probe) return context.Skip("knob", "no program for it");
  const SessionRun run = context.Warm().Run(probe->test_case, probe->exact.inputs);
  if (!run.broken.empty()) return context.Fail("knob.read_back", run.broken, "an answer");
  std::vector<std::string> strange, back;
  for (const auto& [knob, value] : run.observation.knobs_effective)
    (context.info().knobs.contains(knob) ? back : strange).push_back(knob + "=" + value);
  if (back.empty() && strange.empty())
    context.Skip("knob.read_back", "this adapter reads no knob back");
  else
    context.Expect("knob.read_back", Join(strange, ", ") + (strange.empty() ? "" : " not offered"),
                   "knobs of the hello", Join(back, ", "));
  for (const auto& [knob, values] : context.info().knobs) {
    if (ChoosesWhatRuns(knob) || context.subject().backend.knobs.contains(knob)) continue;
    const std::string& value = values.size() > 1 ? values[1] : values.front();
    CheckKnob(context, knob, value == "N" ? "2" : value, *probe);
  }
}

void CheckWire(CheckContext& context) {
  ExpectSurvived(context, "wire.no_json", "{\"verb\": ");
  ExpectSurvived(context, "wire.no_object", "[1, 2, 3]");
  ExpectSurvived(context, "wire.key_twice", R"({"verb": "bye", "verb": "bye"})");
  ExpectSurvived(context, "wire.deep", "{\"verb\": " + std::string(1000, '[') + std::string(1000, ']') + "}");
  ExpectSurvived(context, "wire.not_utf8", "{\"verb\": \"\xff\xfe\"}");
  ExpectSurvived(context, "wire.verb", R"({"verb": "no_such_verb"})");
  ExpectSurvived(context, "wire.oversize",
                 "{\"verb\": \"hello\", \"pad\": \"" + std::string((16 << 20) + 16, 'x') + "\"}");
  const auto session = context.Fresh();
  const std::string other =
      fmt::format(R"({{"verb": "hello", "protocol": 99, "backend": "{}", "device": "cpu", "knobs": {{}}}})",
                  context.subject().backend.name);
  const SessionAnswer answer = session->StartWith(context.subject().backend, other);
  const bool refused = answer.line && answer.line->find("99") != std::string::npos;
  context.Expect("wire.protocol",
                 refused       ? ""
                 : answer.line ? *answer.line
                               : answer.otherwise,
                 "an answer whose error names the protocol asked for", "refused");
}

}  // namespace ulpscope
