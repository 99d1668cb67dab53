// The program itself: exit codes, what goes to stdout and what to stderr, and that reports do not depend on
// the caller.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "harness/base/build_info.h"
#include "harness/judge/judge.h"
#include "harness/record/classified.h"
#include "tests/golden_file.h"
#include "tests/reports/json_schema.h"
#include "tests/support/program.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Outcome = testing::ProgramOutcome;
using testing::RunProgram;

constexpr const char* kCase = R"(
about: a product into a wider buffer
cases:
  - name: wide
    tags: [smoke]
    tensors:
      x: {dtype: bfloat16, shape: [8, 16], fill: normal}
      y: {dtype: bfloat16, shape: [16, 8], fill: normal}
    program:
      - {op: empty, shape: [8, 8], dtype: float32, as: buffer}
      - {op: matmul, of: [x, y], out: buffer, as: product}
    observe: [product]
  - name: strict
    tags: [ci]
    tensors:
      x: {dtype: bfloat16, shape: [8, 16], fill: normal}
      y: {dtype: bfloat16, shape: [16, 8], fill: normal}
    program:
      - {op: empty, shape: [8, 8], dtype: float32, as: buffer}
      - {op: matmul, of: [x, y], out: buffer, as: product}
    observe: [product]
    contract: {status: documented, accept: {product: {dtype: float32, acc: [at_least_float32], mid: [none]}}}
)";

constexpr const char* kPlain = "emulated:model=in=as_is;prod=exact;acc=float32;mid=none;out=float32_rne";
constexpr const char* kRounded =
    "emulated:model=in=as_is;prod=exact;acc=float32;mid=bfloat16;out=float32_rne";

/// A folder of its own as the working directory, with one case file in it.
class CommandLine : public ::testing::Test {
 protected:
  CommandLine() { std::ofstream(dir_ / "mine.yaml") << kCase; }

  Outcome Run(const std::string& arguments, const std::string& before = "") const {
    return RunProgram(dir_, arguments, before);
  }

  static std::string Backends(std::initializer_list<const char*> names) {
    std::string joined;
    for (const char* name : names) joined += (joined.empty() ? "" : ",") + std::string(name);
    return "-b " + ShellQuote(joined);
  }

  json Report(const std::string& folder) const {
    return json::parse(testing::ReadAll((dir_ / folder / "report.json").string()));
  }

  const testing::TestFolder folder_;
  const fs::path dir_ = folder_.path();
};

struct UsageRow {
  const char* arguments;
  const char* says;
};

TEST_F(CommandLine, UsageErrorsExitWith4AndSayWhatWasMeant) {
  const UsageRow rows[] = {
      {"", "subcommand"},
      {"rnu", "did you mean 'run'?"},
      {"run --sede 3", "did you mean '--seed'?"},
      {"run mine.yaml -j zero", "zero"},
      {"run mine.yaml -j 0", "0"},
      {"run mine.yaml -b emulate", "did you mean 'emulated'?"},
      {"run mine.yaml -b emulated --knob treads=2", "did you mean 'threads'?"},
      {"run mine.yaml -b emulated --knob threads", "K=V"},
      {"run seeds/matmul_out/as_postd", "did you mean 'seeds/matmul_out/as_posted'?"},
      {"run mine.yaml -k 'a and'", "-k"},
      {"run mine.yaml --shard 3/2", "i/n"},
      {"run mine.yaml --shard auto", "no scheduler's variables are set"},
      {"run mine.yaml --resume", "--out"},
      {"run mine.yaml --lf", "no earlier run"},
      {"run mine.yaml --oracle exact", "exact"},
      {"run mine.yaml -b hipblas", "hipblas is not installed"},
      {"report nosuchrun", "nosuchrun"},
      {"judge nosuchrun", "nosuchrun"},
      {"report x --markdwn y", "did you mean '--markdown'?"},
      {"report x --json - --csv -", "stdout takes one report"},
      {"explain mine/wide@nosuch", ""},
      {"repro seeds/matmul_out/as_posted -o d", "ID@BACKEND"},
      {"list", "subcommand"},
      {"new case", "path"},
  };
  for (const UsageRow& row : rows) {
    const Outcome outcome = Run(row.arguments);
    EXPECT_EQ(outcome.code, 4) << row.arguments << "\n" << outcome.err;
    EXPECT_NE(outcome.err.find(row.says), std::string::npos) << row.arguments << "\n" << outcome.err;
    EXPECT_EQ(outcome.out, "") << row.arguments;
  }
  EXPECT_FALSE(fs::exists(dir_ / "runs")) << "nothing was run";
}

