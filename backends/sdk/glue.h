// Glue: the steps around a library's own ops, correctly rounded, so that a BLAS can run a whole program.
//
// A BLAS multiplies matrices and nothing else, yet a case casts, adds a bias, transposes. RunWithGlue walks
// the program, hands each step to the adapter's kernel first, and does what the kernel leaves by itself:
// every element is computed exactly and rounded once to the dtype that PyTorch's promotion gives. Values made
// here carry the part "glue", so a finding at them is never laid at the library's door.
//
// Values are contiguous and named; `out=` writes into the buffer that every alias of the name sees, as in
// PyTorch. Views are copies here, so writing to a buffer that has views is refused rather than answered
// wrongly.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backends/sdk/adapter.h"

namespace ulpscope::sdk {

/// Why a step gave no value: raised (with a Python error class), unsupported, out of memory.
struct StepFailure {
  Outcome outcome = Outcome::kUnsupported;
  std::string error_class = {};
  std::string text;
};
using StepResult = tl::expected<TensorData, StepFailure>;

tl::unexpected<StepFailure> StepUnsupported(std::string reason);
tl::unexpected<StepFailure> StepRaised(std::string error_class, std::string text);

/// The context of a step: the values made so far, and the record of casts.
class GlueContext {
 public:
  /// The tensor that an operand names; null for a scalar.
  const TensorData* Tensor(const Operand& operand) const;
  /// The dtype of the step's out= buffer; nothing without out=.
  std::optional<DType> OutDType(const Step& step) const;
  /// `tensor` with every element rounded once to `dtype`; writes the cast down as done under `under`.
  TensorData Cast(const TensorData& tensor, DType dtype, const std::string& under);
  void Note(std::string note) { notes_.push_back(std::move(note)); }
  /// Names what the library ran for the step at hand: "oneDNN matmul brg:avx512_core_bf16". Stands in the
  /// trace as the step's `kernel` node; without it the node bears the step's op. `operands_as`: the format in
  /// which the library reports to take the operands ("tf32"), if that is not theirs; nodes of their own under
  /// the kernel's.
  void NameKernel(std::string name, std::string operands_as = {}) {
    kernel_ = std::move(name);
    operands_as_ = std::move(operands_as);
  }
  /// True when `empty` is to be filled with the poison.
  bool poison() const { return poison_; }

 private:
  friend class GlueMachine;
  std::map<std::string, std::shared_ptr<TensorData>> values_;
  std::vector<ulpscope::Cast> casts_;
  std::vector<std::string> notes_;
  std::string kernel_, operands_as_;
  bool poison_ = false;
  bool trace_ = false;
  std::vector<TraceNode> nodes_;
  std::map<const TensorData*, int64_t> made_by_;  ///< value -> the node that made it
  int64_t step_ = -1;                             ///< the node of the step at hand
};

/// The library's own op: nothing when the step is not the library's, so that glue takes it.
using Kernel = std::function<std::optional<StepResult>(const Step&, GlueContext&)>;

/// Runs the whole program and answers every observed value. Fills outcome, tensors, observations, parts,
/// casts, nodes, notes. The nodes: one for the program, under it one for each step (stage `kernel` where the
/// library ran it), under that the casts that glue did for it.
RunReply RunWithGlue(const RunRequest& request, const Kernel& kernel);

/// The steps that glue knows, for Capabilities::ops.
const std::vector<std::string>& GlueOps();

/// One step by glue alone.
StepResult GlueStep(const Step& step, GlueContext& context);

/// One of transpose t reshape view expand permute select unsqueeze squeeze.
StepResult GlueView(const Step& step, GlueContext& context);

/// Every element rounded once to `dtype`, as a cast does; floats to integers truncate.
TensorData RoundedCopy(const TensorData& tensor, DType dtype);

/// `tensor` with axis i of the result being axis order[i]; order is a permutation of the axes.
TensorData Permuted(const TensorData& tensor, const std::vector<size_t>& order);

/// The shape that PyTorch broadcasting gives; nothing when the shapes do not go together.
std::optional<Shape> BroadcastShape(const Shape& a, const Shape& b);

/// `tensor` repeated to `shape`, which must be one that it broadcasts to.
TensorData BroadcastTo(const TensorData& tensor, const Shape& shape);

}  // namespace ulpscope::sdk
