// The dispatcher by name: index of overloads, argument binding, the call.
#include "backends/torch/dispatch.h"

#include <ATen/ScalarOps.h>
#include <ATen/core/List.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "backends/torch/failure.h"
#include "backends/torch/values.h"
#include "harness/base/find.h"

namespace ulpscope::torch_backend {
namespace {

using c10::IValue;
using c10::TypeKind;

/// Overloads by base name; the registry holds some 3500 names, so it is scanned once.
const std::vector<c10::OperatorName>& Overloads(const std::string& base) {
  static const std::map<std::string, std::vector<c10::OperatorName>> index = [] {
    std::map<std::string, std::vector<c10::OperatorName>> names;
    for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames())
      names[name.name].push_back(name);
    return names;
  }();
  static const std::vector<c10::OperatorName> none;
  const auto found = index.find(base);
  return found == index.end() ? none : found->second;
}

/// How freely a Python scalar may stand where a schema wants a tensor. PyTorch's Python binding always wraps
/// it; here an overload that takes the scalar as one goes first, which calls the same kernel.
enum class Wrapping { kNone, kScalars };

struct Binder {
  const Arguments& arguments;
  Wrapping wrapping;
  std::string reason = {};  ///< why the overload does not take the arguments

  std::optional<IValue> FromValue(const IValue& value, const c10::Argument& argument) {
    return FromValue(value, argument.type(), argument);
  }

  std::optional<IValue> FromValue(const IValue& value, const c10::TypePtr& type,
                                  const c10::Argument& argument) {
    switch (type->kind()) {
      case TypeKind::OptionalType:
        return FromValue(value, type->castRaw<c10::OptionalType>()->getElementType(), argument);
      case TypeKind::TensorType:
        if (value.isTensor()) return value;
        if (value.isScalar() && wrapping == Wrapping::kScalars)
          return at::native::wrapped_scalar_tensor(value.toScalar());
        return std::nullopt;
      case TypeKind::NumberType:
        return value.isScalar() ? std::optional(value) : std::nullopt;
      case TypeKind::FloatType:
        if (value.isInt()) return IValue(static_cast<double>(value.toInt()));
        return value.isDouble() ? std::optional(value) : std::nullopt;
      case TypeKind::IntType:
        return value.isInt() ? std::optional(value) : std::nullopt;
      case TypeKind::BoolType:
        return value.isBool() ? std::optional(value) : std::nullopt;
      default:
        return std::nullopt;
    }
  }

  std::optional<IValue> FromAttr(const Attr& value, const c10::Argument& argument) {
    return FromAttr(value, argument.type(), argument.real_type(), argument.N());
  }

  template <typename T>
  static std::optional<IValue> Held(const Attr& value) {
    const T* held = value.If<T>();
    return held == nullptr ? std::nullopt : std::optional(IValue(*held));
  }

  /// `type` folds dtypes and shapes to int; `real` keeps them apart and shows whether a word is a dtype.
  std::optional<IValue> FromAttr(const Attr& value, const c10::TypePtr& type, const c10::TypePtr& real,
                                 std::optional<int32_t> expand_to) {
    switch (type->kind()) {
      case TypeKind::OptionalType: {
        if (value.IsNull()) return IValue();
        const auto* real_optional = real->castRaw<c10::OptionalType>();
        return FromAttr(value, type->castRaw<c10::OptionalType>()->getElementType(),
                        real_optional != nullptr ? real_optional->getElementType() : real, expand_to);
      }
      case TypeKind::TensorType:
        return TensorByName(value);
      case TypeKind::NumberType:
        if (const auto flag = Held<bool>(value)) return flag;
        if (const auto integer = Held<int64_t>(value)) return integer;
        [[fallthrough]];
      case TypeKind::FloatType:
        if (const auto number = value.Number()) return IValue(*number);
        return std::nullopt;
      case TypeKind::IntType:
        if (const auto* word = value.If<std::string>())
          return real->kind() == TypeKind::ScalarTypeType ? DTypeByName(*word, real) : ReductionByName(*word);
        return Held<int64_t>(value);
      case TypeKind::BoolType:
        return Held<bool>(value);
      case TypeKind::StringType:
        return Held<std::string>(value);
      case TypeKind::ListType:
        return ListFromAttr(value, type->castRaw<c10::ListType>()->getElementType(), expand_to);
      default:
        return std::nullopt;
    }
  }

