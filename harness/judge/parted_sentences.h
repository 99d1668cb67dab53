// PartedSentences: two groups of backends that differ in a value, as a divergence with its sentence.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "harness/judge/relations.h"
#include "harness/judge/sentence.h"
#include "harness/judge/side.h"
#include "harness/model/run_report.h"
#include "harness/model/trace.h"

namespace ulpscope {

class PartedSentences : public Relations {
 public:
  using Relations::Relations;

 protected:
  /// Two groups of backends that differ in one value, or in several for one cause.
  struct Parted {
    std::set<size_t> left, right, values;
    size_t speakers[2] = {0, 0};  ///< of the first value
    bool all_proved = true;       ///< in the first value, which the sentence is about
  };

  /// A divergence without its sentence.
  Divergence Named(DivergenceKind kind, const Parted& parted) const;
  DifferenceSize SizeOf(const Parted& parted, const std::string& value) const;
  /// The widest of all pairs: each lies within its own.
  double BoundOf(DivergenceKind kind, const Parted& parted, const std::string& value) const;
  /// The backends of each side that have the casts of its representative in the stage. Others have no such stage.
  Parted WithTheSameCasts(Parted parted) const;
  Divergence Said(DivergenceKind kind, const Parted& all) const;
  Sentence PrecisionSentenceOf(const Divergence& divergence, const Parted& parted) const;
  Side MakeSide(const std::set<size_t>& members, size_t speaker) const;
  static void Take(const Sentence& sentence, Divergence* divergence);
  /// Every kind but precision. Sets the sentence, its summary and `has_cause`.
  void Tell(const Side& a, const Side& b, const Parted& parted, Divergence* divergence) const;
  /// An operand of the step that gives `value`, which in each pair differs wherever the value does; empty without one.
  std::string ComesFrom(const Parted& parted, const std::string& value) const;
  /// The operands of the step that gives `value` in which any pair differs.
  std::vector<std::string> DifferingOperandsOf(const Parted& parted, const std::string& value) const;
  /// The number of elements of `name` in which two differ although every operand agrees there. Elementwise steps only.
  int64_t DifferFromEqual(size_t i, size_t j, const std::string& name) const;
  int64_t MostFromEqual(const Parted& parted, const std::string& value) const;
  /// The differences of all pairs that differ; that of the representatives comes first.
  std::vector<const TensorDifference*> DifferencesOf(const Parted& parted, const std::string& value) const;
  /// A remark for the sentence of a backend's precision divergence: its graph rounds and its numbers do not.
  std::string Although(const Side& a, const Side& b, const std::string& value) const;
  static std::span<const TraceNode> TraceOf(const Participant& member);
};

}  // namespace ulpscope
