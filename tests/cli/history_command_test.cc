// ulpscope history: since which night and version a case is what it is, gaps, and an index that follows its folders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/record/journal_format.h"
#include "tests/support/program.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class HistoryCommand : public ::testing::Test {
 protected:
  HistoryCommand() {
    std::ofstream(dir_ / "mine.yaml") << R"(cases:
  - name: product
    tensors:
      x: {dtype: bfloat16, shape: [8, 16], fill: normal}
      y: {dtype: bfloat16, shape: [16, 8], fill: normal}
    program:
      - {op: empty, shape: [8, 8], dtype: float32, as: buffer}
      - {op: matmul, of: [x, y], out: buffer, as: product}
    observe: [product]
)";
    for (const char* mid : {"none", "bfloat16"}) {
      const std::string model =
          std::string("in=as_is;prod=exact;acc=float32;mid=") + mid + ";out=float32_rne";
      EXPECT_EQ(Run("run mine.yaml -q -b 'emulated:model=" + model + "' -o " + mid).code, 0);
    }
  }

  testing::ProgramOutcome Run(const std::string& arguments) const {
    return testing::RunProgram(dir_, arguments);
  }

  /// A run of one night: what was recorded, as if it had been recorded then, on a backend that is called the same.
  void Night(const std::string& night, const std::string& mid, const std::string& version,
             int hour = 2) const {
    const fs::path folder = dir_ / "runs" / (night + "-" + std::to_string(hour));
    fs::create_directories(dir_ / "runs");
    fs::copy(dir_ / mid, folder, fs::copy_options::recursive);
    for (const char* name : {"journal.jsonl", "classified.jsonl", "cases.jsonl"}) {
      const auto journal = ParseJournal(testing::ReadAll((folder / name).string()));
      ASSERT_TRUE(journal);
      std::ofstream file(folder / name);
      for (nlohmann::json record : journal->records) {
        if (record["type"] == "run" && record.contains("started"))
          record["started"] = night + "T0" + std::to_string(hour) + ":00:00Z";
        if (record.contains("id") && record["type"] == "run")
          record["id"] = night.substr(2) + std::to_string(hour);
        if (record.contains("backend")) record["backend"] = "emulated";
        if (record.contains("backends")) record["backends"] = {"emulated"};
        if (record["type"] == "backend") record["versions"] = {{"driver", version}};
        file << JournalLine(record);
      }
    }
  }

  const testing::TestFolder folder_;
  const fs::path dir_ = folder_.path();
};

TEST_F(HistoryCommand, TellsSinceWhichNightAndVersionAndShowsGapsAsGaps) {
  Night("2026-10-30", "bfloat16", "1.0");
  Night("2026-10-31", "bfloat16", "1.0");
  Night("2026-11-01", "bfloat16", "1.0");
  Night("2026-11-05", "none", "2.0");
  Night("2026-11-06", "bfloat16", "2.0", 1);  // the later of two runs of one night tells
  Night("2026-11-06", "none", "2.0", 3);
  const auto shown = Run("history mine/product@emulated");
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_EQ(shown.out,
            "mine/product on emulated, product\n"
            "  2026-10-30 .. 2026-11-01    3 nights  PASS   f32>bf16>f32~         driver 1.0\n"
            "  2026-11-02 .. 2026-11-04  not tested\n"
            "  2026-11-05 .. 2026-11-06    2 nights  PASS   f32~                  driver 2.0\n"
            "  so since 2026-11-05, or since 2026-11-02: the nights between were not tested\n");
  const auto nights = Run("history");
  EXPECT_EQ(nights.code, 0);
  EXPECT_EQ(nights.out,
            "night         runs   cells  changed\n"
            "  2026-10-30     1       1        0\n"
            "  2026-10-31     1       1        0\n"
            "  2026-11-01     1       1        0\n"
            "  2026-11-02 .. 2026-11-04  not tested\n"
            "  2026-11-05     1       1        1\n"
            "  2026-11-06     2       1        0\n");
}

TEST_F(HistoryCommand, TheIndexIsWhatTheFoldersSay) {
  Night("2026-11-01", "bfloat16", "1.0");
  Night("2026-11-02", "none", "1.0");
  const std::string before = Run("history mine/product").out;
  EXPECT_THAT(before, HasSubstr("so since 2026-11-02\n"));
  ASSERT_TRUE(fs::exists(dir_ / "runs/history.sqlite"));
  fs::remove_all(dir_ / "runs/2026-11-02-2");
  EXPECT_THAT(Run("history mine/product").out, Not(HasSubstr("2026-11-02")))
      << "a folder that is gone is forgotten";
  Night("2026-11-02", "none", "1.0");
  EXPECT_EQ(Run("history mine/product").out, before);
  std::ofstream(dir_ / "runs/history.sqlite") << "no database";
  EXPECT_EQ(Run("history mine/product").out, before) << "and an index that is none is made anew";
  fs::remove(dir_ / "runs/history.sqlite");
  EXPECT_EQ(Run("history mine/product --anew").out, before);
  // A run that cannot be read is named, and the others are reported.
  std::ofstream(dir_ / "runs/2026-11-02-2/journal.jsonl") << "rubbish\n";
  const auto damaged = Run("history mine/product");
  EXPECT_EQ(damaged.code, 0);
  EXPECT_THAT(damaged.err, HasSubstr("left out: "));
  EXPECT_THAT(damaged.out, HasSubstr("so since 2026-11-01\n"));
}

TEST_F(HistoryCommand, WhatNobodyRanIsNothing) {
  EXPECT_EQ(Run("history").code, 5);
  Night("2026-11-01", "none", "1.0");
  const auto unknown = Run("history mine/prodct");
  EXPECT_EQ(unknown.code, 5);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean 'mine/product'?"));
  EXPECT_EQ(Run("history mine/product@jax").code, 5);
  EXPECT_EQ(Run("history \"mine/product' OR '1'='1\"").code, 5);
}

}  // namespace
}  // namespace ulpscope
