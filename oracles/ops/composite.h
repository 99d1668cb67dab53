// Shared parts of the expansions of composite ops: their steps under names of their own, and the types of
// PyTorch's rules.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/words/promotion.h"
#include "oracles/ops/table.h"

namespace ulpscope {

void NeedOperands(const OpCall& call, size_t least, size_t most);

/// The dtype in which PyTorch computes a function of whole numbers.
inline DType FloatingOf(DType dtype) { return IsFloating(dtype) ? dtype : DType::kFloat32; }

/// The dtype of a sum of the first operand: the requested one, else int64 for whole numbers and truth values;
/// nothing: the operand's.
std::optional<DType> SummedIn(const Lowering& low, const OpCall& call);

/// torch.result_type of the operands at these places of the step.
DType CommonType(const Lowering& low, const OpCall& call, const std::vector<size_t>& places);

/// The steps of one composite op: each in the op's compute format, under a name of its own.
class Composite {
 public:
  Composite(Lowering& low, const OpCall& call)
      : low_(low),
        prefix_(call.step.as.empty() ? call.step.op : call.step.as),
        own_(FloatingOf(low.at(call.args.at(0)).dtype)) {}
  /// A composite whose operands' common dtype differs from the first one's.
  Composite(Lowering& low, const OpCall& call, DType own) : Composite(low, call) { own_ = own; }

  DType inner() const { return own_ == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32; }
  int Step(NodeKind kind, std::vector<int> args, const char* part) {
    return low_.Inner(low_.Elementwise(kind, std::move(args), inner()), prefix_ + "." + part);
  }
  /// A step that some framework stores.
  int Stored(NodeKind kind, std::vector<int> args, const char* part) {
    return low_.Materialised(low_.Elementwise(kind, std::move(args), inner()), prefix_ + "." + part);
  }
  std::string Part(const char* part) const { return prefix_ + "." + part; }
  int Choose(int condition, int yes, int no) {
    return low_.Inner(low_.Elementwise(NodeKind::kChoose, {yes, no, condition}, inner()),
                      prefix_ + ".choice");
  }
  /// A number of the program's: backends convert it as they like.
  int Scalar(double value, std::string_view op) { return low_.PythonScalar(value, inner(), op); }
  int Number(double value) { return low_.Scalar(value, inner()); }
  int Slack(int node, std::vector<int> nodes, double factor) {
    return low_.Slack(node, std::move(nodes), factor);
  }
  DType own() const { return own_; }
  /// The result of a choice, rounded to its dtype.
  int Chosen(int node) {
    const int stored = low_.Store(node, own_);
    low_.at(stored).inner = true;
    return stored;
  }
  int Result(int node) {
    low_.at(node).name.clear();
    low_.at(node).materialised = false;
    low_.at(node).dtype = own_;
    return node;
  }

 private:
  Lowering& low_;
  std::string prefix_;
  DType own_;
};

}  // namespace ulpscope