TEST_F(CommandLine, HelpAndVersionGoToStdoutWith0) {
  const std::string version = Run("--version").out;
  EXPECT_TRUE(
      std::regex_match(version, std::regex("ulpscope " + std::string(Version()) + "( \\([0-9a-f]{9}\\))?\n")))
      << version;
  EXPECT_EQ(Run("--help").code, 0);
  EXPECT_NE(Run("run --help").out.find("--knob"), std::string::npos);
}

TEST_F(CommandLine, ABrokenCaseRunsNothing) {
  std::ofstream(dir_ / "mine.yaml", std::ios::app) << "  - name: third\n    tensros: {}\n";
  const Outcome outcome = Run("run mine.yaml -b emulated");
  EXPECT_EQ(outcome.code, 4);
  EXPECT_NE(outcome.err.find("mine.yaml:"), std::string::npos) << "file:line:column first";
  EXPECT_NE(outcome.err.find("tensors"), std::string::npos) << outcome.err;
  EXPECT_FALSE(fs::exists(dir_ / "runs"));
  EXPECT_EQ(Run("lint mine.yaml").code, 4);
}

TEST_F(CommandLine, DurationsNamesTheSlowest) {
  const Outcome outcome = Run("run mine.yaml --durations 2 -o out " + Backends({kPlain, kRounded, "faulty"}));
  std::vector<std::pair<double, std::string>> took;
  std::ifstream journal(dir_ / "out/journal.jsonl");
  for (std::string line; std::getline(journal, line);) {
    const json record = json::parse(line).at("record");
    if (record.at("type") != "result") continue;
    took.emplace_back(record.at("observation").at("durations_ms").at("exchange").get<double>(),
                      record.at("backend").get<std::string>() + "  " + record.at("case").get<std::string>());
  }
  ASSERT_GE(took.size(), 3u);
  std::stable_sort(took.rbegin(), took.rend());
  const size_t at = outcome.out.find("slowest 2 of " + std::to_string(took.size()) + " results\n");
  ASSERT_NE(at, std::string::npos) << outcome.out << outcome.err;
  const size_t first = outcome.out.find(" ms  " + took[0].second + "\n", at);
  ASSERT_NE(first, std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find(" ms  " + took[1].second + "\n", first), std::string::npos) << outcome.out;
  EXPECT_EQ(std::count(outcome.out.begin() + static_cast<std::ptrdiff_t>(at), outcome.out.end(), '\n'), 3);
  EXPECT_EQ(Run("run mine.yaml --durations 0").code, 4);
}

TEST_F(CommandLine, NothingSelectedIs5) {
  EXPECT_EQ(Run("run mine.yaml -b emulated -k nosuch").code, 5);
  EXPECT_EQ(Run("run mine.yaml -b emulated -m gpu").code, 5);
}

