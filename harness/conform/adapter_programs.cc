// The table of tiny programs, and their exact results.
#include "harness/conform/adapter_programs.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "harness/base/text.h"
#include "harness/casefile/generate.h"
#include "harness/casefile/load.h"
#include "oracles/oracle.h"

namespace ulpscope {
namespace {

struct Input {
  std::string_view name, shape, values, dtype = "$d";
};

constexpr std::array kInputs{
    Input{"a", "[2, 2]", "[1, 2, -1, 1]"},
    Input{"b", "[2, 2]", "[2, 0, 1, -1]"},
    Input{"c", "[2, 2]", "[1, 1, 0, 2]"},
    Input{"a3", "[1, 2, 2]", "[1, 2, -1, 1]"},
    Input{"b3", "[1, 2, 2]", "[2, 0, 1, -1]"},
    Input{"c3", "[1, 2, 2]", "[1, 1, 0, 2]"},
    Input{"bias", "[2]", "[1, -1]"},
    Input{"squares", "[2, 2]", "[1, 4, 4, 1]"},
    Input{"zero", "[2, 2]", "[0, 0, 0, 0]"},
    Input{"one", "[2, 2]", "[1, 1, 1, 1]"},
    Input{"signs", "[2, 2]", "[1, -1, -1, 1]"},
    Input{"column", "[2, 1]", "[2, -1]"},
    Input{"row", "[1, 2]", "[2, -1]"},
    Input{"a4", "[1, 1, 2, 2]", "[1, 2, -1, 1]"},
    Input{"b4", "[1, 1, 2, 2]", "[2, 0, 1, -1]"},
    Input{"one_each", "[2]", "[1, 1]"},
    Input{"index", "[2, 2]", "[1, 0, 0, 1]", "int64"},
    Input{"order", "[2]", "[1, 0]", "int64"},
    Input{"first", "[2]", "[0, 0]", "int64"},
    Input{"mask", "[2, 2]", "[1, 0, 0, 1]", "bool"},
};

/// The shared inputs that the example of `op` reads.
std::vector<std::string> InputsOf(const OpRow& op) {
  const size_t open = op.example.find("of: ["), close = op.example.find(']', open);
  if (open == std::string_view::npos) return {};
  const size_t first = open + std::string_view("of: [").size();
  return SplitOutsideParentheses(op.example.substr(first, close - first), ',');
}

std::string Replaced(std::string_view text, std::string_view what, std::string_view with) {
  std::string replaced;
  while (true) {
    const size_t at = text.find(what);
    replaced += text.substr(0, at);
    if (at == std::string_view::npos) return replaced;
    replaced += with;
    text.remove_prefix(at + what.size());
  }
}

/// The exact value of one element as a number of `dtype`; nothing where it is none.
bool IsNumberOf(const Reference& reference, DType dtype) {
  const FloatFormat* format = FormatOf(dtype);
  if (reference.kind != ReferenceKind::kExact && reference.kind != ReferenceKind::kCertified) return false;
  // A certified result of functions at 0 and 1 is off by far less than any half-way point of these small
  // numbers.
  if (std::abs(reference.lo) + reference.err > 0x1p-60) return false;
  return format == nullptr || RoundTo(reference.hi, *format) == reference.hi;
}

Result<TensorData> ExactValue(const CaseOracle& oracle, const std::string& name) {
  const auto shape = ULPSCOPE_TRY(oracle.Describe(name));
  TensorData exact = TensorData::Zeros(shape.declared, shape.shape);
  std::vector<int64_t> elements(static_cast<size_t>(exact.size()));
  std::iota(elements.begin(), elements.end(), 0);
  const auto references = oracle.References(name, elements);
  for (size_t i = 0; i < references.size(); ++i) {
    if (!IsNumberOf(references[i], exact.dtype)) {
      return Fail(
          fmt::format("{}: element {} is {}, which is no {}", name, i, references[i].hi, Name(exact.dtype)));
    }
    exact.Set(static_cast<int64_t>(i), references[i].hi);
  }
  return exact;
}

}  // namespace

std::string NameOfResult(const OpRow& op) { return "r_" + std::string(op.name); }

Result<Case> SmallProgram(std::string_view body, DType dtype) {
  const std::string text =
      "about: an adapter's conformance\ncases:\n  - name: program\n" + Replaced(body, "$d", Name(dtype));
  auto loaded = LoadCaseText(text, "doctor", "doctor", {});
  if (!loaded.errors.empty()) return Fail(loaded.errors.front());
  return std::move(loaded.cases.front());
}

Result<Case> ProgramOf(std::span<const OpRow* const> ops, DType dtype) {
  std::set<std::string> used;
  std::string steps;
  std::vector<std::string> observed;
  for (const OpRow* op : ops) {
    for (const auto& name : InputsOf(*op)) used.insert(name.substr(name.find_first_not_of(' ')));
    observed.push_back(NameOfResult(*op));
    steps += fmt::format("      - {{op: {}, {}, as: {}}}\n", op->name, op->example, observed.back());
  }
  std::string tensors;
  for (const Input& input : kInputs) {
    if (used.contains(std::string(input.name)))
      tensors += fmt::format("      {}: {{dtype: {}, shape: {}, fill: {{values: {}}}}}\n", input.name,
                             input.dtype, input.shape, input.values);
  }
  if (!tensors.empty()) tensors = "    tensors:\n" + tensors;
  return SmallProgram(
      fmt::format("{}    program:\n{}    observe: [{}]\n", tensors, steps, Join(observed, ", ")), dtype);
}

Result<ExactAnswer> AnswerExactly(const Case& test_case) {
  ExactAnswer answer;
  auto inputs = ULPSCOPE_TRY(MakeInputs(test_case, 0));
  answer.inputs = inputs;
  const auto oracle = ULPSCOPE_TRY(OpenCaseOracle(test_case, std::move(inputs)));
  for (const auto& name : test_case.observe) {
    auto value = ULPSCOPE_TRY(ExactValue(*oracle, name));
    answer.values.emplace(name, std::move(value));
  }
  return answer;
}

std::string DifferenceOf(const TensorData& found, const TensorData& expected) {
  // The dtype of a result is the backend's to choose, and shows in every report; its value is not.
  if (found.shape != expected.shape)
    return fmt::format("{} instead of {}", Describe(found.dtype, found.shape),
                       Describe(expected.dtype, expected.shape));
  for (int64_t i = 0; i < found.size(); ++i) {
    // A zero of either sign is the exact zero.
    if (found.At(i) == expected.At(i)) continue;
    return fmt::format("element {} is {:a} ({}), not {:a} ({})", i, found.At(i), found.At(i), expected.At(i),
                       expected.At(i));
  }
  return "";
}

}  // namespace ulpscope
