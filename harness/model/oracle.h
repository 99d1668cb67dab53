// The seam between the judge and the oracles: exact references, and what each precision model can and would
// produce.
//
// The classifier never looks inside an op. It asks, for one observed value of one case: what is the exact
// value of an element; which hypotheses (precision models bound to this value's path through the program) are
// there; for each, which interval holds every result that it can produce in any accumulation order, and what
// would it produce in a given order.
#pragma once

#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/result.h"
#include "harness/model/case.h"
#include "harness/model/classification.h"
#include "harness/model/reference.h"

namespace ulpscope {

/// A closed interval of binary64 values; `special`: or a NaN, or an infinity, besides. Both ends NaN: nothing but those.
struct Interval {
  double lo = 0;
  double hi = 0;
  bool special = false;

  bool Holds(double value) const {
    return (value >= lo && value <= hi) || (special && !std::isfinite(value));
  }
};

/// One precision model bound to one value of one case.
class Hypothesis {
 public:
  virtual ~Hypothesis() = default;
  virtual const PrecisionModel& model() const = 0;
  /// Holds every stored result the model can give for `element`, in any accumulation order. Proven; may be
  /// wide.
  virtual Interval Enclose(int64_t element) const = 0;
  /// The same before Store: what the last operation can give in any accumulation order.
  virtual Interval EncloseUnstored(int64_t element) const = 0;
  /// Where an element sums at most a few non-zero terms: every result that some summation tree can give,
  /// sorted, each stored. Empty where the trees cannot be listed; Enclose holds then all the same.
  virtual std::vector<double> Possible(int64_t) const { return {}; }
  /// `stored`, which the model can store, lies inside Enclose(element), which is more than a point, and Possible(element)
  /// has nothing to list: known without either. False says nothing.
  virtual bool SurelyHolds(int64_t, double) const { return false; }
  /// Of partial sums: the positions of an element's terms where nothing but one chunk that holds all of them gives
  /// `stored`; else empty.
  virtual std::vector<int64_t> Together(int64_t, double) const { return {}; }
  /// No intermediate is rounded to less than float32: errors spread about the middle of EncloseUnstored. A coarser
  /// rounding on the way goes one way or the other, to either end of it.
  virtual bool smooth() const = 0;
  /// The model's last roundings (accumulator format, MID, OUT) applied to the exact value of the last
  /// operation; monotone.
  virtual double Store(double before) const = 0;
  /// True if no accumulation order can change a bit.
  virtual bool order_free() const = 0;
  /// Frees what Enclose remembered; asking again computes again.
  virtual void Forget() const = 0;
  /// Names of the accumulation orders that Simulate knows, the same for every hypothesis of a value.
  virtual std::span<const std::string> orders() const = 0;
  /// The values before Store in accumulation order `order`, for each element; order -1 accumulates without
  /// rounding.
  virtual std::vector<double> Simulate(int order, std::span<const int64_t> elements) const = 0;
  /// Names of orders that hang on the terms (sorted, signs apart), and of a mean's other forms: none where it is no plain sum, or mean,
  /// in float32. No law is learnt from them.
  virtual std::span<const std::string> further_orders() const { return {}; }
  /// The values before Store in the further order of that index, for each element.
  virtual std::vector<double> SimulateFurther(size_t, std::span<const int64_t>) const { return {}; }

