// Tensors: shape, layout, fill, and their cost.
#include <algorithm>
#include <numeric>

#include "harness/base/text.h"
#include "harness/casefile/decode.h"
#include "harness/casefile/generate.h"
#include "harness/casefile/number.h"

namespace ulpscope {
namespace {

std::vector<int64_t> Integers(const Node& list) {
  std::vector<int64_t> values;
  for (const Node& item : list.children) values.push_back(ParseInteger(item.text).value_or(0));
  return values;
}

std::vector<int64_t> ContiguousStrides(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t axis = shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * shape[axis];
  return strides;
}

/// One past the largest element that the strides reach, capped.
int64_t Span(const Shape& shape, const std::vector<int64_t>& strides) {
  int64_t last = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    last = std::min(last + (shape[axis] - 1) * strides[axis], kMaxCaseElements * 4);
  return last + 1;
}

/// True if no two elements share a place: each dimension steps over all that the smaller ones reach.
bool IsNonOverlapping(const Shape& shape, const std::vector<int64_t>& strides) {
  std::vector<size_t> axes(shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  std::ranges::sort(axes, [&](size_t a, size_t b) { return strides[a] < strides[b]; });
  int64_t reach = 0;
  for (const size_t axis : axes) {
    if (shape[axis] == 1) continue;
    if (strides[axis] <= reach) return false;
    reach += (shape[axis] - 1) * strides[axis];
  }
  return true;
}

std::vector<int64_t> DecodeLayout(const Node& node, const Shape& shape, ErrorSink& errors) {
  const auto rank = static_cast<int64_t>(shape.size());
  if (node.kind == Node::Kind::kScalar) {  // non_contiguous: every second element of the last dimension
    if (rank == 0) {
      errors.Add(node.mark, "a 0-dim tensor has no layout", node.Describe(), "no layout");
      return {};
    }
    auto strides = ContiguousStrides(shape);
    for (int64_t& stride : strides) stride *= 2;
    return strides;
  }
  if (const Node* list = node.Find("strides")) {
    auto strides = Integers(*list);
    if (strides.size() != shape.size()) {
      errors.Add(list->mark, "wrong number of strides", std::to_string(strides.size()),
                 std::to_string(shape.size()) + ", one per dimension");
      return {};
    }
    if (!IsNonOverlapping(shape, strides)) {
      errors.Add(list->mark, "strides overlap: two elements would share memory", "",
                 "strides that keep elements apart");
      return {};
    }
    return strides;
  }
  const Node& list = *node.Find("transpose");
  std::vector<size_t> axes;
  for (const Node& item : list.children) {
    const int64_t dim = ParseInteger(item.text).value_or(0);
    if (dim < -rank || dim >= rank) {
      errors.Add(item.mark, "no such dimension", item.Describe(),
                 "-" + std::to_string(rank) + " to " + std::to_string(rank - 1));
      return {};
    }
    axes.push_back(static_cast<size_t>(dim < 0 ? dim + rank : dim));
  }
  Shape stored = shape;
  std::swap(stored[axes[0]], stored[axes[1]]);
  auto strides = ContiguousStrides(stored);
  std::swap(strides[axes[0]], strides[axes[1]]);
  return strides;
}

/// The fill with its numbers as text, to be rounded once into the dtype.
Attr FillAttr(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return {};
    case Node::Kind::kScalar:
      return {.value = node.text};
    case Node::Kind::kList: {
      Attr::List list;
      list.reserve(node.children.size());
      for (const Node& item : node.children) list.push_back(FillAttr(item));
      return {.value = std::move(list)};
    }
    case Node::Kind::kMap:
      break;
  }
  Attr::Map map;
  for (size_t i = 0; i < node.entry_count(); ++i) map[node.key(i).text] = FillAttr(node.value(i));
  return {.value = std::move(map)};
}

/// Checks each literal element in place, and the nesting. Returns the number of elements.
int64_t CheckValues(const Node& list, const TensorSpec& spec, size_t axis, ErrorSink& errors) {
  int64_t count = 0;
  const bool nested = !list.children.empty() && list.children.front().kind == Node::Kind::kList;
  const bool shaped = axis > 0 || nested;
  if (shaped &&
      (axis >= spec.shape.size() || static_cast<int64_t>(list.children.size()) != spec.shape[axis])) {
    errors.Add(list.mark, "wrong nesting of values",
               std::to_string(list.children.size()) + " entries at depth " + std::to_string(axis + 1),
               "the shape of " + Describe(spec.dtype, spec.shape) + ", or a flat list");
    return -1;
  }
  for (const Node& item : list.children) {
    if ((item.kind == Node::Kind::kList) != nested) {
      errors.Add(item.mark, "wrong nesting of values", item.Describe(), nested ? "a list" : "a number");
      return -1;
    }
    if (nested) {
      const int64_t below = CheckValues(item, spec, axis + 1, errors);
      if (below < 0) return -1;
      count += below;
    } else {
      if (auto fits = CheckElement(item.text, spec.dtype); !fits) errors.Add(item.mark, fits.error());
      ++count;
    }
  }
  if (shaped && !nested && axis + 1 != spec.shape.size()) {
    errors.Add(list.mark, "wrong nesting of values", "depth " + std::to_string(axis + 1),
               "depth " + std::to_string(spec.shape.size()));
    return -1;
  }
  return count;
}

void CheckFillNode(const Node& fill, const TensorSpec& spec, ErrorSink& errors) {
  if (const Node* values = fill.Find("values")) {
    const size_t before = errors.reported();
    const int64_t count = CheckValues(*values, spec, 0, errors);
    if (errors.reported() == before && count != CappedElementCount(spec.shape)) {
      errors.Add(values->mark, "wrong number of values", std::to_string(count),
                 std::to_string(CappedElementCount(spec.shape)) + " for " + Describe(spec.dtype, spec.shape));
    }
    return;
  }
  if (auto fits = CheckFill(spec); !fits) errors.Add(fill.mark, fits.error());
}

}  // namespace

int64_t CappedElementCount(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) {
    count *= extent;
    if (count > kMaxCaseElements) return kMaxCaseElements * 2;
  }
  return count;
}

