// Data movement, statistics, losses, windows: references against plain loops in MPFR.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "oracles/oracle.h"
#include "tests/support/big.h"
#include "tests/support/cases.h"

namespace ulpscope {
namespace {

using testing::Big;
using testing::Integer;
using testing::Integers;
using testing::MakeStep;
using testing::Tensor;

constexpr int64_t kLineRows = 6, kLineColumns = 10, kChannels = 4, kFilters = 6, kSide = 5;

class Lines : public ::testing::TestWithParam<DType> {
 protected:
  Lines() {
    case_.id = "test/lines";
    const DType dtype = GetParam();
    case_.tensors = {Tensor("x", dtype, {kLineRows, kLineColumns}),
                     Tensor("y", dtype, {kLineRows, kLineColumns}),
                     Tensor("image", dtype, {2, kChannels, kSide, kSide}),
                     Tensor("filter", dtype, {kFilters, kChannels / 2, 3, 3}),
                     Tensor("bias", dtype, {kFilters}),
                     Tensor("mean", dtype, {kChannels}),
                     Tensor("scale", dtype, {kChannels}),
                     Tensor("share", dtype, {kLineRows, kLineColumns}),
                     Tensor("class_weight", dtype, {kLineColumns})};
    in_ = testing::NormalInputs(case_, 41);
    for (int64_t i = 0; i < kChannels; ++i) in_.at("scale").Set(i, 0.5 + static_cast<double>(i));
    Whole("order", {4}, {5, 0, 3, 3});
    Whole("places", {kLineRows, 3}, {1, 9, 0, 4, 4, 2, 7, 0, 3, 9, 8, 7, 6, 5, 4, 3, 2, 1});
    Whole("target", {kLineRows}, {9, 0, 4, 4, 7, 1});
    Whole("holes", {kLineRows}, {9, -100, 4, 4, -100, 1});
    Whole("grid", {2, 3}, {0, -1, 4, 3, -6, 5});
    Whole("beside", {2, 1}, {3, 1});
  }

  void Whole(const std::string& name, const Shape& shape, const std::vector<int64_t>& values) {
    case_.tensors.push_back(Tensor(name, DType::kInt64, shape));
    TensorData data = TensorData::Zeros(DType::kInt64, shape);
    for (size_t i = 0; i < values.size(); ++i)
      data.Set(static_cast<int64_t>(i), static_cast<double>(values[i]));
    in_.emplace(name, std::move(data));
  }

  Big At(const char* name, int64_t i) const { return Big(in_.at(name).At(i)); }
  Big X(int64_t row, int64_t column) const { return At("x", row * kLineColumns + column); }

  /// One step named `result` on the tensors, against a formula of the element.
  void Expect(Step step, const Shape& shape, const std::function<Big(int64_t)>& truth) {
    Case c = case_;
    step.as = "result";
    const std::string op = step.op;
    c.program = {std::move(step)};
    c.observe = {"result"};
    const auto oracle = OpenCaseOracle(c, in_);
    ASSERT_TRUE(oracle);
    const auto found = (*oracle)->Describe("result");
    ASSERT_TRUE(found) << op << ": " << (found ? "" : found.error().Text());
    ASSERT_EQ(found->shape, shape) << op;
    std::vector<int64_t> elements(static_cast<size_t>(ElementCount(shape)));
    std::iota(elements.begin(), elements.end(), 0);
    const auto references = (*oracle)->References("result", elements);
    for (const int64_t i : elements) {
      const Reference& reference = references[static_cast<size_t>(i)];
      ASSERT_NE(reference.kind, ReferenceKind::kUndecided) << op << "[" << i << "]";
      const mpq_class off = truth(i).Rational() - mpq_class(reference.hi) - mpq_class(reference.lo);
      ASSERT_LE(abs(off), mpq_class(reference.err) + mpq_class(std::fabs(reference.hi)) * mpq_class(0x1p-400))
          << op << "[" << i << "] " << reference.hi;
      ++checked_;
    }
  }

