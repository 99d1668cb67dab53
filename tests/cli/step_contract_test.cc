// Contracts on a value at the end of too many steps to be searched as one: judged by the steps, or reported
// open.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/program.h"

namespace ulpscope {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

std::string Block(const std::string& dtype, const std::string& tokens) {
  const auto tensor = [&](const char* name, const std::string& shape) {
    return std::string("      ") + name + ": {dtype: " + dtype + ", shape: " + shape + ", fill: normal}\n";
  };
  return "cases:\n  - name: block\n    contract: {status: de_facto, accept: {y: {acc: [at_least_float32]}}}\n"
         "    tensors:\n" +
         tensor("x", "[" + tokens + ", 64]") + tensor("gate", "[192, 64]") + tensor("up", "[192, 64]") +
         tensor("down", "[64, 192]") +
         "    program:\n"
         "      - {op: linear, of: [x, gate], as: a}\n"
         "      - {op: silu, of: [a], as: s}\n"
         "      - {op: linear, of: [x, up], as: u}\n"
         "      - {op: mul, of: [s, u], as: g}\n"
         "      - {op: linear, of: [g, down], as: h}\n"
         "      - {op: neg, of: [h], as: y}\n"
         "    observe: [y]\n";
}

class StepContract : public ::testing::Test {
 protected:
  json RunOn(const std::string& dtype, const std::string& acc, const std::string& more = "") {
    std::ofstream(dir_ / "mine.yaml") << Block(dtype, dtype == "float64" ? "2" : "8");
    const auto outcome =
        testing::RunProgram(dir_, "run mine.yaml -q -o r -b 'emulated:model=in=as_is;prod=exact;acc=" + acc +
                                      ";mid=none;out=" + dtype + "_rne' " + more);
    EXPECT_LE(outcome.code, 1) << outcome.err;
    return json::parse(testing::ReadAll((dir_ / "r" / "report.json").string()))["results"][0];
  }

  testing::TestFolder folder_;
  const std::filesystem::path& dir_ = folder_.path();
};

TEST_F(StepContract, WideStepsConform) {
  const json result = RunOn("float64", "float64");
  EXPECT_EQ(result["status"], "PASS") << result["reason"];
  EXPECT_EQ(result["values"]["y"]["contract"], "CONFORMS");
  EXPECT_THAT(result["values"]["y"]["label"].get<std::string>(), HasSubstr("step by step"));
}

TEST_F(StepContract, ANarrowStepViolatesAndIsNamed) {
  const json result = RunOn("float64", "float16");
  EXPECT_EQ(result["status"], "FAIL");
  EXPECT_EQ(result["values"]["y"]["contract"], "VIOLATES");
  // y itself is h with another sign.
  EXPECT_THAT(result["reason"].get<std::string>(), HasSubstr("its step h (linear): "));
}

TEST_F(StepContract, WithoutStepsItIsOpen) {
  const json result = RunOn("bfloat16", "float16", "--no-steps");
  EXPECT_EQ(result["status"], "INCONCLUSIVE");
  EXPECT_EQ(result["values"]["y"]["classification"], "not_judged");
  EXPECT_GT(result["values"]["y"]["checked"].get<int>(), 0);
  EXPECT_THAT(result["reason"].get<std::string>(), HasSubstr("not judged end to end"));
}

}  // namespace
}  // namespace ulpscope
