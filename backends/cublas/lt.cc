// cublasLtMatmul: the algorithm is chosen before it runs, and can be queried for how it splits K and adds the
// parts.
#include <algorithm>
#include <array>
#include <utility>

#include "backends/cublas/device.h"
#include "backends/cublas/library.h"
#include "backends/cublas/product.h"
#include "harness/base/text.h"

namespace ulpscope::cublas {
namespace {

using sdk::GemmLayout;
using sdk::GlueContext;
using sdk::Step;
using sdk::StepFailure;
using sdk::StepResult;

/// As much as frameworks give: 32 MiB, what NVIDIA recommends for Hopper.
constexpr size_t kDefaultWorkspace = size_t{32} << 20;

struct Settings {
  std::string compute = "default", reduced = "default";
  std::optional<int> split_k;         ///< nothing: as the heuristic has it
  std::optional<uint32_t> reduction;  ///< nothing: as the heuristic has it
  size_t workspace = kDefaultWorkspace;
  int8_t fast_accum = 0;
};

/// A descriptor that the library made and takes back.
class Descriptor {
 public:
  Descriptor(int status, void* made, int (*destroy)(void*), const char* what)
      : made_(made), destroy_(destroy) {
    if (status != kSuccess) throw CudaError(std::string(what) + ": " + StatusText(status));
  }
  ~Descriptor() {
    if (made_ != nullptr) destroy_(made_);
  }
  Descriptor(Descriptor&& other) noexcept
      : made_(std::exchange(other.made_, nullptr)), destroy_(other.destroy_) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  void* get() const { return made_; }

 private:
  void* made_;
  int (*destroy_)(void*);
};

void Require(int status, const char* call) {
  if (status != kSuccess) throw CudaError(std::string(call) + ": " + StatusText(status));
}

/// How the algorithm that ran describes itself.
struct AlgoConfig {
  uint32_t id = 0, tile = 0, stages = 0, split_k = 0, reduction = 0;
  size_t workspace = 0;

  std::string Text() const {
    return "algo " + std::to_string(id) + " tile " + std::to_string(tile) + " stages " +
           std::to_string(stages) + " split_k " + std::to_string(split_k) + " reduction " +
           ReductionName(reduction);
  }
};

class LtLibrary : public Library {
 public:
  explicit LtLibrary(const Api& api) : api_(api) { Require(api_.cublasLtCreate(&handle_), "cublasLtCreate"); }
  ~LtLibrary() override { api_.cublasLtDestroy(handle_); }

  std::string Version() const override {
    const size_t version = api_.cublasLtGetVersion();
    return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
           std::to_string(version % 100);
  }

  std::string SetKnobs(const std::map<std::string, std::string>& knobs) override {
    used_.Clear();
    for (const auto& [knob, value] : knobs) {
      const std::string problem = SetKnob(knob, value);
      if (!problem.empty()) return problem;
    }
    return {};
  }

  std::map<std::string, std::string> ReadBack() const override { return used_.Text(); }

  std::optional<StepResult> Run(const Step& step, GlueContext& context) override {
    auto product = Prepare(step, context, settings_.compute, Bias::kKept);
    if (!product) return std::nullopt;
    if (!*product) return tl::unexpected(product->error());
    if (settings_.fast_accum != 0 && SizeOf((*product)->problem.a.dtype) != 1)
      return sdk::StepUnsupported(
          step.op + ": knob cublaslt_fast_accum is of float8 products; cuBLASLt refuses any other with it");
    return Multiply(**product, step, context);
  }