TEST_F(CommandLine, RunPrintsTheMatrixAndWritesTheFolder) {
  const Outcome outcome = Run("run mine.yaml -k wide -o r " + Backends({kPlain, kRounded}));
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_NE(outcome.out.find("f32>bf16>f32"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("1 divergence"), std::string::npos) << outcome.out;
  for (const char* file : {"journal.jsonl", "report.json", "junit.xml"})
    EXPECT_TRUE(fs::exists(dir_ / "r" / file)) << file;
  const json report = Report("r");
  testing::SchemaValidator validator(
      json::parse(testing::ReadAll(SourceDir() + "/reports/report.schema.json")));
  EXPECT_EQ(validator.Validate(report), std::vector<std::string>{});
  ASSERT_EQ(report["results"].size(), 2u);
  EXPECT_EQ(report["results"][0]["id"], "mine/wide");
  EXPECT_EQ(report["results"][1]["values"]["product"]["facets"]["mid"], json({"bfloat16"}));
  ASSERT_EQ(report["divergences"].size(), 1u);
  EXPECT_EQ(report["divergences"][0]["kind"], "precision");
  EXPECT_EQ(report["divergences"][0]["basis"], "proved");
}

TEST_F(CommandLine, AViolatedContractIs1AndEndsInItsReproLine) {
  const Outcome outcome = Run("run mine.yaml -k strict -q " + Backends({kRounded}));
  EXPECT_EQ(outcome.code, 1) << outcome.out;
  EXPECT_EQ(outcome.out.find("FAIL  mine/strict"), 0u) << outcome.out;
  const size_t line = outcome.out.find("    ulpscope run ");
  ASSERT_NE(line, std::string::npos);
  std::string repro = outcome.out.substr(line + 4 + std::string("ulpscope ").size());
  repro.resize(repro.find('\n'));
  const Outcome again = Run(repro + " -q");
  EXPECT_EQ(again.code, 1) << "the repro line repeats it: " << repro;
  EXPECT_EQ(again.out, outcome.out);
  EXPECT_EQ(Run("run mine.yaml -k strict -q " + Backends({kPlain})).code, 0);
}

TEST_F(CommandLine, ACrashIs6AndOtherCasesAreUnchanged) {
  const Outcome outcome = Run("run mine.yaml -o r " + Backends({"faulty:fault=segv,case=mine/wide", kPlain}));
  EXPECT_EQ(outcome.code, 6) << outcome.out << outcome.err;
  const Outcome clean = Run("run mine.yaml -o clean " + Backends({kPlain}));
  EXPECT_EQ(clean.code, 0) << clean.out;
  const json results = Report("r")["results"];
  int compared = 0;
  const json wanted_results = Report("clean")["results"];
  for (const json& wanted : wanted_results) {
    for (const json& result : results) {
      if (result["id"] != wanted["id"] || result["backend"] != wanted["backend"]) continue;
      EXPECT_EQ(result, wanted);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 2);
}

TEST_F(CommandLine, AnInterruptedRunIs2AndResumeFinishesIt) {
  const std::string hang =
      "run mine.yaml -q -o r -b " + ShellQuote("faulty:fault=hang,case=mine/wide") + "," + ShellQuote(kPlain);
  // `timeout` sends SIGINT to ulpscope, as a person would with the keyboard.
  const Outcome outcome = Run(hang, "timeout --foreground --preserve-status -s INT 3");
  EXPECT_EQ(outcome.code, 2) << outcome.out << outcome.err;
  const json cut = Report("r");
  EXPECT_EQ(cut["run"]["complete"], false);
  EXPECT_GE(cut["counts"]["NOT_RUN"].get<int>(), 1) << outcome.out;
  for (const json& result : cut["results"]) {
    EXPECT_EQ(result["status"] == "NOT_RUN", !result.contains("outcome")) << result;
  }
  const Outcome resumed = Run("run mine.yaml -q -o r --resume --timeout 1 -b " +
                              ShellQuote("faulty:fault=hang,case=mine/wide") + "," + ShellQuote(kPlain));
  EXPECT_EQ(resumed.code, 6) << resumed.out << resumed.err;
  EXPECT_EQ(Report("r")["run"]["complete"], true);
  EXPECT_EQ(Report("r")["counts"]["NOT_RUN"], 0);
  EXPECT_EQ(Report("r")["counts"]["TIMEOUT"], 1) << resumed.out;
}

/// The one graph_vs_execution divergence of a run of the first case on `backend`; null when there is none.
json GapOf(const json& report) {
  json found;
  for (const json& divergence : report["divergences"]) {
    if (divergence["kind"] == "graph_vs_execution") found = divergence;
  }
  return found;
}

TEST_F(CommandLine, ATraceThatLiesIsFoundInBothDirections) {
  struct Row {
    const char* fault;
    const char* says;
  };
  const Row rows[] = {{"trace_rounds",
                       "computes `product` in bfloat16, but what is executed does "
                       "not: the results prove it "
                       "(hlo -> execution)"},
                      {"trace_hides",
                       "prove a rounding, likely bfloat16, and no stage of its trace names a format so "
                       "narrow (hlo -> execution)"}};
  for (const Row& row : rows) {
    const std::string backend = std::string("faulty:fault=") + row.fault;
    Run("run mine.yaml -k wide -o " + std::string(row.fault) + " " + Backends({backend.c_str()}));
    const json gap = GapOf(Report(row.fault));
    ASSERT_FALSE(gap.is_null()) << row.fault;
    EXPECT_NE(gap["sentence"].get<std::string>().find(row.says), std::string::npos) << gap["sentence"];
    EXPECT_EQ(gap["stages"], (json{"hlo", "execution"}));
  }
  Run("run mine.yaml -k wide -o honest -b faulty");
  EXPECT_TRUE(GapOf(Report("honest")).is_null());
}

TEST_F(CommandLine, ARedundantPairOfCastsIsFoundAndPriced) {
  Run("run mine.yaml -k wide -o r " + Backends({"faulty:fault=trace_redundant"}));
  const json report = Report("r"), result = report["results"][0];
  ASSERT_EQ(result["casts"].size(), 2u);
  EXPECT_EQ(result["casts"][0]["redundant"], true);
  ASSERT_EQ(result["cast_costs"].size(), 1u);
  // 8 x 8 elements: 2 bytes read and 4 written, then the other way round; 4 bytes each alive in between.
  EXPECT_EQ(result["cast_costs"][0]["redundant_pairs"], 1);
  EXPECT_EQ(result["cast_costs"][0]["redundant_bytes"], 64 * 12);
  EXPECT_EQ(result["cast_costs"][0]["extra_alive_bytes"], 64 * 4);
  Run("run mine.yaml -k wide -o plain -b faulty");
  EXPECT_FALSE(Report("plain")["results"][0].contains("cast_costs"));
}

TEST_F(CommandLine, LastFailedTakesWhatFailed) {
  EXPECT_EQ(Run("run mine.yaml " + Backends({kRounded})).code, 1);
  EXPECT_EQ(Run("run mine.yaml --lf -o again " + Backends({kRounded})).code, 1);
  const json results = Report("again")["results"];
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0]["id"], "mine/strict");
}

