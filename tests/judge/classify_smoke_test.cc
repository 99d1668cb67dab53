// The classifier on emulated products: the truth is in the set, and the set is small where it should be.
#include <gtest/gtest.h>

#include <chrono>
#include <iostream>

#include "harness/judge/classify.h"
#include "oracles/models.h"
#include "oracles/oracle.h"
#include "tests/support/cases.h"

namespace ulpscope {
namespace {

TEST(ClassifySmoke, MatmulOut) {
  const Case c = testing::MatmulOutCase();
  const auto inputs = testing::NormalInputs(c, 1);
  auto oracle = OpenCaseOracle(c, inputs);
  ASSERT_TRUE(oracle) << oracle.error().Text();
  for (const char* name : {"in=as_is;prod=exact;acc=float32;mid=none;out=float32_rne", "in=as_is;prod=exact;acc=float32;mid=bfloat16;out=float32_rne",
                           "in=as_is;prod=exact;acc=bfloat16;mid=none;out=float32_rne"}) {
    const auto model = ParsePrecisionModel(name);
    ASSERT_TRUE(model);
    const auto values = EmulateProgram(c, inputs, *model, "lanes4");
    ASSERT_TRUE(values) << values.error().Text();
    for (const auto& [value, data] : *values) {
      const auto start = std::chrono::steady_clock::now();
      const Classification result = ClassifyValue(**oracle, value, data);
      const auto truth = TrueModel(c, value, *model, data.dtype);
      std::cout << value << " " << Name(result.kind) << " tried " << result.models_tried << " proved " << result.models_proved.size() << " models " << result.models.size() << " "
                << result.label << " max_ulp " << result.max_ulp << " excl " << result.excluded.size() << " in "
                << std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() << " s; truth " << truth->Name() << "\n";
      if (result.models.size() < 6) for (const auto& m : result.models) std::cout << "    " << m.Name() << "\n";
      EXPECT_NE(std::find(result.models.begin(), result.models.end(), *truth), result.models.end());
    }
  }
}

}  // namespace
}  // namespace ulpscope
