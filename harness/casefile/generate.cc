// Evaluation of fills, element by element.
#include "harness/casefile/generate.h"

#include <bit>
#include <cstring>

#include "harness/base/check.h"
#include "harness/casefile/element.h"
#include "harness/casefile/fill_plan.h"
#include "harness/casefile/normal_table.h"
#include "harness/casefile/number.h"
#include "harness/casefile/philox.h"

namespace ulpscope {
namespace {

/// FNV-1a, 64 bits.
uint64_t HashName(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

/// 128 random bits per element.
struct Draw {
  uint64_t first = 0, second = 0;
};

class Stream {
 public:
  Stream(int64_t seed, std::string_view name) : seed_(static_cast<uint64_t>(seed)), name_(HashName(name)) {}

  Draw At(int64_t index) const {
    const auto i = static_cast<uint64_t>(index);
    const auto words = Philox({Low(i), High(i), Low(name_), High(name_)}, {Low(seed_), High(seed_)});
    return {.first = Join(words[0], words[1]), .second = Join(words[2], words[3])};
  }

 private:
  static uint32_t Low(uint64_t value) { return static_cast<uint32_t>(value); }
  static uint32_t High(uint64_t value) { return static_cast<uint32_t>(value >> 32); }
  static uint64_t Join(uint32_t low, uint32_t high) { return (static_cast<uint64_t>(high) << 32) | low; }

  uint64_t seed_, name_;
};

/// Uniform over 0 .. count - 1, count > 0: the high half of a product (its bias is below count * 2^-64).
int64_t Below(uint64_t random, uint64_t count) {
  return static_cast<int64_t>((static_cast<Uint128>(random) * count) >> 64);
}

// Normal deviates.
//
// |x| is the inverse of the tail probability t = P(|N(0,1)| > |x|), at a uniform t in (0, 1]. The inverse is steep where t is
// small, so the table has 64 points in every octave of t: the leading zeros of `first` give the octave, its next six bits
// the segment, 32 bits of `second` the place inside, where the inverse is interpolated linearly in integers. The result is an
// integer in units of 2^-60; a table entry has 28 fraction bits and 32 more come from the interpolation, so even binary64
// elements have all their bits. The error of the interpolation is below 4e-4 of a standard deviation in the first octave's
// flat part and smaller elsewhere; |x| ends at 6.24, where t = 2^-32.
Int128 NormalDeviate(const Draw& draw) {
  const auto octave = static_cast<size_t>(std::countl_zero(draw.first | 1));
  size_t entry = (kNormalOctaves - 1) * kNormalPoints;
  uint64_t place = 0;
  if (octave < kNormalOctaves) {
    entry = octave * kNormalPoints + ((draw.first >> (63 - octave - 6)) & (kNormalPoints - 1));
    place = draw.second >> 32;
  }
  // Points of an octave lie in order of t; the one after its last is the first of the octave above, or t = 1
  // (x = 0).
  const size_t octave_end = (entry / kNormalPoints + 1) * kNormalPoints;
  uint64_t next = 0;
  if (entry + 1 < octave_end) {
    next = kNormalTable[entry + 1];
  } else if (entry >= kNormalPoints) {
    next = kNormalTable[octave_end - 2 * kNormalPoints];
  }
  const uint64_t here = kNormalTable[entry];
  const auto magnitude = static_cast<Int128>((here << 32) - (here - next) * place);
  static_assert(kNormalTableBits + 32 == kNormalBits);
  return (draw.second & 1) != 0 ? -magnitude : magnitude;
}

Int128 SourceValue(const FillPlan& plan, const Stream& stream, int64_t index) {
  using enum FillPlan::Source;
  switch (plan.source) {
    case kIndex:
      return index;
    case kUniform:
      return static_cast<Int128>(stream.At(index).first >> (64 - kUniformBits));
    case kPositive:
      return static_cast<Int128>(stream.At(index).first >> (64 - kUniformBits)) + 1;
    case kNormal:
      return NormalDeviate(stream.At(index));
    case kRange:
      return plan.low + Below(stream.At(index).first, static_cast<uint64_t>(plan.high - plan.low) + 1);
    case kLattice: {
      const Int128 value = (static_cast<Int128>(index) * plan.mul + plan.add) % plan.mod;
      return value < 0 ? value + plan.mod : value;  // mod as Python has it
    }
  }
  return 0;
}

/// +-significand * 2^exponent, rounded once.
Result<uint64_t> SignedBits(const Draw& draw, int64_t significand, int exponent, DType dtype) {
  return RoundedBits((draw.second & 1) != 0 ? -significand : significand, 1, exponent, dtype);
}

Result<uint64_t> Element(const FillPlan& plan, const TensorSpec& spec, const Stream& stream, int64_t index) {
  using enum FillPlan::Kind;
  const FloatFormat* format = FormatOf(spec.dtype);
  switch (plan.kind) {
    case kBits:
      return plan.bits;
    case kValues:
      return plan.values[static_cast<size_t>(index)];
    case kAffine: {
      const Int128 numerator = static_cast<Int128>(plan.base) * (Int128{1} << plan.shift) +
                               static_cast<Int128>(plan.step) * SourceValue(plan, stream, index);
      return RoundedBits(numerator, plan.divisor, plan.exponent - plan.shift, spec.dtype);
    }
    case kWide: {
      const Draw draw = stream.At(index);
      const int64_t top = int64_t{1} << (format->precision - 1);
      const int64_t significand =
          top + static_cast<int64_t>((draw.second >> 8) & static_cast<uint64_t>(top - 1));
      const int64_t exponent = plan.low + Below(draw.first, static_cast<uint64_t>(plan.high - plan.low) + 1);
      return SignedBits(draw, significand, static_cast<int>(exponent) - format->precision + 1, spec.dtype);
    }
    case kSubnormal: {
      const Draw draw = stream.At(index);
      const int64_t significand = 1 + Below(draw.first, (uint64_t{1} << (format->precision - 1)) - 1);
      return SignedBits(draw, significand, format->emin - format->precision + 1, spec.dtype);
    }
    case kTies: {
      const Draw draw = stream.At(index);
      const int64_t top = int64_t{1} << (plan.narrow->precision - 1);
      const int64_t below = top + static_cast<int64_t>((draw.second >> 8) & static_cast<uint64_t>(top - 1));
      const auto exponent = static_cast<int>(Below(draw.first, 7)) - 3;
      return SignedBits(draw, 2 * below + 1, exponent - plan.narrow->precision, spec.dtype);
    }
  }
  return Fail("unknown fill");
}

}  // namespace

Result<TensorData> GenerateTensor(const TensorSpec& spec, int64_t seed) {
  auto plan = ULPSCOPE_TRY(PlanFill(spec, WithValues::kYes));
  TensorData data = TensorData::Zeros(spec.dtype, spec.shape);
  const Stream stream(seed, spec.name);
  const size_t size = SizeOf(spec.dtype);
  for (int64_t index = 0; index < data.size(); ++index) {
    const auto bits = ULPSCOPE_TRY(Element(plan, spec, stream, index));
    std::memcpy(data.bytes.data() + static_cast<size_t>(index) * size, &bits, size);
  }
  return data;
}

Result<std::map<std::string, TensorData>> MakeInputs(const Case& test_case, int64_t seed) {
  std::map<std::string, TensorData> inputs;
  for (const auto& spec : test_case.tensors) {
    auto tensor = GenerateTensor(spec, seed);
    if (!tensor) {
      Error error = tensor.error();
      if (error.pos.file.empty()) error.pos = spec.pos;
      return Fail(error);
    }
    inputs.emplace(spec.name, std::move(*tensor));
  }
  return inputs;
}

Result<void> CheckFill(const TensorSpec& spec) {
  ULPSCOPE_TRY(PlanFill(spec, WithValues::kNo));
  return {};
}

Result<void> CheckElement(std::string_view text, DType dtype) {
  ULPSCOPE_TRY(ElementBits(text, dtype));
  return {};
}

}  // namespace ulpscope
