// Scripts for PyTorch and JAX.
#include "harness/cli/repro_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "harness/base/check.h"
#include "harness/base/text.h"
#include "harness/cli/jax_ops.h"
#include "harness/num/float_format.h"
#include "harness/words/aten.h"
#include "harness/words/backend_name.h"
#include "harness/words/ops.h"

namespace ulpscope {
namespace {

constexpr std::string_view kReader = R"py(

def read(name):
    """The tensors of a safetensors file beside this script."""
    data = (HERE / name).read_bytes()
    length, = struct.unpack("<Q", data[:8])
    found = {}
    for key, entry in json.loads(data[8:8 + length]).items():
        if key != "__metadata__":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            found[key] = tensor(data[begin:end], DTYPES[entry["dtype"]], entry["shape"])
    return found
)py";

constexpr std::string_view kTorchHead = R"py(
DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "BOOL": torch.bool,
          "F8_E4M3": torch.float8_e4m3fn, "F8_E5M2": torch.float8_e5m2, "I64": torch.int64, "I32": torch.int32,
          "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8}


def tensor(data, dtype, shape):
    if not data:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(data), dtype=dtype).reshape(shape).clone()


def bits(value):
    value = value.detach().cpu().contiguous()
    size = value.element_size()
    patterns = value.reshape(-1).view({1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[size]).tolist()
    return [each % (1 << 8 * size) for each in patterns], value.reshape(-1).to(torch.float64).tolist(), str(value.dtype)
)py";

constexpr std::string_view kJaxHead = R"py(
DTYPES = {"F64": numpy.float64, "F32": numpy.float32, "F16": numpy.float16, "BF16": ml_dtypes.bfloat16, "BOOL": numpy.bool_,
          "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2, "I64": numpy.int64, "I32": numpy.int32,
          "I16": numpy.int16, "I8": numpy.int8, "U8": numpy.uint8}


def tensor(data, dtype, shape):
    return numpy.frombuffer(data, dtype=dtype).reshape(shape)


def bits(value):
    value = numpy.ascontiguousarray(value).reshape(-1)
    return value.view(f"u{value.dtype.itemsize}").tolist(), value.astype(numpy.float64).tolist(), str(value.dtype)
)py";

constexpr std::string_view kVerdict = R"py(

def main():
    try:
        values = compute(read("inputs.safetensors"))
    except Exception as error:
        here = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        print(f"raises {here}; recorded: {RAISED or 'values'}")
        return 0 if RAISED and type(error).__name__ == RAISED.partition(":")[0] else 1
    if RAISED:
        print(f"raises nothing; recorded: {RAISED}")
        return 1
    recorded = read("observed.safetensors")
    failed = 0
    for name, value in values.items():
        if name not in recorded or value is None:
            print(f"{name}: not recorded" if value is not None else f"{name}: none")
            continue
        (here, numbers, dtype), (there, wanted, recorded_dtype) = bits(value), bits(recorded[name])
        if dtype != recorded_dtype or len(here) != len(there):
            failed += 1
            print(f"{name}: NOT reproduced: {dtype} of {len(here)} elements, recorded {recorded_dtype} of {len(there)}")
            continue
        other = [index for index in range(len(here)) if here[index] != there[index]]
        if other:
            failed += 1
            first = other[0]
            print(f"{name}: NOT reproduced: {len(other)} of {len(here)} elements differ, first {first}: "
                  f"{numbers[first]!r} here, {wanted[first]!r} recorded")
        else:
            print(f"{name}: reproduced, all {len(here)} elements bit by bit")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
)py";

/// name -> text of each definition in the JAX adapter's own file of steps: two empty lines stand between them.
const std::map<std::string, std::string>& JaxDefinitions() {
  static const std::map<std::string, std::string> kDefinitions = [] {
    std::map<std::string, std::string> found;
    std::string_view rest = kJaxOps;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find("\n\n\n"), rest.size());
      std::string_view text = rest.substr(0, end);
      rest.remove_prefix(std::min(rest.size(), end + 3));
      const std::string_view head = text.starts_with("def ") ? text.substr(4) : text;
      const std::string_view name = head.substr(0, head.find_first_of("( "));
      if (name.starts_with("op_") || name.starts_with("_")) found.emplace(name, text);
    }
    return found;
  }();
  return kDefinitions;
}

/// Adds the definition of `name` to `text`, after those that it uses; each once.
void DefineForJax(const std::string& name, std::set<std::string>* defined, std::string* text) {
  const auto definition = JaxDefinitions().find(name);
  if (definition == JaxDefinitions().end() || !defined->insert(name).second) return;
  const std::string& body = definition->second;
  for (size_t begin = 0; begin < body.size();) {
    size_t end = begin;
    while (end < body.size() &&
           (std::isalnum(static_cast<unsigned char>(body[end])) != 0 || body[end] == '_'))
      ++end;
    if (end > begin) DefineForJax(body.substr(begin, end - begin), defined, text);
    begin = end + 1;
  }
  *text += "\n\n" + body + "\n";
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c == '\n' || c == '\r' ? ' ' : c;
  }
  return quoted + "\"";
}

