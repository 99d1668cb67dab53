// Cuts pieces out of a program and has them classified.
#include "harness/judge/local.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "harness/base/text.h"
#include "harness/judge/classify.h"
#include "harness/judge/flat_program.h"
#include "harness/judge/forms.h"
#include "harness/judge/label.h"
#include "harness/judge/sample.h"
#include "harness/judge/tensor_diff.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"
#include "harness/words/ops.h"

namespace ulpscope {
namespace {

/// A use: the step that reads, and the operand's name in it.
using Use = std::pair<size_t, std::string>;
using Uses = std::set<Use>;

struct Explanation {
  Uses unrounded;
  Classification classification;
  bool plain = false;                               ///< nothing is narrower than the program asks for
  std::map<std::string, std::string> changed = {};  ///< operands read in another format, or flushed
  std::set<std::string> open = {};  ///< operands that give the same bits unrounded and as they are stored
  bool few = false;                 ///< open because there are few results to tell by
  bool narrow_number = false;       ///< plain where a Python number is rounded to 16 bits alone

  /// A kernel that keeps what it computes in float32 rounds no number to 16 bits: where another one of a longer chain is as good,
  /// that one is meant.
  bool IsOdd() const { return narrow_number && !unrounded.empty(); }
};

/// What is done to an operand before it is read.
struct Change {
  const FloatFormat* format = nullptr;
  bool flush = false;                   ///< subnormals count as zero
  bool zero = false;                    ///< everything does
  const TensorData* instead = nullptr;  ///< other numbers of the same shape
};
using Changes = std::map<std::string, Change>;

constexpr const char* kScalar = "scalar.";
constexpr const char* kFlushed = "flushed";
/// Terms that are gathered to look at the results of a step together with steps before it, and the least that are looked at.
constexpr int64_t kGrownTerms = int64_t{1} << 21, kFewestGrown = 256;
/// What it may cost to try one such set of steps (ClassifyOptions::most_work): through norms and softmaxes the ways to round multiply.
constexpr int64_t kGrownWork = int64_t{1} << 27;

/// More operands than this are tried unrounded one by one and all together alone.
constexpr size_t kMostCombined = 3;
constexpr size_t kMostKept = 4;
/// Of fewer different numbers chance gives what it pleases: two ways to round part in half of the results or less.
constexpr size_t kFewNumbers = 16;
/// An operand read unrounded, and a narrow step besides: where both are free, fewer than this are given by chance.
constexpr size_t kManyNumbers = 64;

class StepJudge {
 public:
  StepJudge(const Case& opened, const std::map<std::string, TensorData>& inputs,
            const std::map<std::string, TensorData>& values, const OpenPiece& open, OracleCounts* counts)
      : case_(opened),
        inputs_(inputs),
        values_(values),
        open_(open),
        counts_(*counts),
        program_(opened.program) {}

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
  bool IsArrangement(size_t i) const { return program_.IsArrangement(i); }
  std::optional<size_t> ComputedBy(const std::string& name) const { return program_.ComputedBy(name); }

  /// The operands of a step that other steps with a reference computed as floating-point numbers, each once.
  std::vector<std::string> ComputedOperands(size_t i) const {
    std::vector<std::string> names;
    for (const Operand& operand : steps_[i].step.of) {
      if (operand.IsScalar() || std::find(names.begin(), names.end(), operand.name) != names.end()) continue;
      const auto by = ComputedBy(operand.name);
      if (!by) continue;
      const auto value = values_.find(steps_[*by].step.as);
      const OpRow* op = FindOp(steps_[*by].step.op);
      if (value == values_.end() || !IsFloating(value->second.dtype)) continue;
      // What is made from nothing has no rounding; what has no reference is given as it is stored.
      if ((op != nullptr && op->operands.most == 0) || given_.contains(*by)) continue;
      names.push_back(operand.name);
    }
    return names;
  }

  /// Of results of other steps that have a fraction nobody knows whether they were read as they are stored.
  bool ReadsComputedNumbers(size_t i) const {
    const auto& operands = steps_[i].step.of;
    return std::any_of(operands.begin(), operands.end(), [&](const Operand& operand) {
      if (operand.IsScalar()) return false;
      const auto by = ComputedBy(operand.name);
      if (!by) return false;
      const auto value = values_.find(steps_[*by].step.as);
      return value == values_.end() || IsFloating(value->second.dtype);
    });
  }

  /// The name under which a use is reported: that of the value which is shown.
  std::string Shown(const std::string& operand) const {
    const auto by = ComputedBy(operand);
    return by ? steps_[*by].step.as : operand;
  }

  /// The same; of two operands that show one value, their own names: one may be read otherwise than the other.
  std::string NameOfUse(size_t last, const std::string& operand) const {
    std::set<std::string> same;
    for (const Operand& each : steps_[last].step.of) {
      if (!each.IsScalar() && Shown(each.name) == Shown(operand)) same.insert(each.name);
    }
    return same.size() > 1 ? operand : Shown(operand);
  }

  struct Piece {
    Case program;
    std::map<std::string, TensorData> inputs;
    std::set<std::string> unrounded;
  };

  /// The steps that `last` and the unrounded uses need, on stored tensors where a use is not unrounded. `changes`: to operands
  /// of `last`. `form`: steps in its place.
  std::optional<Piece> Cut(size_t last, const Uses& unrounded, const Changes& changes = {},
                           const std::vector<Step>& form = {}) const {
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
      const auto other = forms_.find(i);
      const std::vector<Step> own =
          i != last && other != forms_.end() ? other->second : std::vector<Step>{steps_[i].step};
      for (Step step : i == last && !form.empty() ? form : own) {
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
          const Changes& read = i == last ? changes : ChangesOf(i);
          const auto change = read.find(operand.name);
          const std::string as = i == last || change == read.end() ? name : name + "@in_" + step.as;
          if (!AddTensor(operand.name, as, change == read.end() ? Change() : change->second, &piece))
            return std::nullopt;
          operand.name = as;
        }
        piece.program.program.push_back(Inside(steps_[i].scopes, std::move(step)));
      }
    }
    return piece;
  }

  /// In which formats a step was found to read its operands.
  const Changes& ChangesOf(size_t i) const {
    static const Changes kNone;
    const auto known = changes_.find(i);
    return known == changes_.end() ? kNone : known->second;
  }

  bool ReadsInside(size_t i, const std::string& operand, const Uses& unrounded) const {
    return made_by_.contains(operand) && unrounded.contains({i, operand});
  }

  /// As the backend had it: a tensor of the case, or what another step gave; null for neither.
  const TensorData* DataOf(const std::string& name) const {
    if (const auto input = inputs_.find(name); input != inputs_.end()) return &input->second;
    const auto value = values_.find(name);
    return value == values_.end() ? nullptr : &value->second;
  }

  bool AddTensor(const std::string& name, const std::string& as, const Change& change, Piece* piece) const {
    if (piece->program.FindTensor(as) != nullptr) return true;
    const TensorData* data = DataOf(name);
    if (data == nullptr) return false;
    TensorData copy = change.instead != nullptr ? *change.instead : *data;
    for (int64_t k = 0; IsFloating(copy.dtype) && k < copy.size(); ++k) {
      const double number = copy.At(k);
      if (change.format != nullptr) copy.Set(k, RoundTo(number, *change.format));
      if (change.zero || (change.flush && IsSubnormal(number, copy.dtype))) copy.Set(k, 0);
    }
    TensorSpec spec;
    spec.name = as;
    spec.dtype = copy.dtype;
    spec.shape = copy.shape;
    piece->program.tensors.push_back(std::move(spec));
    piece->inputs.emplace(as, std::move(copy));
    return true;
  }