 private:
  std::string SetKnob(const std::string& knob, const std::string& value) {
    const std::string what = "knob " + knob + "=" + value + ": ";
    if (knob == "cublas_compute_type") {
      if (FindComputeType(value, DType::kFloat32) == nullptr) return what + "no such compute type";
      settings_.compute = value;
    } else if (knob == "reduced_precision_reduction") {
      if (value != "default" && value != "on" && value != "off") return what + "default, on or off";
      settings_.reduced = value;
    } else if (knob == "cublaslt_reduction_scheme") {
      settings_.reduction = ReductionScheme(value);
      if (!settings_.reduction && value != "default") return what + "no such scheme";
    } else if (knob == "cublaslt_fast_accum") {
      if (value != "on" && value != "off") return what + "on or off";
      settings_.fast_accum = value == "on" ? 1 : 0;
    } else if (knob == "cublaslt_split_k" || knob == "cublaslt_workspace") {
      return SetNumber(knob, value);
    } else {
      return "unknown knob '" + knob + "'";
    }
    return {};
  }

  std::string SetNumber(const std::string& knob, const std::string& value) {
    constexpr size_t kMost = size_t{1} << 32;
    const bool split = knob == "cublaslt_split_k";
    const auto number = WholeNumber<size_t>(value);
    if (value != "default" && (!number || *number > kMost || (split && (*number == 0 || *number > 1024))))
      return "knob " + knob + "=" + value + ": a number or default";
    if (split)
      settings_.split_k = number ? std::optional(static_cast<int>(*number)) : std::nullopt;
    else
      settings_.workspace = number.value_or(kDefaultWorkspace);
    return {};
  }

  Descriptor MakeLayout(int type, int64_t rows, int64_t columns, int64_t ld, const ColumnMajor& s,
                        int64_t stride) const {
    void* made = nullptr;
    const int status = api_.cublasLtMatrixLayoutCreate(&made, type, static_cast<uint64_t>(rows),
                                                       static_cast<uint64_t>(columns), ld);
    Descriptor layout(status, made, api_.cublasLtMatrixLayoutDestroy, "cublasLtMatrixLayoutCreate");
    if (s.batch > 1) {
      const auto count = static_cast<int32_t>(s.batch);
      Require(api_.cublasLtMatrixLayoutSetAttribute(made, kLayoutBatchCount, &count, sizeof count),
              "batch count");
      Require(api_.cublasLtMatrixLayoutSetAttribute(made, kLayoutStridedBatchOffset, &stride, sizeof stride),
              "batch stride");
    }
    return layout;
  }

  Descriptor MakeOperation(const PreparedProduct& product, const DeviceBuffer& bias) const {
    void* made = nullptr;
    const int status =
        api_.cublasLtMatmulDescCreate(&made, product.compute->value, *DataTypeOf(product.compute->scale));
    Descriptor operation(status, made, api_.cublasLtMatmulDescDestroy, "cublasLtMatmulDescCreate");
    const auto set = [&](int attribute, const auto& value) {
      Require(api_.cublasLtMatmulDescSetAttribute(made, attribute, &value, sizeof value),
              "cublasLtMatmulDescSetAttribute");
    };
    set(kDescTransA, int32_t{product.shape.left_op});
    set(kDescTransB, int32_t{product.shape.right_op});
    set(kDescFastAccum, settings_.fast_accum);
    if (product.problem.bias) {
      const void* pointer = bias.get();
      set(kDescEpilogue, int32_t{kEpilogueBias});
      set(kDescBiasPointer, pointer);
      set(kDescBiasDataType, int32_t{*DataTypeOf(product.problem.bias->dtype)});
    }
    return operation;
  }

  Descriptor MakePreference() const {
    void* made = nullptr;
    const int status = api_.cublasLtMatmulPreferenceCreate(&made);
    Descriptor preference(status, made, api_.cublasLtMatmulPreferenceDestroy,
                          "cublasLtMatmulPreferenceCreate");
    const uint64_t workspace = settings_.workspace;
    Require(api_.cublasLtMatmulPreferenceSetAttribute(made, kPreferenceMaxWorkspaceBytes, &workspace,
                                                      sizeof workspace),
            "workspace");
    if (settings_.reduced == "off") {
      // Everything but sums of partial results in the result's own type.
      const uint32_t schemes = kReductionInPlace | kReductionComputeType;
      Require(api_.cublasLtMatmulPreferenceSetAttribute(made, kPreferenceReductionSchemeMask, &schemes,
                                                        sizeof schemes),
              "reduction schemes");
    }
    return preference;
  }

