// A program as JAX runs it: a pure function of its inputs, by the steps' definitions that the adapter has.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string_view>
#include <variant>
#include <vector>

#include "harness/base/text.h"
#include "harness/num/dtype.h"
#include "harness/repro/compute.h"
#include "harness/repro/jax_ops.h"
#include "harness/repro/placed_step.h"
#include "harness/repro/python_text.h"
#include "harness/words/ops.h"

namespace ulpscope {
namespace {

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

/// The parts of a script's text, as the steps are read.
class JaxProgram {
 public:
  explicit JaxProgram(const Case& test_case) : case_(test_case) {
    for (const TensorSpec& spec : case_.tensors)
      inputs_ += fmt::format("    {} = given[{}]\n", PythonVariable(spec.name), PythonString(spec.name));
    for (const PlacedStep& placed : PlaceSteps(case_.program)) Add(placed);
  }

  Result<std::string> Text(const std::string& jit) {
    if (!problem_.empty()) return Fail(problem_);
    std::string program =
        "\n\ndef program(given):\n" + (recast_.empty() ? "" : "    given = dict(given)\n" + recast_);
    program += backward_ == nullptr ? inputs_ + steps_ + ReturnText(case_) : Gradients();
    const std::string call = jit.empty() ? "program" : jit + "(program)";
    if (functions_.find("math.") != functions_.npos) functions_.insert(0, "\nimport math\n");
    return functions_ + program + "\n\ndef compute(given):\n    return " + call +
           "({name: jnp.asarray(value) for name, value in given.items()})\n";
  }

 private:
  void Add(const PlacedStep& placed) {
    const Step& step = *placed.step;
    if (backward_ != nullptr) problem_ = "there is no script for steps after backward in JAX";
    if (step.op == "backward") {
      backward_ = &step;
    } else if (step.op == "set_data") {
      AddRecast(step);
    } else {
      AddCall(placed);
    }
  }

  void AddRecast(const Step& step) {
    const auto to = ReadSetDataTo(step);
    const DType* dtype = to ? std::get_if<DType>(&*to) : nullptr;
    if (!steps_.empty() || dtype == nullptr) problem_ = "there is no script for this set_data in JAX";
    if (dtype != nullptr)
      recast_ += fmt::format("    given[{0}] = given[{0}].astype({1})\n", PythonString(step.of[0].name),
                             PythonLiteral(Attr{.value = std::string(Name(*dtype))}, "jnp"));
  }

  void AddCall(const PlacedStep& placed) {
    const Step& step = *placed.step;
    const std::string own = "op_" + step.op;
    const bool defined = JaxDefinitions().contains(own);
    const OpRow* row = FindOp(step.op);
    // An op that takes operands alone has its name in jax.numpy too, or the adapter would have refused it.
    const bool plain = row != nullptr && row->attributes.empty() && row->kind == OpRow::Kind::kValue;
    if (!defined && !plain) {
      problem_ = "there is no script for the step " + step.op + " in JAX";
      return;
    }
    DefineForJax(own, &defined_, &functions_);
    std::string call = fmt::format("{}({})", defined ? own : "jnp." + step.op, ArgumentsText(step, "jnp"));
    const bool no_grad =
        std::ranges::any_of(placed.scopes, [](const Step* scope) { return scope->op == "no_grad"; });
    if (no_grad) call = "jax.lax.stop_gradient(" + call + ")";
    steps_ += fmt::format("    {} = {}\n", PythonVariable(step.as), call);
  }

  /// The body of a program that ends in backward: the steps are a function of the leaves, which gives what is kept too.
  std::string Gradients() const {
    std::vector<std::string> leaves, returned;
    for (const TensorSpec& spec : case_.tensors) {
      if (spec.requires_grad) leaves.push_back(PythonString(spec.name));
    }
    const auto pair = [](const std::string& name) {
      return PythonString(name) + ": " + PythonVariable(name);
    };
    const std::string& loss = backward_->of[0].name;
    std::vector<std::string> kept{pair(loss)};
    const Attr* grad = backward_->Find("grad");
    const auto* seed = grad == nullptr ? nullptr : grad->If<std::string>();
    if (seed != nullptr) kept.push_back(pair(*seed));
    for (const auto& name : case_.observe) {
      if (name.ends_with(".grad")) {
        const std::string base = name.substr(0, name.find('.'));
        returned.push_back(fmt::format("{}: gradients.get({})", PythonString(name), PythonString(base)));
      } else if (IsValueName(name)) {
        kept.push_back(pair(name));
        returned.push_back(fmt::format("{}: values[{}]", PythonString(name), PythonString(name)));
      }
    }
    std::string inputs = inputs_;
    for (size_t at = inputs.find("given["); at != inputs.npos; at = inputs.find("given[", at + 1))
      inputs.replace(at, 5, "here");
    std::string body =
        "\n    def forward(leaves):\n        here = {**given, **leaves}\n" + PythonIndented(inputs + steps_);
    body += fmt::format("\n        return {}, {{{}}}\n\n", PythonVariable(loss), Join(kept, ", "));
    body += fmt::format(
        "    loss, pull, values = jax.vjp(forward, {{name: given[name] for name in [{}]}}, has_aux=True)\n",
        Join(leaves, ", "));
    body += fmt::format("    gradients, = pull({})\n",
                        seed == nullptr ? "jnp.ones_like(loss)" : "values[" + PythonString(*seed) + "]");
    return body + "    return {" + Join(returned, ", ") + "}\n";
  }

  const Case& case_;
  std::string inputs_, functions_, steps_, recast_;
  std::set<std::string> defined_;
  const Step* backward_ = nullptr;
  std::string problem_;  ///< the last step that has no form
};

}  // namespace

Result<std::string> JaxCompute(const Case& test_case, const std::string& jit) {
  return JaxProgram(test_case).Text(jit);
}

}  // namespace ulpscope
