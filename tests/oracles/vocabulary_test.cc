// The pointwise vocabulary against MPFR: references, their emulation rounded once, and the intervals of models.
//
// ULPSCOPE_ELEMENTS=100000 requests that many elements of each op instead of a few.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <numeric>

#include "oracles/oracle.h"
#include "tests/support/big.h"
#include "tests/support/cases.h"
#include "tests/support/models.h"

namespace ulpscope {
namespace {

using testing::Big;
using testing::MakeStep;
using testing::Tensor;

int64_t Elements() {
  const char* asked = std::getenv("ULPSCOPE_ELEMENTS");
  return asked == nullptr ? 48 : std::atoll(asked);
}

/// One element of each operand.
struct At {
  double x, y, z;
  bool mask;
};

struct VocabularyRow {
  std::string name;
  Step step;
  std::function<Big(const At&)> truth;
};

Attr Number(double value) { return Attr{.value = value}; }

Step Make(const std::string& op, const std::vector<std::string>& of, std::map<std::string, Attr> attrs = {}) {
  return MakeStep(op, of, "", std::move(attrs));
}

/// A step whose last operand is a number.
Step With(const std::string& op, const std::vector<std::string>& of, double number) {
  Step step = Make(op, of);
  step.of.push_back(Operand{.name = "", .scalar = Number(number)});
  return step;
}

Big F(int (*f)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t), double x) { return Big(x).Apply(f); }

/// The nearest whole number in MPFR's own rounding, a half to the even one.
int RoundEven(mpfr_ptr r, mpfr_srcptr a, mpfr_rnd_t) { return mpfr_rint_roundeven(r, a, MPFR_RNDN); }
int FloorOf(mpfr_ptr r, mpfr_srcptr a, mpfr_rnd_t) { return mpfr_floor(r, a); }
int CeilOf(mpfr_ptr r, mpfr_srcptr a, mpfr_rnd_t) { return mpfr_ceil(r, a); }
int TruncOf(mpfr_ptr r, mpfr_srcptr a, mpfr_rnd_t) { return mpfr_trunc(r, a); }

Big Fmod(double a, double b) { return Big(std::fmod(a, b)); }  // exact

Big Softplus(double x) { return Big(x).Apply(mpfr_exp).Apply(mpfr_log1p); }

/// A condition is cast, since only floating values are judged.
std::vector<VocabularyRow> Rows() {
  const auto power = [](double exponent) {
    return [exponent](const At& at) { return Power(Big(at.x), Big(exponent)); };
  };
  const auto positive = [](double exponent) {
    return [exponent](const At& at) { return Power(Big(std::fabs(at.x)), Big(exponent)); };
  };
  return {
      {"square", Make("square", {"x"}), [](const At& at) { return Big(at.x) * at.x; }},
      {"reciprocal", Make("reciprocal", {"x"}), [](const At& at) { return Big(1) / at.x; }},
      {"pow_3", With("pow", {"x"}, 3), power(3)},
      {"pow_m2", With("pow", {"x"}, -2), power(-2)},
      {"pow_5", With("pow", {"x"}, 5), power(5)},
      {"pow_m1", With("pow", {"x"}, -1), power(-1)},
      {"pow_half", With("pow", {"p"}, 0.5), positive(0.5)},
      {"pow_m3_2", With("pow", {"p"}, -1.5), positive(-1.5)},
      {"pow_1_3", With("pow", {"p"}, 0.3), positive(0.3)},
      {"pow_67", With("pow", {"n"}, 67), [](const At& at) { return Power(Big(at.z), Big(67)); }},
      {"exp2", Make("exp2", {"x"}), [](const At& at) { return F(mpfr_exp2, at.x); }},
      {"log2", Make("log2", {"p"}), [](const At& at) { return F(mpfr_log2, std::fabs(at.x)); }},
      {"sinh", Make("sinh", {"x"}), [](const At& at) { return F(mpfr_sinh, at.x); }},
      {"cosh", Make("cosh", {"x"}), [](const At& at) { return F(mpfr_cosh, at.x); }},
      {"sign", Make("sign", {"x"}), [](const At& at) { return Big(at.x > 0   ? 1
                                                                  : at.x < 0 ? -1
                                                                             : 0); }},
      {"floor", Make("floor", {"x"}), [](const At& at) { return F(FloorOf, at.x); }},
      {"ceil", Make("ceil", {"x"}), [](const At& at) { return F(CeilOf, at.x); }},
      {"round", Make("round", {"x"}), [](const At& at) { return F(RoundEven, at.x); }},
      {"trunc", Make("trunc", {"x"}), [](const At& at) { return F(TruncOf, at.x); }},
      {"maximum", Make("maximum", {"x", "y"}), [](const At& at) { return Big(std::fmax(at.x, at.y)); }},
      {"minimum", Make("minimum", {"x", "y"}), [](const At& at) { return Big(std::fmin(at.x, at.y)); }},
      {"clamp", Make("clamp", {"x"}, {{"min", Number(-0.5)}, {"max", Number(0.75)}}),
       [](const At& at) { return Big(std::fmin(std::fmax(at.x, -0.5), 0.75)); }},
      {"clamp_max", Make("clamp", {"x"}, {{"max", Number(0.75)}}),
       [](const At& at) { return Big(std::fmin(at.x, 0.75)); }},
      {"hardtanh", Make("hardtanh", {"x"}),
       [](const At& at) { return Big(std::fmin(std::fmax(at.x, -1), 1)); }},
      {"relu6", Make("relu6", {"x"}), [](const At& at) { return Big(std::fmin(std::fmax(at.x, 0), 6)); }},
      {"leaky_relu", Make("leaky_relu", {"x"}),
       [](const At& at) { return at.x > 0 ? Big(at.x) : Big(at.x) * 0.01; }},
      {"elu", Make("elu", {"x"}), [](const At& at) { return at.x > 0 ? Big(at.x) : F(mpfr_expm1, at.x); }},
      {"elu_2", Make("elu", {"x"}, {{"alpha", Number(0.7)}}),
       [](const At& at) { return at.x > 0 ? Big(at.x) : F(mpfr_expm1, at.x) * 0.7; }},
      {"softplus", Make("softplus", {"x"}),
       [](const At& at) { return at.x > 20 ? Big(at.x) : Softplus(at.x); }},
      {"softplus_2", Make("softplus", {"x"}, {{"beta", Number(2)}, {"threshold", Number(3)}}),
       [](const At& at) { return 2 * at.x > 3 ? Big(at.x) : Softplus(2 * at.x) / 2; }},
      {"mish", Make("mish", {"x"}), [](const At& at) { return Softplus(at.x).Apply(mpfr_tanh) * at.x; }},
      {"lerp", Make("lerp", {"x", "y", "z"}),
       [](const At& at) { return Big(at.x) * (Big(1) - at.z) + Big(at.z) * at.y; }},
      {"lerp_number", With("lerp", {"x", "y"}, 0.3),
       [](const At& at) { return Big(at.x) * (Big(1) - 0.3) + Big(0.3) * at.y; }},
      {"addcmul", Make("addcmul", {"x", "y", "z"}, {{"value", Number(0.1)}}),
       [](const At& at) { return Big(at.x) + Big(0.1) * at.y * at.z; }},
      {"addcdiv", Make("addcdiv", {"x", "y", "z"}, {{"value", Number(-0.1)}}),
       [](const At& at) { return Big(at.x) - Big(0.1) * at.y / at.z; }},
      {"hypot", Make("hypot", {"x", "y"}),
       [](const At& at) { return (Big(at.x) * at.x + Big(at.y) * at.y).Apply(mpfr_sqrt); }},
      {"fmod", Make("fmod", {"x", "y"}), [](const At& at) { return Fmod(at.x, at.y); }},
      {"fmod_number", With("fmod", {"x"}, 0.75), [](const At& at) { return Fmod(at.x, 0.75); }},
      {"remainder", Make("remainder", {"x", "y"}),
       [](const At& at) {
         const Big left = Fmod(at.x, at.y);
         const bool other = std::fmod(at.x, at.y) != 0 && (std::fmod(at.x, at.y) < 0) != (at.y < 0);
         return other ? left + at.y : left;
       }},
      {"floor_divide", Make("floor_divide", {"x", "y"}),
       [](const At& at) { return (Big(at.x) / at.y).Apply(FloorOf); }},
      {"atan2", Make("atan2", {"x", "y"}), [](const At& at) { return Atan2(Big(at.x), Big(at.y)); }},
      {"dropout", Make("dropout", {"x"}, {{"p", Number(0.5)}, {"train", Attr{.value = false}}}),
       [](const At& at) { return Big(at.x); }},
      {"kl_div", Make("kl_div", {"x", "p"}, {{"reduction", testing::Text("none")}}),
       [](const At& at) { return Big(std::fabs(at.x)) * (F(mpfr_log, std::fabs(at.x)) - at.x); }},
      {"binary_cross_entropy",
       Make("binary_cross_entropy", {"q", "x"}, {{"reduction", testing::Text("none")}}),
       [](const At& at) {
         const double q = std::fabs(at.z) / 16;
         return Big(-at.x) * F(mpfr_log, q) - (Big(1) - at.x) * (Big(1) - q).Apply(mpfr_log);
       }},
      {"margin",
       Make("margin_ranking_loss", {"x", "y", "z"},
            {{"margin", Number(0.5)}, {"reduction", testing::Text("none")}}),
       [](const At& at) {
         const Big loss = Big(0.5) - Big(at.z) * (Big(at.x) - at.y);
         return Compare(loss, Big(0)) < 0 ? Big(0) : loss;
       }},
      {"nan_to_num", Make("nan_to_num", {"x"}, {{"posinf", Number(1)}}),
       [](const At& at) { return Big(at.x); }},
      {"glu", Make("glu", {"halves"}, {{"dim", testing::Integer(0)}}),
       [](const At& at) { return Big(at.x) / (Big(1) + F(mpfr_exp, -at.y)); }},
      {"masked_fill", With("masked_fill", {"x", "mask"}, 0.5),
       [](const At& at) { return Big(at.mask ? 0.5 : at.x); }},
      {"chosen", Make("where", {"below", "x", "y"}), [](const At& at) { return Big(std::fmin(at.x, at.y)); }},
      {"either", Make("where", {"logic", "x", "y"}),
       [](const At& at) { return Big((at.x >= 0 && !(at.y == at.z)) || at.mask ? at.x : at.y); }},
  };
}

constexpr const char* kVocabularyPlaces[] = {"x", "y", "z"};

/// Every row on the same operands: x and y of many magnitudes, now and then equal, whole or half-way; p = |x|; n between
/// 1/2 and 2; q = |z| / 16.
Case AllRows(DType dtype, int64_t count) {
  Case c;
  c.id = "test/vocabulary";
  for (const char* name : {"x", "y", "z", "p", "n", "q"}) c.tensors.push_back(Tensor(name, dtype, {count}));
  c.tensors.push_back(Tensor("mask", DType::kBool, {count}));
  c.program = {MakeStep("lt", {"x", "y"}, "below"),
               MakeStep("eq", {"y", "z"}, "equal"),
               MakeStep("logical_not", {"equal"}, "differ"),
               With("ge", {"x"}, 0),
               MakeStep("logical_and", {"least", "differ"}, "both"),
               MakeStep("logical_or", {"both", "mask"}, "logic"),
               MakeStep("stack", {"x", "y"}, "halves")};
  c.program[3].as = "least";
  for (VocabularyRow& row : Rows()) {
    row.step.as = row.name;
    c.program.push_back(row.step);
    c.observe.push_back(row.name);
  }
  return c;
}

std::map<std::string, TensorData> Inputs(const Case& c) {
  Case floating = c;
  floating.tensors.pop_back();
  auto in = testing::NormalInputs(floating, 31);
  TensorData mask = TensorData::Zeros(DType::kBool, c.tensors.back().shape);
  const FloatFormat& format = *FormatOf(c.tensors[0].dtype);
  for (int64_t i = 0; i < mask.size(); ++i) {
    mask.Set(i, i % 3 == 1 ? 1 : 0);
    for (const char* name : kVocabularyPlaces) {
      double value = in.at(name).At(i);
      const auto kind = (i + name[0]) % 8;
      if (kind == 1) value = std::ldexp(value, static_cast<int>(i % 24) - 12);
      if (kind == 3) value = std::nearbyint(2 * value) / 2;
      if (kind == 5 && name[0] != 'x') value = in.at("x").At(i);
      // Nothing here shall overflow or vanish in float16.
      if (std::fabs(value) < 0x1p-6 || std::fabs(value) > 8) value = std::copysign(1.5, value);
      in.at(name).Set(i, RoundTo(value, format));
    }
    in.at("p").Set(i, std::fabs(in.at("x").At(i)));
    in.at("q").Set(i, RoundTo(std::fabs(in.at("z").At(i)) / 16, format));
    const double near = in.at("n").At(i);
    in.at("n").Set(i, RoundTo(std::copysign(1 + std::fabs(near) / 64, near), format));
  }
  in.emplace("mask", std::move(mask));
  return in;
}

At ElementOf(const std::map<std::string, TensorData>& in, const VocabularyRow& row, int64_t i) {
  return {.x = in.at("x").At(i),
          .y = in.at("y").At(i),
          .z = row.name == "pow_67" ? in.at("n").At(i) : in.at("z").At(i),
          .mask = in.at("mask").At(i) != 0};
}

class Vocabulary : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Dtypes, Vocabulary,
                         ::testing::Values(DType::kFloat64, DType::kFloat32, DType::kBfloat16,
                                           DType::kFloat16),
                         [](const auto& dtype) { return std::string(Name(dtype.param)); });