TEST_F(CommandLine, KnobsOfTheCommandLineBecomePartOfTheName) {
  EXPECT_EQ(Run("run mine.yaml -k wide -o r -b emulated --knob threads=1").code, 0);
  EXPECT_EQ(Report("r")["results"][0]["backend"], "emulated:threads=1");
  EXPECT_EQ(Report("r")["results"][0]["knobs"]["asked"]["threads"], "1");
}

TEST_F(CommandLine, StdoutHoldsOnlyWhatWasAskedFor) {
  const Outcome outcome = Run("run mine.yaml -k wide --json - -b emulated");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(json::parse(outcome.out, nullptr, false)["schema"], "ulpscope.report/3")
      << outcome.out.substr(0, 200);
  const Outcome junit = Run("run mine.yaml -k wide --junit - -b emulated");
  EXPECT_EQ(junit.out.find("<?xml"), 0u);
}

TEST_F(CommandLine, AReportGoesWhereItIsAskedToOrTheRunSaysThatItDoesNot) {
  EXPECT_EQ(Run("run mine.yaml -k wide -q -o r -b emulated").code, 0);
  const Outcome full = Run("report r --csv - >/dev/full");
  EXPECT_EQ(full.code, 4);
  EXPECT_NE(full.err.find("cannot write to stdout"), std::string::npos) << full.err;
  // A link stays a link, a device a device, and nothing is left beside what cannot be written.
  std::ofstream(dir_ / "old.csv") << "old";
  fs::create_symlink("old.csv", dir_ / "link.csv");
  EXPECT_EQ(Run("report r --csv link.csv --json /dev/null").code, 0);
  EXPECT_TRUE(fs::is_symlink(dir_ / "link.csv"));
  EXPECT_EQ(testing::ReadAll((dir_ / "old.csv").string()).find("id,backend,"), 0u);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  fs::create_directory(dir_ / "folder");
  const Outcome folder = Run("report r --csv folder");
  EXPECT_EQ(folder.code, 4);
  EXPECT_NE(folder.err.find("cannot write folder"), std::string::npos) << folder.err;
  EXPECT_EQ(Run("report r --csv nosuch/x.csv").code, 4);
  for (const auto& entry : fs::directory_iterator(dir_))
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
}

