// Summation trees: read back from simulated masks, named, and refused where the answers are no tree.
#include "harness/probe/sum_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace ulpscope {
namespace {

using Sum = std::function<float(std::vector<float>)>;

/// The number of terms that a real float32 sum loses between two masks.
AskMeets Masks(int64_t size, const Sum& sum, int64_t* asked) {
  return [=](std::span<const std::pair<int64_t, int64_t>> pairs) {
    std::vector<int64_t> lost;
    for (const auto& [i, j] : pairs) {
      std::vector<float> terms(static_cast<size_t>(size), 0x1p-12f);
      terms[static_cast<size_t>(i)] = 0x1p30f;
      terms[static_cast<size_t>(j)] = -0x1p30f;
      lost.push_back(size - std::llround(std::ldexp(sum(terms), 12)));
      ++*asked;
    }
    return lost;
  };
}

float InOrder(const std::vector<float>& terms, size_t begin, size_t end, size_t step) {
  float total = terms[begin];
  for (size_t i = begin + step; i < end; i += step) total += terms[i];
  return total;
}

float Halves(std::vector<float> lanes) {
  while (lanes.size() > 1) {
    const size_t half = lanes.size() / 2;
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    lanes.resize(half);
  }
  return lanes[0];
}

float Pairwise(const std::vector<float>& terms, size_t begin, size_t end) {
  if (end - begin == 1) return terms[begin];
  const size_t middle = (begin + end) / 2;
  return Pairwise(terms, begin, middle) + Pairwise(terms, middle, end);
}

struct Row {
  const char* name;
  Sum sum;
  int64_t most_asked;
};

TEST(SumTree, OrdersOfRealFloat32SumsAreNamed) {
  const std::vector<Row> rows{
      {"sequential", [](std::vector<float> t) { return InOrder(t, 0, t.size(), 1); }, 63},
      {"reversed",
       [](std::vector<float> t) { return std::reverse(t.begin(), t.end()), InOrder(t, 0, t.size(), 1); },
       64 * 63 / 2},
      {"sequential in pairs, the odd one first",
       [](std::vector<float> t) {
         for (size_t i = 0; i < t.size(); i += 2) std::swap(t[i], t[i + 1]);
         return InOrder(t, 0, t.size(), 1);
       },
       64 * 63 / 2},
      {"pairwise", [](std::vector<float> t) { return Pairwise(t, 0, t.size()); }, 400},
      {"8 lanes, folded in halves",
       [](std::vector<float> t) {
         std::vector<float> lanes;
         for (size_t l = 0; l < 8; ++l) lanes.push_back(InOrder(t, l, t.size(), 8));
         return Halves(lanes);
       },
       600},
      {"32 lanes, 4 registers of 8 added one after another, then folded in halves",
       [](std::vector<float> t) {
         std::vector<float> lanes;
         for (size_t l = 0; l < 8; ++l) {
           float lane = InOrder(t, l, t.size(), 32);
           for (size_t r = 1; r < 4; ++r) lane += InOrder(t, l + 8 * r, t.size(), 32);
           lanes.push_back(lane);
         }
         return Halves(lanes);
       },
       600},
      {"2 contiguous parts of 8 lanes, added lane by lane, then folded in halves",
       [](std::vector<float> t) {
         std::vector<float> lanes;
         for (size_t l = 0; l < 8; ++l) lanes.push_back(InOrder(t, l, 32, 8) + InOrder(t, 32 + l, 64, 8));
         return Halves(lanes);
       },
       600},
      {"blocks of 16, each sequential, added one after another",
       [](std::vector<float> t) {
         float total = InOrder(t, 0, 16, 1);
         for (size_t b = 16; b < t.size(); b += 16) total += InOrder(t, b, b + 16, 1);
         return total;
       },
       600},
      {"fused blocks of 4, one after another",
       [](std::vector<float> t) {
         double total = 0;  // four terms and the sum at once: aligned to the largest, cut, exact
         for (size_t b = 0; b < t.size(); b += 4) {
           double largest = std::fabs(total);
           for (size_t i = b; i < b + 4; ++i) largest = std::max<double>(largest, std::fabs(t[i]));
           const double quantum = std::ldexp(1.0, std::ilogb(largest) - 24);
           total = std::trunc(total / quantum) * quantum;
           for (size_t i = b; i < b + 4; ++i) total += std::trunc(t[i] / quantum) * quantum;
         }
         return static_cast<float>(total);
       },
       1200},
  };
  for (const Row& row : rows) {
    int64_t asked = 0;
    const auto tree = RevealTree(64, Masks(64, row.sum, &asked));
    ASSERT_TRUE(tree.has_value()) << row.name;
    EXPECT_EQ(tree->Name(), row.name) << tree->Text();
    EXPECT_LE(asked, row.most_asked) << row.name;
    EXPECT_GE(asked, 63) << row.name;
    EXPECT_EQ(tree->WidestNode(), std::string_view(row.name).starts_with("fused") ? 4 : 2) << row.name;
    // Every pair, including those that were not queried, is as the masks show it.
    int64_t ignored = 0;
    const AskMeets masks = Masks(64, row.sum, &ignored);
    for (int64_t i = 0; i < 64; ++i) {
      for (int64_t j = i + 1; j < 64; ++j) {
        const std::pair<int64_t, int64_t> pair{i, j};
        ASSERT_EQ(tree->Meet(i, j), masks({&pair, 1})[0]) << row.name << " " << i << "," << j;
      }
    }
  }
}

TEST(SumTree, ATreeOfNoNameIsWritten) {
  int64_t asked = 0;
  const auto tree = RevealTree(
      5, Masks(
             5, [](std::vector<float> t) { return ((t[4] + t[1]) + t[0]) + (t[2] + t[3]); }, &asked));
  ASSERT_TRUE(tree.has_value());
  EXPECT_EQ(tree->Name(), "");
  EXPECT_EQ(tree->Text(), "((0 (1 4)) (2 3))");
}

TEST(SumTree, AnswersThatAreNoTreeAreRefused) {
  int64_t calls = 0;
  // A kernel whose order changes from launch to launch.
  const auto unstable = RevealTree(8, [&](std::span<const std::pair<int64_t, int64_t>> pairs) {
    std::vector<int64_t> lost;
    for (size_t i = 0; i < pairs.size(); ++i) lost.push_back(2 + (calls++ * 5) % 6);
    return lost;
  });
  EXPECT_FALSE(unstable.has_value());
  // An accumulator so wide that nothing is lost.
  EXPECT_FALSE(RevealTree(8, [](std::span<const std::pair<int64_t, int64_t>> pairs) {
                 return std::vector<int64_t>(pairs.size(), 2);
               }).has_value());
  // Overflow, NaN: counts out of range.
  EXPECT_FALSE(RevealTree(8, [](std::span<const std::pair<int64_t, int64_t>> pairs) {
                 return std::vector<int64_t>(pairs.size(), -40);
               }).has_value());
  EXPECT_FALSE(RevealTree(8, [](std::span<const std::pair<int64_t, int64_t>>) {
                 return std::vector<int64_t>();
               }).has_value());
}

TEST(SumTree, SmallestSums) {
  const AskMeets two = [](std::span<const std::pair<int64_t, int64_t>> pairs) {
    return std::vector<int64_t>(pairs.size(), 2);
  };
  EXPECT_EQ(RevealTree(2, two)->Text(), "(0 1)");
  EXPECT_EQ(RevealTree(1, two)->Text(), "0");
  EXPECT_FALSE(RevealTree(0, two).has_value());
}

}  // namespace
}  // namespace ulpscope
