// ulpscope probe: it gives back the model and the order that the emulated backend was run at, and has an
// answer for everything that a backend may do instead.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/base/build_info.h"
#include "harness/judge/judge.h"
#include "tests/golden_file.h"
#include "tests/reports/json_schema.h"
#include "tests/support/draws.h"
#include "tests/support/program.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;

struct ProbeOutcome : testing::ProgramOutcome {
  json sheet;
};

class Probe : public ::testing::Test {
 protected:
  ProbeOutcome Run(const std::string& backend, const std::string& options) const {
    const fs::path sheet = dir_ / "sheet.json";
    fs::remove(sheet);
    ProbeOutcome outcome{
        testing::RunProgram(dir_, "probe " + ShellQuote(backend) + " " + options + " --json sheet.json"), {}};
    if (fs::exists(sheet)) {
      outcome.sheet = json::parse(testing::ReadAll(sheet.string()));
      testing::SchemaValidator validator(
          json::parse(testing::ReadAll(SourceDir() + "/reports/datasheet.schema.json")));
      EXPECT_EQ(validator.Validate(outcome.sheet), std::vector<std::string>{}) << backend;
    }
    return outcome;
  }

  ProbeOutcome Emulated(const std::string& order, const std::string& model,
                        const std::string& options) const {
    return Run("emulated:order=" + order + ",model=" + model, "--form dot " + options);
  }

  static json Line(const json& sheet, const std::string& key) {
    for (const json& line : sheet["lines"]) {
      if (line["key"] == key) return line;
    }
    ADD_FAILURE() << "no line " << key;
    return {};
  }
  static std::vector<std::string> Words(const json& sheet, const std::string& key) {
    return Line(sheet, key)["words"].get<std::vector<std::string>>();
  }

  const testing::TestFolder folder_;
  const fs::path dir_ = folder_.path();
};

struct Known {
  const char* options;
  const char* model;  ///< as asked of the emulated backend
  std::vector<std::string> survive;
};