TEST_P(Vocabulary, ReferencesAgreeWithMpfr) {
  const int64_t count = Elements();
  const Case c = AllRows(GetParam(), count);
  const auto in = Inputs(c);
  const auto oracle = OpenCaseOracle(c, in);
  ASSERT_TRUE(oracle);
  std::vector<int64_t> elements(static_cast<size_t>(count));
  std::iota(elements.begin(), elements.end(), 0);
  for (const VocabularyRow& row : Rows()) {
    const auto shape = (*oracle)->Describe(row.name);
    ASSERT_TRUE(shape) << row.name << ": " << (shape ? "" : shape.error().Text());
    EXPECT_EQ(shape->declared, GetParam()) << row.name;
    const auto references = (*oracle)->References(row.name, elements);
    for (const int64_t i : elements) {
      const Reference& reference = references[static_cast<size_t>(i)];
      const mpq_class truth = row.truth(ElementOf(in, row, i)).Rational();
      const mpq_class off = truth - mpq_class(reference.hi) - mpq_class(reference.lo);
      ASSERT_NE(reference.kind, ReferenceKind::kUndecided) << row.name << "[" << i << "]";
      ASSERT_LE(abs(off), mpq_class(reference.err) + mpq_class(std::fabs(reference.hi)) * mpq_class(0x1p-400))
          << row.name << "[" << i << "] " << reference.hi << " of " << in.at("x").At(i);
      ASSERT_LE(reference.err, std::fabs(reference.hi) * 0x1p-80) << row.name;
    }
  }
}

