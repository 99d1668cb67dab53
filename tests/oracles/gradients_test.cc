// Gradients of ops that have steps of their own going back, and of those along a row, against MPFR by other
// formulas; the steps of softmax and its kin rounded as a model prescribes; runs of models inside their
// intervals.
//
// ULPSCOPE_ELEMENTS=100000 requests that many elements of each gradient instead of a few.
#include <gmpxx.h>
#include <gtest/gtest.h>
#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
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

constexpr int64_t kGradientLength = 10;

int64_t GradientRows() {
  const char* asked = std::getenv("ULPSCOPE_ELEMENTS");
  return asked == nullptr ? 6 : (std::atoll(asked) + kGradientLength - 1) / kGradientLength;
}

Big ExpOf(const Big& a) { return a.Apply(mpfr_exp); }

/// One line: what went in, what its results received, and the class that it names.
struct Line {
  std::vector<double> x, g;
  int64_t target = 0;

  Big Sum(const std::function<Big(size_t)>& term) const {
    Big sum;
    for (size_t j = 0; j < x.size(); ++j) sum = sum + term(j);
    return sum;
  }
  /// Product of the first `count`, without one of them.
  Big Product(size_t count, size_t without) const {
    Big product(1);
    for (size_t j = 0; j < count; ++j) product = j == without ? product : product * x[j];
    return product;
  }
  Big Share(size_t j) const {
    return ExpOf(x[j]) / Sum([&](size_t k) { return ExpOf(x[k]); });
  }
};

struct GradientRow {
  std::string name;
  Step step;
  Shape received;  ///< of the result, by line; {} for a single number
  std::function<Big(const Line&, size_t)> truth;
};

Step MakeGradients(const std::string& op, const std::vector<std::string>& of,
                   std::map<std::string, Attr> attrs) {
  return MakeStep(op, of, "y", std::move(attrs));
}

std::vector<GradientRow> AllGradientRows() {
  const std::map<std::string, Attr> last{{"dim", testing::Integer(-1)}};
  const auto sum{std::pair{std::string("reduction"), testing::Text("sum")}};
  const auto largest = [](const Line& line, size_t j, bool most) {
    const double edge = most ? *std::max_element(line.x.begin(), line.x.end())
                             : *std::min_element(line.x.begin(), line.x.end());
    return line.x[j] == edge
               ? Big(line.g[0]) / Big(static_cast<double>(std::count(line.x.begin(), line.x.end(), edge)))
               : Big(0);
  };
  return {
      {"softmax",
       MakeGradients("softmax", {"x"}, last),
       {kGradientLength},
       [](const Line& line, size_t j) {
         return line.Share(j) *
                (Big(line.g[j]) - line.Sum([&](size_t k) { return line.Share(k) * line.g[k]; }));
       }},
      {"log_softmax",
       MakeGradients("log_softmax", {"x"}, last),
       {kGradientLength},
       [](const Line& line, size_t j) {
         return Big(line.g[j]) - line.Share(j) * line.Sum([&](size_t k) { return Big(line.g[k]); });
       }},
      {"logsumexp",
       MakeGradients("logsumexp", {"x"}, last),
       {1},
       [](const Line& line, size_t j) { return line.Share(j) * line.g[0]; }},
      {"cross_entropy",
       MakeGradients("cross_entropy", {"x", "target"}, {sum}),
       {},
       [](const Line& line, size_t j) {
         return line.Share(j) - Big(static_cast<size_t>(line.target) == j ? 1 : 0);
       }},
      {"nll_loss",
       MakeGradients("nll_loss", {"x", "target"}, {sum}),
       {},
       [](const Line& line, size_t j) { return Big(static_cast<size_t>(line.target) == j ? -1 : 0); }},
      {"amax",
       MakeGradients("amax", {"x"}, last),
       {1},
       [&, largest](const Line& line, size_t j) { return largest(line, j, true); }},
      {"amin",
       MakeGradients("amin", {"x"}, last),
       {1},
       [&, largest](const Line& line, size_t j) { return largest(line, j, false); }},
      {"cumsum",
       MakeGradients("cumsum", {"x"}, last),
       {kGradientLength},
       [](const Line& line, size_t j) {
         return line.Sum([&](size_t k) { return k < j ? Big(0) : Big(line.g[k]); });
       }},
      {"prod",
       MakeGradients("prod", {"x"}, last),
       {1},
       [](const Line& line, size_t j) { return Big(line.g[0]) * line.Product(line.x.size(), j); }},
      {"cumprod",
       MakeGradients("cumprod", {"x"}, last),
       {kGradientLength},
       [](const Line& line, size_t j) {
         return line.Sum([&](size_t k) { return k < j ? Big(0) : Big(line.g[k]) * line.Product(k + 1, j); });
       }},
      {"logcumsumexp",
       MakeGradients("logcumsumexp", {"x"}, last),
       {kGradientLength},
       [](const Line& line, size_t j) {
         Big received, total;
         for (size_t k = 0; k < line.x.size(); ++k) {
           total = total + ExpOf(line.x[k]);
           if (k >= j) received = received + ExpOf(line.x[j]) / total * line.g[k];
         }
         return received;
       }},
      {"fmod",
       MakeGradients("fmod", {"x", "of"}, {}),
       {kGradientLength},
       [](const Line& line, size_t j) { return Big(line.g[j]); }},
      {"atan2",
       MakeGradients("atan2", {"x", "of"}, {}),
       {kGradientLength},
       [](const Line& line, size_t j) {
         return Big(line.g[j]) * 0.75 / (Big(line.x[j]) * line.x[j] + Big(0.5625));
       }},
      {"slice",
       MakeGradients(
           "slice", {"x"},
           {{"dim", testing::Integer(1)}, {"start", testing::Integer(1)}, {"step", testing::Integer(4)}}),
       {3},
       [](const Line& line, size_t j) { return j % 4 == 1 ? Big(line.g[j / 4]) : Big(0); }},
      {"wide_slice",
       MakeGradients("slice", {"x"}, {{"dim", testing::Integer(1)}, {"step", testing::Integer(3)}}),
       {4},
       [](const Line& line, size_t j) { return j % 3 == 0 ? Big(line.g[j / 3]) : Big(0); }},
  };
}

