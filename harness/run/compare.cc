// Poison, spread and canaries.
#include "harness/run/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "backends/sdk/adapter.h"
#include "harness/base/find.h"

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

/// Threads requested; 0 when it is no plain number.
int64_t AskedThreads(const std::map<std::string, std::string>& knobs) {
  return std::strtoll(LookupOr(knobs, "threads", "1").c_str(), nullptr, 10);
}

std::string DescribeOne(const FpEnvironment& fp, const std::map<std::string, std::string>& knobs) {
  const bool may_flush = LookupOr(knobs, "flush_denormal") == "on";
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
  // The poison, a NaN in 16-bit floats, is -6 in int16.
  if (width < 2 || (width == 2 && !IsFloating(tensor.dtype))) return false;
  return sdk::CountPoisoned(tensor) > 0;
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

void CompareRepeats(Observation& first, const Observation& again) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (first.outcome.kind != again.outcome.kind || first.outcome.error_class != again.outcome.error_class) {
    first.nondeterministic["outcome"] = kInfinity;
    first.notes.push_back("run again, the outcome was '" + std::string(Name(again.outcome.kind)) +
                          "': " + again.outcome.text);
    return;
  }
  for (const auto& [name, value] : first.values) {
    const TensorData* other = Lookup(again.values, name);
    if (other != nullptr && *other == value) continue;
    const bool comparable = other != nullptr && other->dtype == value.dtype && other->shape == value.shape;
    double& largest = first.nondeterministic[name];
    largest = std::max(largest, comparable ? LargestDifference(value, *other) : kInfinity);
  }
  for (const auto& [name, text] : first.observations) {
    const std::string* other = Lookup(again.observations, name);
    // A peak of memory may differ from run to run; a value may not.
    if (name != "peak_bytes" && (other == nullptr || *other != text))
      first.nondeterministic[name] = kInfinity;
  }
}

std::string DescribeTaint(const Observation& observation, const std::map<std::string, std::string>& knobs) {
  for (const auto& [when, fp] :
       {std::pair{"before", &observation.fp_before}, {"after", &observation.fp_after}}) {
    const std::string text = *fp ? DescribeOne(**fp, knobs) : "";
    if (!text.empty()) return std::string(when) + " the case: " + text;
  }
  return "";
}

}  // namespace ulpscope
