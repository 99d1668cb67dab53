// DotBank: every precision model of one matrix product, and what probes prove about it.
//
// For each probe group each model predicts the outputs of every summation structure (oracles/dot/trees.h).
// Evidence is hard: a model falls when no structure gives what was observed. Members of a group that ran at
// one output coordinate in separate launches share their structure, so their outputs have to be those of one
// structure together, in whatever order the positions were visited: they are compared as sorted multisets.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/model/classification.h"
#include "harness/model/oracle.h"
#include "harness/model/probe.h"
#include "harness/num/dtype.h"
#include "oracles/dot/sum.h"

namespace ulpscope {

/// A model of one dot product: that of a program, and its roundings for operands of one dtype.
struct DotModel {
  PrecisionModel name;
  RoundSpec in, prod, mid, out;
  AccSpec acc;

  /// MID and OUT.
  double Store(double sum) const { return out.Apply(mid.Apply(sum)); }
  double Store(TwoDoubles sum) const;
};

/// `model`, whose single `in` entry (or "*") applies to both operands, for operands of `in`.
DotModel DotModelOf(const PrecisionModel& model, DType in);

/// One dot product of a[k] b[k] as `model` computes it in `order`. `k` terms; zeros included.
double EmulateDot(const DotModel& model, const SumOrder& order, std::span<const double> a,
                  std::span<const double> b);

enum class SameCoordinate { kYes, kNo };

/// Outputs of a group's members, in their order.
struct GroupOutputs {
  const ProbeGroup* group = nullptr;
  std::vector<double> outputs;
  SameCoordinate same_coordinate = SameCoordinate::kYes;
};

/// The probe that excluded a model.
struct ProbeWitness {
  std::string family, group;
  std::vector<double> observed;
  std::vector<double> predicted;  ///< of one structure, the nearest that there is
};

/// A group of products that one unit adds at once, as masks and permutations inside it show.
struct BlockDecode {
  enum class Kind { kNotFused, kFused, kUnclear };
  Kind kind = Kind::kUnclear;
  int n = 0;                 ///< products that join; 2 for any binary tree
  bool n_is_least = false;   ///< the window ended before the group did
  bool may_be_tail = false;  ///< the group holds the last product: n, or what a larger unit leaves over
  int fraction = 0;          ///< F; 0 when not read
  std::optional<Rounding> mode;
  std::vector<int64_t> group;  ///< positions of one fused group
  int64_t dots = 0;            ///< dot products that were read
};

/// Runs one launch of probes: the outputs of `dots`, each at its own row; row r of every launch is the same
/// output coordinate.
using RunDots = std::function<std::vector<double>(std::span<const ProbeDot> dots)>;

/// Structure first: the fused group by masks, then F and the rounding by permutations inside it. Two launches
/// or more.
BlockDecode DecodeBlocks(DType in, int64_t k, const RunDots& run);

class DotBank {
 public:
  /// The bank for operands of `in` stored as `out`; made once. Thread-safe.
  static const DotBank& For(DType in, DType out);

  const std::vector<DotModel>& models() const { return models_; }

  /// Marks the models that `outputs` disproves; alive[i] stays false once it is. Returns the number of groups
  /// used.
  int64_t Exclude(std::span<const GroupOutputs> outputs, std::vector<char>* alive,
                  std::vector<std::optional<ProbeWitness>>* witnesses) const;
  /// The same for a decode.
  void Exclude(const BlockDecode& decode, int64_t k, std::vector<char>* alive) const;
  /// Random data: representability and the bound that holds in any order. a: m x k, b: k x n, y: m x n,
  /// row-major.
  void Exclude(std::span<const double> a, std::span<const double> b, std::span<const double> y, int64_t m,
               int64_t k, int64_t n, std::vector<char>* alive) const;

  DotBank(DType in, DType out);

 private:
  /// Excludes by sums so short that every structure can be listed.
  void ExcludeShort(std::span<const double> a, std::span<const double> b, std::span<const double> y,
                    int64_t m, int64_t k, int64_t n, std::vector<char>* alive) const;
  /// Outputs of each structure before MID and OUT, by member; or bounds, if structures cannot be listed.
  struct Prediction {
    std::vector<std::vector<double>> structures;
    std::vector<char> one_chunk;  ///< of split-K, by structure
    std::vector<Interval> bounds;
  };
  /// Models that differ in MID and OUT alone share predictions.
  struct Core {
    RoundSpec in, prod;
    AccSpec acc;
  };

  /// Split-K has to show both: a pair of positions that may lie apart, and one that may lie in one chunk.
  struct Chunks {
    int asked = 0;
    bool apart = false, together = false;
  };
  Prediction Predict(const Core& core, const ProbeGroup& group) const;
  bool Matches(const DotModel& model, const Prediction& prediction, const GroupOutputs& outputs,
               std::vector<double>* nearest, Chunks* chunks) const;

  std::vector<DotModel> models_;
  std::vector<Core> cores_;
  std::vector<size_t> core_of_;
  mutable std::map<std::string, std::vector<std::shared_ptr<const Prediction>>>
      predictions_;  // group's values -> by core
};

}  // namespace ulpscope
