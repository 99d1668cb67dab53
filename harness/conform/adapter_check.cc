// The driver of the conformance test, the hello, and what a hello has to refuse.
#include "harness/conform/adapter_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/run/protocol.h"
#include "harness/words/knobs.h"
#include "harness/words/ops.h"

namespace ulpscope {
namespace {

constexpr std::array<std::string_view, 11> kHelloFields{"protocol", "name",         "backends", "versions",
                                                        "devices",  "knobs",        "ops",      "dtypes",
                                                        "scopes",   "capabilities", "error"};

std::string MissingFields(const std::string& hello) {
  const auto json = nlohmann::json::parse(hello, nullptr, false);
  std::vector<std::string> missing;
  for (const auto field : kHelloFields) {
    if (!json.is_object() || !json.contains(field)) missing.emplace_back(field);
  }
  return missing.empty() ? "" : "without " + Join(missing, ", ");
}

/// Words of a list that no case can have.
std::vector<std::string> Unknown(const std::vector<std::string>& words, bool (*known)(const std::string&)) {
  std::vector<std::string> unknown = words;
  std::erase_if(unknown, known);
  return unknown;
}

bool IsOp(const std::string& op) {
  return FindOp(op) != nullptr || op.starts_with("aten::") || op == "torch.*";
}
bool IsDType(const std::string& dtype) { return ParseDType(dtype).has_value(); }

/// Words beyond those of this version may stand in a hello; none of its own is an empty claim.
void ExpectKnown(CheckContext& context, const std::string& check, const std::vector<std::string>& words,
                 bool (*known)(const std::string&)) {
  const auto unknown = Unknown(words, known);
  context.Expect(check, unknown.size() == words.size() ? "none that a case can say" : "",
                 "one or more of the protocol's words", fmt::format("{}", words.size() - unknown.size()));
  if (!unknown.empty()) context.Skip(check + " unknown", Join(unknown, ", ") + ": no case can say so");
}

void CheckHelloFields(CheckContext& context, const std::string& hello) {
  const BackendInfo& info = context.info();
  const BackendSpec& spec = context.subject().backend;
  context.Expect("hello.fields", MissingFields(hello), "all of " + fmt::format("{}", kHelloFields.size()),
                 "all there");
  context.Expect("hello.error", info.error, "none: it was asked for what it offers", "none");
  context.Expect("hello.name", info.adapter.empty() ? "none" : "", "a name", info.adapter);
  context.Expect("hello.backends", Contains(info.backends, spec.name) ? "" : Join(info.backends, ", "),
                 spec.name + " among them", Join(info.backends, ", "));
  context.Expect("hello.versions", info.versions.empty() ? "none" : "", "of what computes",
                 Join(info.versions));
  context.Expect("hello.devices", info.devices.empty() ? "none" : "", "one or more",
                 Join(info.devices, ", "));
  ExpectKnown(context, "hello.ops", info.ops, IsOp);
  ExpectKnown(context, "hello.dtypes", info.dtypes, IsDType);
  const auto scopes = Unknown(info.scopes, [](const std::string& word) { return IsScope(word); });
  context.Expect("hello.scopes", Join(scopes, ", "), "autocast, no_grad, enable_grad",
                 Join(info.scopes, ", "));
  std::vector<std::string> empty, knobs;
  for (const auto& [knob, values] : info.knobs) (values.empty() ? empty : knobs).push_back(knob);
  context.Expect("hello.knobs", Join(empty, ", ") + (empty.empty() ? "" : " without values"),
                 "values for each, the default first", Join(knobs, ", "));
  context.Expect("hello.knobs threads", info.knobs.contains("threads") ? "" : "not offered",
                 "every worker is told how many threads to use", "offered");
}

/// A hello for something that is not there: an answer that refuses and names it, and then a normal end.
void ExpectRefused(CheckContext& context, const std::string& check, const BackendSpec& spec,
                   const std::string& word) {
  const auto session = context.Fresh();
  if (const std::string broken = session->Start(spec); !broken.empty())
    return context.Fail(check, broken, "an answer whose error says why");
  const std::string& error = session->info().error;
  const bool named = error.find(word) != std::string::npos;
  context.Expect(check,
                 named           ? ""
                 : error.empty() ? "served"
                                 : error,
                 "refused, with " + word + " in the reason", error);
  const Ending ending = session->Bye();
  if (ending.signal != 0 || ending.status != 0)
    context.Fail(check + ", bye", fmt::format("signal {}, exit {}", ending.signal, ending.status), "exit 0");
}

void CheckRefusedHellos(CheckContext& context) {
  BackendSpec spec = context.subject().backend;
  spec.name = "no-such-backend";
  ExpectRefused(context, "hello.unknown_backend", spec, "no-such-backend");
  spec = context.subject().backend;
  spec.device = "no-such-device";
  ExpectRefused(context, "hello.unknown_device", spec, "no-such-device");
  const auto expect_refused = [&](const std::string& check, const std::string& knob, const char* value) {
    spec = context.subject().backend;
    spec.knobs[knob] = value;
    ExpectRefused(context, check, spec, knob);
  };
  expect_refused("hello.unknown_knob", "no_such_knob", "1");
  expect_refused("hello.bad_value threads", "threads", "no-such-count");
  for (const auto& [knob, values] : context.info().knobs) {
    const bool open = Contains(values, "N") || ChoosesWhatRuns(knob);
    if (open) continue;
    expect_refused("hello.bad_value " + knob, knob, "no-such-value");
    break;  // one knob with a closed list stands for the others: each costs a process
  }
}

void CheckBye(CheckContext& context) {
  const auto session = context.Fresh();
  if (const std::string broken = session->Start(context.subject().backend); !broken.empty())
    return context.Fail("bye", broken, "exit 0");
  const Ending ending = session->Bye();
  const bool well = ending.signal == 0 && ending.status == 0;
  context.Expect("bye",
                 well                 ? ""
                 : ending.signal != 0 ? "ended by " + SignalName(ending.signal)
                                      : fmt::format("exit {}", ending.status),
                 "exit 0", "exit 0");
}

}  // namespace

void CheckContext::Ok(std::string check, std::string found) {
  lines_.push_back({.mark = CheckLine::Mark::kOk, .check = std::move(check), .found = std::move(found)});
}
void CheckContext::Fail(std::string check, std::string found, std::string expected) {
  lines_.push_back({.mark = CheckLine::Mark::kFail,
                    .check = std::move(check),
                    .found = std::move(found),
                    .expected = std::move(expected)});
}
void CheckContext::Skip(std::string check, std::string why) {
  lines_.push_back({.mark = CheckLine::Mark::kSkip, .check = std::move(check), .found = std::move(why)});
}
void CheckContext::Expect(std::string check, std::string problem, std::string expected,
                          std::string found_when_well) {
  if (problem.empty())
    Ok(std::move(check), std::move(found_when_well));
  else
    Fail(std::move(check), std::move(problem), std::move(expected));
}

std::unique_ptr<AdapterSession> CheckContext::Fresh() const {
  return std::make_unique<AdapterSession>(subject_, registry_, scratch_);
}

AdapterSession& CheckContext::Warm() {
  if (warm_ != nullptr && warm_->IsAlive()) return *warm_;
  ++deaths_;
  if (GaveUp() && warm_ != nullptr) return *warm_;
  warm_ = Fresh();
  (void)warm_->Start(
      subject_.backend);  // that it can start was checked; a second failure shows at its first run
  return *warm_;
}

std::vector<DType> ClaimedDTypes(const CheckContext& context) {
  std::vector<DType> dtypes;
  for (const DType dtype : AllDTypes()) {
    const bool asked = context.subject().dtypes.empty() || Contains(context.subject().dtypes, dtype);
    if (asked && IsFloating(dtype) && Contains(context.info().dtypes, Name(dtype))) dtypes.push_back(dtype);
  }
  return dtypes;
}

std::vector<CheckLine> CheckAdapter(const AdapterSubject& subject, const Registry& registry,
                                    const Scratch& scratch) {
  CheckContext context(subject, registry, scratch);
  {
    const auto session = context.Fresh();
    if (const std::string broken = session->Start(subject.backend); !broken.empty()) {
      context.Fail("hello", broken + (session->Log().empty() ? "" : "; " + session->Log()),
                   "one line of JSON in answer");
      return context.TakeLines();
    }
    context.set_info(session->info());
    CheckHelloFields(context, session->hello_line());
    if (!session->info().error.empty()) return context.TakeLines();
  }
  for (const auto group : {CheckPrograms, CheckForms, CheckRefusedRuns, CheckTrace}) {
    if (!context.GaveUp()) group(context);
  }
  if (context.GaveUp()) {
    context.Skip("everything else", "the adapter ended or fell silent too often");
    return context.TakeLines();
  }
  CheckRefusedHellos(context);
  CheckKnobs(context);
  CheckWire(context);
  CheckBye(context);
  return context.TakeLines();
}

}  // namespace ulpscope
