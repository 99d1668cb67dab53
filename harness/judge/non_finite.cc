// Compares elements that are not finite with their exact results.
#include "harness/judge/non_finite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/model/flat_program.h"
#include "harness/num/float_format.h"

namespace ulpscope {
namespace {

/// The most elements tested: in some values the first ones are not finite in exact arithmetic either (a mask of -inf).
constexpr size_t kMostAsked = 64;

using TensorsByName = std::map<std::string, TensorData>;

enum class Special { kInfinity, kNan, kAny };

bool Is(double number, Special what) {
  return what == Special::kNan        ? std::isnan(number)
         : what == Special::kInfinity ? std::isinf(number)
                                      : !std::isfinite(number);
}

/// The number of elements that are `what`; `*elements`: the first of them that `wanted` accepts.
template <class Wanted>
int64_t CountSpecial(const TensorData& data, Special what, const Wanted& wanted,
                     std::vector<int64_t>* elements) {
  int64_t count = 0;
  if (!IsFloating(data.dtype)) return count;
  for (int64_t k = 0; k < data.size(); ++k) {
    if (!Is(data.At(k), what)) continue;
    ++count;
    if (elements->size() < kMostAsked && wanted(k)) elements->push_back(k);
  }
  return count;
}

int64_t CountSpecial(const TensorData& data, Special what) {
  std::vector<int64_t> elements;
  return CountSpecial(
      data, what, [](int64_t) { return false; }, &elements);
}

/// The element of an operand that an elementwise result at `at` reads; nothing if the shapes do not broadcast.
std::optional<double> ElementAt(const TensorData& operand, const Shape& shape,
                                const std::vector<int64_t>& at) {
  if (operand.shape.size() > shape.size()) return std::nullopt;
  int64_t index = 0;
  const size_t skipped = shape.size() - operand.shape.size();
  for (size_t axis = 0; axis < operand.shape.size(); ++axis) {
    const int64_t extent = operand.shape[axis];
    if (extent != 1 && extent != shape[axis + skipped]) return std::nullopt;
    index = index * extent + (extent == 1 ? 0 : at[axis + skipped]);
  }
  return operand.At(index);
}

/// The operands of an elementwise step at one element; none of other steps.
std::vector<double> OperandsAt(const Step& step, const std::map<std::string, TensorData>& inputs,
                               const TensorData& result, const std::vector<int64_t>& at) {
  std::vector<double> operands;
  if (IsArrangement(step) || !step.attrs.empty()) return operands;
  for (const Operand& operand : step.of) {
    std::optional<double> number;
    if (operand.IsScalar()) {
      number = operand.scalar->Number();
    } else if (const auto data = inputs.find(operand.name); data != inputs.end()) {
      number = ElementAt(data->second, result.shape, at);
    }
    if (!number) return {};
    operands.push_back(*number);
  }
  return operands;
}

/// The steps that `value` rests on.
std::set<size_t> RestsOn(const FlatProgram& program, const std::string& value) {
  std::set<size_t> needed;
  std::vector<std::string> pending{value};
  while (!pending.empty()) {
    const auto made = program.made_by.find(pending.back());
    pending.pop_back();
    if (made == program.made_by.end() || !needed.insert(made->second).second) continue;
    for (const Operand& operand : program.steps[made->second].step.of) {
      if (!operand.IsScalar()) pending.push_back(operand.name);
    }
  }
  return needed;
}

/// One step as a program of its own, and the tensors that it reads.
struct StepAlone {
  Case piece;
  TensorsByName read;
};

/// Nothing if an operand is not known.
std::optional<StepAlone> Alone(const Case& opened, const FlatStep& flat, const TensorsByName& inputs,
                               const TensorsByName& values) {
  StepAlone alone;
  alone.piece.id = opened.id;
  alone.piece.observe = {flat.step.as};
  alone.piece.program = {Inside(flat.scopes, flat.step)};
  for (const Operand& operand : flat.step.of) {
    if (operand.IsScalar() || alone.read.contains(operand.name)) continue;
    const TensorData* data = Lookup(inputs, operand.name);
    if (data == nullptr) data = Lookup(values, operand.name);
    if (data == nullptr) return std::nullopt;
    TensorSpec spec;
    spec.name = operand.name;
    spec.dtype = data->dtype;
    spec.shape = data->shape;
    alone.piece.tensors.push_back(std::move(spec));
    alone.read.emplace(operand.name, *data);
  }
  return alone;
}

/// The infinities and NaNs that begin in one step, from its operands.
class StepBirths {
 public:
  StepBirths(const Step& step, const StepAlone& alone, const CaseOracle& oracle, const TensorData& result)
      : step_(step), alone_(alone), oracle_(oracle), result_(result) {
    const auto shape = oracle.Describe(step.as);
    known_ = shape && shape->shape == result.shape;
    // An element of a step that sums nothing rests on one element of each operand.
    elementwise_ = known_ && shape->reduction_length == 0;
    for (const auto& [name, data] : alone.read)
      reads_nan_ = reads_nan_ || CountSpecial(data, Special::kNan) > 0;
  }