/// Steps that nothing rounds, and one rounding at the store.
TEST_P(Vocabulary, EmulationRoundsTheExactValueOnce) {
  const int64_t count = Elements();
  const Case c = AllRows(GetParam(), count);
  const auto in = Inputs(c);
  PrecisionModel model;
  model.acc = testing::Acc("exact");
  const auto values = EmulateProgram(c, in, model, "sequential");
  ASSERT_TRUE(values) << (values ? "" : values.error().Text());
  const FloatFormat& format = *FormatOf(GetParam());
  for (const VocabularyRow& row : Rows()) {
    int64_t off = 0;
    for (int64_t i = 0; i < count; ++i) {
      const double rounded = row.truth(ElementOf(in, row, i)).Rounded(format),
                   found = values->at(row.name).At(i);
      // The double that a result of 53 bits is stored in has nothing to spare: its ties may fall to the other side.
      if (GetParam() == DType::kFloat64 && std::fabs(found - rounded) <= Ulp(rounded, format) &&
          ++off <= count / 1000)
        continue;
      if (std::fabs(rounded) < std::ldexp(1.0, format.emin)) continue;
      ASSERT_EQ(found, rounded) << row.name << "[" << i << "] of " << in.at("x").At(i);
    }
  }
}

/// Every result of a model, with functions off by a few units, lies in the model's own interval.
TEST_P(Vocabulary, EveryRunOfAModelLiesInItsInterval) {
  if (GetParam() == DType::kFloat64) GTEST_SKIP() << "the narrower ones have more models";
  const Case c = AllRows(GetParam(), 24);
  const auto in = Inputs(c);
  const auto oracle = OpenCaseOracle(c, in);
  ASSERT_TRUE(oracle);
  const std::vector<int64_t> elements{0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                      12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};
  int64_t checked = 0;
  for (const VocabularyRow& row : Rows()) {
    PrecisionModel model;
    const auto truth = TrueModel(c, row.name, model, GetParam());
    ASSERT_TRUE(truth);
    const auto bank = (*oracle)->Bank(row.name, GetParam());
    const auto found =
        std::find_if(bank.begin(), bank.end(), [&](const auto& one) { return one->model() == *truth; });
    ASSERT_NE(found, bank.end()) << row.name << " " << truth->Name();
    const auto orders = static_cast<int>((*found)->orders().size());
    for (int order = 0; order < orders; order += std::max(1, orders / 6)) {
      const auto run = (*found)->Simulate(order, elements);
      for (size_t i = 0; i < elements.size(); ++i) {
        const Interval range = (*found)->Enclose(elements[i]);
        const double stored = (*found)->Store(run[i]);
        ASSERT_TRUE(range.Holds(stored))
            << row.name << "[" << i << "] " << stored << " of " << range.lo << " .. " << range.hi << " in "
            << (*found)->orders()[static_cast<size_t>(order)];
        ASSERT_LT(range.hi - range.lo, std::fabs(stored) / 8 + 0.1) << row.name << " says nothing";
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 2000);
}

}  // namespace
}  // namespace ulpscope
