// The bank: every precision model that a value's path through the program can show, in canonical form.
//
// A choice names, for one value, the rounding of each wide operand, the product, the accumulator, MID and OUT
// of the last operation, and a format (or none) for each cut point, that is each intermediate which a backend
// may or may not round. Roundings that are the identity for their choice are dropped, so that one behaviour
// has one name: bfloat16 products in float32 are exact, a float32 accumulator stored in float32 is not
// rounded again.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "oracles/binding.h"
#include "oracles/plan.h"

namespace ulpscope {

/// The path from the tensors to one value.
struct ValuePath {
  int root = 0;            ///< the node that computes the value
  std::vector<int> nodes;  ///< every node the root depends on, the root included, in plan order
  std::vector<int> reductions;
  /// Operands of contractions, by tensor or intermediate name, with the dtype that holds their values
  /// exactly.
  std::map<std::string, DType> operands;
  std::vector<int> cut_points;  ///< without the root
  bool has_inner = false;       ///< a composite op's elementary steps are on the path
  /// Python scalars on the path, by the op that takes them ("scalar.mul"), with the conversions that change
  /// one of them.
  std::map<std::string, std::set<std::string>> scalars;
  bool has_products = false;
  bool approximate = false;  ///< a function is on the path: libraries err by some units of its format
  int64_t reduction_length = 0;
  int64_t terms = 0;  ///< of all reductions together
};

/// Which steps inside a composite op are cut points: those that some framework stores, or all that have a name.
enum class StepsCut { kMaterialised, kNamed };

ValuePath PathOf(const Plan& plan, int node, StepsCut steps = StepsCut::kMaterialised);
/// Terms of sums and elementwise steps that `elements` elements of the root of `path` rest on, each element of a node once.
int64_t WorkOf(const Plan& plan, const ValuePath& path, int64_t elements);
/// The name of a cut point or operand: the program's, or one made from the op for unnamed gradients.
std::string NameOf(const Plan& plan, int node);

/// One point of the bank, before canonical form.
struct Choice {
  std::map<std::string, std::string> in;  ///< operand -> word
  std::string prod = "exact", acc = "exact", mid = "none", out;
  std::map<int, std::vector<std::string>> cuts;  ///< cut point -> formats applied in order; empty = unrounded
  std::string mode = "_rne";  ///< of the stores that the program does not ask for, OUT apart
};

/// Removes identities from `choice`; the result is equal for two choices that no input can tell apart by
/// construction.
Choice Canonical(const Plan& plan, const ValuePath& path, Choice choice);
PrecisionModel ModelOf(const Plan& plan, const ValuePath& path, const Choice& choice);
Binding BindingOf(const Plan& plan, const ValuePath& path, const Choice& choice);

/// What EnumerateChoices goes through, before it drops what is the same.
int64_t CountChoices(const Plan& plan, const ValuePath& path, DType observed);
/// What NaturalBank goes through.
int64_t CountNaturals(const Plan& plan, const ValuePath& path);
/// All canonical choices for a value stored as `observed`.
std::vector<Choice> EnumerateChoices(const Plan& plan, const ValuePath& path, DType observed);

/// Sums in float32 and nothing else that the program does not ask for, with every way to round the intermediates.
std::vector<Choice> NaturalChoices(const Plan& plan, const ValuePath& path, DType observed);

/// The same, with every way in which Python scalars are converted.
std::vector<Choice> NaturalBank(const Plan& plan, const ValuePath& path, DType observed);

/// Sums in float32, and each intermediate rounded to its dtype but those that are handed on as they are: one choice.
std::vector<Choice> AsWritten(const Plan& plan, const ValuePath& path, DType observed);

/// Sums in float32 and sets of the steps inside the op rounded to its 16-bit format, at most `most` of them: all of the steps and
/// single ones first. `path` has all named steps for cut points.
std::vector<Choice> EnumerateSteps(const Plan& plan, const ValuePath& path, DType observed, size_t most);

/// All choices with subnormals dropped, as operands (`+daz`), as sums (`+ftz`) or as both: for values of
/// products that no plain choice explains. Apart, because on data without subnormals they are copies of the
/// plain ones.
std::vector<Choice> EnumerateFlushing(const Plan& plan, const ValuePath& path, DType observed);

/// What one model for a whole program (as the emulated backend runs it) means for one value: the truth the
/// classifier has to find.
Choice ChoiceOfProgramModel(const Plan& plan, const ValuePath& path, const PrecisionModel& model,
                            DType observed);
/// The binding that the emulated backend runs a whole program with.
Binding BindingOfProgramModel(const Plan& plan, const PrecisionModel& model);

}  // namespace ulpscope
