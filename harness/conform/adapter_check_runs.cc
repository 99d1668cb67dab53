// What an adapter computes: every op in every dtype, the forms a program can take, and programs it has to
// refuse.
#include <fmt/format.h>

#include <algorithm>

#include "backends/sdk/adapter.h"
#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/casefile/generate.h"
#include "harness/conform/adapter_check.h"
#include "harness/conform/adapter_programs.h"
#include "harness/record/file_bytes.h"

namespace ulpscope {
namespace {

using Rows = std::vector<const OpRow*>;

std::string Said(const SessionRun& run) {
  if (!run.broken.empty()) return run.broken;
  const Outcome& outcome = run.observation.outcome;
  return Describe(outcome) +
         (outcome.text.empty() ? "" : ": " + outcome.text.substr(0, outcome.text.find('\n')));
}

/// "" if every observed value is exact; else the first that is not.
std::string WrongValue(const SessionRun& run, const std::map<std::string, TensorData>& exact) {
  for (const auto& [name, expected] : exact) {
    const TensorData* found = Lookup(run.observation.values, name);
    if (found == nullptr) return name + " was not answered";
    if (const std::string difference = DifferenceOf(*found, expected); !difference.empty())
      return name + ": " + difference;
  }
  return run.observation.tainted;
}

/// Rows of one dtype: what each came to. A program that is refused as a whole is halved until single ops are
/// left.
class DTypeRuns {
 public:
  DTypeRuns(CheckContext& context, DType dtype) : context_(context), dtype_(dtype) {}

  void Run(const Rows& rows) {
    if (rows.empty() || context_.GaveUp()) return;
    const auto test_case = ProgramOf(rows, dtype_);
    if (!test_case) return Wrong(rows, "the program is wrong: " + test_case.error().Text());
    const auto exact = AnswerExactly(*test_case);
    if (!exact) return Wrong(rows, "no exact answer: " + exact.error().Text());
    const SessionRun run = context_.Warm().Run(*test_case, exact->inputs);
    if (run.Completed()) return Compare(rows, run, exact->values);
    if (rows.size() > 1 && run.broken.empty()) {
      const auto middle = rows.begin() + static_cast<std::ptrdiff_t>(rows.size() / 2);
      Run(Rows(rows.begin(), middle));
      return Run(Rows(middle, rows.end()));
    }
    if (!run.broken.empty()) {
      broken_ = true;
      return Wrong(rows, Said(run));
    }
    if (run.observation.outcome.text.empty()) return Wrong(rows, "refused without a reason");
    refused_.emplace_back(rows.front()->name, Said(run));
  }

  /// One line for what is exact, one for each op that is not.
  void Report(std::map<std::string, std::string>* refused_everywhere) {
    const std::string check = fmt::format("run.exact {}", Name(dtype_));
    for (const auto& op : exact_) refused_everywhere->erase(op);
    for (const auto& [op, what] : wrong_) {
      const bool exact_elsewhere = !refused_everywhere->contains(op);
      refused_everywhere->erase(op);
      // Eight bits may have no infinity, which frameworks start a maximum with: their arithmetic, not the
      // adapter's.
      if (SizeOf(dtype_) == 1 && exact_elsewhere && !broken_) {
        context_.Skip(fmt::format("{} {}", check, op),
                      what + "; exact in wider dtypes, so this is the framework's own");
        continue;
      }
      context_.Fail(fmt::format("{} {}", check, op), what, "the exact result, or a refusal with a reason");
    }
    std::string text = fmt::format("{} ops", exact_.size());
    if (!refused_.empty())
      text += fmt::format(", {} refused ({}: {})", refused_.size(), refused_.front().first,
                          refused_.front().second);
    if (exact_.empty())
      context_.Skip(check, text);
    else
      context_.Ok(check, text);
  }

 private:
  void Compare(const Rows& rows, const SessionRun& run, const std::map<std::string, TensorData>& exact) {
    for (const OpRow* row : rows) {
      const std::string name = NameOfResult(*row);
      const TensorData* found = Lookup(run.observation.values, name);
      std::string difference = found == nullptr ? "not answered" : DifferenceOf(*found, exact.at(name));
      if (difference.empty()) difference = run.observation.tainted;
      if (difference.empty())
        exact_.emplace_back(row->name);
      else
        wrong_.emplace_back(row->name, difference);
    }
  }

