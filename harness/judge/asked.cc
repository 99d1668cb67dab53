// The search for intermediate roundings.
#include "harness/judge/asked.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/judge/classify.h"
#include "harness/judge/label.h"
#include "harness/judge/sample.h"
#include "harness/model/flat_program.h"
#include "harness/num/float_format.h"
#include "harness/words/facets.h"
#include "harness/words/ops.h"

namespace ulpscope {
namespace {

/// A use: the step that reads, and the operand's name in it.
using Use = std::pair<size_t, std::string>;
using Uses = std::set<Use>;

constexpr const char* kRounded = "rounded";
constexpr const char* kUnrounded = "unrounded";
/// A product in float32 or wider that is added without being rounded.
constexpr const char* kContractedUse = "contracted";
/// Some steps (their names follow) read the value unrounded; others read it rounded.
constexpr const char* kSplit = "split";
/// Suffix of a value's name in uses that read it unrounded.
constexpr const char* kFree = "@unrounded";

/// The most elements that a set is tried on, and the fewest that are evidence. With fewer than kManyElements a set has
/// to reproduce all, and the expected rounding has to miss as many as bits are needed to choose a set, plus kBitsMore.
constexpr int64_t kMostElements = 256, kManyElements = 32, kFewestElements = 12, kBitsMore = 8;
/// Terms of sums that one set may cost.
constexpr int64_t kMostTerms = int64_t{1} << 20;
/// Sets that are tried, and the uses that they are made of. Chosen: the search takes seconds.
constexpr size_t kMostSets = 600, kMostUses = 48;

class AskedJudge {
 public:
  AskedJudge(const Case& opened, const std::map<std::string, TensorData>& inputs, const std::string& value,
             const TensorData& observed, const OpenPiece& open, OracleCounts* counts)
      : case_(opened),
        inputs_(inputs),
        value_(value),
        observed_(observed),
        open_(open),
        counts_(*counts),
        program_(opened.program) {}

  std::optional<Classification> Run() {
    if (!program_.made_by.contains(value_) || !FindUses() || !ChooseElements()) return std::nullopt;
    const double written = Share({});
    if (written < 0) return std::nullopt;
    const auto starts = Starts();
    for (const Uses& start : starts) Share(start);
    KeepBestOrders();
    Uses best = all_;
    for (const Uses& start : starts) {
      Uses found = Improve(start);
      if (Share(found) > Share(best)) best = std::move(found);
      if (Share(best) == 1) break;
    }
    // The simplest set that does as well: nothing rounded at all.
    if (Share(all_) >= Share(best) - Margin(best)) best = all_;
    if (Share(best) < kNearlyEvery || written >= Share(best) - Margin(best)) return std::nullopt;
    const auto count = static_cast<double>(elements_.size());
    if (count < kManyElements &&
        (Share(best) < 1 || (1 - written) * count < static_cast<double>(all_.size()) + kBitsMore))
      return std::nullopt;
    return Told(best);
  }

 private:
  /// A cast to a wider format changes no number: it passes on the version that is requested of it, as a view does.
  bool IsView(size_t i) const { return program_.IsArrangement(i) || widenings_.contains(i); }

  /// The step that computes `name`, seen through views.
  std::optional<size_t> ComputedBy(const std::string& name) const {
    return program_.ComputedBy(name, widenings_);
  }

  /// Casts of values that steps compute, to wider formats.
  void FindWidenings(const CaseOracle& oracle) {
    for (const size_t i : Needed()) {
      const Step& step = program_.steps[i].step;
      if (step.op != "cast" || !program_.made_by.contains(step.of.front().name)) continue;
      const auto from = oracle.Describe(step.of.front().name), to = oracle.Describe(step.as);
      if (from && to && IsFloating(from->declared) && IsFloating(to->declared) &&
          Holds(*FormatOf(to->declared), *FormatOf(from->declared)))
        widenings_.insert(i);
    }
    // The value itself is the observed one.
    widenings_.erase(program_.made_by.at(value_));
  }

