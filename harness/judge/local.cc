// Cuts pieces out of a program and has them classified.
#include "harness/judge/local.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "harness/base/text.h"
#include "harness/judge/classify.h"
#include "harness/judge/label.h"
#include "harness/num/float_format.h"
#include "harness/words/ops.h"

namespace ulpscope {
namespace {

/// One step, with the scopes around it from the outermost in.
struct FlatStep {
  Step step;
  std::vector<Step> scopes;
};

/// A use: the step that reads, and the operand's name in it.
using Use = std::pair<size_t, std::string>;
using Uses = std::set<Use>;

struct Explanation {
  Uses unrounded;
  Classification classification;
};

/// More operands than this are tried unrounded one by one and all together alone.
constexpr size_t kMostCombined = 3;
constexpr size_t kMostKept = 4;

class StepJudge {
 public:
  StepJudge(const Case& opened, const std::map<std::string, TensorData>& inputs,
            const std::map<std::string, TensorData>& values, const OpenPiece& open, OracleCounts* counts)
      : case_(opened), inputs_(inputs), values_(values), open_(open), counts_(*counts) {
    Flatten(opened.program, {});
    for (size_t i = 0; i < steps_.size(); ++i) made_by_[steps_[i].step.as] = i;
  }

  std::map<std::string, Classification> Run() {
    std::map<std::string, Classification> judged;
    for (size_t i = 0; i < steps_.size(); ++i) {
      const std::string& name = steps_[i].step.as;
      if (!values_.contains(name)) continue;
      const auto shown = IsArrangement(i) ? judged.find(Shown(name)) : judged.end();
      auto classification = shown != judged.end() ? std::optional(shown->second)
                            : IsArrangement(i)    ? Classify(i, Cut(i, {}), true)
                                                  : Judge(i);
      if (classification) judged.emplace(name, std::move(*classification));
    }
    return judged;
  }

 private:
  void Flatten(const std::vector<Step>& steps, const std::vector<Step>& scopes) {
    for (const Step& step : steps) {
      if (IsScope(step.op)) {
        Step scope = step;
        scope.steps.clear();
        auto inner = scopes;
        inner.push_back(std::move(scope));
        Flatten(step.steps, inner);
      } else if (!step.as.empty()) {
        steps_.push_back({.step = step, .scopes = scopes});
      }
    }
  }

  /// Gives the elements of its operand, arranged otherwise: there is nothing to judge.
  bool IsArrangement(size_t i) const {
    const Step& step = steps_[i].step;
    const OpRow* op = FindOp(step.op);
    return step.op == "clone" || (op != nullptr && op->kind == OpRow::Kind::kView);
  }

  /// The step that computes what `name` shows, views skipped; none for tensors of the case.
  std::optional<size_t> ComputedBy(const std::string& name) const {
    const auto made = made_by_.find(name);
    if (made == made_by_.end()) return std::nullopt;
    const Step& step = steps_[made->second].step;
    if (!IsArrangement(made->second)) return made->second;
    return step.of.empty() ? std::nullopt : ComputedBy(step.of.front().name);
  }

  /// The operands of a step that other steps computed as floating-point numbers, each once.
  std::vector<std::string> ComputedOperands(size_t i) const {
    std::vector<std::string> names;
    for (const Operand& operand : steps_[i].step.of) {
      if (operand.IsScalar() || std::find(names.begin(), names.end(), operand.name) != names.end()) continue;
      const auto by = ComputedBy(operand.name);
      if (!by) continue;
      const auto value = values_.find(steps_[*by].step.as);
      const OpRow* op = FindOp(steps_[*by].step.op);
      if (value == values_.end() || !IsFloating(value->second.dtype)) continue;
      // What is made from nothing has no rounding.
      if (op != nullptr && op->operands.most == 0) continue;
      names.push_back(operand.name);
    }
    return names;
  }

  /// The name under which a use is reported: that of the value which is shown.
  std::string Shown(const std::string& operand) const {
    const auto by = ComputedBy(operand);
    return by ? steps_[*by].step.as : operand;
  }

  struct Piece {
    Case program;
    std::map<std::string, TensorData> inputs;
    std::set<std::string> unrounded;
  };

  /// A framework may compute one op by two of its own. The value of the first has the op's name and `inner` for a name.
  struct Form {
    std::vector<Step> steps;
  };

