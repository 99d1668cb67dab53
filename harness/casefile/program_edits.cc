// Changes of cases.
#include "harness/casefile/program_edits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/casefile/number.h"
#include "harness/words/ops.h"

namespace ulpscope {
namespace {

void Walk(const std::vector<Step>& steps, const std::function<void(const Step&)>& each) {
  for (const Step& step : steps) {
    if (IsScope(step.op)) {
      Walk(step.steps, each);
    } else {
      each(step);
    }
  }
}

/// `pick` decides for each step, in program order, whether it stays; scopes that hold nothing go.
std::vector<Step> Filtered(const std::vector<Step>& steps, const std::function<bool()>& pick) {
  std::vector<Step> left;
  for (const Step& step : steps) {
    if (!IsScope(step.op)) {
      if (pick()) left.push_back(step);
      continue;
    }
    Step scope = step;
    scope.steps = Filtered(step.steps, pick);
    if (!scope.steps.empty()) left.push_back(std::move(scope));
  }
  return left;
}

/// Names that one step reads, in operands, buffers and attributes.
std::set<std::string> ReadBy(const Step& step) { return NamesOf({step}).read; }

std::string BaseName(const std::string& name) { return name.substr(0, name.find('.')); }

/// Values that a gradient flows to: computed from a tensor that requires one, outside of no_grad.
std::set<std::string> Differentiable(const Case& c) {
  std::set<std::string> found;
  for (const TensorSpec& spec : c.tensors) {
    if (spec.requires_grad) found.insert(spec.name);
  }
  std::function<void(const std::vector<Step>&, bool)> walk = [&](const std::vector<Step>& steps, bool grad) {
    for (const Step& step : steps) {
      if (IsScope(step.op)) {
        walk(step.steps, step.op == "no_grad" ? false : step.op == "enable_grad" || grad);
        continue;
      }
      const auto read = ReadBy(step);
      const bool any =
          std::ranges::any_of(read, [&](const std::string& name) { return found.contains(name); });
      if (grad && any && step.op != "detach" && !step.as.empty()) found.insert(step.as);
    }
  };
  walk(c.program, true);
  return found;
}

bool HasBackward(const Case& c) {
  const auto steps = FlatSteps(c.program);
  return std::ranges::any_of(steps, [](const Step* step) { return step->op == "backward"; });
}

/// `text` of C's %g as the case language writes numbers: 1e+05 is 1e5.
std::string PlainExponent(std::string text) {
  const size_t e = text.find('e');
  if (e == text.npos) return text;
  size_t digit = e + 1;
  const bool negative = text[digit] == '-';
  if (text[digit] == '-' || text[digit] == '+') ++digit;
  while (digit + 1 < text.size() && text[digit] == '0') ++digit;
  return text.substr(0, e + 1) + (negative ? "-" : "") + text.substr(digit);
}

uint64_t BitsOf(const TensorData& elements, int64_t index) {
  uint64_t bits = 0;
  const size_t width = SizeOf(elements.dtype);
  std::memcpy(&bits, elements.bytes.data() + static_cast<size_t>(index) * width, width);
  return bits;
}

std::string TextOfElement(const TensorData& elements, int64_t index) {
  const double value = elements.At(index);
  const size_t digits = 2 * SizeOf(elements.dtype);
  const std::string pattern = fmt::format("bits:0x{:0{}x}", BitsOf(elements, index), digits);
  if (elements.dtype == DType::kInt64)
    return fmt::format("{}", static_cast<int64_t>(BitsOf(elements, index)));
  if (!IsFloating(elements.dtype)) return fmt::format("{}", static_cast<int64_t>(value));
  if (!std::isfinite(value) || (value == 0 && std::signbit(value))) return pattern;
  TensorData one = TensorData::Zeros(elements.dtype, {1});
  for (int significant = 1; significant <= 17; ++significant) {
    const std::string text = PlainExponent(fmt::format("{:.{}g}", value, significant));
    const auto number = ParseNumber(text);
    if (!number) continue;
    const auto rounded = RoundNumber(*number, *FormatOf(elements.dtype));
    if (!rounded) continue;
    one.Set(0, *rounded);
    if (BitsOf(one, 0) == BitsOf(elements, index)) return text;
  }
  return pattern;
}

int64_t Divided(int64_t extent, int64_t divisor) { return (extent + divisor - 1) / divisor; }

/// Row-major elements of the first part of `whole`, as large as `shape`.
TensorData FirstPart(const TensorData& whole, const Shape& shape) {
  TensorData part = TensorData::Zeros(whole.dtype, shape);
  const size_t width = SizeOf(whole.dtype);
  for (int64_t i = 0; i < part.size(); ++i) {
    const auto at = Coordinates(i, shape);
    int64_t from = 0;
    for (size_t axis = 0; axis < shape.size(); ++axis) from = from * whole.shape[axis] + at[axis];
    std::memcpy(part.bytes.data() + static_cast<size_t>(i) * width,
                whole.bytes.data() + static_cast<size_t>(from) * width, width);
  }
  return part;
}

/// Strides of `shape` that keep the order of the old ones; none if that is row-major.
std::vector<int64_t> StridesInOrder(const Shape& shape, const std::vector<int64_t>& old) {
  if (old.empty()) return {};
  std::vector<size_t> order(shape.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return old[a] < old[b]; });
  std::vector<int64_t> strides(shape.size()), plain(shape.size());
  int64_t step = 1;
  for (const size_t axis : order) {
    strides[axis] = step;
    step *= std::max<int64_t>(shape[axis], 1);
  }
  step = 1;
  for (size_t axis = shape.size(); axis-- > 0; step *= std::max<int64_t>(shape[axis], 1)) plain[axis] = step;
  return strides == plain ? std::vector<int64_t>() : strides;
}

bool IsExtent(const std::string& key) {
  static const std::set<std::string> kExtents{"shape", "normalized_shape", "length", "end", "num_classes"};
  return kExtents.contains(key);
}

void ShrinkNumbers(Attr* attr, int64_t extent, int64_t divisor, InAttributes which, bool* changed) {
  if (auto* list = std::get_if<Attr::List>(&attr->value)) {
    for (Attr& item : *list) ShrinkNumbers(&item, extent, divisor, which, changed);
  } else if (auto* number = std::get_if<int64_t>(&attr->value)) {
    const bool concerned =
        which == InAttributes::kSame ? *number == extent : *number >= extent && *number % extent == 0;
    if (!concerned || *number < 2) return;
    *number = Divided(*number, divisor);
    *changed = true;
  }
}

void ShrinkAttributes(std::vector<Step>* steps, int64_t extent, int64_t divisor, InAttributes which,
                      bool* changed) {
  for (Step& step : *steps) {
    ShrinkAttributes(&step.steps, extent, divisor, which, changed);
    for (auto& [key, attr] : step.attrs) {
      if (IsExtent(key)) ShrinkNumbers(&attr, extent, divisor, which, changed);
    }
  }
}

}  // namespace

