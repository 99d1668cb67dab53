// Faults that a run meets on other people's machines: closed streams, planted files, edited cases, damaged
// records, odd names. Each is recovered from, or is an error that names it; none hangs, and none gives a
// verdict about something else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "backends/sdk/safetensors.h"
#include "harness/record/journal_format.h"
#include "harness/run/protocol.h"
#include "tests/support/program.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class Hostile : public ::testing::Test {
 protected:
  Hostile() { WriteCases("mine.yaml", "neg"); }

  void WriteCases(const std::string& name, const std::string& op) const {
    std::ofstream file(dir_ / name);
    file << "cases:\n";
    for (const char* one : {"alpha", "beta"}) {
      file << "  - name: " << one
           << "\n    tensors:\n      x: {dtype: bfloat16, shape: [3, 4], fill: normal}\n"
              "      y: {dtype: bfloat16, shape: [4, 2], fill: normal}\n    program:\n"
              "      - {op: matmul, of: [x, y], as: product}\n      - {op: "
           << op << ", of: [product], as: result}\n    observe: [product, result]\n";
    }
  }

  testing::ProgramOutcome Run(const std::string& arguments, const std::string& before = "") const {
    return testing::RunProgram(dir_, arguments, before);
  }

  testing::ProgramOutcome RunInto(const std::string& out, const std::string& more = "") const {
    return Run("run mine.yaml -q -b emulated -o " + out + " " + more);
  }

  std::string Read(const std::string& file) const { return testing::ReadAll((dir_ / file).string()); }
  nlohmann::json Report(const std::string& run) const {
    return nlohmann::json::parse(Read(run + "/report.json"));
  }

  const testing::TestFolder folder_;
  const fs::path dir_ = folder_.path();
};

TEST_F(Hostile, OldBitsOfACaseThatHasChangedAreNotJudgedAgainstItsNewInputs) {
  ASSERT_EQ(RunInto("r").code, 0);
  WriteCases("mine.yaml", "abs");
  ASSERT_EQ(RunInto("new").code, 0);
  // Resumed after the edit and killed before anything ran: the journal knows the new case and its old result.
  const std::string text = Read("r/journal.jsonl");
  const auto journal = ParseJournal(Read("new/journal.jsonl"));
  ASSERT_TRUE(journal);
  nlohmann::json header = journal->records.front();
  header.erase("n");  // it comes later than in the journal that it is from
  header["id"] = ParseJournal(text)->records.front()["id"];
  std::ofstream(dir_ / "r/journal.jsonl", std::ios::app) << JournalLine(header);
  const auto judged = Run("judge r mine.yaml --json judged.json");
  EXPECT_EQ(judged.code, 6) << judged.out << judged.err;
  const auto report = nlohmann::json::parse(Read("judged.json"));
  EXPECT_EQ(report["results"].size(), 2U);
  for (const auto& result : report["results"]) EXPECT_EQ(result["status"], "NOT_RUN");
  EXPECT_EQ(RunInto("r", "--resume").code, 0);
  EXPECT_EQ(Report("r")["results"], Report("new")["results"]);
}

TEST_F(Hostile, ClosedStandardStreamsAreNotTheJournal) {
  for (const char* closed : {"<&- >&- 2>&-", "2>&-", ">&-", "<&-"}) {
    fs::remove_all(dir_ / "r");
    const std::string command = "cd " + ShellQuote(dir_.string()) + " && exec >/dev/null 2>&1 && " +
                                ShellQuote(testing::BinDir() + "/ulpscope") +
                                " run mine.yaml -b emulated -o r " + closed;
    EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 0) << command;
    const auto journal = ParseJournal(Read("r/journal.jsonl"));
    ASSERT_TRUE(journal) << closed << ": " << journal.error().Text();
    EXPECT_FALSE(journal->torn);
    EXPECT_EQ(Report("r")["run"]["complete"], true);
  }
}

