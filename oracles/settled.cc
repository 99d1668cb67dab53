// Follows bounds of whole numbers through a plan, and gives up at the first step that may round, wrap or convert.
#include "oracles/settled.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "harness/num/float_format.h"

namespace ulpscope {
namespace {

/// The largest magnitude that an element of a node may have; infinite for numbers with a fraction. Nothing: not settled.
using Bound = std::optional<double>;

constexpr double kAnyMagnitude = std::numeric_limits<double>::infinity();

/// The largest magnitude up to which `dtype` holds whole numbers without wrapping, and binary64 holds them
/// exactly.
double MostOf(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return 1;
    case DType::kUint8:
      return 255;
    case DType::kInt8:
      return 127;
    case DType::kInt16:
      return 32767;
    case DType::kInt32:
      return 2147483647;
    case DType::kInt64:
      return 9007199254740992;
    default:
      return kAnyMagnitude;
  }
}

bool Fits(double bound, DType dtype) { return IsFloating(dtype) || bound <= MostOf(dtype); }

/// A value of `from`, at most `bound` in magnitude, is the same in `to`.
bool StaysIn(double bound, DType from, DType to) {
  if (IsFloating(from)) return IsFloating(to) && Holds(*FormatOf(to), *FormatOf(from));
  if (!IsFloating(to)) {
    const bool loses_sign = to == DType::kUint8 && from != DType::kUint8 && from != DType::kBool;
    return !loses_sign && bound <= MostOf(to);
  }
  return bound <= std::ldexp(1.0, FormatOf(to)->precision) && bound <= FormatOf(to)->max_finite;
}

/// Backends convert a number of the program to the dtype of the other operand, where it may wrap.
bool IsWholeIn(double value, DType dtype) {
  if (value != std::floor(value)) return false;
  return dtype == DType::kBool ||
         (std::fabs(value) <= MostOf(dtype) && (value >= 0 || dtype != DType::kUint8));
}

Bound OfInput(const TensorData& tensor) {
  const FloatFormat* format = FormatOf(tensor.dtype);
  double most = 0;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double each = std::fabs(tensor.At(i));
    if (format != nullptr && each != 0 && each < std::ldexp(1.0, format->emin)) return std::nullopt;
    most = std::max(most, each);
  }
  return format != nullptr ? kAnyMagnitude : most;
}

class Bounds {
 public:
  Bounds(const Plan& plan, const std::map<std::string, TensorData>& inputs)
      : plan_(plan), inputs_(inputs), of_(plan.nodes.size()) {}

  /// Nodes come after their arguments.
  bool Settle(int id) {
    const PlanNode& node = At(id);
    for (const int arg : node.args) {
      if (!of_[static_cast<size_t>(arg)]) return false;
    }
    Bound bound = Of(node);
    if (bound && !Fits(*bound, node.dtype)) bound.reset();
    of_[static_cast<size_t>(id)] = bound;
    return bound.has_value();
  }

 private:
  const PlanNode& At(int id) const { return plan_.at(id); }
  double Of(int id) const { return *of_[static_cast<size_t>(id)]; }

  /// Numbers of one kind, or a constant that the others' dtype holds: no conversion changes one of them.
  bool AreComparable(const std::vector<int>& args) const {
    for (const int arg : args) {
      const PlanNode& one = At(plan_.Root(arg));
      for (const int other : args) {
        const DType dtype = At(plan_.Root(other)).dtype;
        if (one.kind == NodeKind::kConstant) {
          const auto value = one.constant();
          const bool held = value && (IsFloating(dtype) ? IsRepresentable(*value, *FormatOf(dtype))
                                                        : IsWholeIn(*value, dtype));
          if (other != arg && !held) return false;
        } else if (At(plan_.Root(other)).kind != NodeKind::kConstant &&
                   IsFloating(one.dtype) != IsFloating(dtype)) {
          return false;
        }
      }
    }
    return true;
  }

  double MostOfArgs(const PlanNode& node, size_t count) const {
    double most = 0;
    for (size_t i = 0; i < std::min(count, node.args.size()); ++i) most = std::max(most, Of(node.args[i]));
    return most;
  }