  std::optional<Classification> Classify(size_t last, const std::optional<Piece>& piece, bool natural,
                                         const TensorData* observed = nullptr,
                                         std::vector<Proposal> named = {}) {
    if (!piece) return std::nullopt;
    const std::string& name = steps_[last].step.as;
    auto oracle = open_(piece->program, piece->inputs, {.unrounded = piece->unrounded, .natural = natural});
    if (!oracle) return std::nullopt;
    const auto shape = (*oracle)->Describe(name);
    if (shape && shape->reduction_length > 0 && piece->unrounded.empty()) sums_.insert(last);
    if (shape && shape->has_steps && piece->unrounded.empty()) has_steps_.insert(last);
    if (shape && piece->unrounded.empty() && !natural) alone_ = *shape;
    ClassifyOptions options;
    options.search = !natural;
    options.named = std::move(named);
    options.settle = !ReadsComputedNumbers(last);
    // Steps that read what others computed gather every term anew: fewer elements, where sums are long.
    if (const int64_t terms = shape ? shape->terms : 1; !piece->unrounded.empty()) {
      options.most_work = kGrownWork;
      options.most_terms = kGrownTerms;
      options.most_elements =
          std::clamp(kGrownTerms / std::max<int64_t>(1, 4 * terms), kFewestGrown, options.most_elements);
    }
    Classification found =
        ClassifyValue(**oracle, name, observed == nullptr ? values_.at(name) : *observed, options);
    counts_ += (*oracle)->Counts();
    if (!piece->unrounded.empty()) LeaveOut(piece->unrounded, *oracle.value(), last, &found);
    return found;
  }

  static std::string CoarsestOf(const std::map<std::string, std::string>& cuts) {
    std::string coarsest = "none";
    for (const auto& [cut, word] : cuts) {
      if (word != "none" && (coarsest == "none" || ParseMid(word)->bits() < ParseMid(coarsest)->bits()))
        coarsest = word;
    }
    return coarsest;
  }

  bool TakesNumber(size_t i) const {
    const Step& step = steps_[i].step;
    return std::any_of(step.of.begin(), step.of.end(),
                       [](const Operand& operand) { return operand.IsScalar(); }) ||
           step.attrs.contains("alpha") || step.attrs.contains("value");
  }

  /// The narrowest format among the results of these steps.
  const FloatFormat& NarrowestOf(const std::set<std::string>& values, size_t last) const {
    const FloatFormat* narrowest = FormatOf(values_.at(steps_[last].step.as).dtype);
    for (const std::string& value : values) {
      const TensorData* data = DataOf(value);
      const FloatFormat* format = data == nullptr ? nullptr : FormatOf(data->dtype);
      if (format != nullptr && format->precision < narrowest->precision) narrowest = format;
    }
    return *narrowest;
  }

  /// Sums, or steps inside the op: an accumulator is that of the step itself.
  bool HasFormat(size_t last) const { return sums_.contains(last) || has_steps_.contains(last); }

  /// What is read before its rounding is said by `reads`, not by the models.
  void LeaveOut(const std::set<std::string>& unrounded, const CaseOracle& oracle, size_t last,
                Classification* found) const {
    const std::string& name = steps_[last].step.as;
    auto shape = oracle.Describe(name);
    if (!shape) return;
    // The numbers of other steps are those steps' own.
    const auto foreign_number = [&](const std::string& operand) {
      return operand.starts_with(kScalar) && !operand.ends_with("@" + name) &&
             (operand != std::string(kScalar) + steps_[last].step.op || !TakesNumber(last));
    };
    std::erase_if(shape->operands, foreign_number);
    std::erase_if(shape->cut_points, [&](const std::string& cut) {
      return unrounded.contains(cut) ||
             std::any_of(unrounded.begin(), unrounded.end(),
                         [&](const auto& each) { return cut.starts_with(each + "."); });
    });
    // Those of which a narrower format than that of any result leaves something else are what no honest step computes with.
    const auto reads_as_said = [&](const PrecisionModel& model) {
      return std::all_of(model.in.begin(), model.in.end(), [&](const auto& in) {
        return !foreign_number(in.first) || IsPlainScalar(in.second, NarrowestOf(unrounded, last));
      });
    };
    const auto strip = [&](std::vector<PrecisionModel>* models) {
      std::set<PrecisionModel> left;
      std::erase_if(*models, [&](const PrecisionModel& model) { return !reads_as_said(model); });
      for (PrecisionModel& model : *models) {
        // The steps inside the op that gave an operand are no steps of this one.
        const size_t foreign = std::erase_if(model.cuts, [&](const auto& cut) {
          return std::any_of(unrounded.begin(), unrounded.end(), [&](const std::string& each) {
            return cut.first == each || cut.first.starts_with(each + ".");
          });
        });
        if (foreign > 0) model.mid = CoarsestOf(model.cuts);
        if (model.mid == "float32" && model.cuts.empty()) model.mid = "none";
        // Nor are their sums those of a step that has none.
        if (const auto acc = ParseAcc(model.acc); !HasFormat(last) && acc && !acc->wide())
          model.acc = "float32";
        std::erase_if(model.in, [&](const auto& in) { return foreign_number(in.first); });
        left.insert(std::move(model));
      }
      models->assign(left.begin(), left.end());
    };
    strip(&found->models);
    strip(&found->models_proved);
    found->fits = found->fits && !found->models.empty();
    found->facets.clear();
    found->facets_in.clear();
    found->cuts.clear();
    ProjectFacets(*shape, found);
    // The error is that of all the steps together, each in exact arithmetic: it is none of this one's.
    const double together = std::exchange(found->max_ulp, std::min(found->max_ulp, 0.5));
    found->label = LabelOf(*shape, values_.at(name).dtype, *found);
    found->max_ulp = together;
  }

  /// How the producer of what is read unrounded read its own operands. A kernel that holds what it computes often stores what it
  /// sums: kUpToSums takes sums as they are stored, kFromSums unrounded and what they add as it is stored.
  enum class Before { kAsExplained, kStored, kUpToSums, kFromSums, kUnrounded };

  /// The uses of `last` in `operands` and, with them, those of their producers.
  Uses With(size_t last, const std::vector<std::string>& operands, Before before) const {
    Uses uses;
    for (const std::string& operand : operands) AddChain(last, operand, before, &uses);
    return uses;
  }

