// Activations, softmax and its kin against MPFR by other formulas; their emulation step by step; their
// intervals.
#include <gmpxx.h>
#include <gtest/gtest.h>
#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "oracles/models.h"
#include "oracles/oracle.h"
#include "tests/support/big.h"
#include "tests/support/cases.h"
#include "tests/support/models.h"

namespace ulpscope {
namespace {

using testing::Big;
using testing::Integers;
using testing::MakeStep;
using testing::Tensor;

constexpr int64_t kCompositeRows = 5, kCompositeLength = 13;

Big Exp(const Big& a) { return a.Apply(mpfr_exp); }
Big Log(const Big& a) { return a.Apply(mpfr_log); }
Big Sqrt(const Big& a) { return a.Apply(mpfr_sqrt); }

/// x [kRows, kLength] through each composite, under its own name.
Case AllComposites(DType dtype) {
  Case c;
  c.id = "test/composites";
  c.tensors = {Tensor("x", dtype, {kCompositeRows, kCompositeLength}),
               Tensor("w", dtype, {kCompositeLength})};
  const std::map<std::string, Attr> last{{"dim", testing::Integer(-1)}};
  c.program = {
      MakeStep("sigmoid", {"x"}, "sigmoid"),
      MakeStep("silu", {"x"}, "silu"),
      MakeStep("gelu", {"x"}, "gelu"),
      MakeStep("gelu", {"x"}, "gelu_tanh", {{"approximate", testing::Text("tanh")}}),
      MakeStep("softmax", {"x"}, "softmax", last),
      MakeStep("log_softmax", {"x"}, "log_softmax", last),
      MakeStep("logsumexp", {"x"}, "logsumexp", last),
      MakeStep("rms_norm", {"x", "w"}, "rms_norm",
               {{"normalized_shape", Integers({kCompositeLength})}, {"eps", Attr{.value = 0x1p-20}}}),
      MakeStep("amax", {"x"}, "amax", last),
      MakeStep("abs", {"x"}, "abs")};
  c.observe = {"sigmoid",     "silu",      "gelu",     "gelu_tanh", "softmax",
               "log_softmax", "logsumexp", "rms_norm", "amax",      "abs"};
  return c;
}

class Composites : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Dtypes, Composites,
                         ::testing::Values(DType::kFloat64, DType::kFloat32, DType::kBfloat16,
                                           DType::kFloat16),
                         [](const auto& dtype) { return std::string(Name(dtype.param)); });

TEST_P(Composites, ReferencesAgreeWithMpfrByOtherFormulas) {
  const Case c = AllComposites(GetParam());
  const auto in = testing::NormalInputs(c, 21);
  const auto x = [&](int64_t i) { return Big(in.at("x").At(i)); };
  const auto row_sum = [&](int64_t row, const std::function<Big(const Big&)>& f) {
    Big sum;
    for (int64_t j = 0; j < kCompositeLength; ++j) sum = sum + f(x(row * kCompositeLength + j));
    return sum;
  };
  const auto exps = [&](int64_t row) { return row_sum(row, Exp); };
  const std::map<std::string, std::function<Big(int64_t)>> truth{
      {"sigmoid", [&](int64_t i) { return (Big(1) + (x(i) / 2).Apply(mpfr_tanh)) / 2; }},
      {"silu", [&](int64_t i) { return x(i) * Exp(x(i)) / (Big(1) + Exp(x(i))); }},
      {"gelu", [&](int64_t i) { return x(i) / 2 * (Big(1) + (x(i) / Sqrt(2)).Apply(mpfr_erf)); }},
      {"gelu_tanh",
       [&](int64_t i) {
         return x(i) / (Big(1) + Exp(Big(-2) * Sqrt(Big(2) / Big::Pi()) * x(i) *
                                     (Big(1) + Big(44715) / 1000000 * x(i) * x(i))));
       }},
      {"softmax", [&](int64_t i) { return Exp(x(i)) / exps(i / kCompositeLength); }},
      {"log_softmax", [&](int64_t i) { return x(i) - Log(exps(i / kCompositeLength)); }},
      {"logsumexp", [&](int64_t i) { return Log(exps(i)); }},
      {"rms_norm",
       [&](int64_t i) {
         const Big mean = row_sum(i / kCompositeLength, [](const Big& a) { return a * a; }) /
                          static_cast<double>(kCompositeLength);
         return x(i) * Big(in.at("w").At(i % kCompositeLength)) / Sqrt(mean + Big(0x1p-20));
       }},
      {"amax",
       [&](int64_t i) {
         double most = -HUGE_VAL;
         for (int64_t j = 0; j < kCompositeLength; ++j)
           most = std::max(most, in.at("x").At(i * kCompositeLength + j));
         return Big(most);
       }},
      {"abs", [&](int64_t i) { return Big(std::fabs(in.at("x").At(i))); }}};
  const auto oracle = OpenCaseOracle(c, in);
  ASSERT_TRUE(oracle);
  int64_t checked = 0;
  for (const auto& [name, formula] : truth) {
    const auto shape = (*oracle)->Describe(name);
    ASSERT_TRUE(shape) << name << ": " << (shape ? "" : shape.error().Text());
    std::vector<int64_t> elements(static_cast<size_t>(ElementCount(shape->shape)));
    std::iota(elements.begin(), elements.end(), 0);
    const auto references = (*oracle)->References(name, elements);
    for (const int64_t i : elements) {
      const Reference& reference = references[static_cast<size_t>(i)];
      const mpq_class off = formula(i).Rational() - mpq_class(reference.hi) - mpq_class(reference.lo);
      ASSERT_NE(reference.kind, ReferenceKind::kUndecided) << name << i;
      ASSERT_LE(abs(off), mpq_class(reference.err) + mpq_class(std::fabs(reference.hi)) * mpq_class(0x1p-400))
          << name << "[" << i << "]";
      ASSERT_LE(reference.err, std::fabs(reference.hi) * 0x1p-80) << name;
      ++checked;
    }
  }
  EXPECT_EQ(checked, 8 * kCompositeRows * kCompositeLength + 2 * kCompositeRows);
}

constexpr int64_t kQueries = 3, kKeys = 5, kWidth = 6, kValues = 2;

Case AttentionCase(DType dtype) {
  Case c;
  c.id = "test/attention";
  c.tensors = {Tensor("q", dtype, {1, kQueries, kWidth}), Tensor("k", dtype, {1, kKeys, kWidth}),
               Tensor("v", dtype, {1, kKeys, kValues})};
  c.program = {
      MakeStep("scaled_dot_product_attention", {"q", "k", "v"}, "attended"),
      MakeStep("scaled_dot_product_attention", {"q", "k", "v"}, "halved", {{"scale", Attr{.value = 0.5}}}),
      MakeStep("scaled_dot_product_attention", {"q", "k", "v"}, "causal",
               {{"is_causal", Attr{.value = true}}})};
  c.observe = {"attended", "halved", "causal"};
  return c;
}

TEST_P(Composites, AttentionAgreesWithMpfr) {
  const Case c = AttentionCase(GetParam());
  const auto in = testing::NormalInputs(c, 25);
  const auto value = [&](const char* name, int64_t i) { return Big(in.at(name).At(i)); };
  const auto truth = [&](const std::string& name, const Big& scale, int64_t i) {
    Big weighted, total;
    const int64_t seen = name == "causal" ? i / kValues + 1 : kKeys;
    for (int64_t key = 0; key < seen; ++key) {
      Big score;
      for (int64_t w = 0; w < kWidth; ++w)
        score = score + value("q", i / kValues * kWidth + w) * value("k", key * kWidth + w);
      const Big weight = Exp(score * scale);
      weighted = weighted + weight * value("v", key * kValues + i % kValues);
      total = total + weight;
    }
    return weighted / total;
  };
  const auto oracle = OpenCaseOracle(c, in);
  ASSERT_TRUE(oracle);
  std::vector<int64_t> elements(kQueries * kValues);
  std::iota(elements.begin(), elements.end(), 0);
  for (const auto& [name, scale] :
       {std::pair("attended", Big(1) / Sqrt(Big(kWidth))), std::pair("halved", Big(0.5)),
        std::pair("causal", Big(1) / Sqrt(Big(kWidth)))}) {
    const auto references = (*oracle)->References(name, elements);
    for (const int64_t i : elements) {
      const Reference& reference = references[static_cast<size_t>(i)];
      ASSERT_NE(reference.kind, ReferenceKind::kUndecided) << name << i;
      const mpq_class off =
          truth(name, scale, i).Rational() - mpq_class(reference.hi) - mpq_class(reference.lo);
      EXPECT_LE(abs(off), mpq_class(reference.err) + mpq_class(std::fabs(reference.hi)) * mpq_class(0x1p-400))
          << name << i;
    }
  }
}

/// Forms that kernels use lie in the interval of float32: the scale on the query, probabilities before the product.
TEST(CompositesEnclosed, NoFormOfAttentionEscapesFloat32) {
  const Case c = AttentionCase(DType::kFloat32);
  const auto in = testing::NormalInputs(c, 26);
  const auto oracle = OpenCaseOracle(c, in);
  ASSERT_TRUE(oracle);
  PrecisionModel model;
  const auto truth = TrueModel(c, "attended", model, DType::kFloat32);
  ASSERT_TRUE(truth);
  const auto bank = (*oracle)->Bank("attended", DType::kFloat32);
  const auto found =
      std::find_if(bank.begin(), bank.end(), [&](const auto& row) { return row->model() == *truth; });
  ASSERT_NE(found, bank.end()) << truth->Name();
  const auto at = [&](const char* name, int64_t i) { return static_cast<float>(in.at(name).At(i)); };
  const float scale = 1.0F / std::sqrt(static_cast<float>(kWidth));
  for (int64_t i = 0; i < kQueries * kValues; ++i) {
    float weights[kKeys], total = 0, most = -HUGE_VALF;
    for (int64_t key = 0; key < kKeys; ++key) {
      weights[key] = 0;
      for (int64_t w = 0; w < kWidth; ++w)
        weights[key] += at("q", i / kValues * kWidth + w) * scale * at("k", key * kWidth + w);
      most = std::max(most, weights[key]);
    }
    for (float& weight : weights) total += weight = std::exp(weight - most);
    float result = 0;
    for (int64_t key = 0; key < kKeys; ++key)
      result += weights[key] / total * at("v", key * kValues + i % kValues);
    const Interval range = (*found)->Enclose(i);
    EXPECT_LE(range.lo, result) << i;
    EXPECT_GE(range.hi, result) << i;
    EXPECT_LT(range.hi - range.lo, 1e-4) << "an interval that says something";
  }
}

TEST(CompositesExactly, EqualElementsAndZerosAreExact) {
  Case c = AllComposites(DType::kFloat32);
  auto in = testing::NormalInputs(c, 22);
  for (int64_t i = 0; i < kCompositeRows * kCompositeLength; ++i) in.at("x").Set(i, 0);
  const auto oracle = OpenCaseOracle(c, in);
  ASSERT_TRUE(oracle);
  const int64_t first[] = {0};
  for (const auto& [name, value] :
       std::map<std::string, double>{{"sigmoid", 0.5}, {"silu", 0}, {"gelu", 0}, {"gelu_tanh", 0}}) {
    const Reference reference = (*oracle)->References(name, first)[0];
    EXPECT_EQ(reference.kind, ReferenceKind::kExact) << name;
    EXPECT_EQ(reference.hi, value) << name;
  }
  const Reference share = (*oracle)->References("softmax", first)[0];
  EXPECT_EQ(share.hi, 1.0 / kCompositeLength);
}

/// Rounded to a format after every step.
class Steps {
 public:
  explicit Steps(const FloatFormat& format) : format_(format) {}
  double R(const Big& value) const { return value.Rounded(format_); }

