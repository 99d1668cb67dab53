// Evaluating every value of a program.
#include "harness/compare/exact_program.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <utility>

#include "harness/base/find.h"
#include "harness/casefile/program_edits.h"
#include "harness/judge/sample.h"
#include "harness/words/ops.h"
#include "oracles/oracle.h"

namespace ulpscope {
namespace {

/// The number of compared elements of one value, and the limit for evaluating more than a few of them, in terms of
/// sums.
constexpr int64_t kMostCompared = 4096, kFewestCompared = 64, kComparedWork = int64_t{1} << 26;

void ForEachNumber(Attr* attr, const std::function<void(double*)>& visit) {
  if (auto* number = std::get_if<double>(&attr->value)) visit(number);
  if (auto* list = std::get_if<Attr::List>(&attr->value)) {
    for (Attr& each : *list) ForEachNumber(&each, visit);
  }
}

void ForEachNumber(std::vector<Step>* steps, const std::function<void(double*)>& visit) {
  for (Step& step : *steps) {
    for (Operand& operand : step.of) {
      if (operand.scalar) ForEachNumber(&*operand.scalar, visit);
    }
    for (auto& [key, attr] : step.attrs) ForEachNumber(&attr, visit);
    ForEachNumber(&step.steps, visit);
  }
}

std::set<double> NumbersOf(Case c) {
  std::set<double> numbers;
  ForEachNumber(&c.program, [&](double* number) {
    if (std::isfinite(*number)) numbers.insert(*number);
  });
  return numbers;
}

Case WithNumberMoved(Case c, double number) {
  ForEachNumber(&c.program, [&](double* each) {
    if (*each == number) *each = std::nextafter(number, std::numeric_limits<double>::infinity());
  });
  return c;
}

OracleOptions RealNumbers() {
  OracleOptions options;
  options.real = true;
  return options;
}

ProgramValue TensorValue(const TensorSpec& spec, const TensorData& data, std::vector<int64_t> elements) {
  ProgramValue value{
      .name = spec.name, .dtype = data.dtype, .shape = data.shape, .elements = std::move(elements)};
  for (const int64_t element : value.elements) {
    const double number = data.At(element);
    value.references.push_back(
        {.hi = number, .kind = std::isfinite(number) ? ReferenceKind::kExact : ReferenceKind::kDomain});
  }
  return value;
}

/// The distance of `moved` from `reference`, including the uncertainty of both.
double DistanceMoved(const Reference& reference, const Reference& moved) {
  const double apart =
      std::fabs((moved.hi - reference.hi) + (moved.lo - reference.lo)) + moved.err + reference.err;
  return std::isfinite(apart) ? apart : 0;
}

}  // namespace

std::set<double> NumbersOfOneAlone(const Case& one, const Case& other) {
  std::set<double> numbers = NumbersOf(one);
  const std::set<double> others = NumbersOf(other);
  std::erase_if(numbers, [&](double number) {
    return others.contains(number) || static_cast<double>(static_cast<float>(number)) == number;
  });
  return numbers;
}

Result<ExactEvaluation> ExactEvaluation::Open(const Case& c, const NamedTensors& inputs,
                                              const std::set<double>& numbers) {
  ExactEvaluation evaluation;
  evaluation.case_ = c;
  evaluation.inputs_ = inputs;
  evaluation.oracle_ = ULPSCOPE_TRY(OpenCaseOracle(c, inputs, RealNumbers()));
  for (const double number : numbers) {
    evaluation.moved_.push_back(
        ULPSCOPE_TRY(OpenCaseOracle(WithNumberMoved(c, number), inputs, RealNumbers())));
  }
  return evaluation;
}

int64_t ExactEvaluation::MostElements() const {
  int64_t most = kMostCompared;
  for (const std::string& name : case_.observe) {
    const auto shape = oracle_->Describe(name);
    if (!shape || shape->work_of_all <= kComparedWork) continue;
    const int64_t affordable = kComparedWork / std::max<int64_t>(1, shape->work_of_one);
    most = std::min(most, std::max(affordable, kFewestCompared));
  }
  return most;
}

ExactProgram ExactEvaluation::Values(int64_t most, const std::map<Shape, std::set<int64_t>>& also) const {
  const auto elements_of = [&](const Shape& shape) {
    const std::vector<int64_t> sample = ElementsToCheck(shape, most);
    std::set<int64_t> elements = LookupOr(also, shape);
    elements.insert(sample.begin(), sample.end());
    return std::vector<int64_t>(elements.begin(), elements.end());
  };
  ExactProgram program;
  for (const TensorSpec& spec : case_.tensors)
    program.push_back(TensorValue(spec, inputs_.at(spec.name), elements_of(spec.shape)));
  const auto add = [&](ProgramValue value) {
    const auto shape = oracle_->Describe(value.name);
    if (!shape) {
      value.gap = shape.error().message;
    } else {
      value.dtype = shape->declared;
      value.shape = shape->shape;
      value.elements = elements_of(shape->shape);
      value.references = oracle_->References(value.name, value.elements);
      value.slack.assign(moved_.empty() ? 0 : value.elements.size(), 0);
      for (const auto& oracle : moved_) {
        const std::vector<Reference> moved = oracle->References(value.name, value.elements);
        for (size_t i = 0; i < moved.size(); ++i)
          value.slack[i] += DistanceMoved(value.references[i], moved[i]);
      }
    }
    program.push_back(std::move(value));
  };
  std::set<std::string> made;
  for (const Step* step : FlatSteps(case_.program)) {
    if (step->as.empty() || !Contains(case_.observe, step->as) || !made.insert(step->as).second) continue;
    const OpRow* row = FindOp(step->op);
    ProgramValue value{.name = step->as, .op = step->op};
    value.is_view = row != nullptr && row->kind == OpRow::Kind::kView;
    for (const Operand& operand : step->of) {
      if (!operand.IsScalar()) value.operands.push_back(operand.name);
    }
    add(std::move(value));
  }
  for (const std::string& name : NamesInside(case_)) {
    const std::string step = name.substr(0, name.find('.'));
    if (step != name && made.contains(step)) add({.name = name, .op = "inside", .is_inside = true});
  }
  // Gradients are results of no step.
  for (const std::string& name : case_.observe) {
    if (name.ends_with(".grad") && made.insert(name).second) add({.name = name, .op = "backward"});
  }
  return program;
}

}  // namespace ulpscope
