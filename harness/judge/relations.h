// Relations: how two participants of one case differ in one value, kind by kind, and how surely.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "harness/judge/participant.h"
#include "harness/model/case.h"
#include "harness/model/run_report.h"
#include "harness/model/tensor_diff.h"

namespace ulpscope {

enum class Basis { kSame, kLikely, kProved };

/// A difference of two participants in one kind: the value (an index into the program order), and how certain it is.
struct Part {
  size_t value = 0;
  Basis basis = Basis::kSame;
};
using Parts = std::vector<Part>;

/// The participants of one case, and their values in program order.
class Relations {
 public:
  Relations(const Case& test_case, std::span<const Participant> participants, JudgedAs judged,
            const std::set<std::string>& known, const std::set<std::string>& observed);

 protected:
  using ValueRelation = Basis (Relations::*)(size_t, size_t, const std::string&) const;

  void AddName(const std::string& name);
  bool Completed(size_t i) const;
  const ValueResult* FindValue(size_t i, const std::string& name) const;
  const TensorData* FindTensor(size_t i, const std::string& name) const;
  /// The dtype of a value, or the answer for an observed dtype; "none" for neither.
  std::string DtypeOf(size_t i, const std::string& name) const;
  bool ShapesDiffer(size_t i, size_t j, const std::string& name) const;
  /// The dtype, with the shape if the shapes differ.
  std::string TypeOf(size_t i, size_t j, const std::string& name) const;
  /// Null unless both have the value in one dtype and shape. Cached: every kind needs it, and tensors may be large.
  const TensorDifference* Difference(size_t i, size_t j, const std::string& name) const;
  bool Nondeterministic(size_t i, const std::string& name) const;
  Parts OutcomeParts(size_t i, size_t j) const;
  Parts AtEachValue(size_t i, size_t j, ValueRelation relation) const;
  /// "none" for an observed dtype that the backend does not have (JAX: gradients'); a missing value is a difference.
  bool HasNoSuchThing(size_t i, const std::string& name) const;
  Basis PartInDtype(size_t i, size_t j, const std::string& name) const;
  Basis PartInPrecision(size_t i, size_t j, const std::string& name) const;
  void NoteOperands(const std::vector<Step>& steps);
  /// True if both have the value in one dtype and shape, and other bits of it.
  bool Differs(size_t i, size_t j, const std::string& name) const;
  /// True if the step's operands already differed.
  bool Inherited(size_t i, size_t j, const std::string& name) const;
  /// True if the only difference is that one has zeros where the other has subnormal numbers.
  bool Flushes(size_t i, size_t j, const std::string& name) const;
  /// True if the op only sums, without other steps that vary between libraries.
  static bool SumsAlone(const Classification& classification);
  /// `proved`: for each side's bits, an order of a model that both share is known. `likely`: one model explains both.
  Basis PartInOrder(size_t i, size_t j, const std::string& name) const;
  Basis PartInBits(size_t i, size_t j, const std::string& name) const;
  bool IsWithin(size_t i, size_t j, const std::string& name, double bound) const;
  /// The largest distance of two orders, relative to the value's scale: the narrower of the two bounds, on either side.
  double OrderBound(size_t i, size_t j, const std::string& name) const;
  /// Relative to the value's scale: two results of a function that each library may have wrong by 4 units of float32
  /// (OpenCL allows exp and log 3, and tan 5), or of one rounding to 16 bits or less, which hides that.
  double LastBitsBound(size_t i, const std::string& name) const;
  static bool BothHold(const Classification& a, const Classification& b);
  /// True if the class is that of one step, and it is unknown whether both computed it from the same operands.
  bool MayBeInherited(const Classification& classification) const;
  /// True if the numbers differ, both were computed from the same operands, and one model explains both results.
  bool SharesOneModel(size_t i, size_t j, const std::string& name) const;
  bool IsUnexplained(size_t i, const std::string& name) const;
  /// The first participant that nothing explains and that has the bits of `i` in the value and in its operands.
  size_t FirstUnexplainedLike(size_t i, const std::string& name) const;
  Basis PartUnexplained(size_t i, size_t j, const std::string& name) const;
  /// Every difference of numbers that no other kind reports.
  Basis PartInValue(size_t i, size_t j, const std::string& name) const;
  /// An observed value whose only known cause of the difference is its operands.
  Basis PartInCarried(size_t i, size_t j, const std::string& name) const;
  /// True if one of its operands already was infinite or NaN on one side alone.
  bool InheritedInKind(size_t i, size_t j, const std::string& name) const;
  /// Different operands do not explain why one side leaves the range and the other stays in it.
  Basis PartInSpecial(size_t i, size_t j, const std::string& name) const;
  /// True if the step may give an infinity from small finite numbers: it divides, takes a logarithm, or is given one.
  static bool MakesInfinities(const Step& step);
  /// True if finite numbers can become infinite before `name` by growing alone.
  bool GrowsAlone(const std::string& name) const;
  Parts CastParts(size_t i, size_t j) const;

  const Case& case_;
  const std::set<std::string>& observed_;  ///< the values that the case requests
  std::map<std::string, std::vector<std::string>>
      operands_;                 ///< for each member: compared by its steps with other such members
  std::set<std::string> views_;  ///< those that rearrange another one's result
  std::vector<Participant> members_;
  std::vector<bool> known_;         ///< for each member: its steps are compared with those of other such
                                    ///< members
  std::vector<std::string> names_;  ///< values in program order, then observed dtypes
  mutable std::map<std::tuple<size_t, size_t, std::string>, TensorDifference> differences_;
};

}  // namespace ulpscope