  /// The orders of its own that can give other bits: -1 alone where none does.
  std::vector<int> Orders() const {
    const size_t count = order_free() ? 0 : orders().size();
    if (count == 0) return {-1};
    std::vector<int> all(count);
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  /// What Simulate gives, each stored.
  std::vector<double> Stored(int order, std::span<const int64_t> elements) const {
    std::vector<double> results = Simulate(order, elements);
    for (double& result : results) result = Store(result);
    return results;
  }
  std::vector<double> StoredFurther(size_t further, std::span<const int64_t> elements) const {
    std::vector<double> results = SimulateFurther(further, elements);
    for (double& result : results) result = Store(result);
    return results;
  }
};

/// What the path from the tensors to a value looks like.
struct ValueShape {
  std::string name;  ///< of the value
  Shape shape;
  DType declared = DType::kFloat32;  ///< by PyTorch's type rules
  int64_t reduction_length = 0;      ///< longest sum on the path; 0 without any
  int64_t sums = 0;   ///< most sums of one step on the path: elements that share one err together
  int64_t terms = 0;  ///< terms of all sums on the path: what one simulated element costs
  /// Terms and steps that one element of the value and all of them rest on, each intermediate element once.
  int64_t work_of_one = 0, work_of_all = 0;
  int64_t most_models = 0;              ///< at most so many are listed; 0 where that is few
  std::vector<std::string> operands;    ///< operands whose input rounding is a facet
  std::vector<std::string> cut_points;  ///< named intermediates
  std::vector<std::string> line_cuts;   ///< steps that several elements of the value share: a total, a mean
  std::vector<std::string> sum_cuts;    ///< steps that are sums, too few to tell what they were summed in
  std::vector<std::string> term_cuts;   ///< steps that nothing but such sums read
  std::vector<std::string> tensors;     ///< of the case, of a floating dtype, that the value rests on
  AsExact as_exact;                     ///< of one term, or two, where the store rounds as they do
  bool has_products = false;
  bool is_mean =
      false;  ///< a sum over a count, whose other forms (of scaled terms, running) round each term once more
  bool has_steps =
      false;  ///< elementary steps inside one op are on the path: they have a format of their own
  bool has_functions =
      false;  ///< exponentials and their like are on the path: libraries are off by some units
  /// No floating-point number, and every backend has to give the same: nothing on the way rounds.
  bool settled = false;
};

/// Roundings of a model that the bank does not list.
struct Proposal {
  std::map<std::string, RoundSpec> in = {};
  AccSpec acc = SumsIn(Binary32());
  RoundSpec mid = {}, prod = {};
  RoundSpec out = {};  ///< none: what the value's dtype and rounding to nearest say
};

/// What the names of orders end with whose functions are off as implementations are.
constexpr std::string_view kInexact = ", functions inexact";

/// An explanation holds where every element lies within so many typical errors of an honest kernel.
constexpr double kNearby = 6;

using Deviates = std::function<double(size_t element, double sum)>;

/// How a step inside an op moves its elements.
struct MovingStep {
  std::string name;
  std::vector<double> moves;  ///< of each element: its change, for a change of the step by its own size
};

/// All that have a name, or those that several elements share (a total, a mean, an inverse deviation).
enum class WhichSteps { kAll, kShared };

struct Search {
  std::vector<Proposal> proposals;
  std::vector<Remark> says;  ///< "as if the last 4 of 64 products were missing"
};

/// Everything exact about one case. Thread-compatible: calls on one object must not overlap.
class CaseOracle {
 public:
  virtual ~CaseOracle() = default;
  /// Null (with the reason) when the oracle has no reference for this value.
  virtual Result<ValueShape> Describe(const std::string& value) const = 0;
  virtual std::vector<Reference> References(const std::string& value,
                                            std::span<const int64_t> elements) const = 0;
  /// The same, were `tensor` rounded to `bits` significant bits where the program reads it.
  virtual std::vector<Reference> ReferencesReading(const std::string& value,
                                                   std::span<const int64_t> elements,
                                                   const std::string& tensor, int bits) const {
    static_cast<void>(value);
    static_cast<void>(elements);
    static_cast<void>(tensor);
    static_cast<void>(bits);
    return {};
  }
  virtual OracleCounts Counts() const { return {}; }
  /// The bank for a value that was observed with dtype `observed`.
  virtual std::vector<std::unique_ptr<Hypothesis>> Bank(const std::string& value, DType observed) const = 0;
  /// Explanations beyond the bank, found from the numbers: `deviates(i, sum)` says by how many times the error of an
  /// honest float32 kernel the observed value of elements[i] lies away from what an exact sum before its store gives.
  virtual Search Explain(const std::string& value, std::span<const int64_t> elements,
                         const Deviates& deviates) const {
    static_cast<void>(value);
    static_cast<void>(elements);
    static_cast<void>(deviates);
    return {};
  }
  /// One hypothesis for each of `roundings` and each way to round the intermediates that the bank has.
  virtual std::vector<std::unique_ptr<Hypothesis>> Propose(const std::string& value, DType observed,
                                                           std::span<const Proposal> roundings) const {
    static_cast<void>(value);
    static_cast<void>(observed);
    static_cast<void>(roundings);
    return {};
  }
  /// Sums in float32, and each set of the steps inside the op rounded to its 16-bit format, those included that no framework
  /// is known to store. None is larger than what `most_work` allows, in terms of one element: few sets before many.
  virtual std::vector<std::unique_ptr<Hypothesis>> StepBank(const std::string& value, DType observed,
                                                            int64_t most_work) const {
    static_cast<void>(value);
    static_cast<void>(observed);
    static_cast<void>(most_work);
    return {};
  }
  /// Nothing rounded but one step inside the op, to so many bits: one hypothesis for each step.
  virtual std::vector<std::unique_ptr<Hypothesis>> StepsKept(const std::string& value, DType observed,
                                                             int bits) const {
    static_cast<void>(value);
    static_cast<void>(observed);
    static_cast<void>(bits);
    return {};
  }
  /// A number for each element, the same for those that rest on the same sums; all differ where no sum is shared.
  virtual std::vector<int64_t> LinesOf(const std::string& value, std::span<const int64_t> elements) const {
    static_cast<void>(value);
    return {elements.begin(), elements.end()};
  }
  /// Of steps inside an op, in the order in which they are computed.
  virtual std::vector<MovingStep> MovesOfSteps(const std::string& value, std::span<const int64_t> elements,
                                               WhichSteps which) const {
    static_cast<void>(value);
    static_cast<void>(elements);
    static_cast<void>(which);
    return {};
  }
  /// For each element -1 or 1 where its exact value is zero and IEEE 754 gives that zero one sign in any order of sums; else 0.
  virtual std::vector<int> ZeroSigns(const std::string& value, std::span<const int64_t> elements) const {
    static_cast<void>(value);
    return std::vector<int>(elements.size(), 0);
  }
  /// Models that drop subnormals, for a value that nothing of the bank explains.
  virtual std::vector<std::unique_ptr<Hypothesis>> FlushingBank(const std::string& value,
                                                                DType observed) const {
    static_cast<void>(value);
    static_cast<void>(observed);
    return {};
  }
};

}  // namespace ulpscope