  std::optional<IValue> TensorByName(const Attr& value) const {
    const auto* name = value.If<std::string>();
    if (name == nullptr || !arguments.lookup) return std::nullopt;
    const at::Tensor tensor = arguments.lookup(*name);
    return tensor.defined() ? std::optional(IValue(tensor)) : std::nullopt;
  }

  static std::optional<IValue> DTypeByName(const std::string& name, const c10::TypePtr& real) {
    const std::optional<DType> dtype = ParseDType(name);
    if (real->kind() != TypeKind::ScalarTypeType || !dtype) return std::nullopt;
    return IValue(static_cast<int64_t>(ToTorch(*dtype)));
  }

  /// at::Reduction, which schemas take as a number.
  static std::optional<IValue> ReductionByName(const std::string& name) {
    static const std::map<std::string, int64_t> numbers = {{"none", 0}, {"mean", 1}, {"sum", 2}};
    const auto found = numbers.find(name);
    return found == numbers.end() ? std::nullopt : std::optional(IValue(found->second));
  }

  std::optional<IValue> ListFromAttr(const Attr& value, const c10::TypePtr& element,
                                     std::optional<int32_t> expand_to) {
    Attr::List items;
    // `int[1] dim` takes a bare int: Python's binding expands it, and so must we.
    if (const auto* list = value.If<Attr::List>()) {
      items = *list;
    } else if (expand_to) {
      items.assign(static_cast<size_t>(*expand_to), value);
    } else {
      return std::nullopt;
    }
    c10::impl::GenericList list(element);
    for (const Attr& item : items) {
      const std::optional<IValue> converted = FromAttr(item, element, element, std::nullopt);
      if (!converted) return std::nullopt;
      list.push_back(*converted);
    }
    return IValue(list);
  }

  static bool TakesTensorList(const c10::TypePtr& type) {
    if (type->kind() != TypeKind::ListType) return false;
    return type->castRaw<c10::ListType>()->getElementType()->kind() == TypeKind::TensorType;
  }

  /// The stack for `schema`, or nothing and `reason`. An argument that a keyword names is left out of the
  /// order of the operands: layer_norm's operands are x, weight, bias, its normalized_shape between them an
  /// attribute.
  std::optional<torch::jit::Stack> Bind(const c10::FunctionSchema& schema) {
    torch::jit::Stack stack;
    size_t next = 0;
    std::set<std::string> used;
    bool out_used = false;
    for (const c10::Argument& argument : schema.arguments()) {
      if (const auto keyword = arguments.keywords.find(argument.name());
          keyword != arguments.keywords.end()) {
        const std::optional<IValue> value = FromAttr(keyword->second, argument);
        if (!value) return Refuse("'" + argument.name() + "' is no " + argument.type()->str());
        used.insert(argument.name());
        stack.push_back(*value);
      } else if (!argument.kwarg_only() && next < arguments.positional.size()) {
        if (!PushPositional(argument, next, stack)) return std::nullopt;
      } else if (argument.is_out() && arguments.out.defined()) {
        stack.emplace_back(arguments.out);
        out_used = true;
      } else if (argument.name() == "device" && argument.kwarg_only() && !arguments.device.is_cpu()) {
        stack.emplace_back(arguments.device);
      } else if (argument.default_value()) {
        stack.push_back(*argument.default_value());
      } else {
        return Refuse("missing '" + argument.name() + "'");
      }
    }
    if (next < arguments.positional.size()) return Refuse("too many operands");
    if (arguments.out.defined() && !out_used) return Refuse("no out=");
    for (const auto& [key, ignored] : arguments.keywords) {
      if (!used.contains(key)) return Refuse("no argument '" + key + "'");
    }
    return stack;
  }

