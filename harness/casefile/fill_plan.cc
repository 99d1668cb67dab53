// Reading fills.
#include "harness/casefile/fill_plan.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <numeric>

#include "harness/base/find.h"
#include "harness/casefile/element.h"
#include "harness/casefile/number.h"

namespace ulpscope {
namespace {

constexpr int64_t kParameterLimit = int64_t{1} << 62;

/// A number of a fill as text: that of the file, or the exact number that a program put there.
Result<std::string> TextOf(const Attr& attr) {
  if (const auto* text = std::get_if<std::string>(&attr.value)) return *text;
  if (const auto* integer = std::get_if<int64_t>(&attr.value)) return std::to_string(*integer);
  if (const auto* number = std::get_if<double>(&attr.value)) {
    if (!std::isfinite(*number)) return ShortestDecimal(*number);
    std::array<char, 40> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::fabs(*number),
                                   std::chars_format::hex)
                         .ptr;
    return std::string(std::signbit(*number) ? "-0x" : "0x") + std::string(buffer.data(), end);
  }
  return Fail("a number is needed in the fill");
}

/// The parameters of one fill, by name.
class Parameters {
 public:
  explicit Parameters(const Attr::Map& map) : map_(map) {}

  Result<SmallFraction> Fraction(const std::string& name, std::string fallback) const {
    auto text = ULPSCOPE_TRY(Text(name, std::move(fallback)));
    auto number = ULPSCOPE_TRY(ParseNumber(text));
    auto fraction = ToSmallFraction(number);
    if (!fraction) return Fail("'" + name + "': " + fraction.error().message);
    return fraction;
  }

  /// Without a fallback ("") the parameter is required.
  Result<int64_t> Integer(const std::string& name, std::string fallback = "") const {
    if (Get(name) == nullptr && fallback.empty()) return Fail("fill needs '" + name + "'");
    auto text = ULPSCOPE_TRY(Text(name, std::move(fallback)));
    auto value = ULPSCOPE_TRY(ParseInteger(text));
    if (value >= kParameterLimit || value <= -kParameterLimit) return Fail("'" + name + "' is too large");
    return value;
  }

  const Attr* Get(const std::string& name) const { return Lookup(map_, name); }

 private:
  Result<std::string> Text(const std::string& name, std::string fallback) const {
    const Attr* given = Get(name);
    return given == nullptr ? Result<std::string>(std::move(fallback)) : TextOf(*given);
  }

