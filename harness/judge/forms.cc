// Forms of ops, as programs.
#include "harness/judge/forms.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "harness/words/ops.h"

namespace ulpscope {
namespace {

using Form = std::vector<Step>;

constexpr const char* kFastExp = "fast_exp";
constexpr const char* kContracted = "contracted";

double ReciprocalIn(const FloatFormat& format, double number) {
  return RoundTo(1 / RoundTo(number, format), format);
}

class Forms {
 public:
  explicit Forms(const Step& step, const FloatFormat* format = nullptr) : step_(step), format_(format) {}

  std::vector<Form> All() const {
    std::vector<Form> forms;
    for (Form form : {ProductThenBias(), WindowsThenBias(), Root(), Quotient(), QuotientByNumber(),
                      GeluByErfc(), GeluByErf(), Softmax(), LayerNorm(), DividedFirst(), FastExponentials(),
                      RemainderByQuotient(), FloorOfQuotient(), HypotByRatio(), EntropyByLog()}) {
      if (!form.empty()) forms.push_back(std::move(form));
    }
    return forms;
  }

  /// The forms that differ from the step only in last bits.
  std::vector<Form> OfLastBits() const {
    std::vector<Form> forms;
    for (Form form : {ScaledFirst(), QuotientFirst(), QuotientFirstContracted(), Quotient(), FactorFirst(),
                      ProductFirst(), FactorFirstContracted(), ProductFirstContracted(), AlphaContracted()}) {
      if (!form.empty()) forms.push_back(std::move(form));
    }
    return forms;
  }

  std::vector<Form> AroundSums(const Shape& shape) const {
    std::vector<Form> forms{{step_}};
    for (Form form : {ProductThenBias(), Mean(shape), Softmax(), SoftmaxByQuotient(), LayerNorm()}) {
      if (!form.empty()) forms.push_back(std::move(form));
    }
    return forms;
  }

 private:
  Operand Inner(const char* name) const { return {.name = step_.as + "." + name, .scalar = {}}; }
  static Operand Number(double value) { return {.name = {}, .scalar = Attr{value}}; }

  Step Make(const char* name, const char* op, std::vector<Operand> of,
            std::map<std::string, Attr> attrs = {}) const {
    Step step;
    step.op = op;
    step.of = std::move(of);
    step.attrs = std::move(attrs);
    step.as = step_.as + "." + name;
    return step;
  }

  /// The last step, which gives the value itself.
  Step Last(const char* op, std::vector<Operand> of) const {
    Step step = Make("", op, std::move(of));
    step.as = step_.as;
    return step;
  }

  /// x @ w.T, then the bias: the two ops of a framework whose linear has no bias.
  Form ProductThenBias() const {
    const bool linear = step_.op == "linear" && step_.of.size() == 3;
    const bool addmm =
        (step_.op == "addmm" || step_.op == "baddbmm" || step_.op == "addmv") && step_.attrs.empty();
    if (!linear && !addmm) return {};
    Step product = step_;
    product.as = step_.as + ".product";
    product.op = linear ? "linear" : "matmul";
    product.of.erase(linear ? product.of.end() - 1 : product.of.begin());
    return {std::move(product), Last("add", {Inner("product"), linear ? step_.of.back() : step_.of.front()})};
  }

  /// The same for a convolution, whose bias lies along the channels.
  Form WindowsThenBias() const {
    if ((step_.op != "conv1d" && step_.op != "conv2d") || step_.of.size() != 3) return {};
    Step product = step_;
    product.as = step_.as + ".product";
    product.of.pop_back();
    Attr::List shape(step_.op == "conv1d" ? 2 : 3, Attr{.value = int64_t{1}});
    shape[0] = Attr{.value = int64_t{-1}};
    return {std::move(product),
            Make("channels", "reshape", {step_.of.back()}, {{"shape", Attr{.value = std::move(shape)}}}),
            Last("add", {Inner("product"), Inner("channels")})};
  }

