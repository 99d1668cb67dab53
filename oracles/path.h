// ValuePath: all that one value of a plan rests on, and the intermediates that a backend may round.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/words/facets.h"
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
  std::map<std::string, std::vector<RoundSpec>> scalars;
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

/// A step inside a composite op. The op's result is none: it has the program's name for it, or none at all
/// when it is the root.
bool IsStep(const PlanNode& node);
/// The format that holds every value of `id` exactly, whatever the model: widening a narrow value keeps it
/// narrow.
const FloatFormat* HeldIn(const Plan& plan, int id);

}  // namespace ulpscope
