// Precision models are ordered by their words, facet by facet.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "harness/model/classification.h"
#include "harness/words/facets.h"
#include "tests/support/models.h"

namespace ulpscope {
namespace {

/// The words of a model, in the order of its facets.
using Spelt = std::tuple<testing::Named, std::string, std::string, std::string, std::string, testing::Named>;

PrecisionModel ModelOf(const Spelt& words) {
  const auto& [in, prod, acc, mid, out, cuts] = words;
  PrecisionModel model = testing::Model(acc, mid, out);
  model.in = testing::Ins(in);
  model.prod = testing::Prod(prod);
  model.cuts = testing::Cuts(cuts);
  return model;
}

TEST(ModelOrder, IsThatOfTheWords) {
  std::vector<Spelt> all;
  for (const testing::Named& in :
       {testing::Named{}, {{"x", "tf32_rne"}}, {{"x", "bf16x3"}, {"y", "as_is+daz"}}}) {
    for (const std::string prod : {"exact", "bfloat16", "float32", "p11"}) {
      for (const auto& acc : AccWords()) {
        for (const std::string mid : {"none", "bfloat16", "tf32", "p23"}) {
          all.emplace_back(in, prod, acc, mid, "float32_rne", testing::Named{});
          if (acc == "float32")
            all.emplace_back(in, prod, "float32+ftz", mid, "float16_rz",
                             testing::Named{{"h", mid}, {"i", "p9"}});
        }
      }
    }
  }
  std::vector<PrecisionModel> models;
  for (const Spelt& words : all) models.push_back(ModelOf(words));
  std::ranges::sort(all);
  std::ranges::sort(models);
  ASSERT_GT(all.size(), 500u);
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(models[i].Name(), ModelOf(all[i]).Name()) << i;
    ASSERT_EQ(models[i], ModelOf(all[i]));
  }
}

}  // namespace
}  // namespace ulpscope
