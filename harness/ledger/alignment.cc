// Matches values, and finds the step in which two programs differ.
#include "harness/ledger/alignment.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace ulpscope {
namespace {

double SlackOf(const ProgramValue& value, size_t i) { return value.slack.empty() ? 0 : value.slack[i]; }

Agreement CompareAt(const ProgramValue& a, const ProgramValue& b, size_t i) {
  return Compare(a.references[i], b.references[i], SlackOf(a, i) + SlackOf(b, i));
}

/// One program, as the search for the parting sees it.
class TracedProgram {
 public:
  TracedProgram(const ExactProgram& program, std::vector<int> matches)
      : program_(program), matches_(std::move(matches)) {
    for (size_t i = 0; i < program.size(); ++i) number_.emplace(program[i].name, i);
    for (size_t i = 0; i < program.size(); ++i) {
      // A view computes nothing: a view of a known value is known too.
      const bool seen =
          program[i].is_view && !program[i].operands.empty() && IsKnown(program[i].operands.front());
      known_.push_back(matches_[i] >= 0 || seen);
    }
  }

  bool IsKnown(const std::string& name) const {
    const auto found = number_.find(name);
    return found != number_.end() && found->second < known_.size() && known_[found->second];
  }
  const ProgramValue* Find(const std::string& name) const {
    const auto found = number_.find(name);
    return found == number_.end() ? nullptr : &program_[found->second];
  }
  void Forget(const std::string& name) { known_[number_.at(name)] = false; }

  /// Marks the steps with unknown values that reach a differing result through unknown values alone.
  void Trace(const std::set<std::string>& results) {
    std::set<std::string> wanted = results;
    for (size_t i = program_.size(); i-- > 0;) {
      const ProgramValue& value = program_[i];
      if (value.op.empty() || known_[i] || !wanted.contains(value.name)) continue;
      way_.insert(way_.begin(), &value);
      wanted.insert(value.operands.begin(), value.operands.end());
    }
  }
  /// In program order.
  const std::vector<const ProgramValue*>& way() const { return way_; }
  std::vector<const ProgramValue*>::const_iterator FirstOfWay() const {
    return std::ranges::find_if(
        way_, [&](const ProgramValue* step) { return step->gap.empty() && IsFrontier(*step); });
  }
  bool IsFrontier(const ProgramValue& value) const {
    return std::ranges::all_of(value.operands, [&](const std::string& name) { return IsKnown(name); });
  }

 private:
  const ExactProgram& program_;
  std::vector<int> matches_;
  std::map<std::string, size_t> number_;
  std::vector<bool> known_;
  std::vector<const ProgramValue*> way_;
};

/// Whether a step bears the name of its op, as steps without a given name do: "add", "rstd_add_2". Two of one
/// name are no pair by that.
bool IsCalledAfterOp(const ProgramValue& step) {
  std::string_view name = step.name;
  const size_t last = name.find_last_not_of("0123456789");
  if (last != name.npos && last + 1 < name.size() && name[last] == '_') name = name.substr(0, last);
  const std::string_view op = step.op;
  return name == op || (name.ends_with(op) && name[name.size() - op.size() - 1] == '_');
}

/// The step of `f` that corresponds to `step` and differs from it; null if `f` has none.
const ProgramValue* CounterpartOf(const ProgramValue& step, const TracedProgram& f) {
  const auto find = [&](const auto& fits) {
    const auto found = std::ranges::find_if(f.way(), [&](const ProgramValue* each) {
      return each->elements == step.elements && each->shape == step.shape && fits(*each) &&
             FirstDifferent(*each, step).has_value();
    });
    return found == f.way().end() ? nullptr : *found;
  };
  const auto same_op = [&](const ProgramValue& each) { return each.op == step.op; };
  const bool is_named = !IsCalledAfterOp(step);
  const auto same_name = [&](const ProgramValue& each) { return is_named && each.name == step.name; };
  const std::function<bool(const ProgramValue&)> choices[] = {
      [&](const ProgramValue& each) { return same_op(each) && same_name(each) && f.IsFrontier(each); },
      [&](const ProgramValue& each) { return same_op(each) && same_name(each); },
      [&](const ProgramValue& each) { return same_op(each) && f.IsFrontier(each); },
      same_name,
  };
  for (const auto& fits : choices) {
    if (const ProgramValue* found = find(fits)) return found;
  }
  return nullptr;
}

}  // namespace