  /// x @ w.T rounded, then the bias: what a framework does whose linear takes none.
  std::vector<Form> FormsOf(size_t i) const {
    const Step& step = steps_[i].step;
    const bool linear = step.op == "linear" && step.of.size() == 3;
    const bool addmm = (step.op == "addmm" || step.op == "baddbmm") && step.attrs.empty();
    if (!linear && !addmm) return {};
    Step product = step, sum = step;
    product.as = step.as + ".product";
    product.op = linear ? "linear" : "matmul";
    product.of.erase(linear ? product.of.end() - 1 : product.of.begin());
    sum.op = "add";
    sum.attrs.clear();
    sum.of = {{.name = product.as, .scalar = {}}, linear ? step.of.back() : step.of.front()};
    return {{.steps = {std::move(product), std::move(sum)}}};
  }

  /// The steps that `last` and the unrounded uses need, on stored tensors where a use is not unrounded. `rounded`: operands of
  /// `last` that are rounded to a format first.
  std::optional<Piece> Cut(size_t last, const Uses& unrounded,
                           const std::map<std::string, const FloatFormat*>& rounded = {},
                           const Form* form = nullptr) const {
    std::set<size_t> inside{last};
    std::vector<size_t> pending{last};
    while (!pending.empty()) {
      const size_t i = pending.back();
      pending.pop_back();
      for (const Operand& operand : steps_[i].step.of) {
        if (operand.IsScalar() || !ReadsInside(i, operand.name, unrounded)) continue;
        const size_t maker = made_by_.at(operand.name);
        if (inside.insert(maker).second) pending.push_back(maker);
      }
    }
    Piece piece;
    piece.program.id = case_.id;
    piece.program.observe = {steps_[last].step.as};
    for (const size_t i : inside) {
      const std::vector<Step> own{steps_[i].step};
      for (Step step : i == last && form != nullptr ? form->steps : own) {
        for (Operand& operand : step.of) {
          if (operand.IsScalar() || operand.name.starts_with(steps_[i].step.as + ".")) continue;
          const bool makes = ReadsInside(i, operand.name, unrounded);
          if (makes) {
            if (!IsArrangement(made_by_.at(operand.name))) piece.unrounded.insert(operand.name);
            continue;
          }
          // The same value may be made inside for another use.
          const auto maker = made_by_.find(operand.name);
          const std::string name = maker != made_by_.end() && inside.contains(maker->second)
                                       ? operand.name + "@stored"
                                       : operand.name;
          const auto format = i == last ? rounded.find(operand.name) : rounded.end();
          if (!AddTensor(operand.name, name, format == rounded.end() ? nullptr : format->second, &piece))
            return std::nullopt;
          operand.name = name;
        }
        for (size_t scope = steps_[i].scopes.size(); scope-- > 0;) {
          Step around = steps_[i].scopes[scope];
          around.steps = {std::move(step)};
          step = std::move(around);
        }
        piece.program.program.push_back(std::move(step));
      }
    }
    return piece;
  }

  bool ReadsInside(size_t i, const std::string& operand, const Uses& unrounded) const {
    return made_by_.contains(operand) && unrounded.contains({i, operand});
  }

  bool AddTensor(const std::string& name, const std::string& as, const FloatFormat* rounded,
                 Piece* piece) const {
    if (piece->program.FindTensor(as) != nullptr) return true;
    const auto input = inputs_.find(name);
    const auto value = values_.find(name);
    const TensorData* data = input != inputs_.end()   ? &input->second
                             : value != values_.end() ? &value->second
                                                      : nullptr;
    if (data == nullptr) return false;
    TensorData copy = *data;
    if (rounded != nullptr && IsFloating(copy.dtype)) {
      for (int64_t k = 0; k < copy.size(); ++k) copy.Set(k, RoundTo(copy.At(k), *rounded));
    }
    TensorSpec spec;
    spec.name = as;
    spec.dtype = copy.dtype;
    spec.shape = copy.shape;
    piece->program.tensors.push_back(std::move(spec));
    piece->inputs.emplace(as, std::move(copy));
    return true;
  }

