// Products of matrices by an arithmetic that anyone can read here, as the tests of the classifier's rules have them.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "harness/base/hash.h"
#include "harness/judge/classify.h"
#include "harness/num/error_free.h"
#include "harness/num/float_format.h"
#include "oracles/oracle.h"
#include "tests/support/cases.h"

namespace ulpscope::testing {

using Terms = std::vector<double>;

/// What is multiplied, and how the operands are changed before the kernel and the judge read them.
struct ProductShape {
  DType read = DType::kBfloat16, stored = DType::kFloat32;
  int64_t rows = 16, terms = 64, columns = 16;
  std::function<double(double x, int64_t number)> operand = {};
  uint64_t seed = 3;
};

/// A product of two matrices, each element of which `computed` makes from a row and a column.
inline Classification ClassifyProduct(
    const ProductShape& shape, const std::function<double(const Terms&, const Terms&, int64_t)>& computed,
    const ClassifyOptions& options = {}) {
  Case c = MatmulCase(shape.read, shape.read, shape.rows, shape.terms, shape.columns);
  if (shape.stored != shape.read)
    c.program[0].attrs.emplace("out_dtype", Text(std::string(Name(shape.stored))));
  auto inputs = NormalInputs(c, shape.seed);
  int64_t number = 0;
  for (auto& [name, data] : inputs) {
    for (int64_t i = 0; i < data.size() && shape.operand; ++i)
      data.Set(i, shape.operand(data.At(i), number++));
  }
  const TensorData &a = inputs.at("a"), &b = inputs.at("b");
  TensorData product = TensorData::Zeros(shape.stored, {shape.rows, shape.columns});
  for (int64_t i = 0; i < product.size(); ++i) {
    Terms row, column;
    for (int64_t k = 0; k < shape.terms; ++k) {
      row.push_back(a.At(i / shape.columns * shape.terms + k));
      column.push_back(b.At(k * shape.columns + i % shape.columns));
    }
    product.Set(i, computed(row, column, i));
  }
  const auto oracle = OpenCaseOracle(c, inputs);
  return ClassifyValue(**oracle, "product", product, options);
}

inline Terms ProductsOf(const Terms& row, const Terms& column,
                        const std::function<double(double)>& rounded = {}) {
  Terms products;
  for (size_t k = 0; k < row.size(); ++k)
    products.push_back(rounded ? rounded(row[k] * column[k]) : row[k] * column[k]);
  return products;
}

inline double ExactSum(const Terms& terms) { return std::accumulate(terms.begin(), terms.end(), 0.0); }

/// In an order that no library has: by a hash of the term's number.
inline double ShuffledSum(const Terms& terms, const FloatFormat& format,
                          Rounding rounding = Rounding::kNearestEven) {
  std::vector<size_t> order(terms.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [](size_t k) { return MixBits(k * 7919 + 17); });
  double sum = 0;
  for (const size_t k : order) sum = RoundTo(TwoSum(sum, terms[k]), format, rounding);
  return sum;
}

/// Between 0 and 1, by a hash.
inline double UniformOf(int64_t i) {
  return static_cast<double>(MixBits(static_cast<uint64_t>(i) + 99) >> 11) * 0x1p-53;
}

/// One of the two neighbours of `x` in `format`, the nearer one the likelier.
inline double Either(double x, const FloatFormat& format, int64_t number) {
  const double inner = RoundTo(x, format, Rounding::kTowardZero), step = Ulp(x, format);
  return UniformOf(number) * step >= std::fabs(x - inner) ? inner : inner + std::copysign(step, x);
}

}  // namespace ulpscope::testing