  bool ArgsStay(const PlanNode& node, size_t count) const {
    for (size_t i = 0; i < std::min(count, node.args.size()); ++i) {
      if (!StaysIn(Of(node.args[i]), At(node.args[i]).dtype, node.dtype)) return false;
    }
    return true;
  }

  Bound OfArithmetic(const PlanNode& node) const {
    if (IsFloating(node.dtype) || node.dtype == DType::kBool) return std::nullopt;
    if (node.dtype == DType::kUint8 && node.kind == NodeKind::kSub) return std::nullopt;
    for (const int arg : node.args) {
      if (IsFloating(At(arg).dtype)) return std::nullopt;
    }
    const double a = Of(node.args[0]);
    switch (node.kind) {
      case NodeKind::kMul:
        return a * Of(node.args[1]);
      case NodeKind::kReduce:
        return a * static_cast<double>(node.terms());
      case NodeKind::kScan:
        return a * static_cast<double>(ElementCount(At(node.args[0]).shape));
      default:
        return a + Of(node.args[1]);
    }
  }

  Bound Of(const PlanNode& node) const {
    switch (node.kind) {
      case NodeKind::kInput: {
        const auto tensor = inputs_.find(node.Get<TensorRead>().tensor);
        return tensor == inputs_.end() ? std::nullopt : OfInput(tensor->second);
      }
      case NodeKind::kConstant: {
        const auto value = node.constant();
        if (!value || std::isnan(*value)) return std::nullopt;
        return std::fabs(*value);
      }
      case NodeKind::kCount: {
        const auto& [start, step] = node.Get<Progression>();
        if (IsFloating(node.dtype) || start != std::floor(start) || step != std::floor(step))
          return std::nullopt;
        return std::fabs(start) + std::fabs(step) * static_cast<double>(ElementCount(node.shape));
      }
      case NodeKind::kJoin:
        return ArgsStay(node, node.args.size()) ? Bound(MostOfArgs(node, node.args.size())) : std::nullopt;
      case NodeKind::kChoose:
        return ArgsStay(node, 2) ? Bound(MostOfArgs(node, 2)) : std::nullopt;
      case NodeKind::kLarger:
      case NodeKind::kSmaller:
        return AreComparable(node.args) && ArgsStay(node, 2) ? Bound(MostOfArgs(node, 2)) : std::nullopt;
      case NodeKind::kFmod:
        return ArgsStay(node, 2) ? Bound(Of(node.args[0])) : std::nullopt;
      case NodeKind::kSign:
        return 1;
      case NodeKind::kNeg:
        return node.dtype != DType::kUint8 && ArgsStay(node, 1) ? Bound(Of(node.args[0])) : std::nullopt;
      case NodeKind::kPlace:
        return static_cast<double>(ElementCount(At(node.args[0]).shape));
      case NodeKind::kCast:
      case NodeKind::kStore:
      case NodeKind::kView:
      case NodeKind::kTake:
      case NodeKind::kFloor:
      case NodeKind::kCeil:
      case NodeKind::kRound:
      case NodeKind::kTrunc:
      case NodeKind::kAbs:
      case NodeKind::kRelu:
      case NodeKind::kMaximum:
      case NodeKind::kMinimum:
      case NodeKind::kRanked:
        return ArgsStay(node, 1) ? Bound(Of(node.args[0])) : std::nullopt;
      case NodeKind::kAdd:
      case NodeKind::kSub:
      case NodeKind::kMul:
      case NodeKind::kReduce:
      case NodeKind::kScan:
        return OfArithmetic(node);
      default:
        if (IsCondition(node.kind) && AreComparable(node.args)) return 1;
        return std::nullopt;
    }
  }

  const Plan& plan_;
  const std::map<std::string, TensorData>& inputs_;
  std::vector<Bound> of_;
};

}  // namespace

bool IsSettled(const Plan& plan, const ValuePath& path, const std::map<std::string, TensorData>& inputs) {
  if (IsFloating(plan.at(path.root).dtype)) return false;
  Bounds bounds(plan, inputs);
  return std::ranges::all_of(path.nodes, [&](int id) { return bounds.Settle(id); });
}

}  // namespace ulpscope