  /// The uses of intermediates that have 16 bits. False if there is none, or there are too many.
  bool FindUses() {
    auto oracle = open_(case_, inputs_, {.unrounded = {}, .as_written = true});
    if (!oracle) return false;
    FindWidenings(**oracle);
    for (const size_t i : Needed()) {
      if (IsView(i)) continue;
      for (const Operand& operand : program_.steps[i].step.of) {
        const auto by = operand.IsScalar() ? std::nullopt : ComputedBy(operand.name);
        if (!by) continue;
        const std::string& maker = program_.steps[*by].step.as;
        const auto shape = (*oracle)->Describe(maker);
        if (!shape || !IsFloating(shape->declared)) continue;
        const OpRow* op = FindOp(program_.steps[*by].step.op);
        const bool narrow = FormatOf(shape->declared)->precision <= Binary16().precision;
        const bool contracts = IsContraction(program_.steps[*by].step, program_.steps[i].step);
        if ((!narrow && !contracts) || (op != nullptr && op->operands.most == 0)) continue;
        if (!narrow) contracted_.insert(maker);
        all_.insert({i, operand.name});
        maker_[{i, operand.name}] = maker;
      }
    }
    return !all_.empty() && all_.size() <= kMostUses;
  }

  /// The steps that the value rests on.
  std::set<size_t> Needed() const {
    std::set<size_t> needed{program_.made_by.at(value_)};
    std::vector<size_t> pending(needed.begin(), needed.end());
    while (!pending.empty()) {
      const size_t i = pending.back();
      pending.pop_back();
      for (const Operand& operand : program_.steps[i].step.of) {
        const auto made = operand.IsScalar() ? program_.made_by.end() : program_.made_by.find(operand.name);
        if (made != program_.made_by.end() && needed.insert(made->second).second)
          pending.push_back(made->second);
      }
    }
    return needed;
  }

  /// A kernel that multiplies and adds in one instruction rounds no product, in any format.
  static bool IsContraction(const Step& product, const Step& sum) {
    return product.op == "mul" && (sum.op == "add" || sum.op == "sub") && product.attrs.empty() &&
           sum.attrs.empty();
  }

  bool ChooseElements() {
    const auto piece = Cut({});
    auto oracle = open_(piece.first, inputs_, {.unrounded = {}, .as_written = true});
    const auto shape = oracle ? (*oracle)->Describe(value_) : Fail("no oracle");
    if (!shape) return false;
    // Elements share their operands: all of them may cost little more than one.
    const int64_t each = std::max<int64_t>(1, std::max(shape->terms, shape->work_of_one));
    const int64_t most = shape->work_of_all <= kMostTerms
                             ? kMostElements
                             : std::clamp(kMostTerms / each, kManyElements, kMostElements);
    elements_ = ElementsToCheck(observed_.shape, most);
    std::erase_if(elements_, [&](const int64_t element) {
      return observed_.At(element) == 0 || !std::isfinite(observed_.At(element));
    });
    return static_cast<int64_t>(elements_.size()) >= kFewestElements;
  }

  /// The program with two versions of each value: as it is stored, and unrounded for the uses in `unrounded`.
  std::pair<Case, std::set<std::string>> Cut(const Uses& unrounded) const {
    std::set<std::pair<size_t, bool>> versions;
    Need(program_.made_by.at(value_), false, unrounded, &versions);
    Case piece;
    piece.id = case_.id;
    piece.tensors = case_.tensors;
    piece.observe = {value_};
    std::set<std::string> free;
    for (const auto& [i, is_free] : versions) {
      Step step = program_.steps[i].step;
      for (Operand& operand : step.of) {
        if (!operand.IsScalar() && ReadsFree(i, is_free, operand.name, unrounded)) operand.name += kFree;
      }
      if (is_free) {
        step.as += kFree;
        if (!IsView(i)) free.insert(step.as);
      }
      piece.program.push_back(Inside(program_.steps[i].scopes, std::move(step)));
    }
    return {std::move(piece), std::move(free)};
  }