  std::optional<Classification> Classify(size_t last, const std::optional<Piece>& piece, bool natural) {
    if (!piece) return std::nullopt;
    const std::string& name = steps_[last].step.as;
    auto oracle = open_(piece->program, piece->inputs, {.unrounded = piece->unrounded, .natural = natural});
    if (!oracle) return std::nullopt;
    if (const auto shape = (*oracle)->Describe(name);
        shape && shape->reduction_length > 0 && piece->unrounded.empty())
      sums_.insert(last);
    ClassifyOptions options;
    options.search = !natural;
    Classification found = ClassifyValue(**oracle, name, values_.at(name), options);
    counts_ += (*oracle)->Counts();
    if (!piece->unrounded.empty()) LeaveOut(piece->unrounded, *oracle.value(), name, &found);
    return found;
  }

  /// What is read before its rounding is said by `reads`, not by the models.
  void LeaveOut(const std::set<std::string>& unrounded, const CaseOracle& oracle, const std::string& name,
                Classification* found) const {
    auto shape = oracle.Describe(name);
    if (!shape) return;
    std::erase_if(shape->cut_points, [&](const std::string& cut) { return unrounded.contains(cut); });
    const auto strip = [&](std::vector<PrecisionModel>* models) {
      std::set<PrecisionModel> left;
      for (PrecisionModel& model : *models) {
        for (const std::string& each : unrounded) model.cuts.erase(each);
        if (model.mid == "float32" && model.cuts.empty()) model.mid = "none";
        left.insert(std::move(model));
      }
      models->assign(left.begin(), left.end());
    };
    strip(&found->models);
    strip(&found->models_proved);
    found->facets.clear();
    found->facets_in.clear();
    found->cuts.clear();
    ProjectFacets(*shape, found);
    found->label = LabelOf(*shape, values_.at(name).dtype, *found);
  }

  /// The uses of `last` in `operands` and, with them, those by which their producers were explained.
  Uses With(size_t last, const std::vector<std::string>& operands, bool all_before) const {
    Uses uses;
    for (const std::string& operand : operands) AddChain(last, operand, all_before, &uses);
    return uses;
  }

  void AddChain(size_t reader, const std::string& operand, bool all_before, Uses* uses) const {
    if (!uses->insert({reader, operand}).second) return;
    const auto maker = made_by_.find(operand);
    if (maker == made_by_.end()) return;
    if (IsArrangement(maker->second)) {
      const Step& view = steps_[maker->second].step;
      if (!view.of.empty() && !view.of.front().IsScalar())
        AddChain(maker->second, view.of.front().name, all_before, uses);
      return;
    }
    if (all_before) {
      for (const std::string& before : ComputedOperands(maker->second))
        AddChain(maker->second, before, all_before, uses);
      return;
    }
    const auto known = explained_.find(maker->second);
    if (known != explained_.end()) uses->insert(known->second.begin(), known->second.end());
  }

  /// A sum whose result is read unrounded: with every accumulator of the bank such a piece explains too much.
  bool SumsBefore(size_t last, const Uses& uses) const {
    return std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
      const auto by = ComputedBy(use.second);
      return by && *by != last && sums_.contains(*by);
    });
  }