  bool PushPositional(const c10::Argument& argument, size_t& next, torch::jit::Stack& stack) {
    if (TakesTensorList(argument.type())) {
      c10::List<at::Tensor> list;
      while (next < arguments.positional.size() && arguments.positional[next].isTensor()) {
        list.push_back(arguments.positional[next++].toTensor());
      }
      stack.emplace_back(list);
      return true;
    }
    const std::optional<IValue> value = FromValue(arguments.positional[next], argument);
    if (!value) {
      Refuse("operand " + std::to_string(next + 1) + " is no " + argument.type()->str() + " ('" +
             argument.name() + "')");
      return false;
    }
    ++next;
    stack.push_back(*value);
    return true;
  }

  std::nullopt_t Refuse(std::string why) {
    reason = std::move(why);
    return std::nullopt;
  }
};

struct Match {
  c10::OperatorHandle handle;
  torch::jit::Stack stack;
};

/// "aten::to.dtype" -> base and overload; without a dot every overload is a candidate. The overload that the
/// registry has no name for is "default", as PyTorch's Python calls it.
std::pair<std::string, std::optional<std::string>> SplitName(const std::string& name) {
  const size_t dot = name.find('.', name.find("::"));
  if (dot == std::string::npos) return {name, std::nullopt};
  const std::string overload = name.substr(dot + 1);
  return {name.substr(0, dot), overload == "default" ? "" : overload};
}

std::string OverloadText(const c10::OperatorName& name) {
  return name.overload_name.empty() ? "(default)" : name.overload_name;
}

std::vector<Match> FindMatches(const std::string& name, const Arguments& arguments, Wrapping wrapping,
                               std::string& reasons) {
  const auto [base, overload] = SplitName(name);
  std::vector<Match> matches;
  for (const c10::OperatorName& candidate : Overloads(base)) {
    if (overload && candidate.overload_name != *overload) continue;
    const auto handle = c10::Dispatcher::singleton().findSchema(candidate);
    if (!handle) continue;
    Binder binder{.arguments = arguments, .wrapping = wrapping};
    std::optional<torch::jit::Stack> stack = binder.Bind(handle->schema());
    if (stack) {
      matches.push_back({.handle = *handle, .stack = std::move(*stack)});
    } else {
      reasons += (reasons.empty() ? "" : "; ") + OverloadText(candidate) + ": " + binder.reason;
    }
  }
  return matches;
}

}  // namespace

bool HasOp(const std::string& name) { return !Overloads(SplitName(name).first).empty(); }

std::vector<IValue> CallOp(const std::string& name, const Arguments& arguments) {
  if (!HasOp(name)) throw Unsupported("op '" + name + "': the dispatcher has none of that name");
  std::string reasons;
  std::vector<Match> matches = FindMatches(name, arguments, Wrapping::kNone, reasons);
  if (matches.empty()) {
    reasons.clear();
    matches = FindMatches(name, arguments, Wrapping::kScalars, reasons);
  }
  if (matches.empty())
    throw Unsupported("op '" + name + "': no overload takes these arguments (" + reasons + ")");
  // If several overloads take the arguments, the one with no further parameters is meant: aten::any(x), not
  // aten::any.dims(x, dim?).
  size_t fewest = SIZE_MAX;
  for (const Match& match : matches) fewest = std::min(fewest, match.stack.size());
  const auto asks_more = [&](const Match& match) { return match.stack.size() > fewest; };
  if (std::ranges::count_if(matches, asks_more) + 1 == std::ssize(matches)) std::erase_if(matches, asks_more);
  if (matches.size() > 1) {
    std::string names;
    for (const Match& match : matches) names += " " + OverloadText(match.handle.operator_name());
    throw Unsupported("op '" + name + "': more than one overload takes these arguments:" + names);
  }
  torch::jit::Stack stack = std::move(matches[0].stack);
  matches[0].handle.callBoxed(stack);
  return stack;
}

}  // namespace ulpscope::torch_backend