TEST_F(Hostile, SecretsOfTheEnvironmentStayThere) {
  ASSERT_EQ(Run("run mine.yaml -q -b emulated -o r",
                "NVIDIA_API_KEY=swordfish TORCH_HF_TOKEN=swordfish NVIDIA_TF32_OVERRIDE=0")
                .code,
            0);
  const auto environment = Report("r")["run"]["environment"];
  EXPECT_EQ(environment.value("NVIDIA_API_KEY", ""), "(set, not recorded)");
  EXPECT_EQ(environment.value("NVIDIA_TF32_OVERRIDE", ""), "0") << "what changes numbers is recorded";
  for (const auto& entry : fs::recursive_directory_iterator(dir_ / "r")) {
    if (!entry.is_regular_file()) continue;
    EXPECT_THAT(testing::ReadAll(entry.path().string()), Not(HasSubstr("swordfish"))) << entry.path();
  }
}

TEST_F(Hostile, APipeInThePlaceOfAnInputIsTakenAway) {
  const std::string file = (dir_ / "0.in.safetensors").string();
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  ASSERT_TRUE(sdk::WriteSafetensors(file, {{"x", TensorData::Zeros(DType::kFloat32, {2})}}));
  EXPECT_TRUE(fs::is_regular_file(file));
  EXPECT_TRUE(sdk::ReadSafetensors(file));
}

TEST_F(Hostile, AnswersKeepTheBoundsOfTheProtocol) {
  const Case test_case;
  RunRequest request;
  request.id = 1;
  request.test_case = &test_case;
  const auto answer = [&](const nlohmann::json& more) {
    nlohmann::json message{{"id", 1}, {"outcome", {{"kind", "completed"}}}};
    message.update(more);
    return ParseRunAnswer(message.dump(), request);
  };
  const auto nodes = [](int count) {
    nlohmann::json all = nlohmann::json::array();
    for (int i = 0; i < count; ++i)
      all.push_back({{"id", i}, {"parent", -1}, {"stage", "hlo"}, {"kind", "compute"}, {"op", "x"}});
    return nlohmann::json{{"nodes", all}};
  };
  const auto most = answer(nodes(20000));
  EXPECT_TRUE(most) << most.error().Text();
  ASSERT_FALSE(answer(nodes(20001)));
  EXPECT_THAT(answer(nodes(20001)).error().message, HasSubstr("20001 trace nodes"));
  const auto cast = [&](const nlohmann::json& shape, int64_t bytes) {
    return answer({{"casts",
                    {{{"from", "float32"},
                      {"to", "bfloat16"},
                      {"shape", shape},
                      {"bytes", bytes},
                      {"under", ""},
                      {"stage", "hlo"},
                      {"redundant", false}}}}});
  };
  EXPECT_TRUE(cast({2, 3}, 24)) << cast({2, 3}, 24).error().Text();
  EXPECT_FALSE(cast({int64_t{1} << 62, 8}, 24)) << "the product of the extents overflows";
  EXPECT_FALSE(cast({-1, 8}, 24));
  EXPECT_FALSE(cast({2, 3}, int64_t{1} << 62));
  const auto times = answer({{"durations_ms", {{"run", "nan"}, {"load", -1.0}, {"build", 2.0}}}});
  ASSERT_TRUE(times);
  EXPECT_EQ(times->durations_ms, (std::map<std::string, double>{{"build", 2.0}}));
}

TEST_F(Hostile, AnotherSelectionAddsToAResumedRun) {
  ASSERT_EQ(RunInto("whole").code, 0);
  ASSERT_EQ(RunInto("r", "-k alpha").code, 0);
  const auto more = RunInto("r", "-k beta --resume");
  EXPECT_EQ(more.code, 0) << more.err;
  EXPECT_EQ(Report("r")["results"], Report("whole")["results"]);
}

TEST_F(Hostile, AFileNameThatIsNoUtf8IsAnErrorBeforeAnythingRuns) {
  fs::copy(dir_ / "mine.yaml", dir_ / "caf\xe9.yaml");
  const auto refused = Run("run 'caf\xe9.yaml' -q -b emulated -o r");
  EXPECT_EQ(refused.code, 4) << refused.out;
  EXPECT_THAT(refused.err, HasSubstr("is no UTF-8"));
  EXPECT_FALSE(fs::exists(dir_ / "r"));
}