  /// A view passes on the version that is requested of it; other steps read what the set states.
  bool ReadsFree(size_t i, bool is_free, const std::string& operand, const Uses& unrounded) const {
    if (!program_.made_by.contains(operand) || !ComputedBy(operand)) return false;
    return IsView(i) ? is_free : unrounded.contains({i, operand});
  }

  void Need(size_t i, bool is_free, const Uses& unrounded,
            std::set<std::pair<size_t, bool>>* versions) const {
    if (!versions->insert({i, is_free}).second) return;
    for (const Operand& operand : program_.steps[i].step.of) {
      if (operand.IsScalar() || !program_.made_by.contains(operand.name)) continue;
      Need(program_.made_by.at(operand.name), ReadsFree(i, is_free, operand.name, unrounded), unrounded,
           versions);
    }
  }

  /// The share of the elements that the program reproduces bit by bit with these uses unrounded; -1 if unknown.
  double Share(const Uses& unrounded) {
    const auto [entry, is_new] = shares_.try_emplace(unrounded, -1);
    if (!is_new || shares_.size() > kMostSets) return entry->second;
    const auto [piece, free] = Cut(unrounded);
    auto oracle = open_(piece, inputs_, {.unrounded = free, .as_written = true});
    if (!oracle) return entry->second;
    for (const auto& model : (*oracle)->Bank(value_, observed_.dtype)) {
      for (const int order : model->Orders()) {
        if (order >= 0 && !orders_.empty() && !orders_.contains(order)) continue;
        const auto run = model->Stored(order, elements_);
        int64_t same = 0;
        for (size_t k = 0; k < elements_.size(); ++k) same += run[k] == observed_.At(elements_[k]) ? 1 : 0;
        same_in_[order] = std::max(same_in_[order], same);
        entry->second =
            std::max(entry->second, static_cast<double>(same) / static_cast<double>(elements_.size()));
      }
    }
    counts_ += (*oracle)->Counts();
    return entry->second;
  }

  /// A library sums in one order: continues with the orders in which the first sets did best, for results of 16 bits.
  void KeepBestOrders() {
    constexpr size_t kMostOrders = 3;  // chosen: the others did worse with every set so far
    if (FormatOf(observed_.dtype)->precision > Binary16().precision) return;
    std::vector<std::pair<int64_t, int>> ranked;
    for (const auto& [order, same] : same_in_) {
      if (order >= 0) ranked.emplace_back(-same, order);
    }
    std::ranges::sort(ranked);
    for (size_t i = 0; i < std::min(kMostOrders, ranked.size()); ++i) orders_.insert(ranked[i].second);
  }

  /// How far chance alone moves a share.
  double Margin(const Uses& uses) {
    const auto n = static_cast<double>(elements_.size());
    const double share = std::clamp(Share(uses), 0.0, 1.0);
    return 3 * std::sqrt(n * share * (1 - share) + 1) / n;
  }

  bool IsProduct(const std::string& value) const {
    const OpRow* op = FindOp(program_.steps[program_.made_by.at(value)].step.op);
    return op != nullptr && op->kind == OpRow::Kind::kProduct;
  }

  /// Nothing rounded; only the operands and results of products rounded; everything rounded.
  std::vector<Uses> Starts() const {
    Uses kernels;
    for (const auto& [use, maker] : maker_) {
      if (!IsProduct(maker) && !IsProduct(program_.steps[use.first].step.as)) kernels.insert(use);
    }
    return {all_, std::move(kernels), {}};
  }

  static Uses Flip(Uses uses, const Uses& some) {
    const bool out = std::ranges::all_of(some, [&](const Use& use) { return uses.contains(use); });
    for (const Use& use : some) {
      if (out)
        uses.erase(use);
      else
        uses.insert(use);
    }
    return uses;
  }

  /// All uses of one value, then each use alone; from the last value to the first.
  std::vector<Uses> Moves() const {
    std::map<size_t, Uses, std::greater<>> of_value;
    for (const auto& [use, maker] : maker_) of_value[program_.made_by.at(maker)].insert(use);
    std::vector<Uses> moves;
    for (const auto& [step, uses] : of_value) moves.push_back(uses);
    for (const auto& [step, uses] : of_value) {
      for (const Use& use : uses) {
        if (uses.size() > 1) moves.push_back({use});
      }
    }
    return moves;
  }