Case CaseOf(const GradientRow& row, DType dtype, int64_t rows) {
  Case c;
  c.id = "test/gradients";
  c.tensors = {Tensor("x", dtype, {rows, kGradientLength}, true)};
  c.program = {row.step};
  Step backward = MakeStep("backward", {"y"}, "");
  if (!row.received.empty()) {
    // A sum over a row has no extent left there.
    c.tensors.push_back(
        Tensor("g", dtype, row.received[0] == 1 ? Shape{rows} : Shape{rows, row.received[0]}));
    backward.attrs["grad"] = testing::Text("g");
  }
  for (Operand& operand : c.program[0].of) {
    if (operand.name == "of") operand = {.name = "", .scalar = Attr{.value = 0.75}};
    if (operand.name == "target") c.tensors.push_back(Tensor("target", DType::kInt64, {rows}));
  }
  c.program.push_back(std::move(backward));
  c.observe = {"x.grad"};
  return c;
}

std::map<std::string, TensorData> InputsOf(const Case& c) {
  Case floating = c;
  std::erase_if(floating.tensors, [](const TensorSpec& tensor) { return !IsFloating(tensor.dtype); });
  auto in = testing::NormalInputs(floating, 77);
  TensorData& x = in.at("x");
  // Now and then the largest or the smallest of a line stands there twice.
  for (int64_t i = 0; i + 5 < x.size(); i += 2 * kGradientLength) {
    x.Set(i, 4);
    x.Set(i + 3, 4);
    x.Set(i + 1, -4);
    x.Set(i + 5, -4);
  }
  if (c.FindTensor("target") != nullptr) {
    TensorData target = TensorData::Zeros(DType::kInt64, {x.shape[0]});
    for (int64_t i = 0; i < target.size(); ++i)
      target.Set(i, static_cast<double>((i * 7 + 3) % kGradientLength));
    in.emplace("target", std::move(target));
  }
  return in;
}

Line LineOf(const std::map<std::string, TensorData>& in, const GradientRow& row, int64_t line) {
  Line found;
  for (int64_t j = 0; j < kGradientLength; ++j) found.x.push_back(in.at("x").At(line * kGradientLength + j));
  const int64_t received = row.received.empty() ? 0 : row.received[0];
  for (int64_t j = 0; j < received; ++j) found.g.push_back(in.at("g").At(line * received + j));
  if (in.contains("target")) found.target = static_cast<int64_t>(in.at("target").At(line));
  return found;
}

class Gradients : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Dtypes, Gradients,
                         ::testing::Values(DType::kFloat64, DType::kFloat32, DType::kBfloat16),
                         [](const auto& dtype) { return std::string(Name(dtype.param)); });

TEST_P(Gradients, ReferencesAgreeWithMpfrByOtherFormulas) {
  const int64_t rows = GradientRows();
  int64_t checked = 0;
  for (const GradientRow& row : AllGradientRows()) {
    const Case c = CaseOf(row, GetParam(), rows);
    const auto in = InputsOf(c);
    const auto oracle = OpenCaseOracle(c, in);
    ASSERT_TRUE(oracle) << row.name;
    const auto shape = (*oracle)->Describe("x.grad");
    ASSERT_TRUE(shape) << row.name << ": " << (shape ? "" : shape.error().Text());
    EXPECT_EQ(shape->declared, GetParam()) << row.name;
    std::vector<int64_t> elements(static_cast<size_t>(rows * kGradientLength));
    std::iota(elements.begin(), elements.end(), 0);
    const auto references = (*oracle)->References("x.grad", elements);
    for (int64_t i = 0; i < rows; ++i) {
      const Line line = LineOf(in, row, i);
      for (int64_t j = 0; j < kGradientLength; ++j) {
        const Reference& reference = references[static_cast<size_t>(i * kGradientLength + j)];
        const mpq_class off = row.truth(line, static_cast<size_t>(j)).Rational() - mpq_class(reference.hi) -
                              mpq_class(reference.lo);
        ASSERT_NE(reference.kind, ReferenceKind::kUndecided) << row.name << " " << i << "," << j;
        ASSERT_LE(abs(off), mpq_class(reference.err) + mpq_class(0x1p-400))
            << row.name << " " << i << "," << j;
        ASSERT_LE(reference.err, (std::fabs(reference.hi) + 1) * 0x1p-80) << row.name;
        ++checked;
      }
    }
  }
  EXPECT_EQ(checked, static_cast<int64_t>(AllGradientRows().size()) * rows * kGradientLength);
}