// Promise: verdicts and report bytes depend on nothing but the cases and the backends.
TEST_F(CommandLine, ReportsDoNotDependOnTheCaller) {
  const std::string arguments =
      "run " + ShellQuote((dir_ / "mine.yaml").string()) + " " + Backends({kPlain, kRounded});
  EXPECT_EQ(Run(arguments + " -o first").code, 1);
  const auto stable = [](json report) {
    report.erase("volatile");
    return report.dump();
  };
  const std::string first = stable(Report("first"));
  fs::create_directory(dir_ / "elsewhere");
  struct Row {
    const char* extra;
    const char* environment;
    const char* dir;
  };
  const Row rows[] = {{"-j 2", "", "."},
                      {"", "LC_ALL=de_DE.UTF-8 LANG=de_DE.UTF-8 LANGUAGE=de", "."},
                      {"", "LC_ALL=C.UTF-8 TZ=Asia/Kathmandu", "."},
                      {"", "COLUMNS=40 TERM=xterm-256color NO_COLOR=", "."},
                      {"", "", "elsewhere"},
                      {"-q", "", "elsewhere"}};
  int runs = 0;
  for (const Row& row : rows) {
    const std::string out = "again" + std::to_string(runs++);
    const Outcome outcome =
        RunProgram(dir_ / row.dir, arguments + " " + row.extra + " -o " + ShellQuote((dir_ / out).string()),
                   row.environment);
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    EXPECT_EQ(stable(Report(out)), first) << row.extra << " " << row.environment << " " << row.dir;
  }
}

TEST_F(CommandLine, JudgingARecordAgainGivesTheSameReport) {
  EXPECT_EQ(Run("run mine.yaml -o r " + Backends({kPlain, kRounded})).code, 1);
  json before = Report("r");
  fs::remove(dir_ / "r" / "report.json");
  const Outcome judged = Run("judge r mine.yaml");
  EXPECT_EQ(judged.code, 1) << judged.err;
  json after = Report("r");
  before.erase("volatile");
  after.erase("volatile");
  EXPECT_EQ(after, before);
  const Outcome rendered = Run("report r mine.yaml --json again.json");
  EXPECT_EQ(rendered.code, 1) << rendered.err;
  EXPECT_EQ(json::parse(testing::ReadAll((dir_ / "again.json").string()))["results"], before["results"]);
  std::ofstream(dir_ / "mine.yaml", std::ios::app) << "  # a comment changes no case\n";
  EXPECT_EQ(Run("judge r mine.yaml").code, 1);
  std::string text = kCase;
  text.replace(text.find("[8, 16]"), 7, "[9, 16]");
  std::ofstream(dir_ / "mine.yaml") << text.replace(text.find("[8, 8]"), 6, "[9, 8]");
  const Outcome changed = Run("judge r mine.yaml");
  EXPECT_EQ(changed.code, 4);
  EXPECT_NE(changed.err.find("has changed since the run"), std::string::npos) << changed.err;
}