  /// PyTorch's CPU kernel, element by element.
  Form Root() const {
    if (step_.op != "rsqrt") return {};
    return {Make("sqrt", "sqrt", step_.of), Last("reciprocal", {Inner("sqrt")})};
  }

  /// XLA multiplies by the reciprocal of a divisor that is constant along a row, and of a number.
  Form Quotient() const {
    if (step_.op != "div" || !step_.attrs.empty() || !step_.out.empty()) return {};
    if (step_.of[1].IsScalar()) {
      const auto number = step_.of[1].scalar->Number();
      if (!number || *number == 0) return {};
      return {Last("mul", {step_.of[0], Number(1 / *number)})};
    }
    return {Make("reciprocal", "reciprocal", {step_.of[1]}), Last("mul", {step_.of[0], Inner("reciprocal")})};
  }

  /// The reciprocal of a number in the format of the computation, to which the number itself is converted first.
  Form QuotientByNumber() const {
    if (format_ == nullptr || step_.op != "div" || !step_.attrs.empty() || !step_.out.empty() ||
        !step_.of[1].IsScalar())
      return {};
    const auto number = step_.of[1].scalar->Number();
    const double reciprocal = number ? ReciprocalIn(*format_, *number) : 0;
    if (reciprocal == 0 || !std::isfinite(reciprocal) || reciprocal == 1 / *number) return {};
    return {Last("mul", {step_.of[0], Number(reciprocal)})};
  }

  /// x + value a / b, or x + value a b, and the number.
  std::optional<double> ScaleOf(const char* op) const {
    if (step_.op != op || step_.of.size() != 3 || !step_.out.empty()) return std::nullopt;
    const auto value = step_.attrs.find("value");
    const auto number = value == step_.attrs.end() ? std::optional(1.0) : value->second.Number();
    return number && *number != 1 ? number : std::nullopt;
  }

  /// x + (value a) / b: PyTorch's addcdiv.
  Form ScaledFirst() const { return Scaled("addcdiv", "scaled", "quotient"); }
  /// x + value (a / b): torch.compile's.
  Form QuotientFirst() const { return OfRatio("addcdiv", "div", "ratio", "scaled"); }
  Form QuotientFirstContracted() const { return OfRatio("addcdiv", "div", "ratio", kContracted); }
  Form FactorFirst() const { return Scaled("addcmul", "scaled", "product"); }
  Form FactorFirstContracted() const { return Scaled("addcmul", "scaled", kContracted); }
  Form ProductFirst() const { return OfRatio("addcmul", "mul", "product", "scaled"); }
  Form ProductFirstContracted() const { return OfRatio("addcmul", "mul", "product", kContracted); }

  Form Scaled(const char* op, const char* first, const char* second) const {
    const auto scale = ScaleOf(op);
    if (!scale) return {};
    return {Make(first, "mul", {step_.of[1], Number(*scale)}),
            Make(second, step_.op == "addcdiv" ? "div" : "mul", {Inner(first), step_.of[2]}),
            Last("add", {step_.of[0], Inner(second)})};
  }

  Form OfRatio(const char* op, const char* two, const char* first, const char* second) const {
    const auto scale = ScaleOf(op);
    if (!scale) return {};
    return {Make(first, two, {step_.of[1], step_.of[2]}), Make(second, "mul", {Inner(first), Number(*scale)}),
            Last("add", {step_.of[0], Inner(second)})};
  }

  /// x + alpha y, with an unrounded product.
  Form AlphaContracted() const {
    const auto alpha = step_.attrs.find("alpha");
    if ((step_.op != "add" && step_.op != "sub") || alpha == step_.attrs.end() || step_.of.size() != 2 ||
        !step_.out.empty() || step_.of[1].IsScalar())
      return {};
    const auto number = alpha->second.Number();
    if (!number) return {};
    return {Make(kContracted, "mul", {step_.of[1], Number(*number)}),
            Last(step_.op.c_str(), {step_.of[0], Inner(kContracted)})};
  }

