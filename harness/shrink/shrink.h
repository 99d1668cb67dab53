// Shrinking: the smallest case on which two backends still part as they do on a large one.
//
// The property that is kept is a Target: the kind of the divergence, the value at which it begins, and, if
// sets of models differ, the edge: the behaviour that differs (they read an operand unrounded, round an
// intermediate, accumulate in another format), with words for each side that it still has to leave open.
// Every candidate is run on both backends and judged as `run` would judge it; one that shows the target takes
// the place of the case. So the result rests on no assumption about a change: steps are cut (their results
// become tensors with the elements that the first backend gave), tensors become smaller, values simpler, in a
// fixed order. The same case on the same stacks gives the same result, unless time runs out.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "harness/shrink/shrink_trial.h"

namespace ulpscope {

struct ShrinkTarget {
  DivergenceKind kind = DivergenceKind::kPrecision;
  std::string value;  ///< where it begins; empty for an outcome
  std::string op;     ///< of the step that gives the value; empty where that is a gradient
  std::string basis;  ///< "proved" or "likely"
  std::string edge =
      {};  ///< "in.x", "cuts.h", "mid", "acc", "prod", "out"; "unmodelled"; empty where no facet parts
  /// For an edge: what the first and the second backend may have done. For an outcome and a dtype: what each
  /// of them gave.
  std::set<std::string> first = {}, second = {};
  std::string sentence;
};

/// The divergence that `trial` of `c` shows of this kind (any without one) at this value (any without one);
/// the first in the report's order.
std::optional<ShrinkTarget> FindTarget(const Case& c, const ShrinkTrial& trial,
                                       std::optional<DivergenceKind> kind, const std::string& value);
/// The same divergence once more: of kind, value and, if it is there, edge of `target`.
std::optional<ShrinkTarget> FindTargetAgain(const Case& c, const ShrinkTrial& trial,
                                            const ShrinkTarget& target);
/// Whether `found` is the same divergence as `target`: kind, value, op and edge; and no less sure.
bool IsSameTarget(const ShrinkTarget& target, const ShrinkTarget& found);
/// "acc of y (linear): float32 | bfloat16"
std::string Describe(const ShrinkTarget& target);

struct ShrinkOptions {
  std::optional<DivergenceKind> kind;
  std::string value;
  int64_t seed = 0;  ///< of the inputs
  double minutes = 10;
  std::function<void(const std::string&)> progress = {};
  std::function<void(const std::string&)> refused = {};  ///< what a candidate shows instead
};

struct Shrunk {
  Case test_case;
  ShrinkTarget target;
  ShrinkTrial last;            ///< of `test_case`
  bool stopped_early = false;  ///< out of time, or interrupted
  size_t steps_before = 0, steps_after = 0;
  int64_t elements_before = 0, elements_after = 0;  ///< of its tensors
};

/// Shrinks `c`. Contract and expectations are no part of it: a shrunk case shows where two backends differ.
/// An error if they do not differ so, or if a case cannot be run.
Result<Shrunk> ShrinkCase(const Case& c, Trials* trials, const ShrinkOptions& options);

}  // namespace ulpscope
