// ulpscope merge: shards in any order, grouping and number give the bytes of the single run; gaps and contradictions are found.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/support/draws.h"
#include "tests/support/planted_knobs.h"
#include "tests/support/program.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class MergeCommand : public ::testing::Test {
 protected:
  MergeCommand() {
    std::ofstream file(dir_ / "mine.yaml");
    file << "cases:\n";
    for (int i = 0; i < 8; ++i) {
      file << "  - name: product_" << i << "\n    tensors:\n      x: {dtype: bfloat16, shape: [3, " << 4 + i
           << "], fill: normal}\n      y: {dtype: bfloat16, shape: [" << 4 + i
           << ", 2], fill: normal}\n    program:\n      - {op: matmul, of: [x, y], as: product}\n"
              "      - {op: neg, of: [product], as: result}\n    observe: [product, result]\n";
    }
    file << "    contract: {status: documented, accept: {product: {acc: [float64]}}}\n";
  }

  testing::ProgramOutcome Run(const std::string& arguments) const {
    return testing::RunProgram(dir_, arguments);
  }

  testing::ProgramOutcome RunCases(const std::string& out, const std::string& more = "") const {
    return Run("run mine.yaml -q -j 2 -o " + out + " -b " + kBackends + " " + more);
  }

  std::vector<std::string> RunShards(int count) const {
    std::vector<std::string> shards;
    for (int i = 1; i <= count; ++i) {
      shards.push_back("s" + std::to_string(count) + "_" + std::to_string(i));
      const auto outcome =
          RunCases(shards.back(), "--shard " + std::to_string(i) + "/" + std::to_string(count));
      EXPECT_LE(outcome.code, 1) << outcome.err;
    }
    return shards;
  }

  /// Leaves `percent` of a run's journal, as a kill would.
  void Behead(const std::string& run, uintmax_t percent) const {
    const fs::path journal = dir_ / run / "journal.jsonl";
    const std::string text = testing::ReadAll(journal.string());
    const uintmax_t header = text.find('\n') + 1;
    fs::resize_file(journal, header + (text.size() - header) * percent / 100);
  }

  testing::ProgramOutcome Merge(const std::vector<std::string>& runs, const std::string& out) const {
    std::string line = "merge -q";
    for (const auto& run : runs) line += " " + run;
    return Run(line + " -o " + out);
  }

  /// The report's bytes, `volatile` apart.
  std::string Stable(const std::string& run) const {
    json report = json::parse(testing::ReadAll((dir_ / run / "report.json").string()));
    EXPECT_GT(report["results"].size(), 0u);
    report.erase("volatile");
    return report.dump();
  }

  /// The files of a folder, volatile or not.
  std::map<std::string, std::string> Files(const std::string& run) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(dir_ / run)) {
      if (entry.is_regular_file())
        files[fs::relative(entry.path(), dir_ / run).string()] = testing::ReadAll(entry.path().string());
    }
    return files;
  }

  static constexpr const char* kBackends =
      "emulated,'emulated:model=in=as_is;prod=exact;acc=float32;mid=bfloat16;out=float32_rne'";
  const testing::TestFolder folder_;
  const fs::path dir_ = folder_.path();
};

TEST_F(MergeCommand, ShardsInAnyOrderAndNumberAreTheSingleRun) {
  const auto single = RunCases("whole");
  ASSERT_EQ(single.code, 1) << single.err << "the last case is violated";
  const std::string wanted = Stable("whole");
  std::mt19937 random(12);  // any order will do, and the same each time
  int merges = 0;
  const std::vector<int> counts = testing::kSanitized ? std::vector{3} : std::vector{1, 2, 3, 7, 64};
  for (const int count : counts) {
    std::vector<std::string> shards = RunShards(count);
    // One of them was run twice, and took another time.
    EXPECT_LE(RunCases("twice" + std::to_string(count), "--shard 1/" + std::to_string(count)).code, 1);
    shards.push_back("twice" + std::to_string(count));
    // One was killed somewhere and resumed.
    Behead(shards.front(), random() % 100);
    EXPECT_LE(RunCases(shards.front(), "--resume --shard 1/" + std::to_string(count)).code, 1);
    std::map<std::string, std::string> files;
    for (int round = 0; round < 3; ++round) {
      std::vector<std::string> runs = shards;
      runs.insert(runs.end(), shards.begin(), shards.begin() + round % 2);  // duplicates
      std::shuffle(runs.begin(), runs.end(), random);
      const std::string out = "m" + std::to_string(merges++);
      const auto merged = Merge(runs, out);
      EXPECT_EQ(merged.code, 1) << merged.err;
      EXPECT_EQ(merged.out, single.out) << count;
      EXPECT_EQ(Stable(out), wanted) << count << " shards, round " << round;
      const auto now = Files(out);
      if (round == 0) files = now;
      for (const auto& [name, text] : now)
        EXPECT_EQ(text == files[name], true)
            << name << ": the order of the arguments changes no byte of the record";
    }
  }
  EXPECT_EQ(merges, std::ssize(counts) * 3);
}