  Uses Improve(Uses uses) {
    const auto moves = Moves();
    for (bool better = true; better && Share(uses) < 1;) {
      better = false;
      Uses best = uses;
      for (const Uses& move : moves) {
        Uses other = Flip(uses, move);
        if (Share(other) > Share(best)) best = std::move(other);
      }
      better = Share(best) > Share(uses);
      uses = std::move(best);
    }
    return uses;
  }

  /// The uses of `uses` that could be otherwise: alone, or in exchange for another one.
  Uses OpenUses(const Uses& uses) {
    const double least = Share(uses) - Margin(uses);
    Uses open;
    for (const Use& use : all_) {
      if (Share(Flip(uses, {use})) >= least) open.insert(use);
    }
    for (const Use& use : all_) {
      for (const Use& other : all_) {
        if (open.contains(use) || uses.contains(use) == uses.contains(other)) continue;
        if (Share(Flip(Flip(uses, {use}), {other})) < least) continue;
        open.insert(use);
        open.insert(other);
      }
    }
    return open;
  }

  std::optional<Classification> Told(const Uses& uses) {
    const auto [piece, free] = Cut(uses);
    auto oracle = open_(piece, inputs_, {.unrounded = free, .as_written = true});
    if (!oracle) return std::nullopt;
    ClassifyOptions options;
    options.search = false;
    options.most_elements = kMostElements;
    options.most_terms = kMostTerms;
    Classification found = ClassifyValue(**oracle, value_, observed_, options);
    counts_ += (*oracle)->Counts();
    if (!found.fits || found.models.empty()) return std::nullopt;
    const Uses open = OpenUses(uses);
    if (shares_.size() > kMostSets) return std::nullopt;
    for (const auto& [use, maker] : maker_) {
      if (contracted_.contains(maker) && !uses.contains(use) && !open.contains(use)) continue;
      auto& words = found.on_the_way[maker];
      // The set's own word comes first.
      for (const bool unrounded : {uses.contains(use), !uses.contains(use)}) {
        const std::string word = !unrounded                    ? kRounded
                                 : contracted_.contains(maker) ? kContractedUse
                                                               : kUnrounded;
        if ((open.contains(use) || uses.contains(use) == unrounded) && !Contains(words, word))
          words.push_back(word);
      }
    }
    TellSplitReads(uses, open, &found);
    Strip(**oracle, &found);
    found.piece = "asked";
    found.rests_on_likelihood = true;
    found.label = DescribeOnTheWay(found.on_the_way, false) + "; " + found.label;
    return found;
  }

  /// Names the steps that read a value unrounded if others read it rounded, whatever the open uses are.
  void TellSplitReads(const Uses& uses, const Uses& open, Classification* found) const {
    std::map<std::string, std::set<std::string>> free, stored;
    for (const auto& [use, maker] : maker_) {
      if (open.contains(use)) continue;
      (uses.contains(use) ? free : stored)[maker].insert(program_.steps[use.first].step.as);
    }
    for (const auto& [maker, steps] : free) {
      if (contracted_.contains(maker) || !stored.contains(maker)) continue;
      auto& words = found->on_the_way[maker];
      words = {kSplit};
      words.insert(words.end(), steps.begin(), steps.end());
    }
  }

  /// `on_the_way` states the intermediate roundings; the models do not.
  void Strip(const CaseOracle& oracle, Classification* found) const {
    auto shape = oracle.Describe(value_);
    if (!shape) return;
    const auto own = [&](const std::string& cut) { return cut.starts_with(value_ + "."); };
    std::erase_if(shape->cut_points, [&](const std::string& cut) { return !own(cut); });
    for (auto* models : {&found->models, &found->models_proved}) {
      std::set<PrecisionModel> left;
      for (PrecisionModel& model : *models) {
        std::erase_if(model.cuts, [&](const auto& cut) { return !own(cut.first); });
        if (model.cuts.empty()) model.mid = {};
        left.insert(std::move(model));
      }
      models->assign(left.begin(), left.end());
    }
    found->facets = {};
    found->facets_in.clear();
    found->cuts.clear();
    ProjectFacets(*shape, found);
    SetLabel(*shape, observed_.dtype, ErrorsOf::kThisStep, found);
  }

