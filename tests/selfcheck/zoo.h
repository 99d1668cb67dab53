// Kernels of known arithmetic: what the classifier is measured on.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "harness/base/hash.h"
#include "harness/model/probe.h"
#include "oracles/dot/bank.h"

namespace ulpscope::selfcheck {

enum class Truth { kConforming, kNonConforming, kOutsideVocabulary };

/// A dot product y = kernel(a, b); `row` and `launch` let a kernel be noisy.
struct Kernel {
  std::string name;
  Truth truth = Truth::kConforming;
  DType in = DType::kFloat32, out = DType::kFloat32;
  int64_t k = 0;
  std::string distribution;
  const DotModel* model = nullptr;  ///< null outside the vocabulary
  std::string order;
  std::function<double(std::span<const double> a, std::span<const double> b)> dot;
};

/// Numbers from an integer hash of (seed, index): the same on every machine.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed * kGoldenGamma + 1) {}
  uint64_t Next();
  double Uniform();  ///< in (-1, 1)
  double Draw(const std::string& distribution, DType dtype);

 private:
  uint64_t state_;
};

/// The kernels outside the vocabulary, by name: kahan strassen winograd stochastic_bfloat16 noise
/// dropped_last.
const std::vector<std::string>& OutsiderNames();
std::function<double(std::span<const double>, std::span<const double>)> Outsider(const std::string& name,
                                                                                 DType out, uint64_t seed);

}  // namespace ulpscope::selfcheck
