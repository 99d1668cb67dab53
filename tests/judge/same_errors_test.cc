// Errors that are those of something, and errors that only look so in a few numbers.
#include "harness/judge/same_errors.h"

#include <gtest/gtest.h>

#include <random>

namespace ulpscope {
namespace {

constexpr size_t kErrors = 200;

std::vector<double> Noise(uint32_t seed, double size) {
  std::mt19937 bits(seed);
  std::uniform_real_distribution<double> draw(-size, size);
  std::vector<double> values;
  for (size_t i = 0; i < kErrors; ++i) values.push_back(draw(bits));
  return values;
}

bool Are(const std::vector<double>& errors, const std::vector<double>& predicted) {
  return AreThose(errors, predicted, static_cast<double>(Distinct(predicted).size()));
}

TEST(SameErrors, ThoseThatWerePredictedBesideALittleOfTheirOwn) {
  const auto predicted = Noise(1, 4);
  auto errors = predicted;
  const auto own = Noise(2, 1);
  for (size_t i = 0; i < kErrors; ++i) errors[i] += own[i];
  EXPECT_TRUE(Are(errors, predicted));
}

TEST(SameErrors, OthersOfTheSameSize) {
  EXPECT_FALSE(Are(Noise(1, 4), Noise(2, 4)));
  // Of half the size: as far off at both ends.
  auto half = Noise(1, 4);
  for (double& value : half) value /= 3;
  EXPECT_FALSE(Are(Noise(1, 4), half));
}

TEST(SameErrors, AFewHugeOnesTellNothingOfTheOthers) {
  auto errors = Noise(1, 1), predicted = Noise(2, 1);
  for (size_t i = 0; i < 5; ++i) errors[i] = predicted[i] = 1000 + static_cast<double>(i);
  EXPECT_FALSE(Are(errors, predicted));
}

TEST(SameErrors, EqualNumbersSayTheSameThingOnce) {
  std::vector<double> errors, few = Noise(1, 4);
  few.resize(8);
  for (size_t i = 0; i < kErrors; ++i) errors.push_back(few[i % few.size()]);
  auto predicted = errors;
  for (double& value : predicted) value *= 0.9;
  EXPECT_EQ(Distinct(predicted).size(), few.size());
  EXPECT_FALSE(Are(errors, predicted));
  EXPECT_TRUE(AreThose(errors, predicted, kErrors));
}

}  // namespace
}  // namespace ulpscope
