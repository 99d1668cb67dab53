// Poison, spread and canaries.
#include "harness/run/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace ulpscope {
namespace {

constexpr uint32_t kCleanMxcsr = 0x1f80;
constexpr uint32_t kExceptionFlags = 0x3f;
constexpr uint32_t kFlushBits = 0x8040;
constexpr uint32_t kRoundingBits = 0x6000;

std::string Hex(uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%04x", value);
  return text;
}

std::string DescribeMxcsr(uint32_t mxcsr) {
  std::string what;
  const auto add = [&](std::string_view word) { what += (what.empty() ? "" : ", ") + std::string(word); };
  if ((mxcsr & 0x8000) != 0) add("results flushed to zero");
  if ((mxcsr & 0x0040) != 0) add("subnormal operands taken as zero");
  if ((mxcsr & kRoundingBits) != 0) add("rounding mode changed");
  if ((mxcsr & 0x1f80) != 0x1f80) add("exceptions unmasked");
  return "MXCSR " + Hex(mxcsr) + " instead of " + Hex(kCleanMxcsr) + (what.empty() ? "" : " (" + what + ")");
}

/// Threads asked for; 0 when it is no plain number.
int64_t AskedThreads(const std::map<std::string, std::string>& knobs) {
  const auto it = knobs.find("threads");
  return it == knobs.end() ? 1 : std::strtoll(it->second.c_str(), nullptr, 10);
}

std::string DescribeOne(const FpEnvironment& fp, const std::map<std::string, std::string>& knobs) {
  const auto flush = knobs.find("flush_denormal");
  const bool may_flush = flush != knobs.end() && flush->second == "on";
  uint32_t mxcsr = fp.mxcsr & ~kExceptionFlags;
  if (may_flush) mxcsr &= ~kFlushBits;
  const bool has_register = fp.mxcsr != 0;
  if (has_register && mxcsr != kCleanMxcsr) return DescribeMxcsr(mxcsr);
  if (!fp.subnormals_kept && !may_flush)
    return "subnormal numbers are flushed although MXCSR does not say so";
  const int64_t asked = AskedThreads(knobs);
  if (fp.threads > 0 && asked > 0 && fp.threads != asked) {
    return std::to_string(fp.threads) + " threads instead of " + std::to_string(asked);
  }
  return "";
}

}  // namespace

bool HoldsPoison(const TensorData& tensor) {
  const size_t width = SizeOf(tensor.dtype);
  // What is a NaN of 16 bits is -6 of int16.
  if (width < 2 || (width == 2 && !IsFloating(tensor.dtype))) return false;
  std::vector<std::byte> poison(width, std::byte{0xA5});
  poison[width - 1] = std::byte{0xFF};
  poison[width - 2] = std::byte{0xFA};
  for (size_t at = 0; at + width <= tensor.bytes.size(); at += width) {
    if (std::equal(poison.begin(), poison.end(), tensor.bytes.begin() + static_cast<std::ptrdiff_t>(at)))
      return true;
  }
  return false;
}

double LargestDifference(const TensorData& a, const TensorData& b) {
  const size_t width = SizeOf(a.dtype);
  const FloatFormat* format = FormatOf(a.dtype);
  double largest = 0;
  for (int64_t i = 0; i < a.size(); ++i) {
    const auto at = static_cast<std::ptrdiff_t>(static_cast<size_t>(i) * width);
    if (std::equal(a.bytes.begin() + at, a.bytes.begin() + at + static_cast<std::ptrdiff_t>(width),
                   b.bytes.begin() + at)) {
      continue;
    }
    const double x = a.At(i), y = b.At(i);
    largest = std::max(largest, format == nullptr ? std::fabs(x - y) : UlpDistance(x, y, *format));
  }
  return largest;
}

void CompareRuns(Observation& first, const Observation& again) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (first.outcome.kind != again.outcome.kind || first.outcome.error_class != again.outcome.error_class) {
    first.nondeterministic["outcome"] = kInfinity;
    first.notes.push_back("run again, the outcome was '" + std::string(Name(again.outcome.kind)) +
                          "': " + again.outcome.text);
    return;
  }
  for (const auto& [name, value] : first.values) {
    const auto it = again.values.find(name);
    if (it != again.values.end() && it->second == value) continue;
    const bool comparable =
        it != again.values.end() && it->second.dtype == value.dtype && it->second.shape == value.shape;
    double& largest = first.nondeterministic[name];
    largest = std::max(largest, comparable ? LargestDifference(value, it->second) : kInfinity);
  }
  for (const auto& [name, text] : first.observations) {
    const auto it = again.observations.find(name);
    // A peak of memory may differ from run to run; what a value is may not.
    if (name != "peak_bytes" && (it == again.observations.end() || it->second != text))
      first.nondeterministic[name] = kInfinity;
  }
}

std::string DescribeTaint(const Observation& observation, const std::map<std::string, std::string>& knobs) {
  if (observation.fp_before) {
    if (auto text = DescribeOne(*observation.fp_before, knobs); !text.empty())
      return "before the case: " + text;
  }
  if (observation.fp_after) {
    if (auto text = DescribeOne(*observation.fp_after, knobs); !text.empty())
      return "after the case: " + text;
  }
  return "";
}

}  // namespace ulpscope
