// The op table, from ops.def.
#include "harness/words/ops.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "harness/base/find.h"

namespace ulpscope {
namespace {

OpAttribute Required(std::string_view key, AttrKind kind, std::string_view about) {
  return {.key = key, .kind = kind, .required = true, .about = about};
}

OpAttribute Optional(std::string_view key, AttrKind kind, std::string_view about) {
  return {.key = key, .kind = kind, .about = about};
}

OpAttribute Choice(std::string_view key, std::string_view what, std::vector<std::string_view> words,
                   std::string_view about) {
  return {.key = key, .kind = AttrKind::kWord, .about = about, .what = what, .words = std::move(words)};
}

std::vector<OpRow> MakeOpRows() {
  using enum AttrKind;
  using enum OpRow::Kind;
  using enum OpRow::Out;
  // Shorthands for what several ops take.
  const OpAttribute kShape = Required("shape", kExtents, "extents");
  const OpAttribute kNewShape = Required("shape", kNewExtents, "extents; -1 is worked out");
  const OpAttribute kDType = Required("dtype", kDTypeName, "dtype of the result");
  const OpAttribute kComputeDType = Optional("dtype", kDTypeName, "dtype to compute and give the result in");
  const OpAttribute kOutDType = Optional("out_dtype", kDTypeName, "PyTorch's out_dtype=");
  const OpAttribute kPreferred = Optional("preferred_element_type", kDTypeName, "JAX's dtype of the product");
  const OpAttribute kAlpha = Optional("alpha", kNumber, "factor");
  const OpAttribute kBeta = Optional("beta", kNumber, "factor of the addend");
  const OpAttribute kMaybeDim = Optional("dim", kInteger, "dimension (0)");
  const OpAttribute kLastDim = Optional("dim", kInteger, "dimension (-1)");
  const OpAttribute kDiagonal = Optional("diagonal", kInteger, "which one is the edge (0)");
  const OpAttribute kCorrection = Optional("correction", kInteger, "how many fewer are counted (1)");
  const OpAttribute kKernel = Required("kernel_size", kDims, "extents of the window");
  const OpAttribute kOutputSize = Required("output_size", kDims, "extents of the result");
  const OpAttribute kStride = Optional("stride", kDims, "distance of windows");
  const OpAttribute kPadding = Optional("padding", kDims, "elements put around");
  const OpAttribute kDilation = Optional("dilation", kDims, "distance inside a window");
  const OpAttribute kGroups = Optional("groups", kInteger, "of channels (1)");
  const OpAttribute kReduction =
      Choice("reduction", "a reduction", {"mean", "sum", "none"}, "mean (the default), sum or none");
  const OpAttribute kIgnored = Optional(
      "ignore_index", kInteger, "target that does not count (PyTorch's -100 has no reference without)");
  const OpAttribute kFactor = Optional("value", kNumber, "factor (1)");
  const OpAttribute kResult = Optional(kResultKey, kInteger, "which of its results, from 0 (0)");
  const OpAttribute kDim = Required("dim", kInteger, "dimension");
  const OpAttribute kMaybeDims = Optional("dim", kDims, "dimensions; all without");
  const OpAttribute kKeepdim = Optional("keepdim", kBoolean, "keep reduced dimensions as 1");
  const OpAttribute kNormalized = Required("normalized_shape", kExtents, "the trailing extents");
  return {
#define ULPSCOPE_OP(word, lowering, ...) {word, __VA_ARGS__},
#include "harness/words/ops.def"
#undef ULPSCOPE_OP
  };
}

constexpr std::pair<std::string_view, std::string_view> kOwnInputs[] = {
#define ULPSCOPE_OP(...)
#define ULPSCOPE_OWN_INPUT(word, input) {word, input},
#include "harness/words/ops.def"
#undef ULPSCOPE_OWN_INPUT
#undef ULPSCOPE_OP
};

}  // namespace

std::span<const OpRow> Ops() {
  static const std::vector<OpRow> rows = MakeOpRows();
  return rows;
}

bool IsElementwise(std::string_view op) {
  static const std::set<std::string_view> ops = [] {
    std::set<std::string_view> made;
    bool is_inside = false;
#define ULPSCOPE_ELEMENTWISE(inside) is_inside = inside;
#define ULPSCOPE_OP(word, ...) \
  if (is_inside) made.insert(word);
#include "harness/words/ops.def"
#undef ULPSCOPE_OP
    return made;
  }();
  return ops.contains(op);
}

bool OpRow::GivesSeveral() const {
  return std::ranges::any_of(attributes,
                             [](const OpAttribute& attribute) { return attribute.key == kResultKey; });
}

const OpRow* FindOp(std::string_view name) {
  static const std::map<std::string_view, const OpRow*> index = [] {
    std::map<std::string_view, const OpRow*> made;
    for (const OpRow& row : Ops()) made.emplace(row.name, &row);
    return made;
  }();
  return LookupOr(index, name);
}

std::string_view OwnInput(std::string_view op) {
  for (const auto& [word, input] : kOwnInputs) {
    if (word == op) return input;
  }
  return {};
}

bool IsScope(std::string_view op) {
  const OpRow* row = FindOp(op);
  return row != nullptr && row->kind == OpRow::Kind::kScope;
}

}  // namespace ulpscope