std::string PyNumber(double value) {
  if (!std::isfinite(value)) return fmt::format("float(\"{}\")", ShortestDecimal(value));
  std::string text = ShortestDecimal(value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

/// A literal of Python; names of dtypes as `module` has them.
std::string Literal(const Attr& attr, std::string_view module) {
  struct Visitor {
    std::string_view module;
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(bool value) const { return value ? "True" : "False"; }
    std::string operator()(int64_t value) const { return std::to_string(value); }
    std::string operator()(double value) const { return PyNumber(value); }
    std::string operator()(const std::string& text) const {
      if (ParseDType(text))
        return fmt::format("{}.{}", module, text == "bool" && module == "jnp" ? "bool_" : text);
      if (text == "inf" || text == "-inf" || text == "nan") return fmt::format("float(\"{}\")", text);
      return Quoted(text);
    }
    std::string operator()(const Attr::List& list) const {
      std::vector<std::string> parts;
      for (const Attr& item : list) parts.push_back(Literal(item, module));
      return "[" + Join(parts, ", ") + "]";
    }
    std::string operator()(const Attr::Map&) const { return "None"; }
  };
  return std::visit(Visitor{module}, attr.value);
}

/// A value of the case as a variable; apart from every name that the script has otherwise.
std::string Variable(std::string_view name) {
  std::string text = "v_";
  for (const char c : name.substr(0, name.find('.')))
    text += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || IsDigit(c) ? c : '_';
  return name.ends_with(".grad") ? text + ".grad" : text;
}

struct PlacedStep {
  const Step* step;
  std::vector<const Step*> scopes;
};

void Flatten(const std::vector<Step>& steps, const std::vector<const Step*>& scopes,
             std::vector<PlacedStep>* placed) {
  for (const Step& step : steps) {
    if (IsScope(step.op)) {
      std::vector<const Step*> inner = scopes;
      inner.push_back(&step);
      Flatten(step.steps, inner, placed);
    } else if (step.op != "sync") {
      placed->push_back({.step = &step, .scopes = scopes});
    }
  }
}

std::vector<std::string> NamesUsed(const Step& step) {
  std::vector<std::string> names;
  for (const Operand& operand : step.of) {
    if (!operand.scalar) names.push_back(operand.name.substr(0, operand.name.find('.')));
  }
  if (!step.out.empty()) names.push_back(step.out);
  return names;
}

class Script {
 public:
  Script(const Case& test_case, const ReproSubject& subject)
      : case_(test_case), subject_(subject), name_(BackendName(subject.backend)) {
    Flatten(case_.program, {}, &placed_);
  }

  Result<std::string> Write() {
    const auto computes = Compute();
    if (!computes) return Fail(computes.error());
    const std::string& body = *computes;
    const bool jax = IsJax();
    const std::string raised =
        subject_.outcome.kind == OutcomeKind::kRaised
            ? Quoted(subject_.outcome.error_class + ": " +
                     subject_.outcome.text.substr(0, subject_.outcome.text.find('\n')).substr(0, 200))
            : "None";
    return Head(jax) + fmt::format("RAISED = {}  # recorded\n", raised) +
           std::string(jax ? kJaxHead : kTorchHead) + std::string(kReader) + body + std::string(kVerdict);
  }

  bool IsPython() const { return IsJax() || Compilers().contains(name_); }

  /// A function of Python without arguments: what the backend gives for the script's INPUTS, as {name: bits}.
  Result<std::string> Function(const std::string& function) {
    const auto computes = Compute();
    if (!computes) return Fail(computes.error());
    std::string body = Imports(IsJax()) + std::string(IsJax() ? kJaxHead : kTorchHead) + *computes;
    while (body.ends_with('\n')) body.pop_back();
    return fmt::format(
        "\n\ndef {}():\n    \"\"\"{}, as recorded with {}.\"\"\"\n{}\n\n    return told(compute, tensor, "
        "DTYPES, bits)\n",
        function, subject_.backend, Versions(), Indented(body));
  }

 private:
  static const std::map<std::string, std::string>& Compilers() {
    static const std::map<std::string, std::string> kCompilers{
        {"torch-eager", ""}, {"torch-aot-eager", "aot_eager"}, {"torch-inductor", "inductor"}};
    return kCompilers;
  }

  bool IsJax() const { return name_ == "jax" || name_ == "jax-eager"; }

  static std::string Indented(const std::string& text) {
    std::string indented;
    for (size_t begin = 0; begin <= text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      const std::string line = text.substr(begin, end - begin);
      // Two empty lines between functions are one inside of a function.
      if (!line.empty() || !indented.ends_with("\n\n"))
        indented += (line.empty() ? "" : "    ") + line + "\n";
      begin = end + 1;
    }
    while (indented.ends_with('\n')) indented.pop_back();
    return indented;
  }

  /// The definition of compute(given).
  Result<std::string> Compute() {
    const auto compiler = Compilers().find(name_);
    if (!IsPython()) return Fail("there is no script for " + name_ + ": it is no Python stack");
    if (subject_.backend.find("@cuda") != std::string::npos) return Fail("there is no script for a GPU");
    for (const PlacedStep& placed : placed_) {
      const std::string& op = placed.step->op;
      if (op == "module_to" || op == "fsdp_linear") return Fail("there is no script for the step " + op);
    }
    std::string body = IsJax() ? Jax() : Torch(compiler->second);
    if (!problem_.empty()) return Fail(problem_);
    return body;
  }

  std::string Versions() const {
    std::vector<std::string> versions;
    for (const auto& [package, version] : subject_.versions) versions.push_back(package + " " + version);
    return versions.empty() ? "?" : Join(versions, ", ");
  }

  std::string Head(bool jax) const {
    std::string text = fmt::format(
        "#!/usr/bin/env python3\n\"\"\"{} on {}: computes it anew and says whether the recorded bits come "
        "back.\n\n"
        "Needs {} and nothing of ulpscope. Recorded with {}.\n\"\"\"\n",
        case_.id, subject_.backend, jax ? "jax" : "torch", Versions());
    text += "import json\nimport os\nimport pathlib\nimport struct\nimport sys\n\n";
    return text + Imports(jax) + "HERE = pathlib.Path(__file__).resolve().parent\n";
  }

  std::string Imports(bool jax) const {
    std::string text;
    if (jax) {
      const auto excess = subject_.knobs.find("xla_allow_excess_precision");
      const bool off = excess != subject_.knobs.end() && excess->second == "false";
      text += fmt::format(
          "os.environ[\"NPROC\"] = \"1\"  # one thread, as it was recorded\n"
          "os.environ[\"XLA_FLAGS\"] = \"--xla_cpu_multi_thread_eigen=false{}\"\n"
          "os.environ[\"JAX_PLATFORMS\"] = \"cpu\"\n\nimport jax\nimport jax.numpy as jnp\nimport ml_dtypes\n"
          "import numpy\n\n",
          off ? " --xla_allow_excess_precision=false" : "");
    } else {
      text +=
          "os.environ[\"OMP_NUM_THREADS\"] = \"1\"  # one thread, as it was recorded\n\nimport torch\n"
          "import torch.nn.functional as F\n\ntorch.set_num_threads(1)\n";
    }
    return text + Knobs(jax);
  }

  std::string Knobs(bool jax) const {
    static const std::map<std::string, std::string> kInductor{{"true", "True"}, {"false", "False"}};
    std::string text;
    for (const auto& [knob, value] : subject_.knobs) {
      if (knob == "threads" || knob == "xla_allow_excess_precision") continue;
      const auto flag = kInductor.find(value);
      if (!jax && flag != kInductor.end() && (knob == "emulate_precision_casts" || knob == "max_autotune")) {
        text += fmt::format("import torch._inductor.config\ntorch._inductor.config.{} = {}\n", knob,
                            flag->second);
      } else if (!jax && knob == "float32_matmul_precision") {
        text += fmt::format("torch.set_float32_matmul_precision({})\n", Quoted(value));
      } else if (!jax && knob == "mkldnn") {
        text += fmt::format("torch.backends.mkldnn.set_flags({})\n", value == "on" ? "True" : "False");
      } else if (!jax && knob == "flush_denormal") {
        text += fmt::format("torch.set_flush_denormal({})\n", value == "on" ? "True" : "False");
      } else if (!jax && knob == "deterministic") {
        text += fmt::format("torch.use_deterministic_algorithms({})\n", value == "on" ? "True" : "False");
      } else if (jax && knob == "jax_enable_x64" && flag != kInductor.end()) {
        text += fmt::format("jax.config.update(\"jax_enable_x64\", {})\n", flag->second);
      } else if (jax && knob == "jax_matmul_precision") {
        text += fmt::format("jax.config.update(\"jax_default_matmul_precision\", {})\n",
                            value == "default" ? "None" : Quoted(value));
      } else if (jax && knob == "jax_numpy_dtype_promotion") {
        text += fmt::format("jax.config.update(\"jax_numpy_dtype_promotion\", {})\n", Quoted(value));
      } else {
        text += fmt::format("print({})\n", Quoted("not set by this script: knob " + knob + "=" + value));
      }
    }
    return text;
  }

  // ---- operands and attributes

  std::string OperandText(const Operand& operand, std::string_view module) const {
    return operand.scalar ? Literal(*operand.scalar, module) : Variable(operand.name);
  }

  std::string Arguments(const Step& step, std::string_view module,
                        const std::set<std::string>& without = {}) const {
    std::vector<std::string> parts;
    for (const Operand& operand : step.of) parts.push_back(OperandText(operand, module));
    for (const auto& [key, value] : step.attrs) {
      if (!without.contains(key)) parts.push_back(key + "=" + Literal(value, module));
    }
    if (!step.out.empty()) parts.push_back("out=" + Variable(step.out));
    return Join(parts, ", ");
  }

  const Attr* FindAttr(const Step& step, const std::string& key) const {
    const auto found = step.attrs.find(key);
    return found == step.attrs.end() ? nullptr : &found->second;
  }

  /// The number of the result that a step names.
  std::string ResultText(const Step& step) const {
    const Attr* result = FindAttr(step, std::string(kResultKey));
    return result == nullptr ? "0" : Literal(*result, "torch");
  }

  // ---- PyTorch

  std::string TorchExpression(const Step& step) const {
    static const std::set<std::string> kOwn{std::string(kResultKey)};
    static const std::set<std::string> kFunctional{"linear",
                                                   "gelu",
                                                   "silu",
                                                   "softmax",
                                                   "log_softmax",
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
    static const std::set<std::string> kMethods{"reshape", "view", "expand"};
    const auto attr = [&](const std::string& key) {
      const Attr* found = FindAttr(step, key);
      return found == nullptr ? std::string("None") : Literal(*found, "torch");
    };
    const auto operand = [&](size_t i) { return OperandText(step.of[i], "torch"); };
    if (step.op == "cast") return fmt::format("{}.to({})", operand(0), attr("dtype"));
    if (kMethods.contains(step.op)) return fmt::format("{}.{}({})", operand(0), step.op, attr("shape"));
    if (step.op == "squeeze")
      return FindAttr(step, "dim") == nullptr ? operand(0) + ".squeeze()"
                                              : fmt::format("{}.squeeze({})", operand(0), attr("dim"));
    if (step.op == "full")
      return fmt::format("torch.full({}, {}, dtype={})", attr("shape"), attr("value"), attr("dtype"));
    if (step.op == "empty" || step.op == "zeros" || step.op == "ones")
      return fmt::format("torch.{}({}, dtype={})", step.op, attr("shape"), attr("dtype"));
    // Words whose operands or attributes torch takes in another place.
    if (step.op == "cat" || step.op == "stack") {
      std::vector<std::string> parts;
      for (size_t i = 0; i < step.of.size(); ++i) parts.push_back(operand(i));
      return fmt::format("torch.{}([{}]{})", step.op, Join(parts, ", "),
                         FindAttr(step, "dim") == nullptr ? "" : ", dim=" + attr("dim"));
    }
    if (step.op == "gather" || step.op == "index_select")
      return fmt::format("torch.{}({}, {}, {})", step.op, operand(0), attr("dim"), operand(1));
    if (step.op == "index") {
      std::vector<std::string> parts;
      const Attr* dim = FindAttr(step, "dim");
      const auto* leading = dim == nullptr ? nullptr : dim->If<int64_t>();
      if (leading != nullptr && *leading < 0) parts.emplace_back("...");
      for (int64_t i = 0; leading != nullptr && i < *leading; ++i) parts.emplace_back(":");
      for (size_t i = 1; i < step.of.size(); ++i) parts.push_back(operand(i));
      for (int64_t i = leading == nullptr ? 0 : *leading + static_cast<int64_t>(step.of.size()) - 1; i < 0;
           ++i)
        parts.emplace_back(":");
      return fmt::format("{}[{}]", operand(0), Join(parts, ", "));
    }
    if (step.op == "index_add" || step.op == "scatter_add")
      return fmt::format("torch.{}({}, {}, {}, {}{})", step.op, operand(0), attr("dim"), operand(1),
                         operand(2), FindAttr(step, "alpha") == nullptr ? "" : ", alpha=" + attr("alpha"));
    if (step.op == "linspace")
      return fmt::format("torch.linspace({}, {}, {}, dtype={})", attr("start"), attr("end"), attr("num"),
                         attr("dtype"));
    if (step.op == "instance_norm") {
      std::vector<std::string> parts{operand(0)};
      for (size_t i = 1; i < step.of.size(); ++i)
        parts.push_back((i == 1 ? "weight=" : "bias=") + operand(i));
      if (FindAttr(step, "eps") != nullptr) parts.push_back("eps=" + attr("eps"));
      return fmt::format("F.instance_norm({})", Join(parts, ", "));
    }
    if (step.op == "einsum") {
      std::vector<std::string> parts{attr("equation")};
      for (size_t i = 0; i < step.of.size(); ++i) parts.push_back(operand(i));
      return fmt::format("torch.einsum({})", Join(parts, ", "));
    }
    if (step.op == "slice")
      return fmt::format("torch.ops.aten.slice({}, {}, {}, {}, {})", operand(0),
                         FindAttr(step, "dim") == nullptr ? "0" : attr("dim"), attr("start"), attr("end"),
                         FindAttr(step, "step") == nullptr ? "1" : attr("step"));
    if (step.op == "norm")
      return fmt::format("torch.linalg.vector_norm({}, {}, dim={}, keepdim={})", operand(0),
                         FindAttr(step, "p") == nullptr ? "2" : attr("p"), attr("dim"),
                         FindAttr(step, "keepdim") == nullptr ? "False" : attr("keepdim"));
    if (step.op == "batch_norm" || step.op == "group_norm") {
      std::vector<std::string> parts{operand(0)};
      if (step.op == "group_norm") parts.push_back(attr("num_groups"));
      for (size_t i = 1; i < step.of.size(); ++i) parts.push_back(operand(i));
      if (FindAttr(step, "eps") != nullptr) parts.push_back("eps=" + attr("eps"));
      return fmt::format("F.{}({})", step.op, Join(parts, ", "));
    }
    if (step.op == "bce_with_logits")
      return fmt::format("F.binary_cross_entropy_with_logits({})", Arguments(step, "torch"));
    if (step.op == "layer_norm" || step.op == "rms_norm") {
      std::vector<std::string> parts{operand(0), attr("normalized_shape")};
      for (size_t i = 1; i < step.of.size(); ++i) parts.push_back(operand(i));
      if (FindAttr(step, "eps") != nullptr) parts.push_back("eps=" + attr("eps"));
      return fmt::format("F.{}({})", step.op, Join(parts, ", "));
    }
    if (step.op.starts_with("aten::"))
      return fmt::format("result(torch.ops.aten.{}({}), {})", step.op.substr(6),
                         Arguments(step, "torch", kOwn), ResultText(step));
    if (IsTorchFunction(step.op))
      return fmt::format("result({}({}), {})", step.op, Arguments(step, "torch", kOwn), ResultText(step));
    if (step.op == "split")
      return fmt::format("torch.split({}, {}, {})[{}]", operand(0), attr("split_size"),
                         FindAttr(step, "dim") == nullptr ? "0" : attr("dim"), ResultText(step));
    if (const OpRow* row = FindOp(step.op); row != nullptr && row->GivesSeveral())
      return fmt::format("torch.{}({})[{}]", step.op, Arguments(step, "torch", kOwn), ResultText(step));
    return fmt::format("{}.{}({})", kFunctional.contains(step.op) ? "F" : "torch", step.op,
                       Arguments(step, "torch"));
  }

  std::vector<std::string> TorchStatements(const Step& step) const {
    if (step.op == "set_data") {
      const auto to = ReadSetDataTo(step);
      ULPSCOPE_CHECK(to.has_value(), "a set_data that was run sets nothing");
      const std::string target = Variable(step.of[0].name);
      if (const auto* dtype = std::get_if<DType>(&*to))
        return {fmt::format("{}.data = {}.data.to({})", target, target,
                            Literal(Attr{.value = std::string(Name(*dtype))}, "torch"))};
      return {fmt::format("{}.data = {}.data", target, Variable(std::get<std::string>(*to)))};
    }
    if (step.op == "backward") {
      const std::string loss = Variable(step.of[0].name);
      const Attr* grad = FindAttr(step, "grad");
      const Attr* retain = FindAttr(step, "retain_graph");
      const auto* seed = grad == nullptr ? nullptr : std::get_if<std::string>(&grad->value);
      return {fmt::format("{}.backward(gradient={}{})", loss,
                          seed == nullptr ? "torch.ones_like(" + loss + ")" : Variable(*seed),
                          retain == nullptr ? "" : ", retain_graph=" + Literal(*retain, "torch"))};
    }
    const std::string expression = TorchExpression(step);
    return {step.as.empty() ? expression : Variable(step.as) + " = " + expression};
  }

  static std::string TorchScope(const Step& scope) {
    if (scope.op != "autocast") return fmt::format("with torch.{}():", scope.op);
    std::vector<std::string> parts{"\"cpu\""};
    const auto add = [&](const std::string& key, const std::string& as) {
      const auto found = scope.attrs.find(key);
      if (found != scope.attrs.end()) parts.push_back(as + "=" + Literal(found->second, "torch"));
    };
    if (!scope.attrs.contains("dtype")) parts.push_back("dtype=torch.bfloat16");
    add("dtype", "dtype");
    add("enabled", "enabled");
    add("cache", "cache_enabled");
    return "with torch.autocast(" + Join(parts, ", ") + "):";
  }

  /// Steps as statements, neighbours in the same scopes under one head.
  std::string TorchBlock(const std::vector<PlacedStep>& steps) const {
    std::string text;
    std::vector<const Step*> open;
    for (const PlacedStep& placed : steps) {
      size_t same = 0;
      while (same < std::min(open.size(), placed.scopes.size()) && open[same] == placed.scopes[same]) ++same;
      open.resize(same);
      while (open.size() < placed.scopes.size()) {
        text += std::string(4 * (open.size() + 1), ' ') + TorchScope(*placed.scopes[open.size()]) + "\n";
        open.push_back(placed.scopes[open.size()]);
      }
      for (const auto& line : TorchStatements(*placed.step))
        text += std::string(4 * (open.size() + 1), ' ') + line + "\n";
    }
    return text;
  }

  std::string TorchInputs() const {
    std::string text;
    for (const TensorSpec& spec : case_.tensors) {
      const std::string name = Variable(spec.name);
      text += fmt::format("    {} = given[{}]\n", name, Quoted(spec.name));
      if (!spec.strides.empty())
        text += fmt::format("    {} = torch.empty_strided({}.shape, [{}], dtype={}.dtype).copy_({})\n", name,
                            name, Join(spec.strides, ", "), name, name);
      if (spec.requires_grad) text += fmt::format("    {}.requires_grad_()\n", name);
    }
    return text;
  }

  std::string Observed() const {
    std::vector<std::string> parts;
    for (const auto& name : case_.observe) {
      const std::string suffix = name.substr(std::min(name.find('.'), name.size()));
      if (suffix.empty() || suffix == ".grad") parts.push_back(Quoted(name) + ": " + Variable(name));
    }
    std::erase_if(parts, [](const std::string& part) {
      return part.starts_with("\"trace\"") || part.starts_with("\"peak_bytes\"");
    });
    return "    return {" + Join(parts, ", ") + "}\n";
  }

  std::string Torch(const std::string& compiler) const {
    std::string text;
    const bool aten = std::any_of(placed_.begin(), placed_.end(), [](const auto& placed) {
      return IsAten(placed.step->op) || IsTorchFunction(placed.step->op);
    });
    if (aten) {
      text +=
          "\n\ndef result(given, number):\n"
          "    return given[number] if isinstance(given, (tuple, list)) else given\n";
    }
    std::string body = TorchInputs();
    if (compiler.empty()) return text + "\n\ndef compute(given):\n" + body + TorchBlock(placed_) + Observed();
    // What torch.compile cannot take stands between the regions that it does, as in the backend.
    const auto outside = [](const PlacedStep& placed) {
      return placed.step->op == "set_data" || placed.step->op == "backward";
    };
    std::vector<PlacedStep> rest;
    for (const PlacedStep& placed : placed_) {
      if (placed.step->op == "empty") {
        body += TorchBlock({{.step = placed.step, .scopes = {}}});
      } else {
        rest.push_back(placed);
      }
    }
    int count = 0;
    for (size_t begin = 0; begin < rest.size();) {
      size_t end = begin + 1;
      while (end < rest.size() && outside(rest[end]) == outside(rest[begin])) ++end;
      const std::vector<PlacedStep> part(rest.begin() + static_cast<std::ptrdiff_t>(begin),
                                         rest.begin() + static_cast<std::ptrdiff_t>(end));
      if (outside(part.front())) {
        body += TorchBlock(part);
      } else {
        const std::vector<PlacedStep> later(rest.begin() + static_cast<std::ptrdiff_t>(end), rest.end());
        const auto [inputs, outputs] = Interface(part, later);
        ++count;
        text += fmt::format("\n\ndef region_{}({}):\n{}    return {},\n", count, Join(inputs, ", "),
                            TorchBlock(part), Join(outputs, ", "));
        body += fmt::format(
            "    {}, = torch.compile(region_{}, fullgraph=True, dynamic=False, backend=\"{}\")({})\n",
            Join(outputs, ", "), count, compiler, Join(inputs, ", "));
      }
      begin = end;
    }
    return text + "\n\ndef compute(given):\n" + body + Observed();
  }

  /// What a part takes from before it, and what is wanted of it afterwards.
  std::pair<std::vector<std::string>, std::vector<std::string>> Interface(
      const std::vector<PlacedStep>& part, const std::vector<PlacedStep>& later) const {
    std::set<std::string> made, taken, wanted;
    std::vector<std::string> inputs, outputs;
    for (const PlacedStep& placed : later) {
      for (const auto& name : NamesUsed(*placed.step)) wanted.insert(name);
    }
    for (const auto& name : case_.observe) wanted.insert(name.substr(0, name.find('.')));
    for (const PlacedStep& placed : part) {
      for (const auto& name : NamesUsed(*placed.step)) {
        if (!made.contains(name) && taken.insert(name).second) inputs.push_back(Variable(name));
      }
      if (!placed.step->as.empty() && made.insert(placed.step->as).second && wanted.contains(placed.step->as))
        outputs.push_back(Variable(placed.step->as));
    }
    if (outputs.empty() && !made.empty()) outputs.push_back(Variable(*made.begin()));
    return {inputs, outputs};
  }

  // ---- JAX

  std::string Jax() {
    std::string functions, steps, recast;
    std::set<std::string> defined;
    const Step* backward = nullptr;
    for (const PlacedStep& placed : placed_) {
      const Step& step = *placed.step;
      if (backward != nullptr) problem_ = "there is no script for steps after backward in JAX";
      if (step.op == "backward") {
        backward = &step;
        continue;
      }
      if (step.op == "set_data") {
        const auto* to = std::get_if<Attr::Map>(&FindAttr(step, "to")->value);
        const auto cast = to->find("cast");
        if (!steps.empty() || cast == to->end()) problem_ = "there is no script for this set_data in JAX";
        if (cast != to->end())
          recast += fmt::format("    given[{0}] = given[{0}].astype({1})\n", Quoted(step.of[0].name),
                                Literal(cast->second, "jnp"));
        continue;
      }
      const std::string own = "op_" + step.op;
      const OpRow* row = FindOp(step.op);
      // What takes operands alone has its name in jax.numpy too, or the adapter would have refused it.
      const bool plain = row != nullptr && row->attributes.empty() && row->kind == OpRow::Kind::kValue;
      if (!JaxDefinitions().contains(own) && !plain) {
        problem_ = "there is no script for the step " + step.op + " in JAX";
        continue;
      }
      DefineForJax(own, &defined, &functions);
      std::string call = fmt::format("{}({})", JaxDefinitions().contains(own) ? own : "jnp." + step.op,
                                     Arguments(step, "jnp"));
      const bool no_grad = std::any_of(placed.scopes.begin(), placed.scopes.end(),
                                       [](const Step* scope) { return scope->op == "no_grad"; });
      if (no_grad) call = "jax.lax.stop_gradient(" + call + ")";
      steps += fmt::format("    {} = {}\n", Variable(step.as), call);
    }
    std::string inputs;
    for (const TensorSpec& spec : case_.tensors)
      inputs += fmt::format("    {} = given[{}]\n", Variable(spec.name), Quoted(spec.name));
    std::string program =
        "\n\ndef program(given):\n" + (recast.empty() ? "" : "    given = dict(given)\n" + recast);
    program += backward == nullptr ? inputs + steps + Observed() : Gradients(*backward, inputs, steps);
    const std::string call = name_ == "jax" ? "jax.jit(program)" : "program";
    if (functions.find("math.") != functions.npos) functions.insert(0, "\nimport math\n");
    return functions + program + "\n\ndef compute(given):\n    return " + call +
           "({name: jnp.asarray(value) for name, value in given.items()})\n";
  }

  std::string Gradients(const Step& backward, const std::string& inputs, const std::string& steps) const {
    std::vector<std::string> leaves, values, returned;
    for (const TensorSpec& spec : case_.tensors) {
      if (spec.requires_grad) leaves.push_back(Quoted(spec.name));
    }
    std::string body = "\n    def forward(leaves):\n        here = {**given, **leaves}\n";
    const auto indent = [](std::string text) {
      for (size_t at = 0; at != text.npos && at < text.size();
           at = text.find('\n', at) == text.npos ? text.npos : text.find('\n', at) + 1)
        text.insert(at, "    ");
      return text;
    };
    std::string inside = inputs;
    for (size_t at = inside.find("given["); at != inside.npos; at = inside.find("given[", at + 1))
      inside.replace(at, 5, "here");
    std::vector<std::string> kept{Quoted(backward.of[0].name) + ": " + Variable(backward.of[0].name)};
    const Attr* grad = FindAttr(backward, "grad");
    const auto* seed = grad == nullptr ? nullptr : std::get_if<std::string>(&grad->value);
    if (seed != nullptr) kept.push_back(Quoted(*seed) + ": " + Variable(*seed));
    for (const auto& name : case_.observe) {
      if (name.ends_with(".grad")) {
        const std::string base = name.substr(0, name.find('.'));
        returned.push_back(fmt::format("{}: gradients.get({})", Quoted(name), Quoted(base)));
      } else if (name.find('.') == name.npos && name != "trace" && name != "peak_bytes") {
        kept.push_back(Quoted(name) + ": " + Variable(name));
        returned.push_back(fmt::format("{}: values[{}]", Quoted(name), Quoted(name)));
      }
    }
    body += indent(inside) + indent(steps);
    body += fmt::format("        return {}, {{{}}}\n\n", Variable(backward.of[0].name), Join(kept, ", "));
    body += fmt::format(
        "    loss, pull, values = jax.vjp(forward, {{name: given[name] for name in [{}]}}, has_aux=True)\n",
        Join(leaves, ", "));
    body += fmt::format("    gradients, = pull({})\n",
                        seed == nullptr ? "jnp.ones_like(loss)" : "values[" + Quoted(*seed) + "]");
    return body + "    return {" + Join(returned, ", ") + "}\n";
  }

  static std::string BackendName(const std::string& backend) {
    return backend.substr(0, backend.find_first_of("@:"));
  }

  const Case& case_;
  const ReproSubject& subject_;
  std::string name_;
  std::vector<PlacedStep> placed_;
  std::string problem_;
};

constexpr std::string_view kPartingHead = R"py(import base64
import json
import os
import subprocess
import sys
)py";

constexpr std::string_view kPartingMain = R"py(

def told(compute, tensor, dtypes, bits):
    """name -> [bits, numbers, dtype] of what `compute` gives for INPUTS, or what it raises."""
    given = {name: tensor(base64.b64decode(data), dtypes[dtype], shape) for name, (dtype, shape, data) in INPUTS.items()}
    try:
        values = compute(given)
    except Exception as error:
        return {"raised": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
    return {name: bits(value) for name, value in values.items() if value is not None}


def main():
    if len(sys.argv) > 1:
        print("TOLD" + json.dumps(SIDES[sys.argv[1]]()))
        return 0
    found = {}
    for name in SIDES:
        said = subprocess.run([sys.executable, __file__, name], stdout=subprocess.PIPE, text=True, check=True).stdout
        found[name] = json.loads(said.partition("TOLD")[2])
    (first, one), (second, other) = found.items()
    if "raised" in one or "raised" in other:
        for name, side in found.items():
            print(f"{name}: {'raises ' + side['raised'] if 'raised' in side else 'completes'}")
        return 0 if ("raised" in one) != ("raised" in other) else 1
    parted = False
    for value in one:
        if value not in other:
            continue
        (bits, numbers, dtype), (bits_2, numbers_2, dtype_2) = one[value], other[value]
        dtype, dtype_2 = dtype.removeprefix("torch."), dtype_2.removeprefix("torch.")
        differ = [i for i in range(len(bits)) if bits[i] != bits_2[i]] if len(bits) == len(bits_2) else []
        if dtype != dtype_2 or len(bits) != len(bits_2):
            print(f"{value}: {dtype} of {len(bits)} elements from {first}, {dtype_2} of {len(bits_2)} from {second}")
            parted = True
        elif differ:
            i = differ[0]
            print(f"{value}: {len(differ)} of {len(bits)} elements differ, the first at {i}: "
                  f"{numbers[i]!r} from {first}, {numbers_2[i]!r} from {second}")
            parted = True
        else:
            print(f"{value}: the same {len(bits)} elements")
    return 0 if parted else 1


if __name__ == "__main__":
    sys.exit(main())
)py";

std::string Base64(const std::vector<std::byte>& bytes) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t j = 0; j < 3; ++j) group = group << 8 | (j < count ? static_cast<uint32_t>(bytes[i + j]) : 0);
    for (size_t j = 0; j < 4; ++j) text += j <= count ? kLetters[group >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

/// As safetensors calls them, which the scripts' tables are made for.
std::string_view ShortDType(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return "F64";
    case DType::kFloat32:
      return "F32";
    case DType::kFloat16:
      return "F16";
    case DType::kBfloat16:
      return "BF16";
    case DType::kFloat8E4m3fn:
      return "F8_E4M3";
    case DType::kFloat8E5m2:
      return "F8_E5M2";
    case DType::kFloat8E4m3fnuz:
      return "F8_E4M3FNUZ";
    case DType::kInt64:
      return "I64";
    case DType::kInt32:
      return "I32";
    case DType::kInt16:
      return "I16";
    case DType::kInt8:
      return "I8";
    case DType::kUint8:
      return "U8";
    case DType::kBool:
      return "BOOL";
  }
  return "F32";
}

/// A long string as Python puts it together from lines.
std::string LongText(const std::string& text) {
  constexpr size_t kLine = 100;
  if (text.size() <= kLine) return "\"" + text + "\"";
  std::string lines = "(";
  for (size_t begin = 0; begin < text.size(); begin += kLine)
    lines += "\n        \"" + text.substr(begin, kLine) + "\"";
  return lines + ")";
}

/// A side that cannot be computed here: what it gave.
std::string RecordedSide(const std::string& function, const PartingSide& side) {
  std::string text = fmt::format("\n\ndef {}():\n    \"\"\"{}: the values that were recorded.\"\"\"\n",
                                 function, side.subject.backend);
  if (side.subject.outcome.kind != OutcomeKind::kCompleted)
    return text + fmt::format("    return {{\"raised\": {}}}\n",
                              Quoted(side.subject.outcome.error_class + ": " + side.subject.outcome.text));
  text += "    return {\n";
  for (const auto& [name, value] : side.values) {
    std::vector<std::string> bits, numbers;
    const size_t width = SizeOf(value.dtype);
    for (int64_t i = 0; i < value.size(); ++i) {
      uint64_t pattern = 0;
      std::memcpy(&pattern, value.bytes.data() + static_cast<size_t>(i) * width, width);
      bits.push_back(std::to_string(pattern));
      numbers.push_back(PyNumber(value.At(i)));
    }
    text += fmt::format("        {}: [[{}], [{}], {}],\n", Quoted(name), Join(bits, ", "),
                        Join(numbers, ", "), Quoted(Name(value.dtype)));
  }
  return text + "    }\n";
}

}  // namespace