  Case case_;
  std::map<std::string, TensorData> in_;
  int64_t checked_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Dtypes, Lines, ::testing::Values(DType::kFloat64, DType::kBfloat16),
                         [](const auto& dtype) { return std::string(Name(dtype.param)); });

TEST_P(Lines, WhatMovesIsWhatStandsThere) {
  const auto attrs = [](std::initializer_list<std::pair<const std::string, int64_t>> numbers) {
    std::map<std::string, Attr> all;
    for (const auto& [key, number] : numbers) all[key] = Integer(number);
    return all;
  };
  Expect(MakeStep("cat", {"x", "y", "x"}, "", attrs({{"dim", 1}})), {kLineRows, 3 * kLineColumns},
         [&](int64_t i) {
           const int64_t row = i / (3 * kLineColumns), column = i % (3 * kLineColumns);
           return At(column / kLineColumns == 1 ? "y" : "x", row * kLineColumns + column % kLineColumns);
         });
  Expect(MakeStep("stack", {"x", "y"}, "", attrs({{"dim", -2}})), {kLineRows, 2, kLineColumns},
         [&](int64_t i) {
           return At(i / kLineColumns % 2 == 1 ? "y" : "x",
                     i / (2 * kLineColumns) * kLineColumns + i % kLineColumns);
         });
  Expect(MakeStep("slice", {"x"}, "", attrs({{"dim", 1}, {"start", -8}, {"end", 9}, {"step", 3}})),
         {kLineRows, 3}, [&](int64_t i) { return X(i / 3, 2 + i % 3 * 3); });
  Expect(MakeStep("narrow", {"x"}, "", attrs({{"dim", 0}, {"start", 2}, {"length", 3}})), {3, kLineColumns},
         [&](int64_t i) { return At("x", 2 * kLineColumns + i); });
  Expect(MakeStep("flatten", {"image"}, "", attrs({{"start_dim", 1}, {"end_dim", 2}})),
         {2, kChannels * kSide, kSide}, [&](int64_t i) { return At("image", i); });
  Expect(MakeStep("roll", {"x"}, "", {{"shifts", Integers({-3, 14})}, {"dims", Integers({0, 1})}}),
         {kLineRows, kLineColumns}, [&](int64_t i) {
           return X((i / kLineColumns + 3) % kLineRows, (i % kLineColumns + 6) % kLineColumns);
         });
  Expect(MakeStep("tril", {"x"}, "", attrs({{"diagonal", 1}})), {kLineRows, kLineColumns},
         [&](int64_t i) { return i % kLineColumns <= i / kLineColumns + 1 ? At("x", i) : Big(0); });
  Expect(MakeStep("triu", {"x"}, ""), {kLineRows, kLineColumns},
         [&](int64_t i) { return i % kLineColumns >= i / kLineColumns ? At("x", i) : Big(0); });
  const auto number = [&](const char* name, int64_t i) { return static_cast<int64_t>(in_.at(name).At(i)); };
  Expect(MakeStep("gather", {"x", "places"}, "", attrs({{"dim", 1}})), {kLineRows, 3},
         [&](int64_t i) { return X(i / 3, number("places", i)); });
  Expect(MakeStep("index_select", {"x", "order"}, "", attrs({{"dim", 0}})), {4, kLineColumns},
         [&](int64_t i) { return X(number("order", i / kLineColumns), i % kLineColumns); });
  Expect(MakeStep("embedding", {"x", "order"}, ""), {4, kLineColumns},
         [&](int64_t i) { return X(number("order", i / kLineColumns), i % kLineColumns); });
  // Three rows and a column, shown as [2, 3]: two dimensions at once, and one number from the end.
  Expect(MakeStep("index", {"x", "grid", "beside"}, ""), {2, 3},
         [&](int64_t i) { return X((number("grid", i) + kLineRows) % kLineRows, number("beside", i / 3)); });
  Expect(MakeStep("index", {"image", "beside"}, "", attrs({{"dim", -2}})), {2, kChannels, 2, 1, kSide},
         [&](int64_t i) {
           const int64_t x = i % kSide, place = i / kSide % 2, plane = i / kSide / 2;
           return At("image", (plane * kSide + number("beside", place)) * kSide + x);
         });
  Expect(MakeStep("flip", {"image"}, "", {{"dims", Integers({-1, 0})}}), {2, kChannels, kSide, kSide},
         [&](int64_t i) {
           const int64_t last = i % kSide, rest = i / kSide % (kChannels * kSide),
                         first = i / kSide / (kChannels * kSide);
           return At("image", ((1 - first) * kChannels * kSide + rest) * kSide + kSide - 1 - last);
         });
  // One before and two after along the last dimension, three before along the one above it.
  const auto padded = [&](const char* mode, const std::function<int64_t(int64_t, int64_t)>& from) {
    Expect(
        MakeStep(
            "pad", {"x"}, "",
            {{"pad", Integers({1, 2, 3, 0})}, {"mode", testing::Text(mode)}, {"value", Attr{.value = 0.75}}}),
        {kLineRows + 3, kLineColumns + 3}, [&](int64_t i) {
          const int64_t row = from(i / (kLineColumns + 3) - 3, kLineRows),
                        column = from(i % (kLineColumns + 3) - 1, kLineColumns);
          return row < 0 || column < 0 ? Big(0.75) : X(row, column);
        });
  };
  padded("constant", [](int64_t place, int64_t extent) { return place < extent ? place : -1; });
  padded("replicate",
         [](int64_t place, int64_t extent) { return std::clamp<int64_t>(place, 0, extent - 1); });
  padded("circular", [](int64_t place, int64_t extent) { return (place + extent) % extent; });
  padded("reflect", [](int64_t place, int64_t extent) {
    return place < 0 ? -place : place < extent ? place : 2 * (extent - 1) - place;
  });
  Expect(MakeStep("pad", {"x"}, "", {{"pad", Integers({-2, 1})}}), {kLineRows, kLineColumns - 1},
         [&](int64_t i) {
           const int64_t column = i % (kLineColumns - 1) + 2;
           return column < kLineColumns ? X(i / (kLineColumns - 1), column) : Big(0);
         });
  Expect(MakeStep("one_hot", {"order"}, "", attrs({{"num_classes", 6}})), {4, 6},
         [&](int64_t i) { return Big(number("order", i / 6) == i % 6 ? 1 : 0); });
  Expect(MakeStep("arange", {}, "",
                  {{"start", Attr{.value = 0.1}},
                   {"end", Integer(2)},
                   {"step", Attr{.value = 0.3}},
                   {"dtype", testing::Text("float32")}}),
         {7}, [](int64_t i) { return Big(0.1) + Big(0.3) * static_cast<double>(i); });
  EXPECT_GT(checked_, 600);
}

TEST_P(Lines, SumsOfEveryKindAreThoseOfALoop) {
  const auto over = [&](int64_t row, const std::function<Big(const Big&)>& f) {
    Big sum;
    for (int64_t j = 0; j < kLineColumns; ++j) sum = sum + f(X(row, j));
    return sum;
  };
  const auto plain = [](const Big& a) { return a; };
  const auto squares = [](const Big& a) { return a * a; };
  const auto variance = [&](int64_t row, double fewer) {
    const Big mean = over(row, plain) / static_cast<double>(kLineColumns);
    return over(row, [&](const Big& a) { return (a - mean) * (a - mean); }) / (kLineColumns - fewer);
  };
  const std::map<std::string, Attr> last{{"dim", Integer(-1)}};
  Expect(MakeStep("var", {"x"}, "", last), {kLineRows}, [&](int64_t i) { return variance(i, 1); });
  Expect(MakeStep("std", {"x"}, "", {{"dim", Integer(1)}, {"correction", Integer(0)}}), {kLineRows},
         [&](int64_t i) { return variance(i, 0).Apply(mpfr_sqrt); });
  Expect(MakeStep("norm", {"x"}, "", last), {kLineRows},
         [&](int64_t i) { return over(i, squares).Apply(mpfr_sqrt); });
  Expect(MakeStep("norm", {"x"}, "", {{"dim", Integer(1)}, {"p", Integer(1)}}), {kLineRows},
         [&](int64_t i) { return over(i, [](const Big& a) { return a.Apply(mpfr_abs); }); });
  Expect(MakeStep("prod", {"x"}, "", last), {kLineRows}, [&](int64_t i) {
    Big product(1);
    for (int64_t j = 0; j < kLineColumns; ++j) product = product * X(i, j);
    return product;
  });
  Expect(MakeStep("amin", {"x"}, "", last), {kLineRows}, [&](int64_t i) {
    double least = HUGE_VAL;
    for (int64_t j = 0; j < kLineColumns; ++j) least = std::fmin(least, in_.at("x").At(i * kLineColumns + j));
    return Big(least);
  });
  Expect(MakeStep("cumsum", {"x"}, "", {{"dim", Integer(0)}}), {kLineRows, kLineColumns}, [&](int64_t i) {
    Big sum;
    for (int64_t row = 0; row <= i / kLineColumns; ++row) sum = sum + X(row, i % kLineColumns);
    return sum;
  });
  Expect(MakeStep("cumprod", {"x"}, "", last), {kLineRows, kLineColumns}, [&](int64_t i) {
    Big product(1);
    for (int64_t j = 0; j <= i % kLineColumns; ++j) product = product * X(i / kLineColumns, j);
    return product;
  });
  Expect(MakeStep("logcumsumexp", {"x"}, "", {{"dim", Integer(0)}}), {kLineRows, kLineColumns},
         [&](int64_t i) {
           Big sum;
           for (int64_t row = 0; row <= i / kLineColumns; ++row)
             sum = sum + X(row, i % kLineColumns).Apply(mpfr_exp);
           return sum.Apply(mpfr_log);
         });
  Expect(MakeStep("einsum", {"x", "y"}, "", {{"equation", testing::Text("ij,kj->ki")}}),
         {kLineRows, kLineRows}, [&](int64_t i) {
           Big sum;
           for (int64_t j = 0; j < kLineColumns; ++j)
             sum = sum + X(i % kLineRows, j) * At("y", i / kLineRows * kLineColumns + j);
           return sum;
         });
  const auto difference = [&](int64_t i) { return At("x", i) - At("y", i); };
  const auto loss = [&](const char* op, std::map<std::string, Attr> attrs,
                        const std::function<Big(int64_t)>& each) {
    attrs["reduction"] = testing::Text("none");
    Expect(MakeStep(op, {"x", "y"}, "", attrs), {kLineRows, kLineColumns}, each);
    attrs.erase("reduction");
    Expect(MakeStep(op, {"x", "y"}, "", attrs), {}, [&](int64_t) {
      Big sum;
      for (int64_t i = 0; i < kLineRows * kLineColumns; ++i) sum = sum + each(i);
      return sum / static_cast<double>(kLineRows * kLineColumns);
    });
  };
  const auto size = [&](int64_t i) { return difference(i).Apply(mpfr_abs); };
  loss("mse_loss", {}, [&](int64_t i) { return difference(i) * difference(i); });
  loss("l1_loss", {}, size);
  loss("smooth_l1_loss", {{"beta", Attr{.value = 0.5}}},
       [&](int64_t i) { return Compare(size(i), Big(0.5)) < 0 ? size(i) * size(i) : size(i) - 0.25; });
  loss("huber_loss", {{"delta", Attr{.value = 0.5}}}, [&](int64_t i) {
    return Compare(size(i), Big(0.5)) < 0 ? size(i) * size(i) / 2 : (size(i) - 0.25) / 2;
  });
  loss("bce_with_logits", {},
       [&](int64_t i) { return At("x", i).Apply(mpfr_exp).Apply(mpfr_log1p) - At("x", i) * At("y", i); });
  Expect(MakeStep("cross_entropy", {"x", "target"}, ""), {}, [&](int64_t) {
    Big sum;
    for (int64_t row = 0; row < kLineRows; ++row) {
      const Big exps = over(row, [](const Big& a) { return a.Apply(mpfr_exp); });
      sum = sum + exps.Apply(mpfr_log) - X(row, static_cast<int64_t>(in_.at("target").At(row)));
    }
    return sum / static_cast<double>(kLineRows);
  });
  EXPECT_GT(checked_, 400);
}

TEST_P(Lines, WhatIsNoNumberIsReplaced) {
  const double inf = HUGE_VAL;
  const std::vector<double> odd{std::nan(""), inf, -inf, 1.5, -0.0};
  case_.tensors.push_back(Tensor("odd", GetParam(), {5}));
  TensorData data = TensorData::Zeros(GetParam(), {5});
  for (int64_t i = 0; i < 5; ++i) data.Set(i, odd[static_cast<size_t>(i)]);
  in_.emplace("odd", std::move(data));
  const double most = FormatOf(GetParam())->max_finite;
  const std::vector<double> plain{0, most, -most, 1.5, 0}, told{7, 2, -3, 1.5, 0};
  Expect(MakeStep("nan_to_num", {"odd"}, ""), {5},
         [&](int64_t i) { return Big(plain[static_cast<size_t>(i)]); });
  Expect(MakeStep("nan_to_num", {"odd"}, "",
                  {{"nan", Integer(7)}, {"posinf", Integer(2)}, {"neginf", Attr{.value = -3.0}}}),
         {5}, [&](int64_t i) { return Big(told[static_cast<size_t>(i)]); });
  EXPECT_EQ(checked_, 10);
}

TEST_P(Lines, LossesOverClassesAreThoseOfALoop) {
  const auto log_softmax = [&](int64_t row, int64_t column) {
    Big exps;
    for (int64_t j = 0; j < kLineColumns; ++j) exps = exps + X(row, j).Apply(mpfr_exp);
    return X(row, column) - exps.Apply(mpfr_log);
  };
  const auto weight = [&](bool weighted, int64_t column) {
    return weighted ? At("class_weight", column) : Big(1);
  };
  // PyTorch's formulas, an element at a time; a target of -100 counts nothing.
  const auto each = [&](int64_t row, const char* target, bool weighted, double smoothing, bool of_logs) {
    const auto place = static_cast<int64_t>(in_.at(target).At(row));
    if (place == -100) return Big(0);
    const auto log = [&](int64_t column) { return of_logs ? X(row, column) : log_softmax(row, column); };
    Big all;
    for (int64_t j = 0; j < kLineColumns; ++j) all = all - log(j) * weight(weighted, j);
    return (Big(0) - log(place) * weight(weighted, place)) * (Big(1) - Big(smoothing)) +
           all * Big(smoothing / static_cast<double>(kLineColumns));
  };
  int64_t forms = 0;
  for (const char* op : {"nll_loss", "cross_entropy"}) {
    for (const char* target : {"target", "holes"}) {
      for (const bool weighted : {false, true}) {
        for (const double smoothing : {0.0, 0.25}) {
          for (const char* reduction : {"mean", "sum", "none"}) {
            const bool of_logs = std::string(op) == "nll_loss";
            if (of_logs && smoothing != 0) continue;
            std::map<std::string, Attr> attrs{{"reduction", testing::Text(reduction)}};
            if (smoothing != 0) attrs["label_smoothing"] = Attr{.value = smoothing};
            if (std::string(target) == "holes") attrs["ignore_index"] = Integer(-100);
            const auto one = [&](int64_t row) { return each(row, target, weighted, smoothing, of_logs); };
            const bool apart = std::string(reduction) == "none";
            Expect(weighted ? MakeStep(op, {"x", target, "class_weight"}, "", attrs)
                            : MakeStep(op, {"x", target}, "", attrs),
                   apart ? Shape{kLineRows} : Shape{}, [&](int64_t i) {
                     if (apart) return one(i);
                     Big sum, weights;
                     for (int64_t row = 0; row < kLineRows; ++row) {
                       const auto place = static_cast<int64_t>(in_.at(target).At(row));
                       sum = sum + one(row);
                       if (place != -100) weights = weights + weight(weighted, place);
                     }
                     return std::string(reduction) == "sum" ? sum : sum / weights;
                   });
            ++forms;
          }
        }
      }
    }
  }
  EXPECT_EQ(forms, 36);
  // Probabilities for targets.
  for (const bool weighted : {false, true}) {
    Expect(MakeStep("cross_entropy",
                    weighted ? std::vector<std::string>{"x", "share", "class_weight"}
                             : std::vector<std::string>{"x", "share"},
                    "", {{"label_smoothing", Attr{.value = 0.5}}}),
           {}, [&](int64_t) {
             Big sum;
             for (int64_t i = 0; i < kLineRows * kLineColumns; ++i) {
               const Big share = At("share", i) * 0.5 + Big(0.5 / static_cast<double>(kLineColumns));
               sum = sum - log_softmax(i / kLineColumns, i % kLineColumns) * share *
                               weight(weighted, i % kLineColumns);
             }
             return sum / static_cast<double>(kLineRows);
           });
  }
  EXPECT_EQ(checked_, 24 + 12 * kLineRows + 2);
}

TEST_P(Lines, WindowsAreThoseOfALoop) {
  const auto pixel = [&](int64_t n, int64_t c, int64_t y, int64_t x) {
    const bool outside = y < 0 || x < 0 || y >= kSide || x >= kSide;
    return outside ? Big(0) : At("image", ((n * kChannels + c) * kSide + y) * kSide + x);
  };
  // Two groups, padding 1, stride 2: places at -1, 1, 3.
  Expect(MakeStep("conv2d", {"image", "filter", "bias"}, "",
                  {{"stride", Integer(2)}, {"padding", Integers({1, 1})}, {"groups", Integer(2)}}),
         {2, kFilters, 3, 3}, [&](int64_t i) {
           const int64_t x = i % 3, y = i / 3 % 3, o = i / 9 % kFilters, n = i / 9 / kFilters;
           Big sum = At("bias", o);
           for (int64_t c = 0; c < 2; ++c)
             for (int64_t k = 0; k < 9; ++k)
               sum = sum + At("filter", (o * 2 + c) * 9 + k) *
                               pixel(n, o / (kFilters / 2) * 2 + c, 2 * y - 1 + k / 3, 2 * x - 1 + k % 3);
           return sum;
         });
  const auto pooled = [&](bool most) {
    return [&, most](int64_t i) {
      const int64_t x = i % 2, y = i / 2 % 2, plane = i / 4;
      Big result = most ? Big(-1000) : Big(0);
      for (int64_t k = 0; k < 4; ++k) {
        const Big one = pixel(plane / kChannels, plane % kChannels, 2 * y + k / 2, 2 * x + k % 2);
        result = !most ? result + one / 4 : Compare(one, result) > 0 ? one : result;
      }
      return result;
    };
  };
  Expect(MakeStep("avg_pool2d", {"image"}, "", {{"kernel_size", Integer(2)}}), {2, kChannels, 2, 2},
         pooled(false));
  Expect(MakeStep("adaptive_avg_pool2d", {"image"}, "", {{"output_size", Integers({1, kSide})}}),
         {2, kChannels, 1, kSide}, [&](int64_t i) {
           Big sum;
           for (int64_t row = 0; row < kSide; ++row)
             sum = sum + pixel(i / kSide / kChannels, i / kSide % kChannels, row, i % kSide);
           return sum / static_cast<double>(kSide);
         });
  Expect(MakeStep("max_pool2d", {"image"}, "", {{"kernel_size", Integer(2)}}), {2, kChannels, 2, 2},
         pooled(true));
  const auto plane = kSide * kSide;
  Expect(MakeStep("batch_norm", {"image", "mean", "scale", "scale", "mean"}, ""),
         {2, kChannels, kSide, kSide}, [&](int64_t i) {
           const int64_t c = i / plane % kChannels;
           return (At("image", i) - At("mean", c)) / (At("scale", c) + Big(1e-5)).Apply(mpfr_sqrt) *
                      At("scale", c) +
                  At("mean", c);
         });
  Expect(MakeStep("group_norm", {"image", "scale", "mean"}, "", {{"num_groups", Integer(2)}}),
         {2, kChannels, kSide, kSide}, [&](int64_t i) {
           const int64_t first = i / (2 * plane) * 2 * plane, c = i / plane % kChannels;
           Big sum, squares;
           for (int64_t k = 0; k < 2 * plane; ++k) sum = sum + At("image", first + k);
           const Big mean = sum / static_cast<double>(2 * plane);
           for (int64_t k = 0; k < 2 * plane; ++k)
             squares = squares + (At("image", first + k) - mean) * (At("image", first + k) - mean);
           const Big deviation = (squares / static_cast<double>(2 * plane) + Big(1e-5)).Apply(mpfr_sqrt);
           return (At("image", i) - mean) / deviation * At("scale", c) + At("mean", c);
         });
  EXPECT_GT(checked_, 500);
}

}  // namespace
}  // namespace ulpscope