/// Steps in a model's format, bit for bit: what each op does going back, by the formulas of PyTorch's decompositions.
TEST(GradientsEmulated, StepsAreRoundedAsTheModelSays) {
  for (const char* acc : {"float32", "bfloat16"}) {
    const FloatFormat& format = *FindFormat(acc);
    const auto round = [&](const Big& value) { return value.Rounded(format); };
    const auto stored = [](double value) { return RoundTo(value, Bfloat16()); };
    for (const GradientRow& row : AllGradientRows()) {
      if (row.name != "softmax" && row.name != "log_softmax" && row.name != "logsumexp") continue;
      Case c = CaseOf(row, DType::kBfloat16, 6);
      c.observe.push_back("y");
      const auto in = InputsOf(c);
      PrecisionModel model;
      model.acc = testing::Acc(acc);
      const auto values = EmulateProgram(c, in, model, "sequential");
      ASSERT_TRUE(values) << (values ? "" : values.error().Text());
      for (int64_t i = 0; i < 6; ++i) {
        const Line line = LineOf(in, row, i);
        const auto y = [&](int64_t j) {
          return values->at("y").At(row.name == "logsumexp" ? i : i * kGradientLength + j);
        };
        double total = 0;
        for (int64_t j = 0; j < kGradientLength; ++j) {
          const auto g = line.g[row.name == "logsumexp" ? 0 : static_cast<size_t>(j)];
          total = round(Big(total) + Big(row.name == "softmax" ? round(Big(g) * Big(y(j))) : g));
        }
        for (int64_t j = 0; j < kGradientLength; ++j) {
          const auto at = static_cast<size_t>(j);
          const double g = line.g[row.name == "logsumexp" ? 0 : at];
          double due = 0;
          if (row.name == "softmax")
            due = round(Big(round(Big(g) * Big(y(j)))) - Big(round(Big(y(j)) * Big(total))));
          if (row.name == "log_softmax")
            due = round(Big(g) - Big(round(Big(round(ExpOf(y(j)))) * Big(total))));
          if (row.name == "logsumexp")
            due = round(Big(round(ExpOf(round(Big(line.x[at]) - Big(y(j)))))) * Big(g));
          ASSERT_EQ(values->at("x.grad").At(i * kGradientLength + j), stored(due))
              << row.name << " " << acc << " " << i << "," << j;
        }
      }
    }
  }
}

/// Every result of a model, in every order and with functions off by a few units, lies in the model's own
/// interval.
TEST_P(Gradients, EveryRunOfAModelLiesInItsInterval) {
  if (GetParam() == DType::kFloat64) GTEST_SKIP() << "the narrower ones have more models";
  int64_t checked = 0;
  for (const GradientRow& row : AllGradientRows()) {
    const Case c = CaseOf(row, GetParam(), 3);
    const auto in = InputsOf(c);
    const auto oracle = OpenCaseOracle(c, in);
    ASSERT_TRUE(oracle);
    PrecisionModel model;
    const auto truth = TrueModel(c, "x.grad", model, GetParam());
    ASSERT_TRUE(truth);
    const auto bank = (*oracle)->Bank("x.grad", GetParam());
    const auto found =
        std::find_if(bank.begin(), bank.end(), [&](const auto& one) { return one->model() == *truth; });
    ASSERT_NE(found, bank.end()) << row.name << " " << truth->Name();
    const std::vector<int64_t> elements{0, 1, 2, 3, 4, 5, 11, 13, 17, 20, 25, 29};
    const auto orders = static_cast<int>((*found)->orders().size());
    for (int order = 0; order < orders; order += std::max(1, orders / 6)) {
      const auto run = (*found)->Simulate(order, elements);
      for (size_t i = 0; i < elements.size(); ++i) {
        const Interval range = (*found)->Enclose(elements[i]);
        const double stored = (*found)->Store(run[i]);
        ASSERT_TRUE(range.Holds(stored))
            << row.name << "[" << i << "] " << stored << " of " << range.lo << " .. " << range.hi;
        ASSERT_LT(range.hi - range.lo, 0.25) << row.name << " says nothing";
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 120);
}

}  // namespace
}  // namespace ulpscope