size_t CountSteps(const std::vector<Step>& steps) { return FlatSteps(steps).size(); }

std::vector<const Step*> FlatSteps(const std::vector<Step>& steps) {
  std::vector<const Step*> flat;
  Walk(steps, [&](const Step& step) { flat.push_back(&step); });
  return flat;
}

std::vector<std::string> NamesMadeBy(const Case& c) {
  std::vector<std::string> names;
  Walk(c.program, [&](const Step& step) {
    if (!step.as.empty()) names.push_back(step.as);
  });
  return names;
}

std::set<std::string> NamesReadBy(const Case& c) {
  std::set<std::string> read;
  Walk(c.program, [&](const Step& step) { read.merge(ReadBy(step)); });
  for (const std::string& name : c.observe) read.insert(BaseName(name));
  return read;
}

std::set<size_t> StepsFor(const Case& c, const std::set<std::string>& names) {
  std::set<std::string> wanted;
  for (const std::string& name : names) wanted.insert(BaseName(name));
  const bool gradients =
      std::ranges::any_of(names, [](const std::string& name) { return name.find('.') != name.npos; });
  const auto steps = FlatSteps(c.program);
  std::set<size_t> found;
  for (size_t i = steps.size(); i-- > 0;) {
    const Step& step = *steps[i];
    const OpRow* row = FindOp(step.op);
    const bool effect = row != nullptr && row->kind == OpRow::Kind::kEffect;
    const bool in_place = row == nullptr && step.op.substr(0, step.op.find('.')).ends_with("_");
    const auto read = ReadBy(step);
    const bool touches =
        std::ranges::any_of(read, [&](const std::string& name) { return wanted.contains(name); });
    const bool needed = (!step.as.empty() && wanted.contains(step.as)) ||
                        (!step.out.empty() && wanted.contains(step.out)) ||
                        (step.op == "backward" && gradients) || ((effect || in_place) && touches);
    if (!needed) continue;
    found.insert(i);
    wanted.insert(read.begin(), read.end());
  }
  return found;
}

std::optional<Case> WithSteps(const Case& c, const std::set<size_t>& kept, const KnownValues& values) {
  Case smaller = c;
  size_t number = 0;
  smaller.program = Filtered(c.program, [&] { return kept.contains(number++); });
  std::set<std::string> made;
  for (const std::string& name : NamesMadeBy(smaller)) made.insert(name);
  const std::vector<std::string> before = NamesMadeBy(c);
  std::erase_if(smaller.observe, [&](const std::string& name) {
    const bool value = Contains(before, BaseName(name));
    return value && !made.contains(BaseName(name));
  });
  const std::set<std::string> read = NamesReadBy(smaller);
  std::erase_if(smaller.tensors, [&](const TensorSpec& spec) { return !read.contains(spec.name); });
  const std::set<std::string> differentiable =
      HasBackward(smaller) ? Differentiable(c) : std::set<std::string>();
  for (const std::string& name : before) {
    if (made.contains(name) || !read.contains(name)) continue;
    const auto value = values.find(name);
    if (value == values.end() || value->second.size() == 0) return std::nullopt;
    TensorSpec spec{.name = name,
                    .dtype = value->second.dtype,
                    .shape = value->second.shape,
                    .fill = FillOfElements(value->second)};
    spec.requires_grad = IsFloating(spec.dtype) && differentiable.contains(name);
    smaller.tensors.push_back(std::move(spec));
  }
  return smaller;
}