TEST_F(Hostile, NamesOfAnAdapterDoNotReachTheTerminalRaw) {
  std::ofstream(dir_ / "evil")
      << "#!/bin/bash\n"
         "read -r line <&3; printf '%s\\n' "
         "'{\"protocol\":1,\"name\":\"x\\u001b[31m\",\"backends\":[\"a\\u001b[31m\",\"b\"],"
         "\"devices\":[\"cpu\"],\"versions\":{\"v\\u001b[31m\":\"1\"}}' >&3\n";
  fs::permissions(dir_ / "evil", fs::perms::owner_all);
  const auto outcome = Run("doctor --adapter ./evil --timeout 1");
  EXPECT_NE(outcome.code, 0);
  EXPECT_THAT(outcome.out + outcome.err, Not(HasSubstr("\x1b")));
}

TEST_F(Hostile, AnAdapterThatTakesTheNameOfABackendIsSaidTo) {
  fs::create_symlink(fs::path(testing::BinDir()) / "ulpscope-faulty", dir_ / "mine");
  const auto outcome = Run("run mine.yaml -q -b faulty --adapter ./mine -o r");
  EXPECT_THAT(outcome.err, HasSubstr("note: faulty is what ./mine serves"));
  EXPECT_THAT(Run("run mine.yaml -q -b faulty -o s").err, Not(HasSubstr("note:")));
}

TEST_F(Hostile, ARenderedRunExitsAsTheRunDid) {
  std::ofstream(dir_ / "mine.yaml", std::ios::app)
      << "    contract: {status: documented, accept: {product: {acc: [bfloat16]}}}\n";
  ASSERT_EQ(RunInto("r").code, 1);
  EXPECT_EQ(Run("report r --json again.json").code, 1);
}

TEST_F(Hostile, AJournalThatIsALinkIsNotFollowed) {
  std::ofstream(dir_ / "precious") << "keep me";
  fs::create_directory(dir_ / "r");
  fs::create_symlink(dir_ / "precious", dir_ / "r/journal.jsonl");
  const auto refused = RunInto("r");
  EXPECT_EQ(refused.code, 4);
  EXPECT_THAT(refused.err, HasSubstr("cannot write r/journal.jsonl"));
  EXPECT_EQ(Read("precious"), "keep me");
}

TEST_F(Hostile, NumbersAreReadAsTheyStandOrRefused) {
  for (const char* wrong : {"--timeout nan", "--timeout inf", "--timeout 0", "--timeout 1e9", "--seed 010",
                            "--seed 99999999999999999999", "--seed 0x10"}) {
    const auto outcome = RunInto("never", wrong);
    EXPECT_EQ(outcome.code, 4) << wrong;
    EXPECT_FALSE(fs::exists(dir_ / "never")) << wrong;
  }
  EXPECT_EQ(RunInto("r", "--timeout 0.5e2 --seed -7").code, 0);
  EXPECT_EQ(Report("r")["run"]["seed"], -7);
}

TEST_F(Hostile, ALineOfTheJournalThatIsGoneOrThereTwiceIsNoticed) {
  ASSERT_EQ(RunInto("r").code, 0);
  const std::string text = Read("r/journal.jsonl");
  const size_t begin = text.find(R"({"crc")", text.find(R"("type":"result")")),
               end = text.find('\n', begin) + 1;
  const std::string line = text.substr(begin, end - begin);
  for (const std::string& damaged :
       {text.substr(0, begin) + text.substr(end), text.substr(0, end) + line + text.substr(end)}) {
    std::ofstream(dir_ / "r/journal.jsonl") << damaged;
    const auto refused = Run("report r");
    EXPECT_EQ(refused.code, 4);
    EXPECT_THAT(refused.err, HasSubstr("a record before this one is missing or there twice"));
  }
}

TEST_F(Hostile, ADamagedTensorFileCostsItsOwnResultAlone) {
  ASSERT_EQ(RunInto("whole").code, 0);
  ASSERT_EQ(RunInto("r").code, 0);
  std::fstream(dir_ / "r/tensors/000000.safetensors", std::ios::in | std::ios::out).put('x');
  const auto again = RunInto("r", "--resume");
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(Report("r")["results"], Report("whole")["results"]);
}

}  // namespace
}  // namespace ulpscope