Agreement Compare(const Reference& a, const Reference& b, double slack) {
  if (a.kind == ReferenceKind::kUndecided || b.kind == ReferenceKind::kUndecided)
    return Agreement::kUndecided;
  if (!std::isfinite(a.hi) || !std::isfinite(b.hi)) {
    const bool same = a.hi == b.hi || (std::isnan(a.hi) && std::isnan(b.hi));
    return same ? Agreement::kEqual : Agreement::kDiffers;
  }
  // The difference of nearly equal high parts is exact; low parts are small compared with them.
  const long double apart = (static_cast<long double>(a.hi) - b.hi) + (static_cast<long double>(a.lo) - b.lo);
  const long double allowed = static_cast<long double>(a.err) + b.err + slack;
  return std::fabs(apart) <= allowed ? Agreement::kEqual : Agreement::kDiffers;
}

std::optional<size_t> FirstDifferent(const ProgramValue& a, const ProgramValue& b) {
  for (size_t i = 0; i < a.references.size(); ++i) {
    if (CompareAt(a, b, i) == Agreement::kDiffers) return i;
  }
  return std::nullopt;
}

bool AreEqual(const ProgramValue& a, const ProgramValue& b) {
  if (!a.gap.empty() || !b.gap.empty() || a.references.empty() || a.elements != b.elements ||
      ElementCount(a.shape) != ElementCount(b.shape))
    return false;
  for (size_t i = 0; i < a.references.size(); ++i) {
    if (CompareAt(a, b, i) != Agreement::kEqual) return false;
  }
  return true;
}

std::vector<int> Align(const ExactProgram& of, const ExactProgram& in, const std::vector<ResultPair>& of_in) {
  std::vector<int> matches;
  for (const ProgramValue& value : of) {
    const auto rank = [&](const ProgramValue& each) {
      const bool paired = std::ranges::any_of(
          of_in, [&](const ResultPair& pair) { return pair.f == value.name && pair.g == each.name; });
      const bool alike = each.dtype == value.dtype && each.shape == value.shape;
      return (paired ? 16 : 0) + (each.is_inside ? 0 : 8) + (alike ? 4 : 0) +
             (each.name == value.name ? 2 : 0) + (each.op.empty() ? 0 : 1);
    };
    int best = -1, best_rank = -1;
    for (size_t i = 0; i < in.size(); ++i) {
      if (rank(in[i]) <= best_rank || !AreEqual(value, in[i])) continue;
      best = static_cast<int>(i);
      best_rank = rank(in[i]);
    }
    matches.push_back(best);
  }
  return matches;
}

std::optional<ExactParting> FindParting(const ExactProgram& f, const ExactProgram& g,
                                        const std::vector<ResultPair>& results) {
  std::vector<ResultPair> turned;
  for (const ResultPair& pair : results) turned.push_back({.f = pair.g, .g = pair.f});
  TracedProgram of_f(f, Align(f, g, results)), of_g(g, Align(g, f, turned));
  std::vector<ResultPair> differing;
  std::set<std::string> ends_f, ends_g;
  for (const ResultPair& pair : results) {
    if (!FirstDifferent(*of_f.Find(pair.f), *of_g.Find(pair.g))) continue;
    // A result that equals some other value of the other program is no result of it.
    of_f.Forget(pair.f);
    of_g.Forget(pair.g);
    differing.push_back(pair);
    ends_f.insert(pair.f);
    ends_g.insert(pair.g);
  }
  if (differing.empty()) return std::nullopt;
  of_f.Trace(ends_f);
  of_g.Trace(ends_g);
  const auto& way = of_g.way();
  const auto from = of_g.FirstOfWay(), from_f = of_f.FirstOfWay();
  ExactParting parting;
  const ProgramValue *shown_f = of_f.Find(differing.front().f), *shown_g = of_g.Find(differing.front().g);
  parting.step = shown_g->name;
  if (from == way.end()) parting.of_f = shown_f->name;
  for (auto step = from; step != way.end(); ++step) {
    if (!(*step)->gap.empty()) continue;
    const auto end = std::ranges::find(differing, (*step)->name, &ResultPair::g);
    const ProgramValue* other = end == differing.end() ? CounterpartOf(**step, of_f) : of_f.Find(end->f);
    if (step == from) parting.step = (*step)->name;
    if (other == nullptr) continue;
    if (step == from) parting.of_f = other->name;
    shown_f = other;
    shown_g = *step;
    break;
  }
  const size_t at = *FirstDifferent(*shown_f, *shown_g);
  if (from_f != of_f.way().end()) parting.only_f = (*from_f)->name;
  parting.at_f = shown_f->name;
  parting.at_g = shown_g->name;
  parting.element = shown_g->elements[at];
  parting.f = shown_f->references[at];
  parting.g = shown_g->references[at];
  return parting;
}

}  // namespace ulpscope