TEST_F(MergeCommand, IsAssociativeAndIdempotent) {
  ASSERT_EQ(RunCases("whole").code, 1);
  const auto s = RunShards(3);
  EXPECT_EQ(Merge({s[0], s[1]}, "ab").code, 6) << "the third is missing";
  EXPECT_EQ(Merge({s[2], s[1]}, "cb").code, 6);
  EXPECT_EQ(Merge({"ab", s[2]}, "ab_c").code, 1);
  EXPECT_EQ(Merge({s[0], "cb"}, "a_cb").code, 1);
  EXPECT_EQ(Merge({"ab", "cb"}, "ab_cb").code, 1);
  EXPECT_EQ(Merge({"ab_c", "ab_c"}, "again").code, 1);
  EXPECT_EQ(Merge({"ab_c", s[0], "a_cb"}, "and_again").code, 1);
  for (const char* run : {"ab_c", "a_cb", "ab_cb", "again", "and_again"})
    EXPECT_EQ(Stable(run), Stable("whole")) << run;
  EXPECT_TRUE(Files("again") == Files("ab_c"));
  // The first part was run three times, and took other times: which of them stays does not depend on the grouping.
  for (const char* more : {"more", "most"}) EXPECT_LE(RunCases(more, "--shard 1/3").code, 1);
  EXPECT_EQ(Merge({s[0], s[1], s[2], "more", "most"}, "flat").code, 1);
  EXPECT_EQ(Merge({"most", s[1]}, "inner").code, 6);
  EXPECT_EQ(Merge({"inner", "more", s[2], s[0]}, "grouped").code, 1);
  EXPECT_TRUE(Files("flat") == Files("grouped"));
  EXPECT_EQ(Merge({"whole"}, "alone").code, 1);
  EXPECT_EQ(Stable("alone"), Stable("whole"));
}

TEST_F(MergeCommand, GapsAndConflictsAre6AndNamed) {
  const auto s = RunShards(2);
  const auto gap = Merge({s[1]}, "gap");
  EXPECT_EQ(gap.code, 6);
  EXPECT_NE(gap.err.find("missing: mine/product_0 on emulated\n"), std::string::npos) << gap.err;
  EXPECT_EQ(json::parse(testing::ReadAll((dir_ / "gap/report.json").string()))["run"]["complete"], false);
  EXPECT_LE(RunCases("seed", "--seed 4 --shard 1/2").code, 1);
  const auto seed = Merge({s[1], "seed"}, "never");
  EXPECT_EQ(seed.code, 6);
  // The random ids of two runs of one second decide which is named first.
  EXPECT_THAT(seed.err, ::testing::ContainsRegex("differ in the seed: (0 and 4|4 and 0)"));
  EXPECT_LE(RunCases("part", "--shard 1/2 -k product_1").code, 1);
  EXPECT_NE(Merge({s[1], "part"}, "never").err.find("no shards of one run"), std::string::npos);
  EXPECT_FALSE(fs::exists(dir_ / "never")) << "nothing is written where runs contradict each other";
  const auto missing = Merge({s[0], "nosuch"}, "never");
  EXPECT_EQ(missing.code, 4);
  EXPECT_NE(missing.err.find("nosuch is no run folder"), std::string::npos) << missing.err;
  const auto twice = Merge(s, "gap");
  EXPECT_EQ(twice.code, 4);
  EXPECT_NE(twice.err.find("holds a run already"), std::string::npos) << twice.err;
}

TEST_F(MergeCommand, ASweepOfKnobsIsMergedLikeAnyRunAndKnowsItsGaps) {
  std::ofstream(dir_ / "probes.yaml") << testing::kPlantedKnobCases;
  const std::string sweep = "run --knob-sweep probes.yaml -b faulty ";
  ASSERT_EQ(Run(sweep + "-o whole").code, 0);
  for (const char* shard : {"1", "2"})
    ASSERT_EQ(Run(sweep + "--shard " + shard + "/2 -o k" + shard).code, 0)
        << "what no case of a part probes, another part may";
  EXPECT_EQ(Merge({"k2", "k1", "k2"}, "merged").code, 0);
  EXPECT_EQ(Stable("merged"), Stable("whole"));
  EXPECT_EQ(Merge({"merged", "whole"}, "again").code, 0);
  EXPECT_EQ(Stable("again"), Stable("whole"));
  const auto gap = Merge({"k2"}, "gap");
  EXPECT_EQ(gap.code, 6);
  EXPECT_EQ(gap.err.substr(0, gap.err.find("ulpscope:")),
            "missing: probes/other on faulty\nmissing: probes/other on faulty:flush_denormal=on\n")
      << "and nothing of the cells that the sweep leaves out";
  Behead("k2", 60);
  EXPECT_EQ(Merge({"k1", "k2"}, "torn").code, 6);
}

TEST_F(MergeCommand, TwoResultsWithOtherBitsAreAConflict) {
  // Every other case that this adapter computes in one process gets another last bit, and a shard has other cases before.
  // One process: of two, the clock decides which computes what.
  const std::string run = "run mine.yaml -q -j 1 --repeat 1 --no-steps -b faulty:fault=nondeterministic";
  EXPECT_LE(Run(run + " -o whole").code, 1);
  EXPECT_LE(Run(run + " -o shard --shard 2/2").code, 1);
  const auto merged = Merge({"shard", "whole"}, "never");
  EXPECT_EQ(merged.code, 6);
  // The random ids of two runs of one second decide which is named first. Results with the same bits are no
  // conflict, whatever the clock measured meanwhile.
  for (const char* id : {"1", "5"})
    EXPECT_THAT(merged.err, ::testing::ContainsRegex(
                                std::string("conflict: mine/product_") + id +
                                " on faulty:fault=nondeterministic: (whole and shard|shard and whole) "
                                "differ in the bits of product\n"));
  EXPECT_THAT(merged.err, ::testing::HasSubstr("ulpscope: 2 conflicts, nothing was written"));
  EXPECT_FALSE(fs::exists(dir_ / "never"));
}

}  // namespace
}  // namespace ulpscope
