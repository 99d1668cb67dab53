// Steps as calls of PyTorch, as its adapters make them.
#include "harness/repro/torch_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <variant>
#include <vector>

#include "harness/base/check.h"
#include "harness/base/text.h"
#include "harness/num/dtype.h"
#include "harness/repro/placed_step.h"
#include "harness/repro/python_text.h"
#include "harness/words/aten.h"
#include "harness/words/ops.h"

namespace ulpscope {
namespace {

/// Words whose operands or attributes torch takes in another place than a call has them.
///   {0}  an operand; {*} all of them; {1*} each from that one on, with a comma before it
///   {KEY}  an attribute; {KEY|TEXT} where it may be absent; {,KEY} `, KEY=...` where it is there, else nothing
const std::map<std::string_view, std::string_view>& OwnForms() {
  static const std::map<std::string_view, std::string_view> kForms{
      {"cast", "{0}.to({dtype})"},
      {"reshape", "{0}.reshape({shape})"},
      {"view", "{0}.view({shape})"},
      {"expand", "{0}.expand({shape})"},
      {"squeeze", "{0}.squeeze({dim|})"},
      {"full", "torch.full({shape}, {value}, dtype={dtype})"},
      {"empty", "torch.empty({shape}, dtype={dtype})"},
      {"zeros", "torch.zeros({shape}, dtype={dtype})"},
      {"ones", "torch.ones({shape}, dtype={dtype})"},
      {"linspace", "torch.linspace({start}, {end}, {num}, dtype={dtype})"},
      {"cat", "torch.cat([{*}]{,dim})"},
      {"stack", "torch.stack([{*}]{,dim})"},
      {"split", "torch.split({0}, {split_size}, {dim|0})[{result|0}]"},
      {"slice", "torch.ops.aten.slice({0}, {dim|0}, {start}, {end}, {step|1})"},
      {"gather", "torch.gather({0}, {dim}, {1})"},
      {"index_select", "torch.index_select({0}, {dim}, {1})"},
      {"index_add", "torch.index_add({0}, {dim}, {1}, {2}{,alpha})"},
      {"scatter_add", "torch.scatter_add({0}, {dim}, {1}, {2}{,alpha})"},
      {"einsum", "torch.einsum({equation}, {*})"},
      {"norm", "torch.linalg.vector_norm({0}, {p|2}, dim={dim}, keepdim={keepdim|False})"},
      {"batch_norm", "F.batch_norm({*}{,eps})"},
      {"group_norm", "F.group_norm({0}, {num_groups}{1*}{,eps})"},
      {"layer_norm", "F.layer_norm({0}, {normalized_shape}{1*}{,eps})"},
      {"rms_norm", "F.rms_norm({0}, {normalized_shape}{1*}{,eps})"},
  };
  return kForms;
}

std::string AttributeText(const Step& step, std::string_view key, std::string_view otherwise) {
  const Attr* found = step.Find(std::string(key));
  return found == nullptr ? std::string(otherwise) : PythonLiteral(*found, "torch");
}

/// Text of one field of a form.
std::string FieldText(const Step& step, std::string_view field) {
  const auto operand = [&](size_t i) { return OperandText(step.of[i], "torch"); };
  std::vector<std::string> operands;
  if (field == "*") {
    for (size_t i = 0; i < step.of.size(); ++i) operands.push_back(operand(i));
    return Join(operands, ", ");
  }
  if (IsDigit(field.front())) {
    const auto first = static_cast<size_t>(field.front() - '0');
    if (field.size() == 1) return operand(first);
    std::string text;
    for (size_t i = first; i < step.of.size(); ++i) text += ", " + operand(i);
    return text;
  }
  if (field.front() == ',') {
    const std::string value = AttributeText(step, field.substr(1), "");
    return value.empty() ? value : fmt::format(", {}={}", field.substr(1), value);
  }
  const size_t bar = std::min(field.find('|'), field.size());
  return AttributeText(step, field.substr(0, bar), bar == field.size() ? "None" : field.substr(bar + 1));
}

std::string FormText(const Step& step, std::string_view form) {
  std::string text;
  while (true) {
    const size_t begin = form.find('{');
    text += form.substr(0, begin);
    if (begin == form.npos) return text;
    const size_t end = form.find('}', begin);
    text += FieldText(step, form.substr(begin + 1, end - begin - 1));
    form.remove_prefix(end + 1);
  }
}

/// A negative first dimension counts from the end: before it stands an ellipsis, behind it colons.
std::string Indexed(const Step& step) {
  const Attr* dim = step.Find("dim");
  const auto* leading = dim == nullptr ? nullptr : dim->If<int64_t>();
  const int64_t first = leading == nullptr ? 0 : *leading;
  std::vector<std::string> parts(static_cast<size_t>(std::max<int64_t>(first, 0)), ":");
  if (first < 0) parts.emplace_back("...");
  for (size_t i = 1; i < step.of.size(); ++i) parts.push_back(OperandText(step.of[i], "torch"));
  for (int64_t i = first + static_cast<int64_t>(step.of.size()) - 1; i < 0; ++i) parts.emplace_back(":");
  return fmt::format("{}[{}]", OperandText(step.of[0], "torch"), Join(parts, ", "));
}

std::string InstanceNorm(const Step& step) {
  std::string text = "F.instance_norm({0}";
  if (step.of.size() > 1) text += ", weight={1}";
  if (step.of.size() > 2) text += ", bias={2}";
  return FormText(step, text + "{,eps})");
}

/// Whether torch.nn.functional has the word; all others are torch's own.
bool IsFunctional(const std::string& op) {
  static const std::set<std::string_view> kFunctional{"linear",
                                                      "gelu",
                                                      "silu",
                                                      "scaled_dot_product_attention",
                                                      "hardtanh",
                                                      "relu6",
                                                      "leaky_relu",
                                                      "elu",
                                                      "softplus",
                                                      "mish",
                                                      "one_hot",
                                                      "glu",
                                                      "pad",
                                                      "avg_pool2d",
                                                      "mse_loss",
                                                      "l1_loss",
                                                      "smooth_l1_loss",
                                                      "huber_loss",
                                                      "nll_loss",
                                                      "cross_entropy",
                                                      "binary_cross_entropy",
                                                      "kl_div",
                                                      "margin_ranking_loss"};
  return kFunctional.contains(op);
}

std::string Expression(const Step& step) {
  if (const auto form = OwnForms().find(step.op); form != OwnForms().end())
    return FormText(step, form->second);
  if (step.op == "index") return Indexed(step);
  if (step.op == "instance_norm") return InstanceNorm(step);
  const std::string arguments = ArgumentsText(step, "torch", {std::string(kResultKey)});
  const std::string result = AttributeText(step, kResultKey, "0");
  if (TorchNeedsResult(step))
    return fmt::format("result({}({}), {})",
                       IsAten(step.op) ? "torch.ops.aten." + step.op.substr(6) : step.op, arguments, result);
  if (const OpRow* row = FindOp(step.op); row != nullptr && row->GivesSeveral())
    return fmt::format("torch.{}({})[{}]", step.op, arguments, result);
  if (step.op == "bce_with_logits") return "F.binary_cross_entropy_with_logits(" + arguments + ")";
  return fmt::format("{}.{}({})", IsFunctional(step.op) ? "F" : "torch", step.op, arguments);
}

std::string SetData(const Step& step) {
  const auto to = ReadSetDataTo(step);
  ULPSCOPE_CHECK(to.has_value(), "a set_data that was run sets nothing");
  const std::string target = PythonVariable(step.of[0].name);
  if (const auto* dtype = std::get_if<DType>(&*to))
    return fmt::format("{}.data = {}.data.to({})", target, target,
                       PythonLiteral(Attr{.value = std::string(Name(*dtype))}, "torch"));
  return fmt::format("{}.data = {}.data", target, PythonVariable(std::get<std::string>(*to)));
}

std::string Backward(const Step& step) {
  const std::string loss = PythonVariable(step.of[0].name);
  const Attr* grad = step.Find("grad");
  const auto* seed = grad == nullptr ? nullptr : grad->If<std::string>();
  return fmt::format("{}.backward(gradient={}{})", loss,
                     seed == nullptr ? "torch.ones_like(" + loss + ")" : PythonVariable(*seed),
                     FieldText(step, ",retain_graph"));
}

}  // namespace

bool TorchNeedsResult(const Step& step) { return IsAten(step.op) || IsTorchFunction(step.op); }

std::string TorchStatement(const Step& step) {
  if (step.op == "set_data") return SetData(step);
  if (step.op == "detach_")
    return fmt::format("{}.detach_().requires_grad_({})", PythonVariable(step.of[0].name),
                       PythonLiteral(step.Find("requires_grad") == nullptr ? Attr{.value = false}
                                                                           : *step.Find("requires_grad"),
                                     "torch"));
  if (step.op == "backward") return Backward(step);
  return (step.as.empty() ? "" : PythonVariable(step.as) + " = ") + Expression(step);
}

std::string TorchScope(const Step& scope) {
  if (scope.op != "autocast") return fmt::format("with torch.{}():", scope.op);
  std::vector<std::string> parts{"\"cpu\""};
  const auto add = [&](const std::string& key, const std::string& as) {
    const auto found = scope.attrs.find(key);
    if (found != scope.attrs.end()) parts.push_back(as + "=" + PythonLiteral(found->second, "torch"));
  };
  if (!scope.attrs.contains("dtype")) parts.push_back("dtype=torch.bfloat16");
  add("dtype", "dtype");
  add("enabled", "enabled");
  add("cache", "cache_enabled");
  return "with torch.autocast(" + Join(parts, ", ") + "):";
}

}  // namespace ulpscope
