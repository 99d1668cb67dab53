// Backend strings: what is written reads back, what is no backend is refused, and the JSON Schema's pattern
// agrees.
#include "harness/words/backend_name.h"

#include <gtest/gtest.h>

#include <random>
#include <regex>

namespace ulpscope {
namespace {

/// A text of one to `most` characters from `letters`.
std::string Draw(std::mt19937& draw, std::string_view letters, size_t most) {
  std::string text;
  for (size_t i = 1 + draw() % most; i > 0; --i) text += letters[draw() % letters.size()];
  return text;
}

BackendSpec Any(std::mt19937& draw) {
  const std::string_view word = "abzAZ09_-", knob = "abzAZ09_", value = "az09_-+.:;=/@'*<>~";
  BackendSpec spec{.name = "n" + Draw(draw, word, 6), .knobs = {}};
  if (draw() % 2 == 0) spec.device = "d" + Draw(draw, word, 4);
  if (spec.device != "cpu" && draw() % 2 == 0) spec.device += ":" + std::to_string(draw() % 20);
  for (size_t i = draw() % 4; i > 0; --i) {
    std::string text = Draw(draw, value, 8);
    if (draw() % 3 == 0) text += "(" + Draw(draw, "a8,=;", 6) + ")";
    spec.knobs["k" + Draw(draw, knob, 3)] = text;
  }
  if (draw() % 4 == 0) spec.knobs["model"] = Draw(draw, "az,=:;()8_", 12);
  return spec;
}

TEST(BackendName, WhatIsWrittenReadsBack) {
  std::mt19937 draw(1);
  const std::regex pattern{std::string(BackendSpec::Pattern())};
  int indexed = 0, with_model = 0;
  for (int i = 0; i < 5000; ++i) {
    const BackendSpec spec = Any(draw);
    const auto again = BackendSpec::Parse(spec.Text());
    ASSERT_TRUE(again) << spec.Text() << ": " << again.error().Text();
    ASSERT_EQ(*again, spec) << spec.Text();
    ASSERT_TRUE(std::regex_match(spec.Text(), pattern)) << spec.Text();
    ASSERT_EQ(CanonicalBackend(spec.Text()), spec.Text());
    indexed += spec.device.find(':') != std::string::npos;
    with_model += spec.knobs.contains("model");
  }
  EXPECT_GT(indexed, 500);
  EXPECT_GT(with_model, 500);
}

TEST(BackendName, LoaderAndPatternAgreeOnWhatIsNone) {
  std::mt19937 draw(2);
  const std::regex pattern{std::string(BackendSpec::Pattern())};
  int accepted = 0, refused = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string text = "a" + Draw(draw, "ab1@:=,()- ", 9);
    const bool parsed = BackendSpec::Parse(text).has_value();
    // A knob that is set twice is well formed; only the loader counts.
    const bool twice = !parsed && BackendSpec::Parse(text).error().Text().find("twice") != std::string::npos;
    ASSERT_EQ(parsed || twice, std::regex_match(text, pattern)) << text;
    ++(parsed ? accepted : refused);
  }
  EXPECT_GT(accepted, 300);
  EXPECT_GT(refused, 10000);
}

TEST(BackendName, ADeviceMayHaveAnIndexAndAnotherDefault) {
  const auto spec = BackendSpec::Parse("torch-eager@cuda:1:threads=2");
  ASSERT_TRUE(spec);
  EXPECT_EQ(*spec, (BackendSpec{.name = "torch-eager", .device = "cuda:1", .knobs = {{"threads", "2"}}}));
  EXPECT_EQ(spec->DeviceKind(), "cuda");
  EXPECT_EQ(BackendSpec::Parse("cublas", "cuda")->Text(), "cublas@cuda");
  EXPECT_EQ(CanonicalBackend("x@cpu:b=1,a=2"), "x:a=2,b=1");
  EXPECT_EQ(CanonicalBackend("no backend"), "no backend");
}

}  // namespace
}  // namespace ulpscope
