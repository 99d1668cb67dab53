// ulpscope baseline: what is accepted covers a run until its day, and what covers nothing does not stay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "harness/base/build_info.h"
#include "harness/cli/baseline_file.h"
#include "tests/support/program.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* kHead = "# Known deviations.\n";

class BaselineCommand : public ::testing::Test {
 protected:
  BaselineCommand() {
    fs::create_directories(dir_ / "root/cases");
    fs::create_directory_symlink(fs::path(SourceDir()) / "backends", dir_ / "root/backends");
    Write(std::string(kHead) + "[]\n");
    std::ofstream(dir_ / "mine.yaml") << R"(cases:
  - name: product
    tensors:
      x: {dtype: bfloat16, shape: [16, 32], fill: normal}
      y: {dtype: bfloat16, shape: [32, 16], fill: normal}
    program:
      - {op: empty, shape: [16, 16], dtype: float32, as: buffer}
      - {op: matmul, of: [x, y], out: buffer, as: product}
    observe: [product]
    contract: {status: documented, accept: {product: {acc: at_least_float32, mid: none}}}
)";
    EXPECT_EQ(RunModel("bad", "bfloat16").code, 1);
    EXPECT_EQ(RunModel("good", "none").code, 0);
  }

  testing::ProgramOutcome Run(const std::string& arguments) const {
    return testing::RunProgram(dir_, arguments, "ULPSCOPE_ROOT=root");
  }
  testing::ProgramOutcome RunModel(const std::string& out, const std::string& mid) const {
    const std::string model = "in=as_is;prod=exact;acc=float32;mid=" + mid + ";out=float32_rne";
    return Run("run mine.yaml -q -b 'emulated:model=" + model + "' -o " + out);
  }
  void Write(const std::string& text) const { std::ofstream(dir_ / "root/cases/deviations.yaml") << text; }
  std::string File() const { return testing::ReadAll((dir_ / "root/cases/deviations.yaml").string()); }
  std::string Backend(const std::string& run) const {
    return nlohmann::json::parse(
        testing::ReadAll((dir_ / run / "report.json").string()))["results"][0]["backend"];
  }
  testing::ProgramOutcome Accept(const std::string& run, const std::string& more) const {
    return Run("baseline accept " + ShellQuote("mine/product@" + Backend(run)) + " --run " + run + " " +
               more);
  }

  const testing::TestFolder folder_;
  const fs::path dir_ = folder_.path();
};

constexpr const char* kWhole =
    "--reason 'stores \"twice\": {known}, #1' --link https://example.org/1 --expires 2999-12-31";

TEST_F(BaselineCommand, WhatIsAcceptedIsKnownAndWhatConformsAgainIsPruned) {
  const auto fresh = Run("baseline review bad");
  EXPECT_EQ(fresh.code, 1);
  EXPECT_THAT(fresh.out, HasSubstr("new    mine/product@" + Backend("bad") + " product: f32>bf16>f32~"));
  EXPECT_THAT(fresh.out, HasSubstr("1 new, 0 known, 0 stale"));
  const auto accepted = Accept("bad", kWhole);
  EXPECT_EQ(accepted.code, 0) << accepted.err;
  const std::string text = File();
  EXPECT_TRUE(text.starts_with(kHead)) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << "one entry, one line: " << text;
  const auto known = Run("baseline review bad");
  EXPECT_EQ(known.code, 0) << known.out;
  EXPECT_THAT(known.out, HasSubstr("0 new, 1 known, 0 stale"));
  EXPECT_EQ(Run("judge bad").code, 0) << "XFAIL";
  EXPECT_EQ(Accept("bad", kWhole).code, 4) << "it fails no more";
  EXPECT_EQ(Run("baseline prune bad").code, 0);
  EXPECT_EQ(File(), text) << "what is met stays";
  EXPECT_EQ(Run("baseline prune good").code, 0);
  EXPECT_EQ(File(), text) << "another backend was not tried by that run";
}

TEST_F(BaselineCommand, AnEntryThatIsMetNoMoreIsStale) {
  const std::string entry = DeviationLine({.case_id = "mine/product",
                                           .backend = Backend("good"),
                                           .value = "product",
                                           .versions = {},
                                           .found = "f32>bf16>f32",
                                           .reason = "was so",
                                           .link = "https://example.org/1",
                                           .expires = "2999-12-31",
                                           .pos = {}});
  const std::string other = "- {case: a/b, backend: jax, found: x, reason: y}   # mine\n";
  Write(std::string(kHead) + entry + "\n" + other);
  EXPECT_EQ(Run("judge good").code, 1) << "XPASS";
  const auto review = Run("baseline review good");
  EXPECT_EQ(review.code, 1);
  EXPECT_THAT(review.out, HasSubstr("product conforms (line 2)"));
  const auto pruned = Run("baseline prune good");
  EXPECT_EQ(pruned.code, 0) << pruned.err;
  EXPECT_EQ(File(), kHead + other) << "and nothing else is touched";
  EXPECT_EQ(Run("judge good").code, 0);
}

TEST_F(BaselineCommand, WhatHasExpiredIsPrunedWhateverTheRunSays) {
  Write(std::string(kHead) + "- {case: a/b, backend: jax, found: x, reason: y, expires: 2020-01-01}\n");
  EXPECT_THAT(Run("baseline review good").out, HasSubstr("expired on 2020-01-01"));
  EXPECT_EQ(Run("baseline prune good").code, 0);
  EXPECT_EQ(File(), std::string(kHead) + "[]\n");
}

TEST_F(BaselineCommand, NothingIsAcceptedWithoutAReasonALinkAndADay) {
  const std::string before = File();
  const auto refused = [&](const std::string& more, const std::string& why) {
    const auto outcome = Accept("bad", more);
    EXPECT_EQ(outcome.code, 4) << more;
    EXPECT_THAT(outcome.err, HasSubstr(why));
    EXPECT_EQ(File(), before) << more;
  };
  refused("--link https://x.org --expires 2999-01-01", "--reason is required");
  refused("--reason ' ' --link https://x.org --expires 2999-01-01", "--reason is empty");
  refused("--reason why --expires 2999-01-01", "--link is required");
  refused("--reason why --link javascript:1 --expires 2999-01-01", "--link is no link");
  refused("--reason why --link https://x.org", "--expires is required");
  refused("--reason why --link https://x.org --expires 2999-02-30", "--expires is no day");
  refused("--reason why --link https://x.org --expires 2020-01-01", "--expires has passed");
  refused("--reason why --link https://x.org --expires 2999-01-01 --versions 'torch>=2'",
          "would cover nothing");
  const auto conforms = Accept("good", kWhole);
  EXPECT_EQ(conforms.code, 4);
  EXPECT_THAT(conforms.err, HasSubstr("violates no contract"));
}

}  // namespace
}  // namespace ulpscope