std::optional<Case> WithoutScope(const Case& c, size_t scope) {
  size_t number = 0;
  bool found = false;
  const std::function<std::vector<Step>(const std::vector<Step>&)> walk =
      [&](const std::vector<Step>& steps) {
        std::vector<Step> left;
        for (const Step& step : steps) {
          if (!IsScope(step.op)) {
            left.push_back(step);
            continue;
          }
          const bool goes = number++ == scope;
          std::vector<Step> inner = walk(step.steps);
          if (goes) {
            found = true;
            std::move(inner.begin(), inner.end(), std::back_inserter(left));
          } else {
            left.push_back(step);
            left.back().steps = std::move(inner);
          }
        }
        return left;
      };
  Case smaller = c;
  smaller.program = walk(c.program);
  return found ? std::optional(std::move(smaller)) : std::nullopt;
}

std::optional<Case> WithoutAttribute(const Case& c, size_t index) {
  size_t number = 0;
  bool found = false;
  const std::function<void(std::vector<Step>*)> walk = [&](std::vector<Step>* steps) {
    for (Step& step : *steps) {
      walk(&step.steps);
      const OpRow* row = FindOp(step.op);
      if (row == nullptr || IsScope(step.op)) continue;
      for (const OpAttribute& attribute : row->attributes) {
        if (attribute.required || !step.attrs.contains(std::string(attribute.key))) continue;
        if (number++ != index) continue;
        step.attrs.erase(std::string(attribute.key));
        found = true;
        return;
      }
    }
  };
  Case smaller = c;
  walk(&smaller.program);
  if (!found) return std::nullopt;
  const std::set<std::string> read = NamesReadBy(smaller);
  std::erase_if(smaller.tensors, [&](const TensorSpec& spec) { return !read.contains(spec.name); });
  return smaller;
}

std::optional<Case> WithBackwardAt(const Case& c, const std::string& value) {
  bool found = false;
  const std::function<void(std::vector<Step>*)> walk = [&](std::vector<Step>* steps) {
    for (Step& step : *steps) {
      walk(&step.steps);
      if (step.op != "backward" || step.of.size() != 1 || step.of[0].name == value) continue;
      step.of[0].name = value;
      step.attrs.erase("grad");
      found = true;
    }
  };
  Case smaller = c;
  walk(&smaller.program);
  return found ? std::optional(std::move(smaller)) : std::nullopt;
}

std::optional<Case> WithSmaller(const Case& c, const std::vector<TensorAxis>& axes, int64_t divisor,
                                InAttributes attributes, const KnownValues* elements) {
  Case smaller = c;
  bool changed = false;
  std::set<size_t> touched;
  for (const TensorAxis& axis : axes) {
    int64_t& extent = smaller.tensors[axis.tensor].shape[axis.axis];
    if (extent < 2) return std::nullopt;
    extent = Divided(extent, divisor);
    touched.insert(axis.tensor);
    changed = true;
  }
  if (!axes.empty() && attributes != InAttributes::kLeave) {
    const int64_t extent = c.tensors[axes[0].tensor].shape[axes[0].axis];
    bool any = false;
    ShrinkAttributes(&smaller.program, extent, divisor, attributes, &any);
    if (!any && attributes == InAttributes::kSame) return std::nullopt;
  }
  for (const size_t tensor : touched) {
    TensorSpec& spec = smaller.tensors[tensor];
    spec.strides = StridesInOrder(spec.shape, spec.strides);
    const auto* fill = std::get_if<Attr::Map>(&spec.fill.value);
    const bool listed = fill != nullptr && (fill->contains("values") || fill->contains("file"));
    if (elements == nullptr && !listed) continue;
    if (elements == nullptr) return std::nullopt;
    spec.fill = FillOfElements(FirstPart(elements->at(spec.name), spec.shape));
  }
  return changed ? std::optional(std::move(smaller)) : std::nullopt;
}

Case WithFill(const Case& c, size_t tensor, Attr fill) {
  Case other = c;
  other.tensors[tensor].fill = std::move(fill);
  return other;
}

Case WithElements(const Case& c, size_t tensor, const TensorData& elements) {
  return WithFill(c, tensor, FillOfElements(elements));
}

Attr FillOfElements(const TensorData& elements) {
  Attr::List list;
  for (int64_t i = 0; i < elements.size(); ++i) list.push_back(Attr{.value = TextOfElement(elements, i)});
  return {.value = Attr::Map{{"values", Attr{.value = std::move(list)}}}};
}

}  // namespace ulpscope