  std::optional<NonFinite> Of(Special what) const {
    if (!known_) return std::nullopt;
    std::vector<int64_t> elements;
    const auto may_begin = [&](int64_t k) {
      const auto operands = OperandsOf(k);
      return std::ranges::none_of(operands, [&](double each) { return Is(each, what); });
    };
    if (CountSpecial(result_, what, may_begin, &elements) == 0 || elements.empty()) return std::nullopt;
    const auto references = oracle_.References(step_.as, elements);
    for (size_t i = 0; i < elements.size(); ++i) {
      const Reference& exact = references[i];
      const auto operands = OperandsOf(elements[i]);
      const bool is_number = exact.kind != ReferenceKind::kDomain && std::isfinite(exact.hi);
      const bool forced = operands.empty() ? reads_nan_ : false;
      if (exact.kind == ReferenceKind::kUndecided || (!is_number && (what != Special::kNan || forced)))
        continue;
      NonFinite born{.value = step_.as,
                     .op = step_.op,
                     .count = CountSpecial(result_, Special::kAny),
                     .elements = result_.size(),
                     .first = Coordinates(elements[i], result_.shape),
                     .observed = result_.At(elements[i]),
                     .dtype = result_.dtype,
                     .operands = operands};
      if (!std::isnan(exact.hi)) born.exact = exact.hi;
      return born;
    }
    return std::nullopt;
  }

 private:
  std::vector<double> OperandsOf(int64_t element) const {
    if (!elementwise_) return {};
    return OperandsAt(step_, alone_.read, result_, Coordinates(element, result_.shape));
  }

  const Step& step_;
  const StepAlone& alone_;
  const CaseOracle& oracle_;
  const TensorData& result_;
  bool known_ = false, elementwise_ = false, reads_nan_ = false;
};

}  // namespace

bool HasNonFinite(const TensorData& data) { return CountSpecial(data, Special::kAny) > 0; }

std::optional<NonFinite> FindNonFinite(const CaseOracle& oracle, const std::string& value,
                                       const TensorData& observed) {
  NonFinite found{.value = value, .elements = observed.size(), .dtype = observed.dtype};
  std::vector<int64_t> elements;
  found.count = CountSpecial(
      observed, Special::kAny, [](int64_t) { return true; }, &elements);
  if (elements.empty()) return std::nullopt;
  const auto shape = oracle.Describe(value);
  if (!shape || shape->shape != observed.shape) return std::nullopt;
  const auto references = oracle.References(value, elements);
  for (size_t k = 0; k < elements.size(); ++k) {
    const Reference& exact = references[k];
    if (exact.kind == ReferenceKind::kDomain || exact.kind == ReferenceKind::kUndecided ||
        !std::isfinite(exact.hi))
      continue;
    found.first = Coordinates(elements[k], observed.shape);
    found.observed = observed.At(elements[k]);
    found.exact = exact.hi;
    return found;
  }
  return std::nullopt;
}

std::vector<NonFinite> FindBirths(const Case& opened, const std::map<std::string, TensorData>& inputs,
                                  const std::map<std::string, TensorData>& values, const std::string& value,
                                  const OpenPiece& open) {
  const FlatProgram program(opened.program);
  std::set<Special> wanted{Special::kInfinity, Special::kNan};
  std::vector<NonFinite> births;
  for (const size_t i : RestsOn(program, value)) {
    const FlatStep& flat = program.steps[i];
    const TensorData* result = Lookup(values, flat.step.as);
    if (wanted.empty()) break;
    if (result == nullptr || program.IsArrangement(i)) continue;
    if (std::ranges::none_of(wanted, [&](Special what) { return CountSpecial(*result, what) > 0; })) continue;
    const auto alone = Alone(opened, flat, inputs, values);
    if (!alone) continue;
    const auto oracle = open(alone->piece, alone->read, {});
    if (!oracle) continue;
    const StepBirths step(flat.step, *alone, **oracle, *result);
    for (const Special what : std::set<Special>(wanted)) {
      auto born = step.Of(what);
      if (!born) continue;
      births.push_back(*std::move(born));
      wanted.erase(what);
    }
  }
  return births;
}

std::vector<NonFiniteBirth::Spread> SpreadFrom(const Case& opened,
                                               const std::map<std::string, TensorData>& values,
                                               const std::string& step) {
  const FlatProgram program(opened.program);
  std::set<std::string> reached{step};
  std::vector<NonFiniteBirth::Spread> spread;
  for (const FlatStep& flat : program.steps) {
    const bool reads = std::ranges::any_of(
        flat.step.of, [&](const Operand& each) { return !each.IsScalar() && reached.contains(each.name); });
    if (reads) reached.insert(flat.step.as);
    const TensorData* data = Lookup(values, flat.step.as);
    if (data == nullptr || !reached.contains(flat.step.as)) continue;
    if (const int64_t count = CountSpecial(*data, Special::kAny); count > 0)
      spread.push_back({.step = flat.step.as, .count = count, .elements = data->size()});
  }
  return spread;
}

std::string DescribeNonFinite(const NonFinite& found) {
  const double largest = FormatOf(found.dtype)->max_finite;
  std::string exact = found.exact ? "exact " + FormatDecimal(*found.exact) : "without an exact value";
  const auto operands = Mapped(found.operands, FormatDecimal);
  if (!operands.empty()) exact += " of " + Join(operands, " and ");
  if (found.exact && std::fabs(*found.exact) > largest)
    exact += fmt::format(", beyond {}, the largest {}", FormatDecimal(largest), Name(found.dtype));
  return fmt::format("{}[{}] is {}, {} ({} of {} elements are not finite)", found.value,
                     Join(found.first, ","), FormatDecimal(found.observed), exact, found.count,
                     found.elements);
}

}  // namespace ulpscope