  static std::vector<std::vector<std::string>> Combinations(const std::vector<std::string>& names) {
    std::vector<std::vector<std::string>> all;
    if (names.size() <= kMostCombined) {
      for (size_t bits = 1; bits < size_t{1} << names.size(); ++bits) {
        auto& some = all.emplace_back();
        for (size_t i = 0; i < names.size(); ++i) {
          if ((bits >> i & 1) != 0) some.push_back(names[i]);
        }
      }
    } else {
      for (const std::string& name : names) all.push_back({name});
      all.push_back(names);
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a.size() < b.size(); });
    return all;
  }

  std::optional<Classification> Judge(size_t last) {
    auto stored = Classify(last, Cut(last, {}), false);
    if (!stored || stored->kind == ClassificationKind::kNoReference ||
        stored->kind == ClassificationKind::kNotFloating)
      return stored;
    const auto operands = ComputedOperands(last);
    std::vector<Explanation> found;
    if (stored->fits) found.push_back({.unrounded = {}, .classification = *stored});
    std::set<Uses> tried;
    const auto grow = [&](bool all_before, bool natural) {
      for (const auto& some : Combinations(operands)) {
        const Uses uses = With(last, some, all_before);
        if (found.size() >= kMostKept || !tried.insert(uses).second) continue;
        const auto piece = Cut(last, uses);
        if (!natural && SumsBefore(last, uses)) continue;
        auto grown = Classify(last, piece, natural);
        if (grown && grown->fits) found.push_back({.unrounded = uses, .classification = std::move(*grown)});
      }
    };
    for (const Form& form : found.empty() ? FormsOf(last) : std::vector<Form>()) {
      auto formed = Classify(last, Cut(last, {}, {}, &form), true);
      if (formed && formed->fits) found.push_back({.unrounded = {}, .classification = std::move(*formed)});
    }
    grow(false, true);
    if (found.empty()) grow(true, true);
    tried.clear();
    if (found.empty()) grow(false, false);
    if (found.empty()) return Said(InOtherFormats(last, std::move(*stored)));
    const Explanation& simplest = found.front();
    explained_[last] = simplest.unrounded;
    Classification result = simplest.classification;
    for (const std::string& operand : operands) {
      auto& words = result.reads[Shown(operand)];
      for (const Explanation& each : found) {
        const char* word = each.unrounded.contains({last, operand}) ? "unrounded" : "stored";
        if (std::find(words.begin(), words.end(), word) == words.end()) words.emplace_back(word);
      }
    }
    return Said(std::move(result));
  }

  /// The label, with what was read otherwise than as it is stored in front.
  static Classification Said(Classification classification) {
    std::vector<std::string> parts;
    for (const auto& [operand, words] : classification.reads) {
      if (std::find(words.begin(), words.end(), "stored") != words.end()) continue;
      parts.push_back(words == std::vector<std::string>{"unrounded"}
                          ? operand + " read before it is rounded"
                          : operand + " read as " + Join(words, " or "));
    }
    if (!parts.empty()) classification.label = Join(parts, ", ") + "; " + classification.label;
    return classification;
  }

  /// Nothing explains the results from operands as they are or were: each in a narrower format.
  Classification InOtherFormats(size_t last, Classification stored) {
    std::vector<std::string> floating;
    for (const Operand& operand : steps_[last].step.of) {
      if (operand.IsScalar() || std::find(floating.begin(), floating.end(), operand.name) != floating.end())
        continue;
      const auto input = inputs_.find(operand.name);
      const auto value = values_.find(operand.name);
      const DType dtype = input != inputs_.end()   ? input->second.dtype
                          : value != values_.end() ? value->second.dtype
                                                   : DType::kBool;
      if (IsFloating(dtype)) floating.push_back(operand.name);
    }
    std::optional<Classification> best;
    std::map<std::string, std::set<std::string>> words;
    for (const FloatFormat* format : {&Bfloat16(), &Binary16()}) {
      for (const auto& some : Combinations(floating)) {
        std::map<std::string, const FloatFormat*> rounded;
        for (const std::string& name : some) rounded[name] = format;
        auto found = Classify(last, Cut(last, {}, rounded), true);
        if (!found || !found->fits) continue;
        for (const std::string& name : some) words[Shown(name)].insert(std::string(format->name));
        if (!best) best = std::move(found);
        break;
      }
    }
    if (!best) return stored;
    for (const auto& [name, formats] : words) best->reads[name].assign(formats.begin(), formats.end());
    for (const std::string& operand : ComputedOperands(last))
      best->reads.try_emplace(Shown(operand), std::vector<std::string>{"stored"});
    return *best;
  }

  const Case& case_;
  const std::map<std::string, TensorData>& inputs_;
  const std::map<std::string, TensorData>& values_;
  const OpenPiece& open_;
  OracleCounts& counts_;
  std::vector<FlatStep> steps_;
  std::map<std::string, size_t> made_by_;
  std::set<size_t> sums_;             ///< steps that hold a sum
  std::map<size_t, Uses> explained_;  ///< the unrounded uses by which a step's own results were explained
};

}  // namespace

std::map<std::string, Classification> JudgeSteps(const Case& opened,
                                                 const std::map<std::string, TensorData>& inputs,
                                                 const std::map<std::string, TensorData>& values,
                                                 const OpenPiece& open, OracleCounts* counts) {
  return StepJudge(opened, inputs, values, open, counts).Run();
}

std::set<std::string> ChangedByOpening(const std::map<std::string, TensorData>& plain,
                                       const std::map<std::string, TensorData>& opened) {
  std::set<std::string> changed;
  for (const auto& [name, data] : plain) {
    const auto other = opened.find(name);
    if (other == opened.end() || !(other->second == data)) changed.insert(name);
  }
  return changed;
}

}  // namespace ulpscope