TEST_F(CommandLine, WhatIsRecordedIsNotClassifiedAgain) {
  const std::string id = "seeds/matmul_out/as_posted", words = "another hand wrote this";
  EXPECT_LE(Run("run " + id + " -o r " + Backends({kRounded})).code, 1);
  json before = Report("r");
  const auto run = ReadRun(dir_ / "r", TensorLoading::kLater);
  ASSERT_TRUE(run) << run.error().Text();
  auto classified = ReadClassified(*run);
  ASSERT_TRUE(classified) << classified.error().Text();
  ASSERT_EQ(classified->results.size(), 1u);
  for (auto& [name, value] : classified->results.begin()->second.values) value.label = words;
  ASSERT_TRUE(WriteClassified(*run, *classified));
  const auto says = [&](const std::string& arguments) {
    return Run(arguments).out.find(words) != std::string::npos;
  };
  EXPECT_TRUE(says("report r --json -"));
  EXPECT_TRUE(says("explain " + id + " --run r"));
  EXPECT_LE(Run("judge r").code, 1);
  json after = Report("r");
  before.erase("volatile");
  after.erase("volatile");
  EXPECT_EQ(after, before) << "judge classifies anew";
  EXPECT_FALSE(says("report r --json -")) << "and records it";
}

TEST_F(CommandLine, ExplainShowsTheDerivation) {
  EXPECT_EQ(Run("run mine.yaml -o r " + Backends({kRounded})).code, 1);
  const Outcome outcome =
      Run("explain -v " + ShellQuote(std::string("seeds/matmul_out/as_posted@") + kRounded));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  for (const char* part :
       {"seeds/matmul_out/as_posted  on  emulated", "survives", "excluded", "reference",
        "checked    224 of 224", "repeat     ulpscope run ", "decided by within-keep-factor"}) {
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << "\n" << outcome.out;
  }
  const Outcome brief = Run("explain " + ShellQuote(std::string("seeds/matmul_out/as_posted@") + kRounded));
  EXPECT_EQ(brief.out.find("decided by"), std::string::npos) << brief.out;
}

/// Moved, and without the file that its cases came from: a stranger's run.
TEST_F(CommandLine, ARunFolderStandsAlone) {
  EXPECT_EQ(Run("run mine.yaml -o r " + Backends({kPlain, kRounded})).code, 1);
  json before = Report("r");
  fs::create_directory(dir_ / "elsewhere");
  fs::rename(dir_ / "r", dir_ / "elsewhere/moved");
  fs::remove(dir_ / "mine.yaml");
  fs::remove(dir_ / "elsewhere/moved/report.json");
  EXPECT_EQ(Run("report elsewhere/moved --json again.json").code, 1);
  EXPECT_EQ(json::parse(testing::ReadAll((dir_ / "again.json").string()))["results"], before["results"]);
  EXPECT_EQ(Run("judge elsewhere/moved").code, 1);
  json after = Report("elsewhere/moved");
  before.erase("volatile");
  after.erase("volatile");
  EXPECT_EQ(after, before);
  const std::string target = ShellQuote(std::string("mine/strict@") + kRounded);
  const Outcome explained = Run("explain " + target + " --run elsewhere/moved");
  EXPECT_EQ(explained.code, 0) << explained.err;
  for (const char* part : {"asked      a product into a wider buffer", "x bfloat16[8, 16]",
                           "FAIL: product violates", "{op: matmul, of: [x, y], out: buffer, as: product}"})
    EXPECT_NE(explained.out.find(part), std::string::npos) << part << "\n" << explained.out;
  const Outcome repro = Run("repro " + target + " --run elsewhere/moved -o bundle");
  EXPECT_EQ(repro.code, 0) << repro.err;
  EXPECT_NE(testing::ReadAll((dir_ / "bundle/case.yaml").string()).find("a product into a wider buffer"),
            std::string::npos);
  EXPECT_EQ(Run("explain mine/none --run elsewhere/moved").code, 4);
}

