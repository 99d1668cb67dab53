// ProbeSession: dot products, run by a backend in a product of its own program form, in launches.
//
// A library's kernel depends on the shape, so probes are embedded in an ordinary product: row i of a and
// column i of b hold dot product i, and the result is read on the diagonal. Row r of every launch is the same
// output coordinate. Several launches are steps of one program, so that a compiler runs once for many.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/model/probe.h"
#include "harness/run/case_runner.h"
#include "harness/run/interrupt.h"
#include "harness/run/scratch.h"

namespace ulpscope {

struct ProbeQuestion {
  BackendSpec backend;
  DType dtype = DType::kFloat32;
  DType out = DType::kFloat32;
  int64_t k = 64;
  std::string form =
      "matmul";  ///< matmul [R, K] @ [K, R]; bmm [R/16, 16, K] @ [R/16, K, 16]; dot [R, 1, K] @ [R, K, 1]
  double timeout_s = 120;
};

/// The forms, in the order of their listing.
const std::vector<std::string>& ProbeForms();

class ProbeSession {
 public:
  static Result<std::unique_ptr<ProbeSession>> Open(const ProbeQuestion& question, const Registry& registry);

  /// Dot products that share a launch.
  int64_t rows() const { return rows_; }

  /// The result of each dot product: dot i runs in launch i / rows() at coordinate i % rows(). NaN once the
  /// session has failed.
  std::vector<double> Run(std::span<const ProbeDot> dots);
  /// Each dot product in a launch of its own that holds it at every coordinate; its results at all
  /// coordinates(), row-major.
  std::vector<std::vector<double>> RunEverywhere(std::span<const ProbeDot> dots);
  int64_t coordinates() const { return ElementCount(ShapeOut()); }
  /// The same dot products, followed by an addition of their addends in the out dtype, in one program.
  std::vector<double> RunWithAddend(std::span<const ProbeDot> dots);
  /// One product of normal deviates.
  struct Random {
    std::vector<double> a, b, y;  ///< m x k, k x n, m x n, row-major
    int64_t m = 0, n = 0;
  };
  Random RunRandom();

  /// The outcome that ended the session, if one did: every later result is NaN.
  const std::optional<Outcome>& failure() const { return failure_; }
  bool interrupted() const { return interrupted_; }
  /// Differences between repeated launches, in ulps; 0 where all were the same.
  double spread() const { return spread_; }
  bool nondeterministic() const { return nondeterministic_; }

  int64_t dots() const { return dots_; }
  int64_t launches() const { return launches_; }
  std::string program() const;
  const std::map<std::string, std::string>& knobs() const { return knobs_; }
  std::map<std::string, std::string> versions() const;

 private:
  /// The way to request the out dtype.
  enum class Asking { kPlain, kOutDtype, kPreferred, kBuffer };
  struct Launch {
    TensorData a, b;
    std::optional<TensorData> addend;
  };

  ProbeSession(ProbeQuestion question, const Registry& registry);
  Shape ShapeA() const;
  Shape ShapeB() const;
  Shape ShapeOut() const;
  Case MakeCase(std::span<const Launch> launches, Asking asking) const;
  Launch Empty() const;
  void Place(const ProbeDot& dot, int64_t row, Launch* launch) const;
  int64_t DiagonalOf(int64_t row) const;
  /// One tensor for each launch; nothing once the session has failed.
  std::vector<TensorData> Execute(std::span<const Launch> launches);
  std::vector<TensorData> ExecuteSome(std::span<const Launch> launches);
  std::optional<Observation> Try(std::span<const Launch> launches, Asking asking);

  ProbeQuestion question_;
  RunOptions options_;
  WorkerKey key_;
  Interrupt interrupt_;
  std::unique_ptr<Scratch> scratch_;
  std::unique_ptr<CaseRunner> runner_;
  int64_t rows_ = 0;
  std::vector<Asking> askings_;  ///< those that are still to be tried; the first is in use
  std::optional<Outcome> failure_;
  std::string refusals_;
  bool answered_ = false, interrupted_ = false, nondeterministic_ = false;
  double spread_ = 0;
  int64_t dots_ = 0, launches_ = 0, cases_ = 0;
  std::map<std::string, std::string> knobs_;
};

}  // namespace ulpscope
