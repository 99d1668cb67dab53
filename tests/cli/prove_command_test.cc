// `prove: true` through the program: companions are run, recorded, judged again, explained and reproduced, and are no rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/base/build_info.h"
#include "harness/judge/judge.h"
#include "tests/golden_file.h"
#include "tests/reports/json_schema.h"
#include "tests/support/program.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kProveCase = R"(
about: is the product summed in float32?
cases:
  - name: proved
    tags: [ci]
    tensors:
      x: {dtype: bfloat16, shape: [16, 64], fill: normal}
      w: {dtype: bfloat16, shape: [64, 16], fill: normal}
    program: [{op: matmul, of: [x, w], as: y}]
    observe: [y]
    contract: {status: de_facto, prove: true, accept: {y: {acc: [at_least_float32], mid: [none]}}}
  - name: open
    tags: [ci]
    tensors:
      x: {dtype: bfloat16, shape: [16, 64], fill: normal}
      w: {dtype: bfloat16, shape: [64, 16], fill: normal}
    program: [{op: matmul, of: [x, w], as: y}]
    observe: [y]
    contract: {status: de_facto, accept: {y: {acc: [at_least_float32], mid: [none]}}}
)";
constexpr const char* kHonestBackend =
    "emulated:model=in=as_is;prod=exact;acc=float32;mid=none;out=float32_rne";
constexpr const char* kNarrowBackend =
    "emulated:model=in=as_is;prod=exact;acc=float16;mid=none;out=float32_rne";

/// Text without the line breaks of a terminal.
std::string Flat(const std::string& text) {
  std::string flat;
  for (const char c : text) {
    if (c != ' ' && c != '\n')
      flat += c;
    else if (!flat.ends_with(' '))
      flat += ' ';
  }
  return flat;
}

class ProveCommand : public ::testing::Test {
 protected:
  ProveCommand() { std::ofstream(dir_ / "mine.yaml") << kProveCase; }
  testing::ProgramOutcome Run(const std::string& arguments) const {
    return testing::RunProgram(dir_, arguments);
  }
  json Report(const std::string& folder) const {
    return json::parse(testing::ReadAll((dir_ / folder / "report.json").string()));
  }
  /// Records of one type that the journal of `folder` holds of the case `id`.
  int64_t Records(const std::string& folder, const std::string& type, const std::string& id) const {
    std::ifstream journal(dir_ / folder / "journal.jsonl");
    int64_t count = 0;
    for (std::string line; std::getline(journal, line);) {
      const json record = json::parse(line)["record"];
      if (record["type"] == type && record.value("case", "") == id) ++count;
    }
    return count;
  }

  const testing::TestFolder folder_;
  const fs::path dir_ = folder_.path();
};

TEST_F(ProveCommand, DecidesAndItsInputsAreNoRows) {
  const std::string honest = ShellQuote(kHonestBackend);
  const auto open = Run("run mine.yaml -q -k open -b " + honest);
  EXPECT_EQ(open.code, 1);
  EXPECT_THAT(open.out, HasSubstr("INCONCLUSIVE"));
  EXPECT_THAT(Flat(open.out), HasSubstr("add prove: true to the contract"));
  // The likely explanation is reported with the others that are as likely.
  EXPECT_THAT(Flat(open.out), HasSubstr("; sums in 12 bits or more would look the same; "));
  const auto proved = Run("run mine.yaml -k proved -o r -v -b " + honest + "," + ShellQuote(kNarrowBackend));
  EXPECT_EQ(proved.code, 1) << proved.out << proved.err;
  EXPECT_THAT(proved.out, HasSubstr("1 PASS  1 FAIL"));
  EXPECT_THAT(Flat(proved.out),
              HasSubstr("judged on 6 auxiliary inputs too: single, cancel, swamp, wide, half, normal"));
  EXPECT_THAT(proved.out, HasSubstr("1 case x 2 backends"));
  const json report = Report("r");
  testing::SchemaValidator validator(
      json::parse(testing::ReadAll(SourceDir() + "/reports/report.schema.json")));
  EXPECT_EQ(validator.Validate(report), std::vector<std::string>{});
  ASSERT_EQ(report["results"].size(), 2u);
  const json& first = report["results"][0];
  EXPECT_EQ(first["id"], "mine/proved");
  EXPECT_EQ(first["values"]["y"]["contract"], "CONFORMS");
  ASSERT_EQ(first["proved_on"].size(), 6u);
  EXPECT_EQ(first["proved_on"][2], json({{"input", "swamp"}}));
  std::string excluded;
  for (const json& index : first["values"]["y"]["excluded"])
    excluded += report["exclusions"][index.get<size_t>()].dump();
  EXPECT_THAT(excluded, HasSubstr("on the auxiliary input single: "));
  EXPECT_EQ(Records("r", "result", "mine/proved~swamp"), 2);
}