Result<std::string> WritePartingScript(const Case& test_case, const std::map<std::string, TensorData>& inputs,
                                       const PartingSide& first, const PartingSide& second,
                                       const std::string& about) {
  std::string sides, table;
  bool any = false;
  std::string no_script;
  int number = 0;
  for (const PartingSide* side : {&first, &second}) {
    const std::string function = fmt::format("side_{}", ++number);
    Script script(test_case, side->subject);
    const auto text = script.Function(function);
    any = any || text;
    if (!text && script.IsPython()) return Fail(text.error());
    if (!text) no_script += (no_script.empty() ? "" : "; ") + text.error().message;
    sides += text ? *text : RecordedSide(function, *side);
    table += fmt::format("{}{}: {}", number == 1 ? "" : ", ", Quoted(side->subject.backend), function);
  }
  if (!any) return Fail(no_script);
  std::string text = "#!/usr/bin/env python3\n\"\"\"" + about +
                     "\n\nExit code 0: they part here too.\n\"\"\"\n" + std::string(kPartingHead) +
                     "\n# name: (dtype, shape, bytes in base64)\nINPUTS = {\n";
  for (const TensorSpec& spec : test_case.tensors) {
    const auto input = inputs.find(spec.name);
    if (input == inputs.end()) return Fail("there are no inputs of that name: " + spec.name);
    text += fmt::format("    {}: (\"{}\", [{}], {}),\n", Quoted(spec.name), ShortDType(spec.dtype),
                        Join(spec.shape, ", "), LongText(Base64(input->second.bytes)));
  }
  return text + "}\n" + sides + "\n\nSIDES = {" + table + "}\n" + std::string(kPartingMain);
}

Result<std::string> WriteReproScript(const Case& test_case, const ReproSubject& subject) {
  return Script(test_case, subject).Write();
}

}  // namespace ulpscope
