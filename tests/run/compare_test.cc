// Findings of the harness itself: poison, spread between runs, taint.
#include "harness/run/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/sdk/adapter.h"

namespace ulpscope {
namespace {

TEST(CompareTest, PoisonIsFoundInEveryWideDType) {
  int checked = 0;
  for (const auto& name : AllDTypeNames()) {
    const DType dtype = *ParseDType(name);
    TensorData tensor = TensorData::Zeros(dtype, {5});
    EXPECT_FALSE(HoldsPoison(tensor)) << name;
    const size_t width = SizeOf(dtype);
    // The adapters' own pattern: both sides must mean the same.
    sdk::FillPoison(std::span(tensor.bytes).subspan(3 * width, width), width);
    EXPECT_EQ(HoldsPoison(tensor), width > 2 || (width == 2 && IsFloating(tensor.dtype))) << name;
    ++checked;
  }
  EXPECT_GE(checked, 12);
}

TEST(CompareTest, AShiftedPatternIsNoPoison) {
  TensorData tensor = TensorData::Zeros(DType::kFloat32, {2});
  sdk::FillPoison(std::span(tensor.bytes).subspan(2, 4), 4);
  EXPECT_FALSE(HoldsPoison(tensor));
}

TEST(CompareTest, DifferencesAreInUlpsOfTheDType) {
  const auto of = [](DType dtype, double value) {
    TensorData tensor = TensorData::Zeros(dtype, {1});
    tensor.Set(0, value);
    return tensor;
  };
  EXPECT_EQ(LargestDifference(of(DType::kBfloat16, 1), of(DType::kBfloat16, 1 + 0x1p-7)), 1);
  EXPECT_EQ(LargestDifference(of(DType::kFloat32, 1), of(DType::kFloat32, 1 + 0x1p-7)), 0x1p16);
  EXPECT_EQ(LargestDifference(of(DType::kFloat32, 0.0), of(DType::kFloat32, -0.0)), 0);
  EXPECT_EQ(LargestDifference(of(DType::kInt64, 5), of(DType::kInt64, 9)), 4);
  EXPECT_TRUE(std::isinf(LargestDifference(of(DType::kFloat32, 1), of(DType::kFloat32, std::nan("")))));
  EXPECT_EQ(LargestDifference(of(DType::kFloat32, 0), of(DType::kFloat32, 0x1p-149)), 1);
}

TEST(CompareTest, RunsThatDifferAreNamed) {
  Observation first, again;
  first.values["x"] = TensorData::Zeros(DType::kFloat32, {2});
  again = first;
  CompareRepeats(first, again);
  EXPECT_TRUE(first.nondeterministic.empty());
  again.values["x"].Set(1, 0x1p-149);
  CompareRepeats(first, again);
  EXPECT_EQ(first.nondeterministic, (std::map<std::string, double>{{"x", 1}}));
  again.values["x"] = TensorData::Zeros(DType::kBfloat16, {2});
  CompareRepeats(first, again);
  EXPECT_TRUE(std::isinf(first.nondeterministic["x"])) << "another dtype";
  again.outcome.kind = OutcomeKind::kRaised;
  CompareRepeats(first, again);
  EXPECT_TRUE(std::isinf(first.nondeterministic["outcome"]));
}

TEST(CompareTest, PeakBytesMayVary) {
  Observation first, again;
  first.observations = {{"peak_bytes", "100"}, {"w.grad_metadata_dtype", "bfloat16"}};
  again.observations = {{"peak_bytes", "200"}, {"w.grad_metadata_dtype", "float32"}};
  CompareRepeats(first, again);
  EXPECT_EQ(first.nondeterministic.size(), 1u);
  EXPECT_TRUE(first.nondeterministic.contains("w.grad_metadata_dtype"));
}

std::string Taint(uint32_t mxcsr, bool kept, int64_t threads,
                  const std::map<std::string, std::string>& knobs) {
  Observation observation;
  observation.fp_before = FpEnvironment{.mxcsr = 0x1f80, .subnormals_kept = true, .threads = threads};
  observation.fp_after = FpEnvironment{.mxcsr = mxcsr, .subnormals_kept = kept, .threads = threads};
  return DescribeTaint(observation, knobs);
}

TEST(CompareTest, TaintIsWhatWasNotAskedFor) {
  EXPECT_EQ(Taint(0x1f80, true, 1, {}), "");
  EXPECT_EQ(Taint(0x1fbf, true, 1, {}), "") << "exception flags are raised by ordinary arithmetic";
  EXPECT_EQ(Taint(0, true, 1, {}), "") << "no such register on this machine";
  EXPECT_NE(Taint(0x9f80, true, 1, {}).find("flushed to zero"), std::string::npos);
  EXPECT_NE(Taint(0x1fc0, true, 1, {}).find("taken as zero"), std::string::npos);
  EXPECT_NE(Taint(0x5f80, true, 1, {}).find("rounding mode"), std::string::npos);
  EXPECT_NE(Taint(0x1f80, false, 1, {}).find("flushed"), std::string::npos);
  EXPECT_EQ(Taint(0x9fc0, false, 1, {{"flush_denormal", "on"}}), "");
  EXPECT_NE(Taint(0x5f80, true, 1, {{"flush_denormal", "on"}}), "");
  EXPECT_NE(Taint(0x1f80, true, 2, {}).find("2 threads instead of 1"), std::string::npos);
  EXPECT_EQ(Taint(0x1f80, true, 2, {{"threads", "2"}}), "");
  EXPECT_EQ(Taint(0x1f80, true, 0, {}), "") << "a library that does not tell";
}

}  // namespace
}  // namespace ulpscope