TEST_F(ProveCommand, JudgedAgainItSaysTheSame) {
  const auto run = Run("run mine.yaml -q -k proved -o r -b " + ShellQuote(kHonestBackend));
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  json before = Report("r");
  EXPECT_EQ(Run("judge r mine.yaml").code, 0);
  json after = Report("r");
  before.erase("volatile");
  after.erase("volatile");
  EXPECT_EQ(before, after);
  // From the record alone: every companion was classified as it was run, and none is run again.
  const std::string classified = testing::ReadAll((dir_ / "r/classified.jsonl").string());
  EXPECT_THAT(classified, HasSubstr("mine/proved~cancel"));
  const auto explained = Run("explain mine.yaml --run r");
  EXPECT_EQ(explained.code, 4) << "a file is no case";
}

TEST_F(ProveCommand, AResumedRunTakesCompanionsFromItsJournal) {
  const std::string arguments = "run mine.yaml -q -k proved -o r -b " + ShellQuote(kHonestBackend);
  ASSERT_EQ(Run(arguments).code, 0);
  const json before = Report("r")["results"];
  ASSERT_EQ(Run(arguments + " --resume").code, 0);
  EXPECT_EQ(Report("r")["results"], before);
  for (const char* id : {"mine/proved", "mine/proved~single", "mine/proved~wide"})
    EXPECT_EQ(Records("r", "begin", id), 1) << id << ": begun once";
}

TEST_F(ProveCommand, ACompanionThatCrashesProvesNothingAndIsNamed) {
  const auto run =
      Run("run mine.yaml -k proved -v -o r -b " + ShellQuote("faulty:fault=segv,case=mine/proved~swamp"));
  const json result = Report("r")["results"][0];
  EXPECT_EQ(result["outcome"]["kind"], "completed") << run.out;
  ASSERT_EQ(result["proved_on"].size(), 6u) << run.out;
  EXPECT_EQ(result["proved_on"][2]["input"], "swamp");
  EXPECT_EQ(result["proved_on"][2]["left_out"], "crashed SIGSEGV");
  EXPECT_FALSE(result["proved_on"][1].contains("left_out"));
  EXPECT_THAT(Flat(run.out), HasSubstr("swamp (crashed SIGSEGV: it proves nothing)"));
}

TEST_F(ProveCommand, OnlyACaseThatSaysProveHasFurtherInputs) {
  const auto none = Run("repro 'seeds/matmul_out/square_64~swamp@emulated' -o one");
  EXPECT_EQ(none.code, 4);
  EXPECT_THAT(none.err, HasSubstr("has no such auxiliary input"));
  EXPECT_EQ(Run("run 'mine.yaml~swamp' -b emulated").code, 4) << "a companion is named by its case's id";
}

TEST_F(ProveCommand, LintSaysWhatProveCannotReach) {
  std::ofstream(dir_ / "sum.yaml") << R"(
cases:
  - name: c
    tags: [ci]
    tensors: {x: {dtype: bfloat16, shape: [16, 64], fill: normal}}
    program: [{op: cumsum, of: [x], dim: 1, as: y}]
    observe: [y]
    contract: {status: de_facto, prove: true, accept: {y: {acc: [at_least_float32]}}}
)";
  const auto sum = Run("lint sum.yaml");
  EXPECT_THAT(sum.out + sum.err, HasSubstr("prove: true may leave 'y' open"));
  // No crossed rows of float8: such a case is run, left open by its own inputs, and stops no other case.
  std::ofstream(dir_ / "eight.yaml") << R"(
cases:
  - name: c
    tags: [ci]
    tensors: {x: {dtype: float8_e4m3fn, shape: [16, 64], fill: normal}, w: {dtype: float8_e4m3fn, shape: [64, 16], fill: normal}}
    program: [{op: mm, of: [x, w], out_dtype: float32, as: y}]
    observe: [y]
    contract: {status: de_facto, prove: true, accept: {y: {acc: [at_least_float32]}}}
)";
  const auto eight = Run("lint eight.yaml");
  EXPECT_THAT(Flat(eight.out + eight.err), HasSubstr("8 or more significant bits"));
  const auto run = Run("run eight.yaml -q -o e -b emulated");
  EXPECT_EQ(Report("e")["counts"]["INCONCLUSIVE"], 1) << run.err;
  const auto good = Run("lint mine.yaml");
  EXPECT_THAT(good.out + good.err, Not(HasSubstr("prove: true may leave")));
}

}  // namespace
}  // namespace ulpscope
