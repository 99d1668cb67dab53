// The table of remedies against that of the knobs.
#include "harness/words/remedies.h"

#include <gtest/gtest.h>

#include "harness/base/find.h"
#include "harness/words/knobs.h"
#include "harness/words/ops.h"

namespace ulpscope {
namespace {

TEST(Remedies, AreValuesOfKnobsAndNotTheirDefaults) {
  ASSERT_FALSE(RemedyRows().empty());
  for (const RemedyRow& row : RemedyRows()) {
    const KnobRow* knob = FindKnob(row.knob);
    ASSERT_NE(knob, nullptr) << row.knob;
    EXPECT_TRUE(Contains(knob->values, std::string(row.value))) << row.knob;
    EXPECT_NE(knob->values.front(), row.value) << row.knob << ": what stands anyway is no remedy";
    EXPECT_TRUE(row.op.empty() || FindOp(row.op) != nullptr) << row.op;
    EXPECT_FALSE(row.source.empty());
  }
}

TEST(Remedies, AreThoseThatTheBackendTakesAndTheProgramCallsFor) {
  const auto knobs = [](std::string_view backend, const std::vector<std::string>& ops) {
    std::vector<std::string> names;
    for (const RemedyRow& row : RemediesFor(backend, "cpu", ops)) names.emplace_back(row.knob);
    return names;
  };
  EXPECT_EQ(knobs("torch-inductor", {"mul"}), std::vector<std::string>{"emulate_precision_casts"});
  EXPECT_EQ(knobs("torch-inductor", {"scaled_dot_product_attention"}),
            (std::vector<std::string>{"emulate_precision_casts", "sdpa_backend"}));
  EXPECT_EQ(knobs("jax", {"mul"}), std::vector<std::string>{"xla_allow_excess_precision"});
  EXPECT_EQ(knobs("openblas", {"matmul"}), std::vector<std::string>{});
}

}  // namespace
}  // namespace ulpscope