  const Case& case_;
  const std::map<std::string, TensorData>& inputs_;
  const std::string& value_;
  const TensorData& observed_;
  const OpenPiece& open_;
  OracleCounts& counts_;
  const FlatProgram program_;
  std::set<size_t> widenings_;
  Uses all_;                          ///< that might be of an unrounded value
  std::map<Use, std::string> maker_;  ///< the value that each of them is of
  std::set<std::string> contracted_;  ///< makers in float32 or wider
  std::vector<int64_t> elements_;
  std::map<Uses, double> shares_;
  std::map<int, int64_t> same_in_;  ///< order -> the most elements that a set gave in it
  std::set<int> orders_;            ///< that are looked at; empty: all
};

}  // namespace

std::optional<Classification> JudgeAsAsked(const Case& opened,
                                           const std::map<std::string, TensorData>& inputs,
                                           const std::string& value, const TensorData& observed,
                                           const OpenPiece& open, OracleCounts* counts) {
  return AskedJudge(opened, inputs, value, observed, open, counts).Run();
}

std::string DescribeOnTheWay(const std::map<std::string, std::vector<std::string>>& on_the_way, bool plural) {
  std::vector<std::string> rounded, unrounded, either, contracted, perhaps;
  std::vector<std::string> split;
  bool open = false;
  for (const auto& [name, words] : on_the_way) {
    if (words.front() == kSplit) {
      split.push_back(fmt::format("{} unrounded in {} and rounded elsewhere", Code(name),
                                  JoinCode({words.begin() + 1, words.end()})));
      continue;
    }
    if (words == std::vector<std::string>{kContractedUse}) {
      contracted.push_back(Code(name));
      continue;
    }
    // A product that may or may not be rounded to float32 has no bearing on the roundings to 16 bits.
    if (Contains(words, kContractedUse)) {
      perhaps.push_back(Code(name));
      continue;
    }
    open = open || words.size() > 1;
    if (words.size() == 1)
      (words.front() == kRounded ? rounded : unrounded).push_back(Code(name));
    else if (words.front() == kRounded)
      either.push_back(Code(name));
  }
  const auto listed = [](std::vector<std::string> names, const char* conjunction) {
    constexpr size_t kMost = 4;  // chosen: names in one clause
    if (names.size() > kMost + 1) {
      const size_t more = names.size() - kMost;
      names.resize(kMost);
      names.push_back(fmt::format("{} more", more));
    }
    if (names.size() < 2) return Join(names, "");
    const std::string last = std::exchange(names.back(), "");
    names.pop_back();
    return fmt::format("{} {} {}", Join(names, ", "), conjunction, last);
  };
  if (!split.empty()) return fmt::format("{} {}", plural ? "read" : "reads", Join(split, ", and "));
  if (contracted.empty() && rounded.empty() && unrounded.empty() && either.empty() && !perhaps.empty())
    return fmt::format("{} {} (not rounded before the sum)", plural ? "contract" : "contracts",
                       listed(perhaps, "or"));
  if (!contracted.empty())
    return fmt::format("{} {} ({} not rounded before the sum)", plural ? "contract" : "contracts",
                       listed(contracted, "and"), contracted.size() > 1 ? "they are" : "it is");
  if (rounded.empty() && either.empty())
    return fmt::format("{} no intermediate", plural ? "round" : "rounds");
  if (!unrounded.empty() && (open || unrounded.size() < rounded.size()))
    return fmt::format("{} not round {}", plural ? "do" : "does", listed(unrounded, "or"));
  if (open)
    return fmt::format("{} not round every intermediate that the program rounds", plural ? "do" : "does");
  return fmt::format("{} no intermediate but {}", plural ? "round" : "rounds", listed(rounded, "and"));
}

}  // namespace ulpscope