TEST_F(CommandLine, ACaseOfAnotherRunIsNotTaken) {
  EXPECT_EQ(Run("run mine.yaml -k wide -o r " + Backends({kPlain})).code, 0);
  EXPECT_EQ(Run("run mine.yaml -k strict -o other " + Backends({kPlain})).code, 0);
  fs::copy_file(dir_ / "other/cases.jsonl", dir_ / "r/cases.jsonl", fs::copy_options::overwrite_existing);
  fs::remove(dir_ / "mine.yaml");
  const Outcome judged = Run("judge r");
  EXPECT_EQ(judged.code, 4);
  EXPECT_NE(judged.err.find("not in the suite"), std::string::npos) << judged.err;
}

TEST_F(CommandLine, ExplainFitsAScreenAndOpensCasesOutsideTheSuite) {
  EXPECT_EQ(Run("run mine.yaml -o runs/latest " + Backends({kPlain, kRounded})).code, 1);
  const std::string at = ShellQuote(std::string("@") + kRounded);
  for (const std::string& what : {"mine/strict" + at, "mine.yaml/strict" + at, std::string("mine/strict")}) {
    const Outcome explained = Run("explain " + what);
    EXPECT_EQ(explained.code, 0) << what << explained.err;
    EXPECT_LE(std::count(explained.out.begin(), explained.out.end(), '\n'), 40) << explained.out;
    EXPECT_NE(explained.out.find("mine/strict"), std::string::npos);
  }
  const Outcome brief = Run("explain mine/strict" + at);
  for (const char* part : {"parts      precision", "proof      product[", "rival      as emulated:"})
    EXPECT_NE(brief.out.find(part), std::string::npos) << part << "\n" << brief.out;
  EXPECT_EQ(brief.out.find("0x", brief.out.find("  parts ")), std::string::npos) << brief.out;
  EXPECT_EQ(Run("explain mine.yaml").code, 4) << "it holds two";
  fs::remove_all(dir_ / "runs");
  EXPECT_EQ(Run("explain mine/wide@emulated").code, 0) << "run now";
}

TEST_F(CommandLine, WhatHoldsForAWholeSweepIsSaidOnce) {
  std::ofstream(dir_ / "swept.yaml") << R"(
cases:
  - name: swept
    sweep: {n: [2, 3, 4], k: [2, 3]}
    tensors:
      x: {dtype: float32, shape: [$n, $k], fill: normal}
      y: {dtype: float32, shape: [$k, $n], fill: normal}
    program: [{op: matmul, of: [x, y], as: product}]
    observe: [product]
)";
  const Outcome lint = Run("lint swept.yaml");
  EXPECT_EQ(lint.code, 1);
  EXPECT_NE(lint.out.find("6 cases, 0 errors, 1 warnings"), std::string::npos) << lint.out;
  const size_t first = lint.err.find("in no tier");
  EXPECT_NE(first, std::string::npos) << lint.err;
  EXPECT_EQ(lint.err.find("in no tier", first + 1), std::string::npos) << lint.err;
}

