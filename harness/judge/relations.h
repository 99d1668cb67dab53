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
  /// The dtype of a value, or what was answered for an observed dtype; "none" for neither.
  std::string DtypeOf(size_t i, const std::string& name) const;
  bool ShapesDiffer(size_t i, size_t j, const std::string& name) const;
  /// The dtype, with the shape where that is what parts the two.
  std::string TypeOf(size_t i, size_t j, const std::string& name) const;
  /// Null unless both have the value in one dtype and shape. Cached, because every kind needs it and tensors may be
  /// large.
  const TensorDifference* Difference(size_t i, size_t j, const std::string& name) const;
  bool Nondeterministic(size_t i, const std::string& name) const;
  Parts OutcomeParts(size_t i, size_t j) const;
  Parts AtEachValue(size_t i, size_t j, ValueRelation relation) const;
  /// A backend that answers "none" to an observed dtype has no such thing (JAX has no metadata of gradients);
  /// a value that one backend gives and another does not is a difference.
  bool HasNoSuchThing(size_t i, const std::string& name) const;
  Basis PartInDtype(size_t i, size_t j, const std::string& name) const;
  Basis PartInPrecision(size_t i, size_t j, const std::string& name) const;
  void NoteOperands(const std::vector<Step>& steps);
  /// The step already had other numbers to compute with.
  bool Inherited(size_t i, size_t j, const std::string& name) const;
  /// Nothing but that one has zeros where the other has numbers below those that keep all their bits.
  bool Flushes(size_t i, size_t j, const std::string& name) const;
  /// The op sums and does nothing else that libraries do in their own ways.
  static bool SumsAlone(const Classification& classification);
  /// `proved`: an order of a model that both share is known for the bits of each. `likely`: one model holds both.
  Basis PartInOrder(size_t i, size_t j, const std::string& name) const;
  Basis PartInBits(size_t i, size_t j, const std::string& name) const;
  bool IsWithin(size_t i, size_t j, const std::string& name, double bound) const;
  /// As a share of the value's scale: what two orders of the narrower of the two bounds may be apart, each on its side of the exact
  /// value.
  double OrderBound(size_t i, size_t j, const std::string& name) const;
  /// As a share of the value's scale: two results of a function that each library may have wrong by 4 units of float32 (the OpenCL
  /// specification allows exp and log 3, and tan 5), or of one rounding to 16 bits or less, which hides that.
  double LastBitsBound(size_t i, const std::string& name) const;
  static bool BothHold(const Classification& a, const Classification& b);
  /// The class is that of one step alone, and whether both had the same to compute it from is not known here.
  bool MayBeInherited(const Classification& classification) const;
  /// The numbers differ, both were computed from the same, and one model holds what each of the two gave.
  bool SharesOneModel(size_t i, size_t j, const std::string& name) const;
  bool IsUnexplained(size_t i, const std::string& name) const;
  /// The first of those that nothing explains and that have the bits of `i` in the value and in what it was computed from.
  size_t FirstUnexplainedLike(size_t i, const std::string& name) const;
  Basis PartUnexplained(size_t i, size_t j, const std::string& name) const;
  /// Every difference of numbers that no other kind reports.
  Basis PartInValue(size_t i, size_t j, const std::string& name) const;
  /// An observed value of which nothing but other operands is known to make the difference.
  Basis PartInCarried(size_t i, size_t j, const std::string& name) const;
  /// Whether one of its operands already was infinite or NaN on one side alone.
  bool InheritedInKind(size_t i, size_t j, const std::string& name) const;
  /// Different operands do not explain why one side leaves the range and the other stays in it.
  Basis PartInSpecial(size_t i, size_t j, const std::string& name) const;
  /// The step may give an infinity of finite numbers that are not large: it divides, or takes a logarithm, or is given one.
  static bool MakesInfinities(const Step& step);
  /// True if finite numbers can become infinite before `name` by growing alone.
  bool GrowsAlone(const std::string& name) const;
  Parts CastParts(size_t i, size_t j) const;

  const Case& case_;
  const std::set<std::string>& observed_;  ///< the values that the case requests
  std::map<std::string, std::vector<std::string>>
      operands_;                 ///< of single steps, by the value that each gives
  std::set<std::string> views_;  ///< of those the ones that arrange what another one gives
  std::vector<Participant> members_;
  std::vector<bool> known_;         ///< of each member: compared by its steps with others that are
  std::vector<std::string> names_;  ///< values in program order, then observed dtypes
  mutable std::map<std::tuple<size_t, size_t, std::string>, TensorDifference> differences_;
};

}  // namespace ulpscope
