// cublasGemmEx and its strided batches.
#include <algorithm>

#include "backends/cublas/device.h"
#include "backends/cublas/library.h"
#include "backends/cublas/product.h"
#include "harness/base/find.h"

namespace ulpscope::cublas {
namespace {

using sdk::GlueContext;
using sdk::Step;
using sdk::StepResult;

std::vector<std::string> ComputeWords() {
  std::vector<std::string> words = {"default"};
  for (const ComputeType& type : ComputeTypes()) words.push_back(type.word);
  return words;
}

class GemmExLibrary : public Library {
 public:
  explicit GemmExLibrary(const Api& api) : api_(api) {
    const int status = api_.cublasCreate_v2(&handle_);
    if (status != kSuccess) throw CudaError("cublasCreate: " + StatusText(status));
  }
  ~GemmExLibrary() override { api_.cublasDestroy_v2(handle_); }

  std::string Version() const override {
    int version = 0;
    if (api_.cublasGetVersion_v2(handle_, &version) != kSuccess) return "unknown";
    return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
           std::to_string(version % 100);
  }

  std::string SetKnobs(const std::map<std::string, std::string>& knobs) override {
    used_.Clear();
    for (const auto& [knob, value] : knobs) {
      if (knob == "cublas_compute_type") {
        if (FindComputeType(value, DType::kFloat32) == nullptr)
          return "knob " + knob + "=" + value + ": no such compute type";
        compute_ = value;
      } else if (knob == "reduced_precision_reduction") {
        const std::string problem = SetReduction(value);
        if (!problem.empty()) return problem;
      } else {
        return "unknown knob '" + knob + "'";
      }
    }
    return {};
  }

  std::map<std::string, std::string> ReadBack() const override {
    // The compute type cannot be queried: these are the types of calls that succeeded.
    std::map<std::string, std::string> knobs = used_.Text();
    int mode = 0;
    if (api_.cublasGetMathMode(handle_, &mode) == kSuccess)
      knobs["reduced_precision_reduction"] = (mode & kDisallowReducedPrecisionReduction) != 0 ? "off" : "on";
    return knobs;
  }

  std::optional<StepResult> Run(const Step& step, GlueContext& context) override {
    auto product = Prepare(step, context, compute_, Bias::kSpread);
    if (!product) return std::nullopt;
    if (!*product) return tl::unexpected(product->error());
    if (SizeOf((*product)->problem.a.dtype) == 1)
      return sdk::StepUnsupported(step.op + ": cublasGemmEx has no float8; backend cublaslt multiplies it");
    return Multiply(**product, step, context);
  }

 private:
  std::string SetReduction(const std::string& value) {
    if (value != "default" && value != "on" && value != "off")
      return "knob reduced_precision_reduction=" + value + ": default, on or off";
    const int mode = value == "off" ? kDisallowReducedPrecisionReduction : kDefaultMath;
    const int status = api_.cublasSetMathMode(handle_, mode);
    if (status != kSuccess) return "knob reduced_precision_reduction=" + value + ": " + StatusText(status);
    int now = 0;
    if (api_.cublasGetMathMode(handle_, &now) != kSuccess || now != mode)
      return "knob reduced_precision_reduction=" + value + ": cuBLAS is in math mode " + std::to_string(now);
    return {};
  }

  int Call(const PreparedProduct& product, const DeviceBuffer& left, const DeviceBuffer& right,
           const DeviceBuffer& out) const {
    const ColumnMajor& s = product.shape;
    const Scalar alpha = MakeScalar(product.problem.alpha, product.compute->scale);
    const Scalar beta = MakeScalar(product.beta, product.compute->scale);
    const auto whole = [](int64_t extent) { return static_cast<int>(extent); };
    if (s.batch == 1) {
      return api_.cublasGemmEx(handle_, s.left_op, s.right_op, whole(s.rows), whole(s.columns),
                               whole(s.inner), alpha.get(), left.get(), s.left_type, whole(s.left_ld),
                               right.get(), s.right_type, whole(s.right_ld), beta.get(), out.get(),
                               s.out_type, whole(s.out_ld), product.compute->value, kGemmDefault);
    }
    return api_.cublasGemmStridedBatchedEx(
        handle_, s.left_op, s.right_op, whole(s.rows), whole(s.columns), whole(s.inner), alpha.get(),
        left.get(), s.left_type, whole(s.left_ld), s.left_stride(), right.get(), s.right_type,
        whole(s.right_ld), s.right_stride(), beta.get(), out.get(), s.out_type, whole(s.out_ld),
        s.out_stride(), whole(s.batch), product.compute->value, kGemmDefault);
  }

  StepResult Multiply(PreparedProduct& product, const Step& step, GlueContext& context) {
    const char* function = product.shape.batch == 1 ? "cublasGemmEx" : "cublasGemmStridedBatchedEx";
    if (product.out.size() > 0) {
      const DeviceBuffer left(api_, product.problem.b), right(api_, product.problem.a),
          out(api_, product.out);
      const int status = Call(product, left, right, out);
      if (status != kSuccess) return tl::unexpected(Failure(function, product, status));
      out.CopyTo(&product.out);
      used_.Add("cublas_compute_type", product.compute->word);
    }
    context.NameKernel(std::string(function) + " " + Describe(product), OperandsAs(product));
    product.out.shape = product.problem.shape;
    return context.Cast(product.out, product.asked, step.op);
  }

  const Api& api_;
  Handle handle_ = nullptr;
  std::string compute_ = "default";
  UsedSettings used_;
};

}  // namespace

void UsedSettings::Add(const std::string& knob, const std::string& value) {
  std::vector<std::string>& values = used_[knob];
  if (!Contains(values, value)) values.push_back(value);
}

std::map<std::string, std::string> UsedSettings::Text() const {
  std::map<std::string, std::string> texts;
  for (const auto& [knob, values] : used_) {
    std::string& text = texts[knob];
    for (const std::string& value : values) text += (text.empty() ? "" : ", ") + value;
  }
  return texts;
}

KnobTable GemmExKnobs() {
  return {{"cublas_compute_type", ComputeWords()}, {"reduced_precision_reduction", {"default", "on", "off"}}};
}

KnobTable LtKnobs() {
  return {{"cublas_compute_type", ComputeWords()},
          {"reduced_precision_reduction", {"default", "on", "off"}},
          {"cublaslt_split_k", {"default", "1", "2", "N"}},
          {"cublaslt_reduction_scheme", {"default", "none", "inplace", "compute_type", "output_type"}},
          {"cublaslt_workspace", {"default", "0", "BYTES"}},
          {"cublaslt_fast_accum", {"off", "on"}}};
}

std::unique_ptr<Library> OpenGemmEx(const Api& api) { return std::make_unique<GemmExLibrary>(api); }

}  // namespace ulpscope::cublas