TEST_F(CommandLine, ShapesThatDoNotFitAreSaidBeforeTheRunAndAfterIt) {
  std::ofstream(dir_ / "misfit.yaml") << R"(
cases:
  - name: misfit
    tags: [ci]
    tensors:
      x: {dtype: float32, shape: [8, 16], fill: normal}
      y: {dtype: float32, shape: [15, 8], fill: normal}
    program: [{op: matmul, of: [x, y], as: product}]
    observe: [product]
  - name: foreign
    tags: [ci]
    tensors:
      x: {dtype: float32, shape: [8, 16], fill: normal}
    program: [{op: "aten::digamma", of: [x], as: y}]
    observe: [y]
)";
  const Outcome lint = Run("lint misfit.yaml");
  EXPECT_EQ(lint.code, 1);
  EXPECT_NE(
      lint.err.find("warning: the steps of the case do not go together: matmul: inner dimensions differ"),
      std::string::npos)
      << lint.err;
  EXPECT_NE(lint.err.find("note: 'y' has no exact reference"), std::string::npos) << lint.err;
  EXPECT_NE(lint.out.find("2 cases, 0 errors, 1 warnings"), std::string::npos) << "a note is no warning";
  const Outcome outcome = Run("run misfit.yaml -k misfit/misfit -o r " + Backends({"openblas"}));
  EXPECT_NE(outcome.out.find("raised, and nothing was checked"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("matrices do not go together"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("1 raised\n"), std::string::npos) << outcome.out;
  const json result = Report("r")["results"][0];
  EXPECT_EQ(result["demanded"], false);
  EXPECT_NE(result["reason"].get<std::string>().find("nothing was checked: it raised"), std::string::npos);
}

TEST_F(CommandLine, ReproBundlesGiveTheSameResult) {
  const Outcome made = Run("repro " + ShellQuote(std::string("seeds/matmul_out/as_posted@") + kRounded) +
                           " -o bundle --seed 3");
  ASSERT_EQ(made.code, 0) << made.err;
  for (const char* file : {"case.yaml", "inputs.safetensors", "README.md"})
    EXPECT_TRUE(fs::exists(dir_ / "bundle" / file)) << file;
  std::string command = made.out.substr(made.out.find("ulpscope ") + 9);
  command.resize(command.find('\n'));
  EXPECT_EQ(RunProgram(dir_ / "bundle", command + " -o ../r", "").code, 0);
  EXPECT_EQ(Run("run seeds/matmul_out/as_posted --seed 3 -o original " + Backends({kRounded})).code, 0);
  EXPECT_EQ(Report("r")["results"][0]["values"], Report("original")["results"][0]["values"]);
}

TEST_F(CommandLine, NewCasesLoadAndNothingIsOverwritten) {
  EXPECT_EQ(Run("new case deep/er/fresh").code, 0);
  EXPECT_EQ(Run("lint deep/er/fresh.yaml").code, 0);
  const Outcome again = Run("new case deep/er/fresh");
  EXPECT_EQ(again.code, 4);
  EXPECT_NE(again.err.find("exists already"), std::string::npos);
  EXPECT_EQ(Run("new adapter fresh").code, 0);
  EXPECT_NE(testing::ReadAll((dir_ / "fresh.py").string()).find("\"backends\": [\"fresh\"]"),
            std::string::npos);
  EXPECT_EQ(Run("new case 'no name'").code, 4);
}

TEST_F(CommandLine, Lists) {
  for (const std::string what : {"cases", "backends", "ops", "models", "knobs"}) {
    const Outcome text = Run("list " + what);
    EXPECT_EQ(text.code, 0) << text.err;
    const json rows = json::parse(Run("list " + what + " --json").out, nullptr, false);
    ASSERT_TRUE(rows.is_array()) << what;
    EXPECT_GT(rows.size(), 5u) << what;
    EXPECT_EQ(static_cast<size_t>(std::count(text.out.begin(), text.out.end(), '\n')), rows.size()) << what;
  }
  EXPECT_EQ(json::parse(Run("schema").out, nullptr, false)["type"], "object");
}

TEST_F(CommandLine, EveryKnownBackendIsInTheMatrixOrNamedBelowIt) {
  const Outcome outcome = Run("run mine.yaml -k wide -b all -o r");
  const json report = Report("r");
  std::set<std::string> named;
  for (const json& result : report["results"]) {
    const std::string backend = result["backend"];
    named.insert(backend.substr(0, backend.find('@')));  // cublas is asked as cublas@cuda
  }
  for (const json& row : json::parse(Run("list backends --json").out)) {
    const std::string backend = row["backend"];
    if (backend == "emulated" || backend == "faulty" || backend == "recorded") continue;
    EXPECT_TRUE(named.contains(backend)) << backend;
    EXPECT_NE(outcome.out.find(backend), std::string::npos) << backend;
  }
}

TEST_F(CommandLine, DoctorCallsAMissingDeviceAbsentAndNotBad) {
  const Outcome outcome = Run("doctor");
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_EQ(outcome.out.find("BAD"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("absent hipblas"), std::string::npos) << outcome.out;
  const std::regex cublas(R"(\n(ok +cublas |absent +cublas +no CUDA device))");
  EXPECT_TRUE(std::regex_search(outcome.out, cublas)) << outcome.out;
}

}  // namespace
}  // namespace ulpscope