 private:
  const FloatFormat& format_;
};

/// Steps in three formats, bit for bit: exp, sum in order, quotient, each rounded to the model's format and
/// the store to float32.
TEST(CompositesEmulated, StepsAreRoundedAsTheModelSays) {
  for (const char* acc : {"float32", "bfloat16", "float16"}) {
    const Case c = AllComposites(DType::kBfloat16);
    const auto in = testing::NormalInputs(c, 23);
    PrecisionModel model;
    model.acc = testing::Acc(acc);
    const auto values = EmulateProgram(c, in, model, "sequential");
    ASSERT_TRUE(values) << (values ? "" : values.error().Text());
    const Steps s(*FindFormat(acc));
    const auto stored = [](double value) { return RoundTo(value, Bfloat16()); };
    for (int64_t row = 0; row < kCompositeRows; ++row) {
      double most = -HUGE_VAL, total = 0, squares = 0;
      for (int64_t j = 0; j < kCompositeLength; ++j)
        most = std::max(most, in.at("x").At(row * kCompositeLength + j));
      most = s.R(most);
      std::vector<double> shifted, exps;
      for (int64_t j = 0; j < kCompositeLength; ++j) {
        const double x = in.at("x").At(row * kCompositeLength + j);
        shifted.push_back(s.R(Big(x) - Big(most)));
        exps.push_back(s.R(Exp(shifted.back())));
        total = s.R(Big(total) + Big(exps.back()));
        squares = s.R(Big(squares) + Big(s.R(Big(x) * Big(x))));
      }
      const double log = s.R(Log(total)),
                   eps = s.R(Big(s.R(Big(squares) / Big(kCompositeLength))) + Big(0x1p-20)),
                   rstd = s.R(Big(1) / Sqrt(eps));
      ASSERT_EQ(values->at("logsumexp").At(row), stored(s.R(Big(most) + Big(log)))) << acc;
      for (int64_t j = 0; j < kCompositeLength; ++j) {
        const int64_t i = row * kCompositeLength + j;
        const double x = in.at("x").At(i);
        ASSERT_EQ(values->at("softmax").At(i), stored(s.R(Big(exps[static_cast<size_t>(j)]) / Big(total))))
            << acc;
        ASSERT_EQ(values->at("log_softmax").At(i),
                  stored(s.R(Big(shifted[static_cast<size_t>(j)]) - Big(log))))
            << acc;
        ASSERT_EQ(values->at("rms_norm").At(i),
                  stored(s.R(Big(s.R(Big(x) * Big(rstd))) * Big(in.at("w").At(j)))))
            << acc;
        const double gate = s.R(Big(1) / Big(s.R(Big(1) + Big(s.R(Exp(-x))))));
        ASSERT_EQ(values->at("sigmoid").At(i), stored(gate)) << acc;
        ASSERT_EQ(values->at("silu").At(i), stored(s.R(Big(x) * Big(gate)))) << acc;
        const double tail = s.R(Big(s.R(Big(-x) * Big(s.R(Sqrt(0.5))))).Apply(mpfr_erfc));
        ASSERT_EQ(values->at("gelu").At(i), stored(s.R(Big(s.R(Big(x) / 2)) * Big(tail)))) << acc;
      }
    }
  }
}

/// Every result of a model, in every order and with functions off by a few units, lies in the model's own
/// interval.
TEST(CompositesEnclosed, EveryRunOfAModelLiesInItsInterval) {
  int64_t checked = 0;
  for (const DType dtype : {DType::kBfloat16, DType::kFloat32}) {
    const Case c = AllComposites(dtype);
    const auto in = testing::NormalInputs(c, 24);
    const auto oracle = OpenCaseOracle(c, in);
    ASSERT_TRUE(oracle);
    for (const char* acc : {"float32", "float64", "bfloat16"}) {
      PrecisionModel model;
      model.acc = testing::Acc(acc);
      for (const char* name :
           {"sigmoid", "silu", "gelu", "gelu_tanh", "softmax", "log_softmax", "logsumexp", "rms_norm"}) {
        const auto truth = TrueModel(c, name, model, dtype);
        ASSERT_TRUE(truth);
        const auto bank = (*oracle)->Bank(name, dtype);
        const auto found =
            std::find_if(bank.begin(), bank.end(), [&](const auto& row) { return row->model() == *truth; });
        ASSERT_NE(found, bank.end()) << name << " " << truth->Name();
        const std::vector<int64_t> elements{0, 1, 2, 3, 4};
        const bool wide = std::string(acc) != "bfloat16";
        const auto orders = static_cast<int>((*found)->orders().size());
        for (int order = 0; order < (wide ? orders : orders / 2); ++order) {
          const auto run = (*found)->Simulate(order, elements);
          for (size_t i = 0; i < elements.size(); ++i) {
            const Interval range = (*found)->Enclose(elements[i]);
            const double stored = (*found)->Store(run[i]);
            ASSERT_LE(range.lo, stored)
                << name << " " << acc << " " << (*found)->orders()[static_cast<size_t>(order)];
            ASSERT_GE(range.hi, stored)
                << name << " " << acc << " " << (*found)->orders()[static_cast<size_t>(order)];
            ++checked;
          }
        }
      }
    }
  }
  EXPECT_GT(checked, 2000);
}

}  // namespace
}  // namespace ulpscope
