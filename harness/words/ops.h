// The vocabulary of steps: what every op is called, takes and gives. The rows stand in ops.def.
//
// This is the one list. The case language checks programs by it, adapters refuse attributes by it, the
// oracle's table is made of the same rows, `ulpscope doctor` runs its examples, Python reads it as
// words.json, and backends/PROTOCOL.md prints it.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace ulpscope {

/// The type of an attribute's value.
enum class AttrKind {
  kDTypeName,
  kInteger,
  kNumber,
  kBoolean,
  kExtents,     ///< a shape, every extent positive
  kNewExtents,  ///< a shape in which -1 is worked out
  kIntegers,
  kDims,       ///< a dimension or a list of them
  kEquation,   ///< letters, commas and an arrow
  kWord,       ///< one of OpAttribute::words
  kValueName,  ///< the name of a tensor or of an earlier value
  kSetDataTo,  ///< {cast: DTYPE} or {value: NAME}
};

/// The attribute with which a step selects which of an op's results it names. `as: [a, b]` in a case is two
/// steps, of which the second has result: 1; adapters call an op once for neighbours that differ in nothing
/// else.
inline constexpr std::string_view kResultKey = "result";

struct OpAttribute {
  std::string_view key;
  AttrKind kind = AttrKind::kNumber;
  bool required = false;
  std::string_view about = {};
  std::string_view what = {};                ///< kWord: "a form of gelu", for messages
  std::vector<std::string_view> words = {};  ///< kWord
};

struct OpRow {
  enum class Kind {
    kValue,    ///< computes a new value
    kView,     ///< gives the elements of its operand, arranged otherwise
    kProduct,  ///< computes a matrix product
    kEffect,   ///< acts on what exists: takes no `as`
    kScope,    ///< holds `steps`
  };
  enum class Out { kNoOut, kOut };
  struct Operands {
    size_t fewest = 0, most = 0;
  };
  std::string_view name;
  Operands operands;
  Kind kind = Kind::kValue;
  Out out = Out::kNoOut;
  std::string_view example, about;  ///< see ops.def
  std::vector<OpAttribute> attributes;

  /// Needs `as`, or `out` where the op takes one.
  bool GivesValue() const { return kind != Kind::kEffect && kind != Kind::kScope; }
  /// Has several results, of which a step names one by its attribute `result`; a case names them all by `as: [a, b]`.
  bool GivesSeveral() const;
};

std::span<const OpRow> Ops();

/// Null for aten:: ops, which have a schema of their own, and for unknown words.
const OpRow* FindOp(std::string_view name);

/// The further input on which the rounding of this op's steps shows (ops.def); empty where there is none.
std::string_view OwnInput(std::string_view op);

/// The number that a layer, batch, group or instance norm adds to the variance by default: torch's default.
inline constexpr double kNormEps = 1e-5;

/// Each element of the result is made of those elements of the operands that stand in its place, and of nothing else.
bool IsElementwise(std::string_view op);

/// True for the words that hold steps: autocast, no_grad, enable_grad.
bool IsScope(std::string_view op);

}  // namespace ulpscope