  bool IsExactGelu() const {
    const auto approximate = step_.attrs.find("approximate");
    const auto* form =
        approximate == step_.attrs.end() ? nullptr : std::get_if<std::string>(&approximate->second.value);
    return step_.op == "gelu" && (form == nullptr || *form == "none");
  }

  /// x / 2 erfc(-x / sqrt(2)), as in JAX.
  Form GeluByErfc() const {
    if (!IsExactGelu()) return {};
    return {Make("scaled", "mul", {step_.of[0], Number(-std::numbers::sqrt2 / 2)}),
            Make("erfc", "erfc", {Inner("scaled")}), Make("half", "mul", {step_.of[0], Number(0.5)}),
            Last("mul", {Inner("half"), Inner("erfc")})};
  }

  /// x / 2 (1 + erf(x / sqrt(2))), as in PyTorch/XLA.
  Form GeluByErf() const {
    if (!IsExactGelu()) return {};
    return {Make("scaled", "mul", {step_.of[0], Number(std::numbers::sqrt2 / 2)}),
            Make("erf", "erf", {Inner("scaled")}), Make("sum", "add", {Inner("erf"), Number(1)}),
            Make("half", "mul", {step_.of[0], Number(0.5)}), Last("mul", {Inner("half"), Inner("sum")})};
  }

  /// The larger times sqrt(1 + (smaller / larger)^2), as in JAX.
  Form HypotByRatio() const {
    if (step_.op != "hypot" || !step_.out.empty()) return {};
    return {Make("first", "abs", {step_.of[0]}),
            Make("second", "abs", {step_.of[1]}),
            Make("larger", "maximum", {Inner("first"), Inner("second")}),
            Make("smaller", "minimum", {Inner("first"), Inner("second")}),
            Make("ratio", "div", {Inner("smaller"), Inner("larger")}),
            Make("square", "mul", {Inner("ratio"), Inner("ratio")}),
            Make("sum", "add", {Inner("square"), Number(1)}),
            Make("root", "sqrt", {Inner("sum")}),
            Last("mul", {Inner("larger"), Inner("root")})};
  }

  /// The logarithm of 1 - p, not log1p(-p), as in PyTorch/XLA; far from 0 and 1, near which the logarithm is unbounded.
  Form EntropyByLog() const {
    const auto reduction = step_.attrs.find("reduction");
    const auto* none =
        reduction == step_.attrs.end() ? nullptr : std::get_if<std::string>(&reduction->second.value);
    if (step_.op != "binary_cross_entropy" || step_.of.size() != 2 || none == nullptr || *none != "none")
      return {};
    return {Make("minus", "neg", {step_.of[0]}),
            Make("other", "add", {Inner("minus"), Number(1)}),
            Make("log_other", "log", {Inner("other")}),
            Make("log", "log", {step_.of[0]}),
            Make("rest", "sub", {step_.of[1], Number(1)}),
            Make("against", "mul", {Inner("rest"), Inner("log_other")}),
            Make("towards", "mul", {step_.of[1], Inner("log")}),
            Last("sub", {Inner("against"), Inner("towards")})};
  }

  /// exp(x - max) by the reciprocal of their sum.
  Form Softmax() const {
    const auto dim = step_.attrs.find("dim");
    if (step_.op != "softmax" || step_.attrs.size() != 1 || dim == step_.attrs.end()) return {};
    const std::map<std::string, Attr> along{{"dim", Attr{.value = Attr::List{dim->second}}},
                                            {"keepdim", Attr{.value = true}}};
    return {Make("largest", "amax", step_.of, along),
            Make("shifted", "sub", {step_.of[0], Inner("largest")}),
            Make("exp", "exp", {Inner("shifted")}),
            Make("total", "sum", {Inner("exp")}, along),
            Make("reciprocal", "reciprocal", {Inner("total")}),
            Last("mul", {Inner("exp"), Inner("reciprocal")})};
  }