  const Attr::Map& map_;
};

/// Brings base and step over one divisor and one power of two.
Result<void> SetAffine(FillPlan& plan, SmallFraction base, SmallFraction step) {
  const auto refuse = [] {
    return Fail("the parameters of the fill are too far apart, or have too many digits");
  };
  plan.kind = FillPlan::Kind::kAffine;
  if (base.numerator == 0)
    base = {.numerator = 0, .denominator = step.denominator, .exponent = step.exponent};
  if (step.numerator == 0)
    step = {.numerator = 0, .denominator = base.denominator, .exponent = base.exponent};
  const Uint128 common =
      static_cast<Uint128>(base.denominator / std::gcd(base.denominator, step.denominator)) *
      static_cast<uint64_t>(step.denominator);
  if (common >= static_cast<Uint128>(kParameterLimit)) return refuse();
  plan.divisor = static_cast<int64_t>(common);
  plan.exponent = std::min(base.exponent, step.exponent);
  const auto scale = [&](const SmallFraction& fraction, int64_t& target) {
    const int shift = fraction.exponent - plan.exponent;
    const Int128 scaled = static_cast<Int128>(fraction.numerator) * (plan.divisor / fraction.denominator);
    if (fraction.numerator != 0 && shift > 62) return false;
    const Int128 limit = static_cast<Int128>(kParameterLimit) >> shift;
    if (scaled >= limit || scaled <= -limit) return scaled == 0;
    target = static_cast<int64_t>(scaled * (Int128{1} << shift));
    return true;
  };
  if (!scale(base, plan.base) || !scale(step, plan.step)) return refuse();
  return {};
}

Result<void> CheckRange(const FillPlan& plan, DType dtype, Int128 first, Int128 last) {
  for (const Int128 n : {first, last}) {
    const Int128 numerator =
        static_cast<Int128>(plan.base) * (Int128{1} << plan.shift) + static_cast<Int128>(plan.step) * n;
    ULPSCOPE_TRY(RoundedBits(numerator, plan.divisor, plan.exponent - plan.shift, dtype));
  }
  return {};
}

/// The smallest and the largest n, for the check that all elements fit.
struct Bounds {
  Int128 first = 0;
  Int128 last = 0;
};

Result<Bounds> PlanNormal(FillPlan& plan, const Parameters& parameters) {
  auto mean = ULPSCOPE_TRY(parameters.Fraction("mean", "0"));
  auto scale = ULPSCOPE_TRY(parameters.Fraction("scale", "1"));
  ULPSCOPE_TRY(SetAffine(plan, mean, scale));
  plan.source = FillPlan::Source::kNormal;
  plan.shift = kNormalBits;
  const Int128 last = static_cast<Int128>(13) << (kNormalBits - 1);  // 6.5: the table ends at 6.24
  return Bounds{.first = -last, .last = last};
}

Result<Bounds> PlanUniform(FillPlan& plan, const Parameters& parameters) {
  auto low = ULPSCOPE_TRY(parameters.Fraction("low", "-1"));
  auto high = ULPSCOPE_TRY(parameters.Fraction("high", "1"));
  ULPSCOPE_TRY(SetAffine(plan, low, high));
  if (plan.step <= plan.base) return Fail("uniform needs low < high");
  if (static_cast<Int128>(plan.step) - plan.base >= kParameterLimit)
    return Fail("uniform: high - low is too large");
  plan.step -= plan.base;
  plan.source = FillPlan::Source::kUniform;
  plan.shift = kUniformBits;
  return Bounds{.first = 0, .last = Int128{1} << kUniformBits};
}

Result<Bounds> PlanPositive(FillPlan& plan, const Parameters& parameters) {
  auto scale = ULPSCOPE_TRY(parameters.Fraction("scale", "1"));
  if (scale.numerator <= 0) return Fail("positive needs a scale above 0");
  ULPSCOPE_TRY(SetAffine(plan, SmallFraction{}, scale));
  plan.source = FillPlan::Source::kPositive;
  plan.shift = kUniformBits;
  return Bounds{.first = 1, .last = Int128{1} << kUniformBits};
}

Result<Bounds> PlanArange(FillPlan& plan, const Parameters& parameters, const Shape& shape) {
  auto start = ULPSCOPE_TRY(parameters.Fraction("start", "0"));
  auto step = ULPSCOPE_TRY(parameters.Fraction("step", "1"));
  ULPSCOPE_TRY(SetAffine(plan, start, step));
  return Bounds{.first = 0, .last = ElementCount(shape) - 1};
}

Result<Bounds> PlanIntegers(FillPlan& plan, const Parameters& parameters) {
  auto low = ULPSCOPE_TRY(parameters.Integer("low"));
  auto high = ULPSCOPE_TRY(parameters.Integer("high"));
  if (low > high) return Fail("integers needs low <= high");
  ULPSCOPE_TRY(SetAffine(plan, SmallFraction{}, SmallFraction{.numerator = 1}));
  plan.source = FillPlan::Source::kRange;
  plan.low = low;
  plan.high = high;
  return Bounds{.first = low, .last = high};
}

Result<Bounds> PlanLattice(FillPlan& plan, const Parameters& parameters) {
  std::array<int64_t, 5> read{};
  constexpr std::array<std::pair<const char*, const char*>, 5> kNames{
      {{"mul", ""}, {"add", ""}, {"mod", ""}, {"sub", "0"}, {"div", "1"}}};
  for (size_t i = 0; i < kNames.size(); ++i) {
    read[i] = ULPSCOPE_TRY(parameters.Integer(kNames[i].first, kNames[i].second));
  }
  const auto [mul, add, mod, sub, div] = read;
  if (mod < 1) return Fail("lattice needs mod >= 1");
  if (div < 1) return Fail("lattice needs div >= 1");
  const int zeros = std::countr_zero(static_cast<uint64_t>(div));
  const SmallFraction unit{.numerator = 1, .denominator = div >> zeros, .exponent = -zeros};
  ULPSCOPE_TRY(SetAffine(plan, SmallFraction{}, unit));
  plan.source = FillPlan::Source::kLattice;
  plan.base = -sub;
  plan.mul = mul;
  plan.add = add;
  plan.mod = mod;
  return Bounds{.first = 0, .last = mod - 1};
}

Result<Bounds> PlanSource(const std::string& name, FillPlan& plan, const Parameters& parameters,
                          const TensorSpec& spec) {
  if (name == "normal") return PlanNormal(plan, parameters);
  if (name == "uniform") return PlanUniform(plan, parameters);
  if (name == "positive") return PlanPositive(plan, parameters);
  if (name == "arange") return PlanArange(plan, parameters, spec.shape);
  if (name == "integers") return PlanIntegers(plan, parameters);
  if (name == "lattice") return PlanLattice(plan, parameters);
  return Fail("no such fill: " + name);
}

Result<FillPlan> PlanAffine(const std::string& name, const Parameters& parameters, const TensorSpec& spec) {
  FillPlan plan;
  const auto bounds = ULPSCOPE_TRY(PlanSource(name, plan, parameters, spec));
  if (!IsFloating(spec.dtype) && (plan.shift != 0 || plan.divisor != 1 || plan.exponent < 0)) {
    return Fail("fill '" + name + "' gives fractions, which " + std::string(Name(spec.dtype)) + " has not");
  }
  ULPSCOPE_TRY(CheckRange(plan, spec.dtype, bounds.first, bounds.last));
  return plan;
}

Result<FillPlan> PlanFloating(const std::string& name, const Parameters& parameters, const TensorSpec& spec) {
  const FloatFormat* format = FormatOf(spec.dtype);
  if (format == nullptr)
    return Fail("fill '" + name + "' is for floating dtypes, not " + std::string(Name(spec.dtype)));
  FillPlan plan;
  if (name == "subnormals") {
    plan.kind = FillPlan::Kind::kSubnormal;
    return plan;
  }
  if (name == "wide_exponent") {
    plan.kind = FillPlan::Kind::kWide;
    auto low = ULPSCOPE_TRY(parameters.Integer("low"));
    auto high = ULPSCOPE_TRY(parameters.Integer("high"));
    if (low > high) return Fail("wide_exponent needs low <= high");
    if (low < format->emin - format->precision + 1)
      return Fail("wide_exponent: 2^low rounds to zero in " + std::string(format->name));
    // e4m3fn lacks the largest significand of its last binade.
    const double largest = std::ldexp(2.0 - std::ldexp(1.0, 1 - format->precision),
                                      static_cast<int>(std::min<int64_t>(high, 1023)));
    if (high > format->emax || largest > format->max_finite)
      return Fail("wide_exponent: 2^high is too large for " + std::string(format->name));
    plan.low = low;
    plan.high = high;
    return plan;
  }
  plan.kind = FillPlan::Kind::kTies;
  const auto has_room = [&](const FloatFormat& narrow) { return narrow.precision < format->precision; };
  if (const Attr* named = parameters.Get("format")) {
    auto word = ULPSCOPE_TRY(TextOf(*named));
    plan.narrow = FindFormat(word);
    if (plan.narrow == nullptr) return Fail("no such format: " + word);
  } else {
    for (const FloatFormat* narrow : {&Float8E5m2(), &Float8E4m3fn(), &Bfloat16(), &Binary32()}) {
      if (has_room(*narrow)) plan.narrow = narrow;
    }
  }
  if (plan.narrow == nullptr || !has_room(*plan.narrow)) {
    return Fail("ties: " + std::string(format->name) + " cannot hold half-way points of " +
                std::string(plan.narrow == nullptr ? "a narrower format" : plan.narrow->name));
  }
  return plan;
}

/// Appends the elements of nested lists.
Result<void> Flatten(const Attr& attr, DType dtype, std::vector<uint64_t>& values) {
  if (const auto* list = std::get_if<Attr::List>(&attr.value)) {
    for (const Attr& item : *list) {
      ULPSCOPE_TRY(Flatten(item, dtype, values));
    }
    return {};
  }
  auto text = ULPSCOPE_TRY(TextOf(attr));
  auto bits = ULPSCOPE_TRY(ElementBits(text, dtype));
  values.push_back(bits);
  return {};
}

Result<FillPlan> PlanConstant(std::string_view text, DType dtype) {
  auto bits = ULPSCOPE_TRY(ElementBits(text, dtype));
  FillPlan plan;
  plan.bits = bits;
  return plan;
}

Result<std::vector<uint64_t>> GivenElements(const Attr& attr, const TensorSpec& spec,
                                            WithValues with_values) {
  std::vector<uint64_t> elements;
  if (with_values == WithValues::kNo) return elements;
  ULPSCOPE_TRY(Flatten(attr, spec.dtype, elements));
  if (static_cast<int64_t>(elements.size()) != ElementCount(spec.shape)) {
    return Fail(std::to_string(elements.size()) + " values for " + Describe(spec.dtype, spec.shape));
  }
  return elements;
}

/// The fills that look elements up.
using Elements = Result<std::vector<uint64_t>>(const Attr&, const TensorSpec&, WithValues);
constexpr std::pair<std::string_view, Elements*> kLookups[] = {{"values", GivenElements},
                                                               {"probe", ProbeElements},
                                                               {"cross", CrossElements},
                                                               {"record", RecordElements},
                                                               {"file", FileElements}};

}  // namespace