TEST_F(Probe, GivesBackTheModelThatItWasRunAt) {
  const std::vector<Known> rows{
      {"--dtype float32",
       "in=as_is;prod=exact;acc=float32;mid=none;out=float32_rne",
       {"in=as_is;prod=exact;acc=float32;mid=none;out=float32_rne"}},
      {"--dtype float32",
       "in=tf32_rne;prod=exact;acc=float32;mid=none;out=float32_rne",
       {"in=*:tf32_rne;prod=exact;acc=float32;mid=none;out=float32_rne"}},
      {"--dtype float32",
       "in=tf32_rz;prod=exact;acc=float32;mid=none;out=float32_rne",
       {"in=*:tf32_rz;prod=exact;acc=float32;mid=none;out=float32_rne"}},
      {"--dtype float32",
       "in=bfloat16_rne;prod=exact;acc=float32;mid=none;out=float32_rne",
       {"in=*:bfloat16_rne;prod=exact;acc=float32;mid=none;out=float32_rne"}},
      {"--dtype float32",
       "in=as_is;prod=exact;acc=float32_rz;mid=none;out=float32_rne",
       {"in=as_is;prod=exact;acc=float32_rz;mid=none;out=float32_rne"}},
      {"--dtype float32",
       "in=as_is;prod=exact;acc=float64;mid=none;out=float32_rne",
       {"in=as_is;prod=exact;acc=float64;mid=none;out=float32_rne"}},
      {"--dtype float32",
       "in=as_is;prod=exact;acc=float32;mid=bfloat16;out=float32_rne",
       {"in=as_is;prod=exact;acc=float32;mid=bfloat16;out=float32_rne"}},
      {"--dtype float32",
       "in=as_is;prod=exact;acc=bfloat16;mid=none;out=float32_rne",
       {"in=as_is;prod=exact;acc=bfloat16;mid=none;out=float32_rne"}},
      {"--dtype bfloat16",
       "in=as_is;prod=exact;acc=bfloat16;mid=none;out=bfloat16_rne",
       {"in=as_is;prod=exact;acc=bfloat16;mid=none;out=bfloat16_rne"}},
      {"--dtype bfloat16",
       "in=as_is;prod=exact;acc=float32;mid=none;out=bfloat16_rne",
       {"in=as_is;prod=exact;acc=float32;mid=none;out=bfloat16_rne"}},
      {"--dtype bfloat16 --out-dtype float32",
       "in=as_is;prod=exact;acc=float32;mid=bfloat16;out=float32_rne",
       {"in=as_is;prod=exact;acc=float32;mid=bfloat16;out=float32_rne"}},
      {"--dtype float16 --out-dtype float32",
       "in=as_is;prod=exact;acc=blockfma(8,24,rz);mid=none;out=float32_rne",
       {"in=as_is;prod=exact;acc=blockfma(8,24,rz);mid=none;out=float32_rne"}},
      {"--dtype bfloat16 --out-dtype float32",
       "in=as_is;prod=exact;acc=blockfma(16,25,rz);mid=none;out=float32_rne",
       {"in=as_is;prod=exact;acc=blockfma(16,25,rz);mid=none;out=float32_rne"}},
      {"--dtype float32 --out-dtype float32",
       "in=as_is;prod=exact;acc=split_k(bfloat16,float32);mid=none;out=float32_rne",
       {"in=as_is;prod=exact;acc=split_k(bfloat16,float32);mid=none;out=float32_rne"}},
  };
  int count = 0;
  for (const Known& row : rows) {
    if (!testing::Tried(count++)) continue;
    SCOPED_TRACE(std::string(row.options) + " " + row.model);
    const ProbeOutcome outcome = Emulated("sequential", row.model, row.options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    ASSERT_TRUE(outcome.sheet.is_object()) << outcome.err;
    EXPECT_EQ(outcome.sheet["outcome"], "read");
    EXPECT_EQ(outcome.sheet["models"].get<std::vector<std::string>>(), row.survive);
    EXPECT_GT(outcome.sheet["models_tried"], 100);
    EXPECT_GT(outcome.sheet["dots"], 3000);
    for (const json& line : outcome.sheet["lines"]) {
      EXPECT_NE(line["text"], "") << line;
      EXPECT_TRUE(line["state"] == "not_read" || line["dots"] > 0) << line;
    }
  }
}

TEST_F(Probe, LinesSayWhatBlockUnitsDo) {
  const ProbeOutcome outcome =
      Emulated("sequential", "in=as_is;prod=exact;acc=blockfma(8,24,rz);mid=none;out=float32_rne",
               "--dtype float16 --out-dtype float32");
  EXPECT_EQ(Words(outcome.sheet, "group_size"), std::vector<std::string>{"8"});
  EXPECT_EQ(Words(outcome.sheet, "alignment_bits"), std::vector<std::string>{"1"});
  EXPECT_EQ(Words(outcome.sheet, "accumulator_rounding"), std::vector<std::string>{"rz"});
  EXPECT_EQ(Words(outcome.sheet, "order"), std::vector<std::string>{"fused blocks of 8, one after another"});
  EXPECT_THAT(outcome.out, HasSubstr("1 (terms are cut at 24 fraction bits)"));
}

TEST_F(Probe, NamesTheOrder) {
  const std::vector<std::pair<const char*, const char*>> rows{
      {"sequential", "sequential"},
      {"reversed", "reversed"},
      {"lanes8", "8 lanes, folded in halves"},
      {"pairwise", "pairwise"},
      {"blocks16", "blocks of 16, each sequential, added one after another"},
      {"odd_first_pairs", "sequential in pairs, the odd one first"}};
  int count = 0;
  for (const auto& [order, name] : rows) {
    for (const char* dtype : {"float32", "bfloat16", "float16"}) {
      if (!testing::Tried(count++)) continue;
      const ProbeOutcome outcome =
          Emulated(order, std::string("in=as_is;prod=exact;acc=float32;mid=none;out=") + dtype + "_rne",
                   std::string("--dtype ") + dtype);
      EXPECT_EQ(Words(outcome.sheet, "order"), std::vector<std::string>{name}) << dtype;
      EXPECT_THAT(Line(outcome.sheet, "order")["text"].get<std::string>(),
                  HasSubstr("at all 64 coordinates"));
      EXPECT_NE(outcome.sheet["tree"], "");
    }
  }
}

TEST_F(Probe, ShortSumsTellLessAndSaySo) {
  const char* plain = "in=as_is;prod=exact;acc=float32;mid=none;out=float32_rne";
  for (const int k : {1, 2, 3, 7}) {
    const ProbeOutcome outcome = Emulated("sequential", plain, "--k " + std::to_string(k));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.sheet["models"].get<std::vector<std::string>>(), Contains(plain)) << k;
    EXPECT_EQ(Line(outcome.sheet, "accumulator")["state"] == "not_read", k == 1) << k;
    EXPECT_EQ(Line(outcome.sheet, "order")["state"] == "not_read", k < 3) << k;
    EXPECT_EQ(Line(outcome.sheet, "split_k")["state"] == "not_read", k < 4) << k;
    // Nine passes of bfloat16 leave nothing out that one product shows.
    EXPECT_EQ(Line(outcome.sheet, "input_rounding")["words"],
              k == 1 ? json({"as_is", "bf16x9"}) : json({"as_is"}))
        << k;
  }
}