  /// exp(x - max) divided by their sum.
  Form SoftmaxByQuotient() const {
    Form form = Softmax();
    if (form.empty()) return {};
    form.pop_back();
    form.back() = Last("div", {Inner("exp"), Inner("total")});
    return form;
  }

  /// A sum, then the quotient by the number of its terms.
  Form Mean(const Shape& shape) const {
    const auto dim = step_.attrs.find("dim");
    if (step_.op != "mean" || dim == step_.attrs.end()) return {};
    Attr::List axes{dim->second};
    if (const auto* list = std::get_if<Attr::List>(&dim->second.value)) axes = *list;
    const auto rank = static_cast<int64_t>(shape.size());
    int64_t count = 1;
    for (const Attr& each : axes) {
      const auto* axis = std::get_if<int64_t>(&each.value);
      if (axis == nullptr || *axis < -rank || *axis >= rank) return {};
      count *= shape[static_cast<size_t>(*axis < 0 ? *axis + rank : *axis)];
    }
    return {Make("total", "sum", step_.of, step_.attrs),
            Last("div", {Inner("total"), Number(static_cast<double>(count))})};
  }

  /// The deviation is rounded before its reciprocal is taken.
  Form LayerNorm() const {
    const auto normalized = step_.attrs.find("normalized_shape");
    const auto* shape =
        normalized == step_.attrs.end() ? nullptr : std::get_if<Attr::List>(&normalized->second.value);
    if (step_.op != "layer_norm" || shape == nullptr || shape->empty()) return {};
    Attr::List axes;
    for (auto axis = -static_cast<int64_t>(shape->size()); axis < 0; ++axis)
      axes.push_back(Attr{.value = axis});
    const std::map<std::string, Attr> along{{"dim", Attr{.value = std::move(axes)}},
                                            {"keepdim", Attr{.value = true}}};
    const auto given = step_.attrs.find("eps");
    const double eps = given == step_.attrs.end() ? kNormEps : given->second.Number().value_or(kNormEps);
    Form form{Make("mean", "mean", {step_.of[0]}, along),
              Make("centred", "sub", {step_.of[0], Inner("mean")}),
              Make("square", "mul", {Inner("centred"), Inner("centred")}),
              Make("variance", "mean", {Inner("square")}, along),
              Make("shifted", "add", {Inner("variance"), Number(eps)}),
              Make("deviation", "sqrt", {Inner("shifted")}),
              Make("rstd", "reciprocal", {Inner("deviation")}),
              Make("normalized", "mul", {Inner("centred"), Inner("rstd")})};
    for (size_t i = 1; i < step_.of.size(); ++i)
      form.push_back(Make(i == 1 ? "scaled" : "shifted_by_bias", i == 1 ? "mul" : "add",
                          {Inner(i == 1 ? "normalized" : "scaled"), step_.of[i]}));
    form.back().as = step_.as;
    return form;
  }

  /// x - (x // y) y, with every step rounded: torch.compile's vectors on a CPU (pytorch issue 198057).
  Form RemainderByQuotient() const {
    if (step_.op != "remainder") return {};
    return {Make("whole", "floor_divide", step_.of), Make("multiple", "mul", {Inner("whole"), step_.of[1]}),
            Last("sub", {step_.of[0], Inner("multiple")})};
  }

  /// floor(x / y), which is one larger if the quotient rounds up to a whole number (pytorch issue 197895).
  Form FloorOfQuotient() const {
    if (step_.op != "floor_divide") return {};
    return {Make("quotient", "div", step_.of), Last("floor", {Inner("quotient")})};
  }

  /// Attention whose probabilities are stored, and so rounded, before they weigh the values.
  Form DividedFirst() const {
    if (step_.op != "scaled_dot_product_attention") return {};
    Step divided = step_;
    divided.attrs["divided_first"] = Attr{true};
    return {std::move(divided)};
  }

  /// Attention whose exponentials, the 16-bit weights of the values, are approximate (PyTorch pull request 151441).
  Form FastExponentials() const {
    if (step_.op != "scaled_dot_product_attention") return {};
    Step fast = step_;
    fast.attrs[kFastExp] = Attr{true};
    return {std::move(fast)};
  }