  void Wrong(const Rows& rows, const std::string& what) {
    wrong_.emplace_back(Join(Mapped<std::string>(rows, &OpRow::name), " "), what);
  }

  CheckContext& context_;
  DType dtype_;
  std::vector<std::string> exact_;
  std::vector<std::pair<std::string, std::string>> wrong_, refused_;
  bool broken_ = false;  ///< the worker or its answer, at least once
};

/// A program of the checks below, or a line that says that the check itself is broken.
std::optional<Prepared> Prepare(CheckContext& context, const std::string& check, std::string_view body,
                                DType dtype) {
  auto test_case = SmallProgram(body, dtype);
  if (!test_case) {
    context.Fail(check, "the check's own program is wrong: " + test_case.error().Text(), "a bug of ulpscope");
    return std::nullopt;
  }
  auto exact = AnswerExactly(*test_case);
  if (!exact) {
    context.Fail(check, "the check's own answer is wrong: " + exact.error().Text(), "a bug of ulpscope");
    return std::nullopt;
  }
  return Prepared{.test_case = std::move(*test_case), .exact = std::move(*exact)};
}

/// A run that did not complete: a refusal with a reason is the adapter's to make.
void SkipIfRefused(CheckContext& context, const std::string& check, const SessionRun& run,
                   const std::string& expected) {
  if (run.broken.empty() && !run.observation.outcome.text.empty())
    context.Skip(check, Said(run));
  else
    context.Fail(check, Said(run), expected);
}

/// Runs a program that may be refused with a reason and must else be exact.
void ExactOrRefused(CheckContext& context, const std::string& check, std::string_view body, DType dtype) {
  const auto program = Prepare(context, check, body, dtype);
  if (!program) return;
  const SessionRun run = context.Warm().Run(program->test_case, program->exact.inputs);
  if (run.Completed())
    return context.Expect(check, WrongValue(run, program->exact.values), "the exact result", "exact");
  SkipIfRefused(context, check, run, "the exact result, or a refusal with a reason");
}

/// The case and inputs of a program whose result is not looked at; or a line, as above.
std::optional<Prepared> PrepareUnanswered(CheckContext& context, const std::string& check,
                                          std::string_view body, DType dtype) {
  auto test_case = SmallProgram(body, dtype);
  if (!test_case) {
    context.Fail(check, test_case.error().Text(), "a bug of ulpscope");
    return std::nullopt;
  }
  auto inputs = MakeInputs(*test_case, 0);
  if (!inputs) {
    context.Fail(check, inputs.error().Text(), "a bug of ulpscope");
    return std::nullopt;
  }
  return Prepared{.test_case = std::move(*test_case), .exact = {.inputs = std::move(*inputs), .values = {}}};
}

/// The first of `ops` that is claimed; "" if none is.
std::string_view Claimed(const CheckContext& context, std::initializer_list<std::string_view> ops) {
  const auto* op = FindIf(ops, [&](auto each) { return Contains(context.info().ops, each); });
  return op == nullptr ? "" : *op;
}

/// An op that takes one or two tensors of any shape.
std::string_view Pointwise(const CheckContext& context) { return Claimed(context, {"add", "mul", "sub"}); }

std::string_view AnyBinary(const CheckContext& context) {
  return Claimed(context, {"add", "mul", "sub", "matmul", "mm"});
}

std::string Binary(std::string_view op, std::string_view first, std::string_view second,
                   std::string_view rest = "") {
  return fmt::format("    program:\n      - {{op: {}, of: [{}, {}]{}, as: r}}\n", op, first, second, rest);
}

constexpr std::string_view kTwoByTwo =
    "    tensors:\n"
    "      a: {dtype: $d, shape: [2, 2], fill: {values: [1, 2, -1, 1]}}\n"
    "      b: {dtype: $d, shape: [2, 2], fill: {values: [2, 0, 1, -1]}}\n";

void CheckOut(CheckContext& context, std::string_view op, DType dtype) {
  const std::string body =
      std::string(kTwoByTwo) +
      fmt::format(
          "    program:\n      - {{op: empty, shape: [2, 2], dtype: $d, as: buffer}}\n"
          "      - {{op: {}, of: [a, b], out: buffer, as: r}}\n    observe: [buffer, r]\n",
          op);
  const bool claimed = Contains(context.info().capabilities, "out");
  if (claimed) return ExactOrRefused(context, "form.out", body, dtype);
  const auto program = PrepareUnanswered(context, "form.out", body, dtype);
  if (!program) return;
  const SessionRun run = context.Warm().Run(program->test_case, program->exact.inputs);
  const bool refused = run.Refused() && !run.observation.outcome.text.empty();
  context.Expect("form.out", refused ? "" : Said(run), "unsupported with a reason: out is not claimed",
                 Said(run));
}

void CheckPoison(CheckContext& context, std::string_view op, DType dtype) {
  if (!Contains(context.info().ops, "empty")) return context.Skip("form.poison", "empty is not claimed");
  const std::string body =
      std::string(kTwoByTwo) + fmt::format(
                                   "    program:\n      - {{op: empty, shape: [5], dtype: $d, as: buffer}}\n"
                                   "      - {{op: {}, of: [a, b], as: r}}\n    observe: [buffer, r]\n",
                                   op);
  const auto program = PrepareUnanswered(context, "form.poison", body, dtype);
  if (!program) return;
  const SessionRun run = context.Warm().Run(program->test_case, program->exact.inputs);
  if (!run.Completed()) {
    if (run.broken.empty()) return context.Skip("form.poison", Said(run));
    return context.Fail("form.poison", Said(run), "uninitialised memory filled with the poison pattern");
  }
  const TensorData& buffer = run.observation.values.at("buffer");
  const int64_t poisoned = sdk::CountPoisoned(buffer);
  context.Expect("form.poison",
                 poisoned == buffer.size() ? "" : fmt::format("{} of {} elements", poisoned, buffer.size()),
                 "every element of `empty` holds the poison pattern", fmt::format("{} elements", poisoned));
}

void CheckShapes(CheckContext& context, DType dtype) {
  const auto op = Pointwise(context);
  if (op.empty()) {
    context.Skip("form.zero_dim", "none of add, mul, sub is claimed");
    return context.Skip("form.no_elements", "none of add, mul, sub is claimed");
  }
  ExactOrRefused(context, "form.zero_dim",
                 "    tensors:\n      a: {dtype: $d, shape: [], fill: {values: [2]}}\n" +
                     Binary(op, "a", "a") + "    observe: [r]\n",
                 dtype);
  ExactOrRefused(context, "form.scalar",
                 std::string("    tensors:\n      a: {dtype: $d, shape: [2], fill: {values: [2, 1]}}\n") +
                     Binary(op, "a", "2") + "    observe: [r]\n",
                 dtype);
  // The case language has no tensors without elements; backends meet them all the same.
  auto test_case = SmallProgram("    tensors:\n      a: {dtype: $d, shape: [1, 3], fill: ones}\n" +
                                    Binary(op, "a", "a") + "    observe: [r]\n",
                                dtype);
  if (!test_case) return context.Fail("form.no_elements", test_case.error().Text(), "a bug of ulpscope");
  test_case->tensors[0].shape = {0, 3};
  const SessionRun run = context.Warm().Run(*test_case, {{"a", TensorData::Zeros(dtype, {0, 3})}});
  if (run.Completed()) {
    return context.Expect("form.no_elements",
                          DifferenceOf(run.observation.values.at("r"), TensorData::Zeros(dtype, {0, 3})),
                          "no elements, the same shape", "[0, 3] stays so");
  }
  SkipIfRefused(context, "form.no_elements", run, "no elements, or a refusal with a reason");
}

/// The same program twice on data that has to be rounded: the same bits.
void CheckRepeat(CheckContext& context, std::string_view op, DType dtype) {
  const auto program = PrepareUnanswered(
      context, "run.repeat",
      "    tensors:\n      a: {dtype: $d, shape: [16, 16], fill: normal}\n      b: {dtype: $d, shape: [16, "
      "16], fill: normal}\n" +
          Binary(op, "a", "b") + "    observe: [r, a]\n",
      dtype);
  if (!program) return;
  const SessionRun first = context.Warm().Run(program->test_case, program->exact.inputs);
  const SessionRun second = context.Warm().Run(program->test_case, program->exact.inputs);
  if (!first.Completed() || !second.Completed()) {
    return context.Fail("run.repeat", Said(first.Completed() ? second : first), "two results");
  }
  std::string problem;
  for (const auto& [name, tensor] : first.observation.values) {
    const TensorData* again = Lookup(second.observation.values, name);
    if (again == nullptr || *again != tensor) problem = name + " differs between two runs";
  }
  context.Expect("run.repeat", problem, "the same bits", "the same bits twice");
  const bool same = first.observation.values.at("a") == program->exact.inputs.at("a");
  context.Expect("run.observe_input", same ? "" : "other bits than were handed over",
                 "a tensor of the program, as it is at the end", "as handed over");
}

void CheckFp(CheckContext& context, std::string_view op, DType dtype) {
  const auto program =
      Prepare(context, "run.fp", std::string(kTwoByTwo) + Binary(op, "a", "b") + "    observe: [r]\n", dtype);
  if (!program) return;
  const SessionRun run = context.Warm().Run(program->test_case, program->exact.inputs);
  if (!run.Completed())
    return context.Fail("run.fp", Said(run), "a result with the state of the floating-point unit");
  const auto& [before, after] = std::pair(run.observation.fp_before, run.observation.fp_after);
  if (!before || !after) return context.Fail("run.fp", "not reported", "fp.before and fp.after");
  context.Expect("run.fp", run.observation.tainted, "MXCSR 0x1f80, subnormals kept, the threads asked for",
                 fmt::format("MXCSR {:#06x}, {}", before->mxcsr, Counted(before->threads, "thread")));
}

}  // namespace

void CheckPrograms(CheckContext& context) {
  Rows claimed;
  std::map<std::string, std::string> refused_everywhere;
  for (const OpRow& row : Ops()) {
    if (row.example.empty() || !Contains(context.info().ops, row.name)) continue;
    claimed.push_back(&row);
    refused_everywhere[std::string(row.name)] = "";
  }
  const auto dtypes = ClaimedDTypes(context);
  if (claimed.empty() || dtypes.empty())
    return context.Fail("run.exact", "no op of the vocabulary in a floating dtype", "something to compute");
  for (const auto& name : context.info().dtypes) {
    const auto dtype = ParseDType(name);
    if (dtype && IsFloating(*dtype) && std::ranges::count(dtypes, *dtype) == 0)
      context.Skip(fmt::format("run.exact {}", name), "claimed, and not asked for (--dtype)");
  }
  for (const DType dtype : dtypes) {
    DTypeRuns runs(context, dtype);
    runs.Run(claimed);
    runs.Report(&refused_everywhere);
    if (context.GaveUp()) return;
  }
  const auto never = Keys(refused_everywhere);
  context.Expect("run.claimed", Join(never, ", ") + (never.empty() ? "" : " refused in every dtype"),
                 "what is claimed is computed in some dtype", fmt::format("{} ops computed", claimed.size()));
}

void CheckForms(CheckContext& context) {
  const auto dtypes = ClaimedDTypes(context);
  const auto op = AnyBinary(context);
  if (op.empty() || dtypes.empty())
    return context.Skip("form", "none of add, mul, sub, matmul, mm is claimed");
  const bool has_float32 = Contains(dtypes, DType::kFloat32);
  const DType dtype = has_float32 ? DType::kFloat32 : dtypes.front();
  CheckFp(context, op, dtype);
  CheckRepeat(context, op, dtype);
  CheckOut(context, op, dtype);
  CheckPoison(context, op, dtype);
  ExactOrRefused(
      context, "form.strides",
      "    tensors:\n      a: {dtype: $d, shape: [2, 3], layout: {transpose: [0, 1]}, fill: {values: [1, 2, "
      "3, 4, 0, -1]}}\n"
      "      b: {dtype: $d, shape: [3, 2], layout: non_contiguous, fill: {values: [2, 0, 1, -1, 1, 1]}}\n" +
          std::string(op == "matmul" || op == "mm" ? Binary(op, "a", "b") : Binary(op, "a", "a")) +
          "    observe: [r, b]\n",
      dtype);
  CheckShapes(context, dtype);
}

namespace {

/// Programs with one part that no adapter has.
void CheckRefusedPrograms(CheckContext& context, const Prepared& good, DType dtype) {
  const auto expect_refused = [&](const std::string& check, const Case& spoiled, std::string_view word) {
    if (context.GaveUp()) return;
    const SessionRun run = context.Warm().Run(spoiled, good.exact.inputs);
    const bool named = run.Refused() && run.observation.outcome.text.find(word) != std::string::npos;
    context.Expect(check, named ? "" : Said(run), fmt::format("unsupported, with {} in the reason", word),
                   Said(run));
  };
  Case spoiled = good.test_case;
  spoiled.program[0].op = "no_such_op";
  expect_refused("refuse.op", spoiled, "no_such_op");
  spoiled = good.test_case;
  spoiled.program[0].attrs["no_such_attribute"] = Attr{int64_t{1}};
  expect_refused("refuse.attribute", spoiled, "no_such_attribute");
  spoiled = good.test_case;
  spoiled.observe = {"r", "r.no_such_thing"};
  expect_refused("refuse.observation", spoiled, "no_such_thing");
  spoiled = good.test_case;
  Step scope;
  scope.op = "no_such_scope";
  scope.steps = good.test_case.program;
  spoiled.program = {scope};
  expect_refused("refuse.scope", spoiled, "no_such_scope");
  // An error of the framework's own: shapes that do not fit.
  spoiled = good.test_case;
  spoiled.tensors[1].shape = {3, 5};
  auto inputs = good.exact.inputs;
  inputs["b"] = TensorData::Zeros(dtype, {3, 5});
  const SessionRun raised = context.Warm().Run(spoiled, inputs);
  const Outcome& outcome = raised.observation.outcome;
  const bool said =
      raised.broken.empty() && !outcome.text.empty() &&
      (raised.Refused() || (outcome.kind == OutcomeKind::kRaised && !outcome.error_class.empty()));
  context.Expect("refuse.shapes", said ? "" : Said(raised),
                 "raised with a class and a text, or unsupported with a reason", Said(raised));
}

/// Files that a harness never writes.
void CheckSpoiledInputs(CheckContext& context, const Prepared& good) {
  const auto expect_answer = [&](const std::string& check, const std::string& file) {
    if (context.GaveUp()) return;
    const SessionRun run = context.Warm().RunOn(good.test_case, file);
    const bool answered = run.broken.empty() && !run.Completed() && !run.observation.outcome.text.empty();
    context.Expect(check, answered ? "" : Said(run),
                   "an answer that says what is wrong with the inputs, no exit", Said(run));
  };
  expect_answer("refuse.no_inputs", context.Warm().File("there-is-no-such-file"));
  auto bytes = sdk::FormatSafetensors(good.exact.inputs);
  bytes.resize(bytes.size() - 3);
  const std::string cut = context.Warm().File("cut.safetensors");
  (void)WriteFileBytes(cut, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  expect_answer("refuse.cut_inputs", cut);
  const std::string other = context.Warm().File("other.safetensors");
  (void)sdk::WriteSafetensors(other, {{"a", good.exact.inputs.at("a")}});
  expect_answer("refuse.missing_input", other);
}

}  // namespace

void CheckRefusedRuns(CheckContext& context) {
  const auto dtypes = ClaimedDTypes(context);
  const auto op = AnyBinary(context);
  if (op.empty() || dtypes.empty()) return context.Skip("refuse", "no program to spoil");
  const auto good =
      Prepare(context, "refuse", std::string(kTwoByTwo) + Binary(op, "a", "b") + "    observe: [r]\n",
              dtypes.front());
  if (!good) return;
  CheckRefusedPrograms(context, *good, dtypes.front());
  CheckSpoiledInputs(context, *good);
  const SessionRun after = context.Warm().Run(good->test_case, good->exact.inputs);
  context.Expect("refuse.afterwards", after.Completed() ? WrongValue(after, good->exact.values) : Said(after),
                 "the next program runs as if nothing had been", "exact");
}

}  // namespace ulpscope