TEST_F(Probe, UsageErrorsAre4AndRunNothing) {
  struct Row {
    const char* backend;
    const char* options;
    const char* says;
  };
  for (const Row& row :
       std::vector<Row>{{"emulatd", "", "did you mean 'emulated'?"},
                        {"emulated:modle=x", "", "model"},
                        {"hipblas", "", "hipblas is not installed"},
                        {"emulated", "--dtype bfloat1", "did you mean 'bfloat16'?"},
                        {"emulated", "--dtype int32", "no dtype that can be probed"},
                        {"emulated", "--out-dtype float8_e5m2", "no dtype that can be probed"},
                        {"emulated", "--k 0", "1 to 65536"},
                        {"emulated", "--k -3", "1 to 65536"},
                        {"emulated", "--form mm", "matmul, bmm, dot"}}) {
    const ProbeOutcome outcome = Run(row.backend, row.options);
    EXPECT_EQ(outcome.code, 4) << row.backend << " " << row.options;
    EXPECT_THAT(outcome.err, HasSubstr(row.says)) << row.options;
    EXPECT_EQ(outcome.out, "");
    EXPECT_FALSE(outcome.sheet.is_object());
  }
  EXPECT_EQ(Run("emulated", "--form dot --json /nonexistent/sheet.json").code, 4);
}

TEST_F(Probe, WhateverABackendDoesHasAnAnswer) {
  struct Row {
    const char* backend;
    int code;
    const char* outcome;
    const char* says;
  };
  for (const Row& row :
       std::vector<Row>{{"faulty:fault=none", 0, "read", ""},
                        {"faulty:fault=raise", 5, "refused", "raised"},
                        {"recorded", 5, "refused", "one baddbmm"},
                        {"faulty:fault=nan", 1, "unmodelled", "observed nan"},
                        {"faulty:fault=nondeterministic", 1, "nondeterministic", "other bits"},
                        {"faulty:fault=segv", 6, "broken", "SIGSEGV"},
                        {"faulty:fault=bad_alloc", 6, "broken", "out_of_memory"},
                        {"faulty:fault=unwritten", 6, "broken", "never written"},
                        {"faulty:fault=ftz", 6, "broken", "subnormal"},
                        {"faulty:fault=hang", 6, "broken", "timed_out"}}) {
    const ProbeOutcome outcome = Run(row.backend, "--dtype bfloat16 --timeout 2");
    EXPECT_EQ(outcome.code, row.code) << row.backend << " " << outcome.err;
    ASSERT_TRUE(outcome.sheet.is_object()) << row.backend;
    EXPECT_EQ(outcome.sheet["outcome"], row.outcome) << row.backend;
    EXPECT_THAT(outcome.sheet["reason"].get<std::string>(), HasSubstr(row.says)) << row.backend;
    EXPECT_EQ(outcome.err.empty(), row.code == 0) << row.backend << " " << outcome.err;
    const bool nothing_read =
        row.code == 6 || row.code == 5 || std::string_view(row.outcome) == "nondeterministic";
    EXPECT_EQ(outcome.sheet["lines"].empty(), nothing_read) << row.backend;
    EXPECT_EQ(outcome.sheet["models"].empty(), row.code != 0) << row.backend;
  }
}

