// `ulpscope doctor --adapter`: good adapters pass, and every fault of the faulty adapter is found.
#include <gtest/gtest.h>

#include <map>
#include <regex>

#include "harness/base/build_info.h"
#include "harness/conform/adapter_programs.h"
#include "tests/support/bin_dir.h"
#include "tests/support/program.h"

namespace ulpscope {
namespace {

using testing::RunProgram;

std::string Adapter(const std::string& name) { return ShellQuote(testing::BinDir() + "/" + name); }

/// The numbers of the closing line: passed, failed, skipped.
std::array<int, 3> Counts(const std::string& out) {
  std::smatch match;
  const std::regex closing(R"((\d+) passed, (\d+) failed, (\d+) skipped\n$)");
  if (!std::regex_search(out, match, closing)) return {-1, -1, -1};
  return {std::stoi(match[1]), std::stoi(match[2]), std::stoi(match[3])};
}

TEST(AdapterPrograms, AreExactInEveryFloatingDType) {
  int checked = 0;
  for (const DType dtype : AllDTypes()) {
    if (!IsFloating(dtype)) continue;
    for (const OpRow& row : Ops()) {
      if (row.example.empty()) continue;
      const OpRow* const one[] = {&row};
      const auto test_case = ProgramOf(one, dtype);
      ASSERT_TRUE(test_case) << row.name << ": " << test_case.error().Text();
      const auto exact = AnswerExactly(*test_case);
      EXPECT_TRUE(exact) << row.name << " " << Name(dtype) << ": " << exact.error().Text();
      ++checked;
    }
  }
  EXPECT_GT(checked, 250);
}

TEST(AdapterPrograms, ADifferenceIsFound) {
  TensorData one = TensorData::Zeros(DType::kFloat32, {2});
  TensorData other = one;
  EXPECT_EQ(DifferenceOf(one, other), "");
  other.Set(1, 0x1p-149);
  EXPECT_NE(DifferenceOf(one, other), "");
  EXPECT_EQ(DifferenceOf(one, TensorData::Zeros(DType::kFloat64, {2})), "") << "the dtype is the backend's";
  EXPECT_NE(DifferenceOf(one, TensorData::Zeros(DType::kFloat32, {2, 1})), "");
}

TEST(DoctorAdapter, PassesWhatKeepsTheProtocol) {
  const testing::TestFolder folder;
  for (const std::string name : {"ulpscope-emulated", "ulpscope-example-loops"}) {
    const auto outcome = RunProgram(folder.path(), "doctor --adapter " + Adapter(name));
    const auto counts = Counts(outcome.out);
    EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
    EXPECT_GT(counts[0], 30) << outcome.out;
    EXPECT_EQ(counts[1], 0) << outcome.out;
  }
}

TEST(DoctorAdapter, FindsTheKnobThatReadsBackAnotherValue) {
  const testing::TestFolder folder;
  const auto outcome = RunProgram(folder.path(), "doctor --adapter " + Adapter("ulpscope-faulty"));
  EXPECT_EQ(outcome.code, 1) << outcome.out << outcome.err;
  EXPECT_EQ(Counts(outcome.out)[1], 1) << "without a fault that is all\n" << outcome.out;
  EXPECT_NE(outcome.out.find("FAIL  knob planted_lie=on"), std::string::npos) << outcome.out;
}

/// Every fault, and a check that has to fail for it. A fault that is not listed is harmless to a caller of
/// the protocol: noise on stdout and stderr, files and processes left behind (the harness captures the one
/// and removes the other).
const std::map<std::string, std::string> kFaults{
    {"segv", "run.exact"},
    {"fpe", "run.exact"},
    {"abort", "run.exact"},
    {"sigkill", "run.exact"},
    {"exit0", "run.exact"},
    {"exit3", "run.exact"},
    {"order", "run."},
    {"orphan_segv", "run.exact"},
    {"die_after", "run."},
    {"hang", "run.exact"},
    {"sigstop", "run.exact"},
    {"slow_drip", "run.exact"},
    {"memory", "run.exact"},
    {"child_memory", "run.exact"},
    {"bad_alloc", "run.claimed"},
    {"garbage", "run.exact"},
    {"not_utf8", "run.exact"},
    {"no_object", "run.exact"},
    {"two_lines", "run.exact"},
    {"late_line", "run."},
    {"wrong_id", "run.exact"},
    {"unknown_outcome", "run.exact"},
    {"wrong_type", "run.exact"},
    {"unasked_observation", "run.exact"},
    {"short_frame", "run.exact"},
    {"oversize_frame", "run.exact"},
    {"deep_json", "run.exact"},
    {"closed_socket", "run.exact"},
    {"wrong_size", "run.exact"},
    {"wrong_dtype", "run.exact"},
    {"missing_tensor", "run.exact"},
    {"extra_tensor", "run.exact"},
    {"no_outputs", "run.exact"},
    {"fifo_outputs", "run.exact"},
    {"linked_outputs", "run.exact"},
    {"wrong_shape", "run.exact"},
    {"bytes_after", "run.exact"},
    {"surrogate", "run.exact"},
    {"answer_less", "run.claimed"},
    {"answer_more", "run.claimed"},
    {"raise", "run.claimed"},
    {"raise_bytes", "run.claimed"},
    {"nan", "run.exact"},
    {"unwritten", "run.exact"},
    {"ftz", "run."},
    {"rounding", "run."},
    {"threads", "run."},
    {"nondeterministic", "run."},
    {"trace_circle", "(run|trace)"},
    {"start_crash", "hello"},
    {"start_exit", "hello"},
    {"start_hang", "hello"},
    {"start_garbage", "hello"},
    {"start_protocol", "hello"},
    {"start_backend", "hello"},
    {"start_refused", "hello"},
};

class Fault : public ::testing::TestWithParam<std::pair<const std::string, std::string>> {};

TEST_P(Fault, IsFound) {
  const auto& [fault, check] = GetParam();
  const testing::TestFolder folder;
  const auto outcome =
      RunProgram(folder.path(), "doctor --timeout 1.5 --adapter " + Adapter("ulpscope-faulty") +
                                    " -b faulty:fault=" + fault);
  EXPECT_EQ(outcome.code, 1) << outcome.out << outcome.err;
  EXPECT_GT(Counts(outcome.out)[1], 0) << outcome.out;
  EXPECT_TRUE(std::regex_search(outcome.out, std::regex("(^|\n)FAIL  " + check))) << outcome.out;
}

INSTANTIATE_TEST_SUITE_P(DoctorAdapter, Fault, ::testing::ValuesIn(kFaults.begin(), kFaults.end()),
                         [](const auto& parameter) { return parameter.param.first; });

TEST(DoctorAdapter, KnowsEveryFaultThereIs) {
  // tests/faults.yaml is complete (tests/run holds it against the adapter); what is not found here is
  // harmless.
  std::ifstream file(SourceDir() + "/tests/faults.yaml");
  const std::regex row(R"(\{fault: (\w+),)");
  std::vector<std::string> harmless;
  for (std::string line; std::getline(file, line);) {
    std::smatch match;
    if (std::regex_search(line, match, row) && !kFaults.contains(match[1])) harmless.push_back(match[1]);
  }
  // A trace that lies in a form that is right is the judge's to find, from the numbers.
  EXPECT_EQ(harmless, (std::vector<std::string>{
                          "none", "stdout_flood", "stderr_flood", "orphan", "temporary_files", "shm_litter",
                          "trace_rounds", "trace_hides", "trace_redundant", "nan_duration", "start_slow"}));
}

TEST(DoctorAdapter, SaysWhatCannotBeAsked) {
  const testing::TestFolder folder;
  const auto absent = RunProgram(folder.path(), "doctor --adapter ./there-is-none");
  EXPECT_EQ(absent.code, 4) << absent.out;
  const auto other =
      RunProgram(folder.path(), "doctor --adapter " + Adapter("ulpscope-faulty") + " -b openblas");
  EXPECT_EQ(other.code, 4) << other.out;
  EXPECT_NE(other.err.find("does not serve openblas"), std::string::npos) << other.err;
  const auto no_adapter = RunProgram(folder.path(), "doctor something");
  EXPECT_EQ(no_adapter.code, 4) << no_adapter.out;
}

}  // namespace
}  // namespace ulpscope