  uint32_t Config(const LtAlgo& algo, int attribute) const {
    uint32_t value = 0;
    size_t written = 0;
    Require(api_.cublasLtMatmulAlgoConfigGetAttribute(&algo, attribute, &value, sizeof value, &written),
            "cublasLtMatmulAlgoConfigGetAttribute");
    return value;
  }

  AlgoConfig ConfigOf(const LtHeuristic& chosen) const {
    return {.id = Config(chosen.algo, kAlgoId),
            .tile = Config(chosen.algo, kAlgoTileId),
            .stages = Config(chosen.algo, kAlgoStagesId),
            .split_k = Config(chosen.algo, kAlgoSplitKNum),
            .reduction = Config(chosen.algo, kAlgoReductionScheme),
            .workspace = chosen.workspace_bytes};
  }

  /// The descriptors of one call, in the order of cuBLAS's arguments; c and d are one.
  struct Call {
    const Descriptor &operation, &left, &right, &out;
  };

  /// The heuristic's first choice, with K split as the knobs require; a status if there is none.
  tl::expected<LtHeuristic, int> Choose(const Call& call) const {
    const Descriptor preference = MakePreference();
    std::array<LtHeuristic, 16> choices;
    int found = 0;
    const int status = api_.cublasLtMatmulAlgoGetHeuristic(
        handle_, call.operation.get(), call.left.get(), call.right.get(), call.out.get(), call.out.get(),
        preference.get(), static_cast<int>(choices.size()), choices.data(), &found);
    if (status != kSuccess) return tl::unexpected(status);
    int why = kNotSupported;
    for (int i = 0; i < found; ++i) {
      LtHeuristic choice = choices[static_cast<size_t>(i)];
      if (choice.state != kSuccess) continue;
      if (!settings_.split_k && !settings_.reduction) return choice;
      why = Adjust(call, &choice);
      if (why == kSuccess) return choice;
    }
    return tl::unexpected(why);
  }

  /// Sets the requested split and lets cuBLAS check it.
  int Adjust(const Call& call, LtHeuristic* choice) const {
    const auto set = [&](int attribute, auto value) {
      return api_.cublasLtMatmulAlgoConfigSetAttribute(&choice->algo, attribute, &value, sizeof value);
    };
    if (settings_.split_k) {
      if (const int status = set(kAlgoSplitKNum, int32_t{*settings_.split_k}); status != kSuccess)
        return status;
      // One part has nothing to add up; several need a way.
      const uint32_t scheme = *settings_.split_k == 1 ? kReductionNone : kReductionComputeType;
      if (!settings_.reduction)
        if (const int status = set(kAlgoReductionScheme, scheme); status != kSuccess) return status;
    }
    if (settings_.reduction)
      if (const int status = set(kAlgoReductionScheme, *settings_.reduction); status != kSuccess)
        return status;
    const LtAlgo algo = choice->algo;
    LtHeuristic checked;
    const int status =
        api_.cublasLtMatmulAlgoCheck(handle_, call.operation.get(), call.left.get(), call.right.get(),
                                     call.out.get(), call.out.get(), &algo, &checked);
    if (status != kSuccess) return status;
    if (checked.workspace_bytes > settings_.workspace) return kNotSupported;
    choice->workspace_bytes = checked.workspace_bytes;
    return kSuccess;
  }

  /// float8 kernels read both operands along K: b is laid out so, which moves values and computes nothing.
  static void LayOutForFloat8(PreparedProduct* product, const Step& step, GlueContext& context) {
    sdk::GemmProblem& problem = product->problem;
    if (SizeOf(problem.b.dtype) != 1 || problem.b_layout == GemmLayout::kTransposed) return;
    problem.b = sdk::Permuted(problem.b, {0, 2, 1});
    problem.b_layout = GemmLayout::kTransposed;
    product->shape.left_op = kOpT;
    product->shape.left_ld = std::max<int64_t>(problem.k(), 1);
    context.Note(step.op + ": b laid out along K, as float8 kernels want it");
  }