TEST_F(Probe, WhereNoModelPassesTheNearestIsNamedWithWhatItMisses) {
  // A unit of 27 fraction bits, which is no candidate: that of 26 is nearest.
  const ProbeOutcome outcome =
      Emulated("sequential", "in=as_is;prod=exact;acc=blockfma(16,27,rz);mid=none;out=float32_rne",
               "--dtype bfloat16 --out-dtype float32");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.sheet["outcome"], "unmodelled");
  EXPECT_THAT(
      outcome.sheet["reason"].get<std::string>(),
      HasSubstr("the nearest, in=as_is;prod=exact;acc=blockfma(16,26,rz);mid=none;out=float32_rne, gives 1"));
}

TEST_F(Probe, JsonCanGoToStdoutAlone) {
  const auto outcome = testing::RunProgram(dir_, "probe emulated --form dot --json -");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(json::parse(outcome.out, nullptr, false).value("schema", ""), "ulpscope.datasheet/1");
}

TEST_F(Probe, RequireIsProvedViolatedOrCannotBeTold) {
  const std::string honest = "in=as_is;prod=exact;acc=float32;mid=none;out=float32_rne";
  const std::string narrow = "in=as_is;prod=exact;acc=bfloat16;mid=none;out=float32_rne";
  const std::string wanted = " --dtype bfloat16 --require 'acc=at_least_float32,in=as_is,mid=none'";
  const auto proved = Emulated("sequential", honest, wanted);
  EXPECT_EQ(proved.code, 0) << proved.err;
  EXPECT_THAT(
      proved.out,
      HasSubstr("--require acc=at_least_float32,in=as_is,mid=none: proved: what remains possible is "));
  const auto violated = Emulated("sequential", narrow, wanted);
  EXPECT_EQ(violated.code, 1);
  EXPECT_THAT(violated.err, HasSubstr("violated: what remains possible is in=as_is;prod=exact;acc=bfloat16"));
  EXPECT_THAT(violated.err, HasSubstr(" fell to "));
  EXPECT_THAT(violated.err, HasSubstr(": observed 0x"));
  const auto open = Emulated("sequential", honest, "--dtype bfloat16 --k 1 --require acc=float32");
  EXPECT_EQ(open.code, 1);
  EXPECT_THAT(open.err, HasSubstr("undecided: "));
  EXPECT_EQ(Emulated("sequential", honest, "--require 'acc=float32|float64|blockfma(8,24,rz)'").code, 0);
}

TEST_F(Probe, RequireTakesTheWordsOfAContract) {
  const std::pair<const char*, const char*> rows[] = {{"acc=flaot32", "acc"},
                                                      {"acc", "FACET=WORD"},
                                                      {"akk=float32", "akk"},
                                                      {"dtype=float32", "FACET=WORD"},
                                                      {"acc=float32,acc=float64", "acc"},
                                                      {"mid=", "--require"}};
  for (const auto& [text, says] : rows) {
    const auto outcome = testing::RunProgram(dir_, "probe emulated --require " + ShellQuote(text));
    EXPECT_EQ(outcome.code, 4) << text << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(says)) << text;
    EXPECT_EQ(outcome.out, "") << text;
  }
}

}  // namespace
}  // namespace ulpscope