  const Step& step_;
  const FloatFormat* format_;
};

/// A formula, and how tightly its last operation binds: 1 a sum, 2 a product, 3 needs no parentheses.
struct Formula {
  std::string text;
  int binds = 3;
};

class Formulas {
 public:
  Formulas(const Step& step, const Form& form) : step_(step) {
    for (const Step& each : form) made_.insert_or_assign(each.as, each);
  }

  Formula Of(const Step& step) const {
    static const std::map<std::string, std::pair<const char*, int>> kSigns{
        {"add", {" + ", 1}}, {"sub", {" - ", 1}}, {"mul", {" * ", 2}}, {"div", {" / ", 2}}};
    if (step.op == "reciprocal") return {"1 / " + Within(step.of[0], 3), 2};
    const auto sign = kSigns.find(step.op);
    if (sign != kSigns.end() && step.of.size() == 2 && step.attrs.empty()) {
      const int binds = sign->second.second;
      return {Within(step.of[0], binds) + sign->second.first + Within(step.of[1], binds + 1), binds};
    }
    std::string text = step.op + "(";
    for (size_t i = 0; i < step.of.size(); ++i) text += (i == 0 ? "" : ", ") + Within(step.of[i], 0);
    return {text + ")", 3};
  }

 private:
  std::string Within(const Operand& operand, int least) const {
    if (operand.IsScalar()) return NumberText(operand.scalar->Number().value_or(0));
    const auto made = made_.find(operand.name);
    if (made == made_.end() || operand.name == step_.as) return operand.name;
    const Formula inner = Of(made->second);
    return inner.binds < least ? "(" + inner.text + ")" : inner.text;
  }

  /// "float32(1 / float32(0.1))" of the reciprocal that a division by 0.1 became.
  std::string NumberText(double number) const {
    const auto divisor = step_.op == "div" && step_.of.size() == 2 && step_.of[1].IsScalar()
                             ? step_.of[1].scalar->Number()
                             : std::nullopt;
    if (!divisor) return ShortestDecimal(number);
    const std::string text = ShortestDecimal(*divisor);
    if (number == 1 / *divisor) return "(1 / " + text + ")";
    for (const FloatFormat* format : {&Binary32(), &Bfloat16(), &Binary16(), &Binary64()}) {
      if (number == ReciprocalIn(*format, *divisor))
        return std::string(format->name) + "(1 / " + std::string(format->name) + "(" + text + "))";
    }
    return ShortestDecimal(number);
  }

  const Step& step_;
  std::map<std::string, Step> made_;
};

}  // namespace

std::string SaidOfForm(const std::vector<Step>& form) {
  if (!form.back().attrs.contains(kFastExp)) return {};
  return "exp as PyTorch's vectors approximate it, off by up to 1.1e-4 (fexp_u20 in its vector headers)";
}

std::vector<std::vector<Step>> OtherForms(const Step& step, const FloatFormat* format) {
  return Forms(step, format).All();
}

std::vector<std::vector<Step>> FormsOfLastBits(const Step& step) { return Forms(step).OfLastBits(); }

bool IsContracted(const std::string& name) { return name.ends_with(std::string(".") + kContracted); }

std::string DescribeForm(const Step& step, const std::vector<Step>& form) {
  constexpr size_t kReadable = 60, kMostSteps = 4;  // chosen: half a line
  if (form.empty() || form.size() > kMostSteps) return "";
  std::string text = Formulas(step, form).Of(form.back()).text;
  if (text.size() > kReadable) return "";
  if (std::ranges::any_of(form, [](const Step& each) { return IsContracted(each.as); }))
    text += ", contracted: the product is not rounded";
  return text;
}

std::vector<std::vector<Step>> FormsAroundSums(const Step& step, const Shape& shape) {
  return Forms(step).AroundSums(shape);
}

}  // namespace ulpscope