  void AddChain(size_t reader, const std::string& operand, Before before, Uses* uses) const {
    if (!uses->insert({reader, operand}).second) return;
    const auto maker = made_by_.find(operand);
    if (maker == made_by_.end()) return;
    if (IsArrangement(maker->second)) {
      const Step& view = steps_[maker->second].step;
      if (!view.of.empty() && !view.of.front().IsScalar())
        AddChain(maker->second, view.of.front().name, before, uses);
      return;
    }
    if (before == Before::kStored || (before == Before::kFromSums && sums_.contains(maker->second))) return;
    if (before == Before::kUpToSums || before == Before::kFromSums) {
      for (const std::string& each : ComputedOperands(maker->second)) {
        const auto by = ComputedBy(each);
        if (before == Before::kFromSums || !by || !sums_.contains(*by))
          AddChain(maker->second, each, before, uses);
      }
      return;
    }
    // What clamp gives is a number that it was given, and x + 0 is x: there is no other rounding that it could be read before.
    if (before == Before::kUnrounded || exact_.contains(maker->second)) {
      for (const std::string& each : ComputedOperands(maker->second))
        AddChain(maker->second, each, before, uses);
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

  /// A Python scalar is read as it is, or in a format that holds what the result's own holds.
  static bool IsPlainScalar(const std::string& word, const FloatFormat& result) {
    const auto spec = ParseIn(word);
    return spec && (spec->format == nullptr ||
                    (spec->bits() >= result.precision && spec->format->emin <= result.emin));
  }

  /// Nothing in it is narrower than the program asks for: what an honest backend does.
  bool IsPlain(const PrecisionModel& model, const std::string& value) const {
    const auto acc = ParseAcc(model.acc);
    const FloatFormat& result = *FormatOf(values_.at(value).dtype);
    const FloatFormat* product = FindFormat(model.prod);
    // A multiplication and an addition of their own in the result's format are as plain as one that does both.
    const bool whole =
        model.prod == "exact" || (product != nullptr && product->precision >= result.precision &&
                                  product->precision >= Binary32().precision);
    // Stores round to nearest, ties to even: another one is believed where nothing is that any of them has.
    return acc && model.out.ends_with("_rne") && (acc->exact() || (acc->wide() && acc->block == 0)) &&
           whole && (model.mid == "none" || model.mid == "float32") &&
           std::all_of(model.in.begin(), model.in.end(),
                       [&](const auto& in) {
                         return in.first.starts_with(kScalar) && IsPlainScalar(in.second, result);
                       }) &&
           std::none_of(model.cuts.begin(), model.cuts.end(), [&](const auto& cut) {
             return cut.first.starts_with(value + ".") && cut.second != "float32";
           });
  }

  void Keep(size_t last, const Uses& uses, std::string piece, std::optional<Classification> found,
            std::vector<Explanation>* all) const {
    if (!found || !found->fits) return;
    const std::string& value = steps_[last].step.as;
    const bool plain = std::any_of(found->models.begin(), found->models.end(),
                                   [&](const PrecisionModel& model) { return IsPlain(model, value); });
    // Where nothing but zeros is left, any format of a small range gives them.
    const TensorData& observed = values_.at(value);
    bool numbers = plain;
    for (int64_t i = 0; i < observed.size() && !numbers; ++i)
      numbers = observed.At(i) != 0 && std::isfinite(observed.At(i));
    if (!numbers) return;
    found->piece = std::move(piece);
    if (found->kind == ClassificationKind::kExactOnly && found->max_ulp == 0)
      found->label += " of its operands";
    const bool wide_numbers =
        std::any_of(found->models.begin(), found->models.end(), [&](const PrecisionModel& model) {
          return IsPlain(model, value) && std::all_of(model.in.begin(), model.in.end(), [](const auto& in) {
                   return IsPlainScalar(in.second, Binary32());
                 });
        });
    all->push_back({.unrounded = uses,
                    .classification = std::move(*found),
                    .plain = plain,
                    .narrow_number = plain && !wide_numbers});
  }

  std::string NameOf(const Uses& uses) const {
    std::string name = "step";
    for (const auto& [step, operand] : uses) name += " " + steps_[step].step.as + "<" + operand;
    return name;
  }

  /// Those that give as many results bit by bit as the best one does, but for chance; the plain ones first. A 16-bit store hides
  /// orders and the last bits of functions: an explanation has to give nearly all of what was stored so. What nothing plain
  /// explains has to be given nearly everywhere: worst-case bounds of narrow formats hold much that is something else.
  std::vector<Explanation> Best(size_t last, std::vector<Explanation> all) const {
    const bool narrow = FormatOf(values_.at(steps_[last].step.as).dtype)->precision <= Binary16().precision;
    double best = 0;
    int64_t looked = 0;
    for (const Explanation& each : all) {
      best = std::max(best, each.classification.reproduced);
      looked = std::max(looked, std::min(each.classification.checked, ClassifyOptions().likelihood_elements));
    }
    const auto n = static_cast<double>(std::max<int64_t>(looked, 1));
    const double margin = 3 * std::sqrt(n * best * (1 - best) + 1) / n;
    std::erase_if(all, [&](const Explanation& each) {
      const double share = each.classification.reproduced;
      // Of the last bits of functions chance alone gives one form more than another: that accuses nobody. Behind steps inside
      // an op the last bit of an operand is one of theirs.
      const bool as_stored = each.plain && each.unrounded.empty() && each.changed.empty();
      if (!narrow && as_stored && (best < kNearlyAll || has_steps_.contains(last))) return false;
      return share < best - margin || (narrow && share < kNearlyAll) || (!each.plain && share < kNearlyEvery);
    });
    // Of narrow ones the one that gives most: of two forms of an op's steps one may hold only what the other gives. What a step
    // rounds is said before what a sum might be summed in.
    const auto sums_wide = [](const Explanation& each) {
      const auto& models = each.classification.models;
      return std::all_of(models.begin(), models.end(), [](const PrecisionModel& model) {
        const auto acc = ParseAcc(model.acc);
        return acc && acc->wide();
      });
    };
    std::stable_sort(all.begin(), all.end(), [&](const Explanation& a, const Explanation& b) {
      if (a.plain && b.plain) return a.IsOdd() < b.IsOdd();
      if (a.plain || b.plain) return a.plain;
      if (a.classification.reproduced != b.classification.reproduced)
        return a.classification.reproduced > b.classification.reproduced;
      return sums_wide(a) > sums_wide(b);
    });
    return all;
  }

  /// The operand of `last` that a step without a reference gave; empty where there is none.
  std::string GivenOperand(size_t last) const {
    for (const Operand& operand : steps_[last].step.of) {
      const auto by = operand.IsScalar() ? std::nullopt : ComputedBy(operand.name);
      if (by && given_.contains(*by)) return Shown(operand.name);
    }
    return "";
  }

  /// Nothing explains the results of `last` from what `operand` is stored as: a compiler may have read it before it was rounded,
  /// and what it was then nobody knows.
  Classification NotKnown(size_t last, const std::string& operand) {
    given_.insert(last);
    Classification none;
    none.elements = values_.at(steps_[last].step.as).size();
    none.notes = {
        fmt::format("it does not follow from {} as it is stored, and what {} was before it was rounded "
                    "has no reference",
                    operand, operand)};
    none.label = "no reference";
    return none;
  }

  /// Of a step with more models than can be gone through in a moment: what an honest kernel computes, where that gives nearly
  /// all of its results. Nothing where it does not.
  std::optional<Classification> Honest(size_t last) {
    const auto piece = Cut(last, {});
    if (!piece) return std::nullopt;
    auto oracle = open_(piece->program, piece->inputs, {});
    const auto shape = oracle ? (*oracle)->Describe(steps_[last].step.as) : Fail("no oracle");
    if (!shape || shape->most_models < kManyModels) return std::nullopt;
    std::vector<Explanation> found;
    Keep(last, {}, "step", Classify(last, piece, true), &found);
    for (const auto& form : OtherForms(steps_[last].step))
      Keep(last, {}, "step", Classify(last, Cut(last, {}, {}, form), true), &found);
    // A product inside takes its operands in their own format, whatever gave them.
    std::vector<Proposal> inner;
    const FloatFormat& own = *FormatOf(values_.at(steps_[last].step.as).dtype);
    for (const std::string& operand : shape->operands) {
      if (operand.starts_with(steps_[last].step.as + "."))
        inner.push_back({.in = {{operand, std::string(own.name) + "_rne"}}});
    }
    const auto gives_all = [](const Explanation& each) {
      return each.classification.reproduced >= kNearlyEvery && !each.classification.models.empty();
    };
    if (!inner.empty() && std::none_of(found.begin(), found.end(), gives_all))
      Keep(last, {}, "step", Classify(last, piece, true, nullptr, std::move(inner)), &found);
    std::erase_if(found, [&](const Explanation& each) { return !gives_all(each); });
    found = Best(last, std::move(found));
    if (found.empty()) return std::nullopt;
    Classification result = found.front().classification;
    for (const std::string& operand : ComputedOperands(last))
      result.reads[NameOfUse(last, operand)] = {"stored"};
    result.rests_on_likelihood = true;
    return result;
  }

  std::optional<Classification> Judge(size_t last) {
    alone_.reset();
    if (auto honest = Honest(last)) return honest;
    auto stored = Classify(last, Cut(last, {}), false);
    if (stored && stored->kind == ClassificationKind::kNoReference) given_.insert(last);
    if (stored && stored->kind == ClassificationKind::kExactOnly && stored->max_ulp == 0) exact_.insert(last);
    if (!stored || !IsMeasured(stored->kind)) return stored;
    // Every library has its own last bits of a function or a norm: that a narrow step gives as many of them accuses nobody.
    if (FormatOf(values_.at(steps_[last].step.as).dtype)->precision > Binary16().precision) {
      if (auto open = LeaveOpen(last, *stored)) stored = std::move(open);
    }
    const auto operands = ComputedOperands(last);
    std::vector<Explanation> found;
    Keep(last, {}, "step", stored, &found);
    const bool plain =
        std::any_of(found.begin(), found.end(), [](const Explanation& each) { return each.plain; });
    if (!plain) {
      for (const auto& form : OtherForms(steps_[last].step)) {
        const size_t before = found.size();
        Keep(last, {}, "step", Classify(last, Cut(last, {}, {}, form), true), &found);
        // What reads it unrounded reads what was computed.
        if (form.size() == 1 && found.size() > before && found.back().plain) forms_.emplace(last, form);
      }
    }
    std::set<Uses> tried;
    const auto grow = [&](Before before, bool natural) {
      for (const auto& some : Combinations(operands)) {
        const Uses uses = With(last, some, before);
        if (found.size() >= kMostKept || !tried.insert(uses).second) continue;
        if (!natural && SumsBefore(last, uses)) continue;
        Keep(last, uses, NameOf(uses), Classify(last, Cut(last, uses), natural), &found);
      }
    };
    grow(Before::kAsExplained, true);
    // A kernel may compute an operand anew, from what was stored before it, though it stored it from something else.
    const auto none_plain = [&] {
      const auto best = Best(last, found);
      return best.empty() || !best.front().plain || best.front().IsOdd();
    };
    for (const Before before : {Before::kStored, Before::kUpToSums, Before::kFromSums, Before::kUnrounded}) {
      if (none_plain()) grow(before, true);
    }
    if (none_plain()) GrowForms(last, operands, &found);
    // A kernel that keeps what it computes rounds nothing for several steps.
    if (none_plain()) {
      if (const Uses uses = SearchUses(last); !uses.empty() && tried.insert(uses).second)
        Keep(last, uses, NameOf(uses), Classify(last, Cut(last, uses), true), &found);
    }
    if (none_plain()) GrowNarrow(last, operands, &found);
    found = Best(last, std::move(found));
    // What gives nothing stands in the way of nothing.
    std::erase_if(found, [&](const Explanation& each) { return GivesNoMore(last, each, *stored); });
    if (found.empty()) {
      // Where subnormals are dropped, a format of a smaller range drops them too.
      Flushed(last, &found);
      if (!found.empty() && IsZero(values_.at(steps_[last].step.as))) OutOfRange(last, &found);
      if (found.empty()) InOtherFormats(last, &found);
      found = Best(last, std::move(found));
    }
    if (found.empty()) {
      tried.clear();
      grow(Before::kAsExplained, false);
      found = Best(last, std::move(found));
    }
    if (found.empty()) FinerCopy(last, &found);
    const bool many = CountNumbers(values_.at(steps_[last].step.as), kManyNumbers) >= kManyNumbers;
    std::erase_if(found, [&](const Explanation& each) {
      const bool both = !each.plain && !each.unrounded.empty();
      return GivesNoMore(last, each, *stored) || (both && (each.classification.reproduced < 1 || !many));
    });
    if (found.empty()) {
      if (const std::string operand = GivenOperand(last); !operand.empty()) return NotKnown(last, operand);
      if (auto open = LeaveOpen(last, *stored)) return open;
      if (stored->fits) BecomeUnmodelled(values_.at(steps_[last].step.as), &*stored);
      SayWhatCountsAsZero(last, &*stored);
      stored->piece = "step";
      ShowAsWritten(last, &*stored);
      return stored;
    }
    JoinFew(last, *stored, &found);
    for (Explanation& each : found) {
      NameCopies(last, &each);
      OpenNeedless(last, &each);
    }
    const Explanation& simplest = found.front();
    explained_[last] = simplest.unrounded;
    for (const std::string& operand : operands) {
      const auto word = simplest.changed.find(NameOfUse(last, operand));
      const FloatFormat* format = word == simplest.changed.end() ? nullptr : FindFormat(word->second);
      if (format != nullptr) changes_[last][operand] = {.format = format};
    }
    Classification result = simplest.classification;
    JoinNarrow(last, found, &result);
    NoteNarrow(last, result);
    for (const Explanation& each : found) {
      // Beside a plain explanation from what is stored, one that takes a narrower number besides is none.
      if (simplest.plain && simplest.unrounded.empty() && simplest.changed.empty() && !each.plain) continue;
      std::map<std::string, std::string> words = each.changed;
      std::vector<std::string> together;
      for (const std::string& operand : operands) {
        if (each.unrounded.contains({last, operand})) together.push_back(NameOfUse(last, operand));
      }
      if (each.changed.empty()) result.together.push_back(Join(together, "+"));
      for (const std::string& operand : each.open) {
        const std::string name = NameOfUse(last, operand);
        auto& open = result.reads[name];
        if (std::find(open.begin(), open.end(), "stored") == open.end()) open.emplace_back("stored");
        auto fewer = together;
        std::erase(fewer, name);
        result.together.push_back(Join(fewer, "+"));
      }
      for (const std::string& operand : operands)
        words.try_emplace(NameOfUse(last, operand),
                          each.unrounded.contains({last, operand}) ? "unrounded" : "stored");
      for (const auto& [operand, word] : words) {
        auto& open = result.reads[operand];
        if (std::find(open.begin(), open.end(), word) == open.end()) open.push_back(word);
      }
    }
    // Its own results flushed in one explanation and not in another one.
    if (const auto own = result.reads.find(steps_[last].step.as); own != result.reads.end()) {
      const auto flushes = [&](const Explanation& each) { return each.changed.contains(own->first); };
      if (!std::all_of(found.begin(), found.end(), flushes)) own->second.emplace_back("stored");
    }
    LoadInto(&result);
    OpenToSum(last, &result);
    result.rests_on_likelihood =
        result.rests_on_likelihood || !simplest.unrounded.empty() || !simplest.changed.empty();
    if (!simplest.plain || !simplest.unrounded.empty() || !simplest.changed.empty() || !AnyWide(result))
      ShowAsWritten(last, &result);
    return Said(steps_[last].step.as, std::move(result));
  }

  /// Other forms of the step, with operands unrounded: 1 + erf(x) of a negative x leaves what no rounding of the exact gelu is.
  void GrowForms(size_t last, const std::vector<std::string>& operands, std::vector<Explanation>* found) {
    for (const auto& form : OtherForms(steps_[last].step)) {
      std::set<Uses> tried;
      for (const Before before : {Before::kAsExplained, Before::kStored}) {
        for (const auto& some : Combinations(operands)) {
          const Uses uses = With(last, some, before);
          if (found->size() >= kMostKept || !tried.insert(uses).second) continue;
          Keep(last, uses, NameOf(uses), Classify(last, Cut(last, uses, {}, form), true), found);
        }
      }
    }
  }

  /// A step without a sum that reads what sums in a narrow format give before it was rounded: in the accumulators that were found
  /// for them, and where that gives every result of many.
  void GrowNarrow(size_t last, const std::vector<std::string>& operands, std::vector<Explanation>* found) {
    if (HasFormat(last) || CountNumbers(values_.at(steps_[last].step.as), kManyNumbers) < kManyNumbers)
      return;
    for (const auto& some : Combinations(operands)) {
      const Uses uses = With(last, some, Before::kAsExplained);
      std::vector<Proposal> named;
      for (const Use& use : uses) {
        const auto by = ComputedBy(use.second);
        const auto narrow = by ? narrow_.find(*by) : narrow_.end();
        if (narrow == narrow_.end()) continue;
        for (const std::string& acc : narrow->second) named.push_back({.in = {}, .acc = acc});
      }
      if (named.empty() || found->size() >= kMostKept) continue;
      auto piece = Classify(last, Cut(last, uses), true, nullptr, std::move(named));
      if (piece && piece->reproduced == 1) Keep(last, uses, NameOf(uses), std::move(piece), found);
    }
  }

  /// The accumulators of a step whose sums are narrow in every model that is left.
  void NoteNarrow(size_t last, const Classification& judged) {
    constexpr size_t kMost = 4;
    std::set<std::string> accumulators;
    for (const PrecisionModel& model : judged.models) {
      const auto acc = ParseAcc(model.acc);
      if (!acc || acc->wide()) return;
      accumulators.insert(model.acc);
    }
    if (sums_.contains(last) && !accumulators.empty() && accumulators.size() <= kMost)
      narrow_[last] = std::move(accumulators);
  }

  /// A cast that gives numbers of more bits than its operand is stored with, each of which rounds to what is stored: it read them
  /// before they were rounded, however they were computed.
  void FinerCopy(size_t last, std::vector<Explanation>* found) {
    const auto operands = ComputedOperands(last);
    if (steps_[last].step.op != "cast" || operands.size() != 1) return;
    const TensorData &stored = *DataOf(operands[0]), &copied = values_.at(steps_[last].step.as);
    const FloatFormat& narrow = *FormatOf(stored.dtype);
    if (!IsFloating(copied.dtype) || FormatOf(copied.dtype)->precision <= narrow.precision) return;
    int64_t finer = 0;
    for (int64_t k = 0; k < copied.size(); ++k) {
      if (RoundTo(copied.At(k), narrow) != stored.At(k)) return;
      finer += copied.At(k) != stored.At(k) ? 1 : 0;
    }
    if (2 * finer < copied.size()) return;
    TryChanged(last, {{operands[0], {.instead = &copied}}}, {{NameOfUse(last, operands[0]), "unrounded"}},
               found);
  }

  /// A cast computed anew from a narrow operand as that is stored, where the kernel stored the cast of something wider: what is
  /// read is the stored value in the narrow format, with fewer bits and not more.
  void NameCopies(size_t last, Explanation* each) const {
    for (const std::string& operand : ComputedOperands(last)) {
      const auto by = ComputedBy(operand);
      if (!each->unrounded.contains({last, operand}) || !by || steps_[*by].step.op != "cast") continue;
      const std::string& source = steps_[*by].step.of.front().name;
      const TensorData *copied = DataOf(source), *stored = DataOf(steps_[*by].step.as);
      if (copied == nullptr || stored == nullptr || each->unrounded.contains({*by, source})) continue;
      for (const FloatFormat* format : {&Bfloat16(), &Binary16(), &Tf32()}) {
        int64_t same = 0;
        for (int64_t k = 0; k < stored->size(); ++k)
          same += RoundTo(stored->At(k), *format) == copied->At(k) ? 1 : 0;
        if (same < stored->size() || format->precision >= FormatOf(stored->dtype)->precision) continue;
        each->changed[NameOfUse(last, operand)] = std::string(format->name);
        break;
      }
    }
  }

  /// Of operands read before they were rounded those that give no bit more than what is stored: with them the bounds hold an
  /// element that they do not hold without them, and bits alone tell what was read.
  void OpenNeedless(size_t last, Explanation* each) {
    constexpr int64_t kMostElements = 256;
    if (!each->plain || !each->changed.empty() || each->unrounded.empty()) return;
    const auto elements = ElementsToCheck(values_.at(steps_[last].step.as).shape, kMostElements);
    std::optional<double> with;
    for (const std::string& operand : ComputedOperands(last)) {
      Uses fewer = each->unrounded;
      if (fewer.erase({last, operand}) == 0) continue;
      if (!with) with = ShareWith(last, each->unrounded, elements);
      if (*with >= 0 && ShareWith(last, fewer, elements) >= *with) each->open.insert(operand);
    }
  }

  /// A sum in a narrow format rounds each term that it adds first: that is no rounding of the operand beside it.
  void LoadInto(Classification* result) const {
    if (!alone_ || alone_->has_products || alone_->reduction_length == 0) return;
    const auto loads = [&](const std::string& word) {
      const FloatFormat* format = FindFormat(word);
      const auto& accs = result->facets["acc"];
      return format != nullptr && !accs.empty() &&
             std::all_of(accs.begin(), accs.end(), [&](const auto& each) {
               const auto acc = ParseAcc(each);
               return acc && acc->binary() && acc->bits() == format->precision;
             });
    };
    for (auto& [operand, words] : result->reads) {
      if (!words.empty() && std::all_of(words.begin(), words.end(), loads)) words.emplace_back("stored");
    }
  }

  /// A handful of results of a sum in a narrow format: whether an operand was rounded to as many bits or more before does not show.
  void OpenToSum(size_t last, Classification* result) const {
    if (CountNumbers(values_.at(steps_[last].step.as), kFewNumbers) >= kFewNumbers || !sums_.contains(last))
      return;
    int least = Binary32().precision;
    for (const PrecisionModel& model : result->models) {
      const auto acc = ParseAcc(model.acc);
      if (!acc || acc->wide()) return;
      least = std::min(least, acc->bits());
    }
    for (const std::string& operand : ComputedOperands(last)) {
      auto& words = result->reads[NameOfUse(last, operand)];
      const auto is = [&](std::string_view word) {
        return std::find(words.begin(), words.end(), word) != words.end();
      };
      if (!is("stored")) continue;
      for (const FloatFormat* format : {&Bfloat16(), &Binary16(), &Tf32()}) {
        if (format->precision >= least && format->precision < FormatOf(DataOf(operand)->dtype)->precision &&
            !is(format->name))
          words.emplace_back(format->name);
      }
    }
  }

  /// Different numbers among the results, counted up to `most`.
  static size_t CountNumbers(const TensorData& data, size_t most) {
    std::set<double> numbers;
    for (int64_t i = 0; i < data.size() && numbers.size() < most; ++i) {
      if (data.At(i) != 0 && std::isfinite(data.At(i))) numbers.insert(std::fabs(data.At(i)));
    }
    return numbers.size();
  }

  /// Of a handful of results chance gives whatever was asked first: what else would give them, an operand in a narrower format or
  /// a sum in one whose order was not tried, is open beside it.
  void JoinFew(size_t last, const Classification& stored, std::vector<Explanation>* found) {
    const Explanation simplest = found->front();
    if (simplest.unrounded.empty() && simplest.changed.empty()) return;
    const bool few = CountNumbers(values_.at(steps_[last].step.as), kFewNumbers) < kFewNumbers;
    // Of a sum in a narrow format in an order that was not tried an operand's rounding makes up for the order.
    if (!few && simplest.plain) return;
    std::vector<Explanation> others;
    if (few && simplest.changed.empty()) InOtherFormats(last, &others);
    std::erase_if(others, [&](const Explanation& each) {
      return each.classification.reproduced < simplest.classification.reproduced;
    });
    const bool is_stored = std::any_of(found->begin(), found->end(), [](const Explanation& each) {
      return each.unrounded.empty() && each.changed.empty();
    });
    if (!is_stored) Keep(last, {}, "step", stored, &others);
    for (Explanation& each : others) {
      each.few = true;
      found->push_back(std::move(each));
    }
  }

  /// Few results may follow from an unrounded operand in full precision, and as well from the stored one in a narrower format, or
  /// from a sum in a narrow format and as well from its rounding: the models of both are open.
  void JoinNarrow(size_t last, const std::vector<Explanation>& found, Classification* result) const {
    const Explanation& simplest = found.front();
    const bool as_stored = simplest.unrounded.empty() && simplest.changed.empty();
    // Of steps inside an op two forms name one rounding by two names.
    if (!alone_ || (as_stored && (simplest.plain || !sums_.contains(last) || has_steps_.contains(last))))
      return;
    std::set<PrecisionModel> models(result->models.begin(), result->models.end());
    std::set<PrecisionModel> proved(result->models_proved.begin(), result->models_proved.end());
    const size_t before = models.size();
    for (const Explanation& each : found) {
      const Classification& other = each.classification;
      if (!each.few && (each.plain || !each.unrounded.empty() || !each.changed.empty() ||
                        other.reproduced < simplest.classification.reproduced))
        continue;
      models.insert(other.models.begin(), other.models.end());
      proved.insert(other.models_proved.begin(), other.models_proved.end());
    }
    if (models.size() > before) TakeModels(last, models, proved, result);
  }

  /// The share of some results that a model gives bit by bit in one of its orders.
  static double BestShare(const Hypothesis& model, const TensorData& observed,
                          const std::vector<int64_t>& elements) {
    int64_t best = 0;
    const int orders = model.order_free() ? 0 : static_cast<int>(model.orders().size());
    for (int order = orders == 0 ? -1 : 0; order < orders; ++order) {
      const auto run = model.Simulate(order, elements);
      int64_t same = 0;
      for (size_t k = 0; k < elements.size(); ++k)
        same += model.Store(run[k]) == observed.At(elements[k]) ? 1 : 0;
      best = std::max(best, same);
    }
    return static_cast<double>(best) / static_cast<double>(elements.size());
  }

  /// All these models are open.
  void TakeModels(size_t last, const std::set<PrecisionModel>& models, const std::set<PrecisionModel>& proved,
                  Classification* result) const {
    result->models.assign(models.begin(), models.end());
    result->models_proved.assign(proved.begin(), proved.end());
    result->kind = ClassificationKind::kIndistinguishable;
    result->facets.clear();
    result->facets_in.clear();
    result->cuts.clear();
    ValueShape shape = *alone_;
    for (const PrecisionModel& model : models) {  // a form has steps of its own
      for (const auto& [cut, word] : model.cuts) {
        if (std::find(shape.cut_points.begin(), shape.cut_points.end(), cut) == shape.cut_points.end())
          shape.cut_points.push_back(cut);
      }
    }
    ProjectFacets(shape, result);
    const double together = std::exchange(result->max_ulp, std::min(result->max_ulp, 0.5));
    result->label = LabelOf(shape, values_.at(steps_[last].step.as).dtype, *result);
    result->max_ulp = together;
  }

  /// A narrow step is the likeliest, and gives too few of the results to be named; what the program asks for is not excluded, and
  /// gives as many but for chance: both are open. Of one line of a norm all elements share what its sums are off by.
  std::optional<Classification> LeaveOpen(size_t last, const Classification& narrow) {
    const std::string& value = steps_[last].step.as;
    const auto plain = [&](const PrecisionModel& model) { return IsPlain(model, value); };
    if (!narrow.fits || !alone_ || std::any_of(narrow.models.begin(), narrow.models.end(), plain) ||
        std::none_of(narrow.models_proved.begin(), narrow.models_proved.end(), plain))
      return std::nullopt;
    const TensorData& observed = values_.at(value);
    const auto elements = ElementsToCheck(observed.shape, ClassifyOptions().likelihood_elements);
    const bool lines = alone_->has_steps && alone_->reduction_length > 1;
    const auto n = static_cast<double>(elements.size()) /
                   static_cast<double>(lines ? std::min(alone_->reduction_length, observed.size()) : 1);
    const double share = narrow.reproduced;
    if (ShareWith(last, {}, elements) < share - 3 * std::sqrt(n * share * (1 - share) + 1) / n)
      return std::nullopt;
    std::set<PrecisionModel> models(narrow.models.begin(), narrow.models.end());
    const std::set<PrecisionModel> proved(narrow.models_proved.begin(), narrow.models_proved.end());
    std::copy_if(proved.begin(), proved.end(), std::inserter(models, models.end()), plain);
    Classification open = narrow;
    open.piece = "step";
    open.rests_on_likelihood = true;
    TakeModels(last, models, proved, &open);
    for (const std::string& operand : ComputedOperands(last))
      open.reads[NameOfUse(last, operand)] = {"stored"};
    return open;
  }

  /// The share of some results that the step gives bit by bit with these uses unrounded; -1 where it cannot be said.
  double ShareWith(size_t last, const Uses& uses, const std::vector<int64_t>& elements) {
    const auto piece = Cut(last, uses);
    if (!piece) return -1;
    const std::string& name = steps_[last].step.as;
    const TensorData& observed = values_.at(name);
    auto oracle = open_(piece->program, piece->inputs, {.unrounded = piece->unrounded, .as_written = true});
    if (!oracle || !(*oracle)->Describe(name)) return -1;
    double best = -1;
    for (const auto& model : (*oracle)->Bank(name, observed.dtype))
      best = std::max(best, BestShare(*model, observed, elements));
    counts_ += (*oracle)->Counts();
    return best;
  }

  /// The uses inside a piece, and those of its last step.
  std::vector<Use> UsesOf(size_t last, const Uses& uses) const {
    std::set<size_t> inside{last};
    for (const Use& use : uses) {
      if (const auto by = made_by_.find(use.second); by != made_by_.end()) inside.insert(by->second);
    }
    std::vector<Use> all;
    for (const size_t i : inside) {
      for (const std::string& operand : ComputedOperands(i)) all.emplace_back(i, operand);
    }
    return all;
  }

  /// A set of unrounded uses, over several steps, that gives nearly all results and more than any plain one: from what is stored,
  /// from everything unrounded, and from everything but what products give, one use at a time. Empty where none does.
  Uses SearchUses(size_t last) {
    constexpr int64_t kMostElements = 256, kFewest = 32;
    constexpr int kMostSets = 120;
    constexpr size_t kMostUses = 32;
    const TensorData& observed = values_.at(steps_[last].step.as);
    if (FormatOf(observed.dtype)->precision > Binary16().precision) return {};
    std::vector<int64_t> elements = ElementsToCheck(observed.shape, kMostElements);
    std::erase_if(elements, [&](int64_t k) { return observed.At(k) == 0 || !std::isfinite(observed.At(k)); });
    if (static_cast<int64_t>(elements.size()) < kFewest) return {};
    std::map<Uses, double> shares;
    const auto share = [&](const Uses& uses) {
      const auto [entry, is_new] = shares.try_emplace(uses, -1);
      if (is_new && shares.size() < static_cast<size_t>(kMostSets))
        entry->second = ShareWith(last, uses, elements);
      return entry->second;
    };
    const auto from = [&](bool through_products) {
      Uses uses;
      std::vector<Use> pending = UsesOf(last, {});
      while (!pending.empty() && uses.size() < kMostUses) {
        const Use use = pending.back();
        pending.pop_back();
        const auto by = ComputedBy(use.second);
        const OpRow* op = by ? FindOp(steps_[*by].step.op) : nullptr;
        if (!through_products && op != nullptr && op->kind == OpRow::Kind::kProduct) continue;
        Uses more;
        AddChain(use.first, use.second, Before::kStored, &more);
        for (const Use& each : more) {
          if (!uses.insert(each).second) continue;
        }
        if (by) {
          for (const std::string& operand : ComputedOperands(*by)) {
            if (!uses.contains({*by, operand})) pending.emplace_back(*by, operand);
          }
        }
      }
      return uses;
    };
    const double stored = share({});
    Uses best;
    for (const Uses& start : {from(false), from(true)}) {
      if (start.empty() || start.size() >= kMostUses) continue;
      Uses uses = start;
      for (bool better = true; better && share(uses) < 1;) {
        better = false;
        for (const Use& use : Uses(uses)) {
          Uses fewer = uses;
          fewer.erase(use);
          if (share(fewer) <= share(uses)) continue;
          uses = std::move(fewer);
          better = true;
        }
      }
      if (share(uses) > share(best)) best = std::move(uses);
    }
    const double most = share(best);
    const auto n = static_cast<double>(elements.size());
    if (best.empty() || most < kNearlyEvery || most - stored < 3 * std::sqrt(n * most * (1 - most) + 1) / n)
      return {};
    // What is behind a rounded use is no part of the piece.
    Uses reached;
    std::vector<size_t> pending{last};
    std::set<size_t> seen{last};
    while (!pending.empty()) {
      const size_t i = pending.back();
      pending.pop_back();
      for (const Use& use : best) {
        if (use.first != i || !reached.insert(use).second) continue;
        const auto by = made_by_.find(use.second);
        if (by != made_by_.end() && seen.insert(by->second).second) pending.push_back(by->second);
      }
    }
    // Those that change nothing are taken as they are stored.
    for (const Use& use : Uses(reached)) {
      Uses fewer = reached;
      fewer.erase(use);
      if (share(fewer) >= most) reached = std::move(fewer);
    }
    return reached;
  }

  /// A sum in float32 or wider, or none, explains the results: they may be what is written.
  static bool AnyWide(const Classification& result) {
    const auto acc = result.facets.find("acc");
    return acc == result.facets.end() || acc->second.empty() ||
           std::any_of(acc->second.begin(), acc->second.end(), [](const std::string& word) {
             const auto spec = ParseAcc(word);
             return !spec || spec->wide();
           });
  }

  /// Elements that the step gives otherwise where it is computed as it is written, from what is stored: in any order that is tried.
  void ShowAsWritten(size_t last, Classification* result) {
    constexpr int64_t kMostLookedAt = 1024;
    constexpr size_t kMostShown = 64;
    const auto piece = Cut(last, {});
    if (!piece) return;
    const std::string& name = steps_[last].step.as;
    const TensorData& observed = values_.at(name);
    auto oracle = open_(piece->program, piece->inputs, {.unrounded = {}, .as_written = true});
    const auto shape = oracle ? (*oracle)->Describe(name) : Fail("no oracle");
    if (!shape) return;
    const auto looked = ElementsToCheck(
        observed.shape,
        std::clamp(kGrownTerms / std::max<int64_t>(1, 4 * shape->terms), int64_t{64}, kMostLookedAt));
    std::vector<bool> given(looked.size(), false);
    std::vector<double> nearest(looked.size(), std::numeric_limits<double>::quiet_NaN());
    for (const auto& model : (*oracle)->Bank(name, observed.dtype)) {
      const int orders = model->order_free() ? 0 : static_cast<int>(model->orders().size());
      for (int order = orders == 0 ? -1 : 0; order < orders; ++order) {
        const auto run = model->Simulate(order, looked);
        for (size_t k = 0; k < looked.size(); ++k) {
          const double stored = model->Store(run[k]), here = observed.At(looked[k]);
          given[k] = given[k] || stored == here || (std::isnan(stored) && std::isnan(here));
          if (!(std::fabs(nearest[k] - here) <= std::fabs(stored - here))) nearest[k] = stored;
        }
      }
    }
    result->shown_by.clear();
    result->as_written.clear();
    result->shown_count = std::count(given.begin(), given.end(), false);
    result->shown_of = static_cast<int64_t>(looked.size());
    for (size_t k = 0; k < looked.size() && result->shown_by.size() < kMostShown; ++k) {
      if (given[k]) continue;
      result->shown_by.push_back(looked[k]);
      result->as_written.push_back(nearest[k]);
    }
    counts_ += (*oracle)->Counts();
  }

  /// An operand in float32 or wider that is said to be read before it was rounded, by results of which that gives no more than what
  /// is stored does: the bounds of the one hold an element that those of the other do not, and bits alone tell what was read.
  bool GivesNoMore(size_t last, const Explanation& each, const Classification& stored) const {
    const auto wide = [&](const std::string& value) {
      return FormatOf(values_.at(value).dtype)->precision > Binary16().precision;
    };
    const auto reads_narrow = [&](const Use& use) {
      const auto by = ComputedBy(use.second);
      return use.first == last && by && !wide(steps_[*by].step.as);
    };
    if (each.unrounded.empty() || !wide(steps_[last].step.as) ||
        std::any_of(each.unrounded.begin(), each.unrounded.end(), reads_narrow))
      return false;
    const double share = each.classification.reproduced;
    const auto n = static_cast<double>(
        std::max<int64_t>(1, std::min(each.classification.checked, ClassifyOptions().likelihood_elements)));
    if (share >= kNearlyAll) return false;
    // Of norms and functions every library has its own last bits.
    return has_steps_.contains(last) ||
           share - stored.reproduced < 3 * std::sqrt(n * share * (1 - share) + 1) / n;
  }

  /// An operand may be out of the range of whatever format it was read in: of nothing but zeros none can be told.
  void SayWhatCountsAsZero(size_t last, Classification* unmodelled) {
    if (unmodelled->kind != ClassificationKind::kUnmodelled) return;
    for (const std::string& name : FloatingOperands(last)) {
      std::vector<Explanation> found;
      Keep(last, {}, "step", Classify(last, Cut(last, {}, {{name, {.zero = true}}}), true), &found);
      if (found.empty() || !found.front().plain || found.front().classification.reproduced < kNearlyEvery)
        continue;
      unmodelled->says.push_back(fmt::format("as if {} were zero", NameOfUse(last, name)));
      unmodelled->label += "; " + unmodelled->says.back();
      return;
    }
  }

  /// Narrow steps whose bounds hold the results, and that give too few of them.
  static void BecomeUnmodelled(const TensorData& observed, Classification* narrow) {
    narrow->kind = ClassificationKind::kUnmodelled;
    narrow->fits = false;
    narrow->models.clear();
    for (auto* words : {&narrow->facets, &narrow->facets_in, &narrow->cuts}) {
      for (auto& [name, list] : *words) list.clear();
    }
    narrow->says = {
        IsZero(observed)
            ? fmt::format("every result is zero where exact ones reach {:.3g}: no format shows",
                          narrow->max_abs)
            : fmt::format("the nearest model gives {:.0f} % of the results", 100 * narrow->reproduced)};
    narrow->label = "unmodelled: " + narrow->says.front();
  }

  /// The label, with what was read otherwise than as it is stored in front.
  static Classification Said(const std::string& value, Classification classification) {
    std::vector<std::string> parts;
    for (const auto& [operand, words] : classification.reads) {
      const bool open = std::find(words.begin(), words.end(), "stored") != words.end();
      if (open && operand == value)
        parts.push_back("zero in the place of subnormals, for more than one possible reason");
      if (open) continue;
      parts.push_back(words == std::vector<std::string>{"unrounded"} ? operand + " read before it is rounded"
                      : words == std::vector<std::string>{kFlushed}
                          ? "subnormals of " + operand + " taken as zero"
                          : operand + " read as " + Join(words, " or "));
    }
    if (!parts.empty()) classification.label = Join(parts, ", ") + "; " + classification.label;
    return classification;
  }

  /// The floating-point operands of a step, tensors of the case among them.
  std::vector<std::string> FloatingOperands(size_t i) const {
    std::vector<std::string> floating;
    for (const Operand& operand : steps_[i].step.of) {
      if (operand.IsScalar() || std::find(floating.begin(), floating.end(), operand.name) != floating.end())
        continue;
      if (const TensorData* data = DataOf(operand.name); data != nullptr && IsFloating(data->dtype))
        floating.push_back(operand.name);
    }
    return floating;
  }

  /// Nothing explains the results from operands as they are or were: some of them in a narrower format.
  void InOtherFormats(size_t last, std::vector<Explanation>* found) {
    const auto floating = FloatingOperands(last);
    for (const FloatFormat* format : {&Bfloat16(), &Binary16(), &Tf32()}) {
      for (const auto& some : Combinations(floating)) {
        Changes changes;
        std::map<std::string, std::string> words;
        for (const std::string& name : some) {
          if (!LeavesNumbers(*DataOf(name), *format)) continue;
          changes[name] = {.format = format};
          words[NameOfUse(last, name)] = std::string(format->name);
        }
        if (!changes.empty()) TryChanged(last, changes, words, found);
      }
    }
  }

  /// Most of the numbers stay in the range of the format: of those that do not, nothing is left to tell formats apart by.
  static bool LeavesNumbers(const TensorData& data, const FloatFormat& format) {
    int64_t numbers = 0, left = 0;
    for (int64_t i = 0; i < data.size(); ++i) {
      if (data.At(i) == 0) continue;
      ++numbers;
      const double rounded = RoundTo(data.At(i), format);
      left += rounded != 0 && std::isfinite(rounded) ? 1 : 0;
    }
    return left * 2 > numbers;
  }

  /// Operands whose subnormal numbers count as zero, some of them or all, results that are zero where they would be subnormal, and
  /// both.
  void Flushed(size_t last, std::vector<Explanation>* found) {
    std::vector<std::string> tiny = FloatingOperands(last);
    std::erase_if(tiny, [&](const std::string& name) { return !HoldsSubnormals(*DataOf(name)); });
    Changes changes;
    std::map<std::string, std::string> words;
    for (const auto& some : Combinations(tiny)) {
      changes.clear();
      words.clear();
      for (const std::string& name : some) {
        changes[name] = {.flush = true};
        words[NameOfUse(last, name)] = kFlushed;
      }
      TryChanged(last, changes, words, found);
    }
    const std::string& value = steps_[last].step.as;
    for (const bool operands : {false, true}) {
      if (operands && changes.empty()) return;
      auto both = operands ? words : std::map<std::string, std::string>();
      both[value] = kFlushed;
      for (const TensorData& restored : Unflushed(last, operands ? changes : Changes()))
        TryChanged(last, operands ? changes : Changes(), both, found, &restored);
    }
  }

  static bool IsZero(const TensorData& data) {
    for (int64_t i = 0; i < data.size(); ++i) {
      if (data.At(i) != 0) return false;
    }
    return true;
  }

  /// Where nothing but zeros is left, an operand that float16 has no number of explains as much as subnormals that are dropped.
  void OutOfRange(size_t last, std::vector<Explanation>* found) {
    for (const std::string& name : FloatingOperands(last)) {
      const TensorData& data = *DataOf(name);
      bool lost = FormatOf(data.dtype)->emin < Binary16().emin;
      for (int64_t i = 0; i < data.size() && lost; ++i) lost = RoundTo(data.At(i), Binary16()) == 0;
      if (lost)
        TryChanged(last, {{name, {.format = &Binary16()}}},
                   {{NameOfUse(last, name), std::string(Binary16().name)}}, found);
    }
  }

  void TryChanged(size_t last, const Changes& changes, const std::map<std::string, std::string>& words,
                  std::vector<Explanation>* found, const TensorData* observed = nullptr) {
    const size_t before = found->size();
    Keep(last, {}, "step", Classify(last, Cut(last, {}, changes), true, observed), found);
    if (found->size() > before) found->back().changed = words;
  }

  static bool HoldsSubnormals(const TensorData& data) {
    for (int64_t i = 0; i < data.size(); ++i) {
      if (IsSubnormal(data.At(i), data.dtype)) return true;
    }
    return false;
  }

  /// What was observed, with what each plain model gives put back where there is a zero and the model has a subnormal.
  std::vector<TensorData> Unflushed(size_t last, const Changes& changes) const {
    std::vector<TensorData> restored;
    const auto piece = Cut(last, {}, changes);
    if (!piece) return restored;
    const std::string& name = steps_[last].step.as;
    const TensorData& observed = values_.at(name);
    std::vector<int64_t> zeros;
    for (int64_t i = 0; i < observed.size(); ++i) {
      if (observed.At(i) == 0) zeros.push_back(i);
    }
    auto oracle = open_(piece->program, piece->inputs, {.unrounded = {}, .natural = true});
    if (!oracle || zeros.empty()) return restored;
    for (const auto& hypothesis : (*oracle)->Bank(name, observed.dtype)) {
      const auto given = hypothesis->Simulate(hypothesis->order_free() ? -1 : 0, zeros);
      TensorData data = observed;
      bool any = false;
      for (size_t i = 0; i < zeros.size(); ++i) {
        const double value = hypothesis->Store(given[i]);
        if (!IsSubnormal(value, data.dtype)) continue;
        data.Set(zeros[i], value);
        any = true;
      }
      if (any && std::find(restored.begin(), restored.end(), data) == restored.end())
        restored.push_back(std::move(data));
    }
    return restored;
  }

  const Case& case_;
  const std::map<std::string, TensorData>& inputs_;
  const std::map<std::string, TensorData>& values_;
  const OpenPiece& open_;
  OracleCounts& counts_;
  const FlatProgram program_;
  const std::vector<FlatStep>& steps_ = program_.steps;
  const std::map<std::string, size_t>& made_by_ = program_.made_by;
  std::optional<ValueShape> alone_;            ///< of the step that is judged, from what is stored
  std::set<size_t> sums_;                      ///< steps that hold a sum
  std::set<size_t> has_steps_;                 ///< those that compute in steps inside one op
  std::map<size_t, std::vector<Step>> forms_;  ///< steps that were explained as a single step of another op
  std::set<size_t> exact_;                     ///< those that round nothing of what they read
  std::set<size_t> given_;             ///< those without a reference: what they gave is taken as it is
  std::map<size_t, Changes> changes_;  ///< operands that a step was found to read in another format
  std::map<size_t, std::set<std::string>>
      narrow_;                        ///< sums that were found to be in a narrow format: their accumulators
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