void Budget::Spend(const Mark& mark, int64_t span, DType dtype, ErrorSink& errors) {
  elements_ = std::min(elements_ + span, kMaxCaseElements * 8);
  bytes_ = std::min(bytes_ + span * static_cast<int64_t>(SizeOf(dtype)), kMaxCaseBytes * 8);
  if (told_ || (elements_ <= kMaxCaseElements && bytes_ <= kMaxCaseBytes)) return;
  told_ = true;
  errors.Add(mark, "case is too large", "more than 2^28 elements or 1 GiB",
             "at most 2^28 elements and 1 GiB per case");
}

TensorSpec DecodeTensor(const Node& name, const Node& node, Budget& budget, ErrorSink& errors) {
  const Node& shape = *node.Find("shape");
  TensorSpec spec{.name = name.text,
                  .dtype = *ParseDType(node.Find("dtype")->text),
                  .shape = Integers(shape),
                  .pos = errors.At(name.mark)};
  const int64_t count = CappedElementCount(spec.shape);
  if (count > kMaxCaseElements) {
    budget.Spend(shape.mark, count, spec.dtype, errors);
    return spec;
  }
  int64_t span = count;
  if (const Node* layout = node.Find("layout")) {
    spec.strides = DecodeLayout(*layout, spec.shape, errors);
    if (!spec.strides.empty()) span = Span(spec.shape, spec.strides);
  }
  budget.Spend(shape.mark, span, spec.dtype, errors);
  if (const Node* flag = node.Find("requires_grad")) {
    spec.requires_grad = flag->text == "true";
    if (spec.requires_grad && !IsFloating(spec.dtype))
      errors.Add(flag->mark, "only floating tensors have gradients",
                 "requires_grad on " + std::string(Name(spec.dtype)), "a floating dtype");
  }
  const Node& fill = *node.Find("fill");
  spec.fill = FillAttr(fill);
  CheckFillNode(fill, spec, errors);
  return spec;
}

}  // namespace ulpscope
