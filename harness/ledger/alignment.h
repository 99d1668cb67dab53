// Alignment: the values of two programs, matched by what they are exactly.
//
// Two programs are one function where their exact results are equal: what they round, and in which order they
// sum, plays no part. Inside of them, a value of the one that equals a value of the other exactly is the same
// quantity, whatever it is called. If the results are not equal, the programs differ in the first step whose
// operands are all known to the other program and whose own value is not, on a path to the result on which no
// later value is known either. A value that is lost and found again on the path (a maximum that is
// subtracted) is a detour.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/model/reference.h"
#include "harness/model/tensor.h"

namespace ulpscope {

/// A tensor of a case, or a step's result, in exact arithmetic.
struct ProgramValue {
  std::string name;
  std::string op = {};                     ///< empty: a tensor of the case
  std::vector<std::string> operands = {};  ///< names, scalars not among them
  bool is_view = false;                    ///< arranges its first operand
  bool is_inside = false;                  ///< of an op: no step of the program gives it
  DType dtype = DType::kFloat32;           ///< of the stored value
  Shape shape = {};
  std::vector<int64_t> elements = {};  ///< row-major, ascending
  std::vector<Reference> references = {};
  /// How far each may move if the program's numbers are rounded to binary64 differently; empty if no number matters.
  std::vector<double> slack = {};
  std::string gap = {};  ///< why it has no exact value; empty if it has one
};

/// Tensors first, then the steps in program order, then values inside ops.
using ExactProgram = std::vector<ProgramValue>;

enum class Agreement { kEqual, kDiffers, kUndecided };
/// Compares two exact values that are known to within their errors and an additional `slack`.
Agreement Compare(const Reference& a, const Reference& b, double slack);
/// The first place of `a.elements` that differs; nothing if all are equal. Both have the same elements.
std::optional<size_t> FirstDifferent(const ProgramValue& a, const ProgramValue& b);
/// Whether the two have the same elements, all known to be equal.
bool AreEqual(const ProgramValue& a, const ProgramValue& b);

/// Two observed results that correspond to each other, by name.
struct ResultPair {
  std::string f, g;
};

/// For each value of `of` the first of `in` that equals it, or -1: one of the same name and dtype before one of the
/// same dtype, and that before any; values inside an op last. Results are matched with their counterparts.
std::vector<int> Align(const ExactProgram& of, const ExactProgram& in, const std::vector<ResultPair>& of_in);

/// The first step in which two programs differ.
struct ExactParting {
  std::string step;  ///< of g
  std::string of_f;  ///< the counterpart in f; empty: none
  /// The first step of f on a path to the result whose operands g has too, and whose value g does not have.
  std::string only_f;
  /// Names of the values whose exact elements are shown: `step` and `of_f`, or else the first later values
  /// that both programs have.
  std::string at_g, at_f;
  int64_t element = 0;
  Reference f, g;
};
/// Nothing if every pair of results is equal. Each result has exact values.
std::optional<ExactParting> FindParting(const ExactProgram& f, const ExactProgram& g,
                                        const std::vector<ResultPair>& results);

}  // namespace ulpscope