  StepResult Multiply(PreparedProduct& product, const Step& step, GlueContext& context) {
    LayOutForFloat8(&product, step, context);
    last_.reset();
    if (product.out.size() > 0) {
      ULPSCOPE_TRY(Launch(product));
    }
    context.NameKernel("cublasLtMatmul " + Describe(product) + (last_ ? ", " + last_->Text() : ""),
                       OperandsAs(product));
    product.out.shape = product.problem.shape;
    return context.Cast(product.out, product.asked, step.op);
  }

  tl::expected<void, StepFailure> Launch(PreparedProduct& product) {
    const ColumnMajor& s = product.shape;
    const TensorData nothing{.dtype = DType::kFloat32, .shape = {0}};
    const DeviceBuffer left(api_, product.problem.b), right(api_, product.problem.a), out(api_, product.out);
    const DeviceBuffer bias(api_, product.problem.bias ? *product.problem.bias : nothing);
    const Descriptor operation = MakeOperation(product, bias);
    const Descriptor left_layout =
        s.left_op == kOpT ? MakeLayout(s.left_type, s.inner, s.rows, s.left_ld, s, s.left_stride())
                          : MakeLayout(s.left_type, s.rows, s.inner, s.left_ld, s, s.left_stride());
    const Descriptor right_layout =
        MakeLayout(s.right_type, s.inner, s.columns, s.right_ld, s, s.right_stride());
    const Descriptor out_layout = MakeLayout(s.out_type, s.rows, s.columns, s.out_ld, s, s.out_stride());
    const auto choice =
        Choose({.operation = operation, .left = left_layout, .right = right_layout, .out = out_layout});
    if (!choice) return tl::unexpected(Failure("cublasLtMatmulAlgoGetHeuristic", product, choice.error()));
    const DeviceBuffer workspace(api_, choice->workspace_bytes);
    const Scalar alpha = MakeScalar(product.problem.alpha, product.compute->scale);
    const Scalar beta = MakeScalar(product.beta, product.compute->scale);
    const int status =
        api_.cublasLtMatmul(handle_, operation.get(), alpha.get(), left.get(), left_layout.get(), right.get(),
                            right_layout.get(), beta.get(), out.get(), out_layout.get(), out.get(),
                            out_layout.get(), &choice->algo, workspace.get(), workspace.bytes(), nullptr);
    if (status != kSuccess) return tl::unexpected(Failure("cublasLtMatmul", product, status));
    out.CopyTo(&product.out);
    Remember(product, *choice, operation);
    return {};
  }

  /// Reads the settings of the algorithm and of the operation back, after they ran.
  void Remember(const PreparedProduct& product, const LtHeuristic& choice, const Descriptor& operation) {
    last_ = ConfigOf(choice);
    int8_t fast_accum = 0;
    size_t written = 0;
    Require(api_.cublasLtMatmulDescGetAttribute(operation.get(), kDescFastAccum, &fast_accum,
                                                sizeof fast_accum, &written),
            "cublasLtMatmulDescGetAttribute");
    used_.Add("cublas_compute_type", product.compute->word);
    used_.Add("cublaslt_split_k", std::to_string(last_->split_k));
    used_.Add("cublaslt_reduction_scheme", ReductionName(last_->reduction));
    used_.Add("cublaslt_workspace", std::to_string(last_->workspace));
    used_.Add("cublaslt_fast_accum", fast_accum != 0 ? "on" : "off");
    // Partial sums of split-K are narrow only where they are added in the result's own type.
    used_.Add("reduced_precision_reduction", last_->reduction == kReductionOutputType ? "on" : "off");
  }

  const Api& api_;
  Handle handle_ = nullptr;
  Settings settings_;
  std::optional<AlgoConfig> last_;  ///< of the last product
  UsedSettings used_;
};

}  // namespace

std::unique_ptr<Library> OpenLt(const Api& api) { return std::make_unique<LtLibrary>(api); }

}  // namespace ulpscope::cublas