Result<FillPlan> PlanFill(const TensorSpec& spec, WithValues with_values) {
  static const Attr::Map none;
  const auto* word = std::get_if<std::string>(&spec.fill.value);
  const auto* map = std::get_if<Attr::Map>(&spec.fill.value);
  if (word == nullptr && (map == nullptr || map->size() != 1))
    return Fail("tensor '" + spec.name + "' has no fill");
  const std::string& name = word != nullptr ? *word : map->begin()->first;
  for (const auto& [lookup, elements_of] : kLookups) {
    if (name != lookup || map == nullptr) continue;
    auto elements = ULPSCOPE_TRY(elements_of(map->begin()->second, spec, with_values));
    FillPlan plan;
    plan.kind = FillPlan::Kind::kValues;
    plan.values = std::move(elements);
    return plan;
  }
  const auto* given = map == nullptr ? &none : std::get_if<Attr::Map>(&map->begin()->second.value);
  if (given == nullptr) return Fail("fill '" + name + "' takes named parameters, {" + name + ": {...}}");
  const Parameters parameters(*given);
  if (name == "zeros") return PlanConstant("0", spec.dtype);
  if (name == "ones") return PlanConstant("1", spec.dtype);
  if (name == "full") {
    const Attr* value = parameters.Get("value");
    if (value == nullptr) return Fail("fill needs 'value'");
    auto text = ULPSCOPE_TRY(TextOf(*value));
    return PlanConstant(text, spec.dtype);
  }
  if (name == "subnormals" || name == "wide_exponent" || name == "ties")
    return PlanFloating(name, parameters, spec);
  return PlanAffine(name, parameters, spec);
}

}  // namespace ulpscope
