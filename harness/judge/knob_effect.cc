// Cells that differ in one knob, compared.
#include "harness/judge/knob_effect.h"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/model/tensor_diff.h"
#include "harness/words/backend_name.h"
#include "harness/words/knobs.h"

namespace ulpscope {
namespace {

using Knobs = std::map<std::string, std::string>;

BackendSpec Parsed(std::string_view backend) {
  return BackendSpec::Parse(backend).value_or(BackendSpec{.name = std::string(backend), .knobs = {}});
}

/// NAME[@DEVICE].
std::string HeadOf(std::string_view backend) {
  BackendSpec spec = Parsed(backend);
  spec.knobs.clear();
  return spec.Text();
}

std::string Without(std::string_view backend, const std::string& knob) {
  BackendSpec spec = Parsed(backend);
  spec.knobs.erase(knob);
  return spec.Text();
}

std::string OutcomeText(const Outcome& outcome) {
  std::string text(Name(outcome.kind));
  if (!outcome.error_class.empty()) text += " " + outcome.error_class;
  if (outcome.kind == OutcomeKind::kCompleted || outcome.text.empty()) return text;
  constexpr size_t kLongest = 120;  // chosen: a line
  return fmt::format("{} (\"{}\")", text, FirstLineOf(outcome.text).substr(0, kLongest));
}

struct Found {
  KnobDifference kind = KnobDifference::kNone;
  std::string what;
};

/// Compares one cell with its base, strongest kinds first.
class CellComparison {
 public:
  CellComparison(const Participant& cell, const Participant& base) : cell_(cell), base_(base) {}

  Found Compare() const {
    if (auto found = Outcomes()) return *found;
    std::optional<Found> dtype, repeat, bits;
    size_t more = 0;
    for (const auto& name : base_.result->value_order) {
      const auto left = base_.observation->values.find(name);
      const auto right = cell_.observation->values.find(name);
      if (left == base_.observation->values.end() || right == cell_.observation->values.end()) continue;
      if (left->second.dtype != right->second.dtype || left->second.shape != right->second.shape) {
        if (!dtype)
          dtype = {KnobDifference::kDtype, fmt::format("{} is {} instead of {}", name,
                                                       Describe(right->second.dtype, right->second.shape),
                                                       Describe(left->second.dtype, left->second.shape))};
        continue;
      }
      const bool wavers_left = base_.observation->nondeterministic.contains(name);
      const bool wavers_right = cell_.observation->nondeterministic.contains(name);
      if (wavers_left != wavers_right && !repeat)
        repeat = {KnobDifference::kRepeat,
                  fmt::format("{} {}", name,
                              wavers_right ? "differs from run to run" : "repeats with the same bits")};
      if (wavers_left || wavers_right) continue;
      if (auto found = Bits(name, left->second, right->second)) {
        if (bits) ++more;
        if (!bits) bits = found;
      }
    }
    if (bits && more > 0) bits->what += fmt::format(", and {} more value{}", more, more == 1 ? "" : "s");
    for (const auto& found : {dtype, repeat, bits}) {
      if (found) return *found;
    }
    if (auto found = Observations()) return *found;
    if (auto found = Casts()) return *found;
    return Notes();
  }

 private:
  std::optional<Found> Outcomes() const {
    const Outcome& left = base_.observation->outcome;
    const Outcome& right = cell_.observation->outcome;
    if (left.kind == right.kind && left.error_class == right.error_class) return std::nullopt;
    return Found{KnobDifference::kOutcome,
                 fmt::format("outcome: {} instead of {}", OutcomeText(right), OutcomeText(left))};
  }

  std::optional<Found> Bits(const std::string& name, const TensorData& left, const TensorData& right) const {
    const TensorDifference difference = CompareTensors(left, right);
    if (difference.Same()) return std::nullopt;
    std::vector<std::string> parts;
    if (difference.number > 0) {
      parts.push_back(fmt::format("{} of {}", difference.number, difference.elements));
      if (FormatOf(left.dtype) != nullptr)
        parts.back() += fmt::format(", at most {:.6g} ulp", difference.largest_ulp);
    }
    if (difference.special > 0)
      parts.push_back(fmt::format("{} of {} NaN, infinite or zero", difference.special, difference.elements));
    Found found{KnobDifference::kBits, fmt::format("bits of {}: {}", name, Join(parts, "; "))};
    const auto before = base_.result->values.find(name);
    const auto after = cell_.result->values.find(name);
    if (before == base_.result->values.end() || after == cell_.result->values.end()) return found;
    const Classification& was = before->second.classification;
    const Classification& is = after->second.classification;
    // Two sets of models that share none are two classes; different bits of one class need no words.
    const bool shared = std::ranges::any_of(
        is.models, [&](const PrecisionModel& model) { return Contains(was.models, model); });
    if (!shared && !is.models.empty() && !is.label.empty()) found.what += fmt::format(" (now {})", is.label);
    return found;
  }

  std::optional<Found> Observations() const {
    for (const auto& [name, text] : base_.observation->observations) {
      if (name == "peak_bytes") continue;  // may differ from run to run
      const auto now = cell_.observation->observations.find(name);
      if (now == cell_.observation->observations.end() || now->second == text) continue;
      return Found{KnobDifference::kObservation,
                   fmt::format("{} is {} instead of {}", name, now->second, text)};
    }
    return std::nullopt;
  }

  /// A cast without its position in the trace and its duration.
  static std::string Text(const Cast& cast) {
    std::string text = fmt::format("{}>{} {} {}", cast.from, cast.to, cast.under, cast.redundant);
    for (const int64_t extent : cast.shape) text += fmt::format(",{}", extent);
    return text;
  }

  std::optional<Found> Casts() const {
    std::map<std::string, std::multiset<std::string>> left, right;
    for (const Cast& cast : base_.observation->casts) left[cast.stage].insert(Text(cast));
    for (const Cast& cast : cell_.observation->casts) right[cast.stage].insert(Text(cast));
    for (const auto& [stage, casts] : left) right.try_emplace(stage);
    for (const auto& [stage, casts] : right) {
      const auto& before = left[stage];
      if (before == casts) continue;
      return Found{KnobDifference::kCasts, before.size() == casts.size()
                                               ? fmt::format("casts: others at stage {}", stage)
                                               : fmt::format("casts: {} instead of {} at stage {}",
                                                             casts.size(), before.size(), stage)};
    }
    return std::nullopt;
  }

  Found Notes() const {
    const auto& left = base_.observation->notes;
    const auto& right = cell_.observation->notes;
    if (left == right) return {};
    for (const auto& note : right) {
      if (!Contains(left, note)) return {KnobDifference::kNotes, fmt::format("notes: \"{}\"", note)};
    }
    return {KnobDifference::kNotes, fmt::format("notes: {} instead of {}", right.size(), left.size())};
  }

  const Participant& cell_;
  const Participant& base_;
};

/// The value of a knob that a cell read back during its run.
std::string ReadBackOf(const Participant& cell, const std::string& knob) {
  const auto& effective = cell.observation->knobs_effective;
  const auto found = effective.find(knob);
  return found == effective.end() ? "" : found->second;
}

/// Words that leave the choice to the library: any effective value meets the request.
bool LeavesOpen(const std::string& value) { return value == "default" || value == "detected"; }

class CaseKnobs {
 public:
  CaseKnobs(std::span<const Participant> participants, const OfferedKnobs& offered)
      : participants_(participants), offered_(offered) {}

  KnobComparison Compare(const Participant& cell, const std::string& knob, const std::string& asked) const {
    KnobComparison comparison;
    comparison.case_id = cell.result->id;
    comparison.backend = Without(cell.result->backend, knob);
    comparison.knob = knob;
    comparison.asked = asked;
    if (RanToAnAnswer(*cell.result)) comparison.effective = ReadBackOf(cell, knob);
    comparison.differs_from_asked = !comparison.effective.empty() && !LeavesOpen(asked) &&
                                    strcasecmp(comparison.effective.c_str(), asked.c_str()) != 0;
    const Participant* base = BaseOf(cell, knob, &comparison.base);
    if (base == nullptr) return comparison;
    comparison.state = KnobComparison::State::kNotRun;
    if (!RanToAnAnswer(*base->result)) return comparison;
    comparison.base_effective = ReadBackOf(*base, knob);
    if (cell.observation->outcome.kind == OutcomeKind::kUnsupported) {
      comparison.state = KnobComparison::State::kRefused;
      comparison.what = cell.observation->outcome.text;
    } else if (RanToAnAnswer(*cell.result)) {
      comparison.state = KnobComparison::State::kCompared;
      Found found = CellComparison(cell, *base).Compare();
      comparison.difference = found.kind;
      comparison.what = std::move(found.what);
    } else {
      comparison.what = cell.result->reason;
    }
    return comparison;
  }

 private:
  /// The cell that leaves `knob` unset, else the one that requests its default; all other knobs are the same.
  const Participant* BaseOf(const Participant& cell, const std::string& knob, std::string* base) const {
    Knobs others = cell.observation->knobs_asked;
    others.erase(knob);
    const std::string default_value = DefaultOf(cell, knob);
    const Participant* with_default = nullptr;
    for (const Participant& other : participants_) {
      if (&other == &cell || HeadOf(other.result->backend) != HeadOf(cell.result->backend)) continue;
      Knobs asked = other.observation->knobs_asked;
      const auto value = asked.find(knob);
      const std::string its = value == asked.end() ? "" : value->second;
      if (value != asked.end()) asked.erase(value);
      if (asked != others) continue;
      if (its.empty()) {
        *base = "unset";
        return &other;
      }
      if (its == default_value) with_default = &other;
    }
    if (with_default != nullptr) *base = default_value;
    return with_default;
  }

  std::string DefaultOf(const Participant& cell, const std::string& knob) const {
    for (const auto& [backend, knobs] : offered_) {
      if (HeadOf(backend) != HeadOf(cell.result->backend)) continue;
      const auto values = knobs.find(knob);
      if (values != knobs.end() && !values->second.empty()) return values->second.front();
    }
    return "";
  }

  std::span<const Participant> participants_;
  const OfferedKnobs& offered_;
};

void AddOnce(std::vector<std::string>* words, const std::string& word) {
  if (!word.empty() && std::find(words->begin(), words->end(), word) == words->end()) words->push_back(word);
}

using Effect = KnobEffect::Effect;

/// The effect that one comparison shows.
Effect EffectOf(const KnobComparison& one) {
  switch (one.state) {
    case KnobComparison::State::kNoBase:
    case KnobComparison::State::kNotRun:
      return Effect::kNotCompared;
    case KnobComparison::State::kRefused:
      return Effect::kRefused;
    case KnobComparison::State::kCompared:
      break;
  }
  switch (one.difference) {
    case KnobDifference::kNone:
      return Effect::kNoEffect;
    case KnobDifference::kNotes:
    case KnobDifference::kCasts:
      return Effect::kTraceOnly;
    default:
      return Effect::kActs;
  }
}

/// One (backend, knob, value), over all cases.
class Row {
 public:
  explicit Row(const KnobComparison& first) {
    effect_.backend = first.backend;
    effect_.knob = first.knob;
    effect_.asked = first.asked;
  }

  void Add(const KnobComparison& one) {
    ++effect_.cases;
    AddOnce(&effect_.effective, one.effective);
    AddOnce(&effect_.base_effective, one.base_effective);
    if (effect_.base.empty()) effect_.base = one.base;
    differs_ = differs_ || one.differs_from_asked;
    if (one.state == KnobComparison::State::kCompared) ++effect_.compared;
    const Effect effect = EffectOf(one);
    if (effect <
        effect_.effect) {  // acts < trace_only < no_effect < refused < not_compared: the strongest counts
      effect_.effect = effect;
      counts_ = 0;
      effect_.first_case.clear();
      effect_.what.clear();
    }
    if (effect != effect_.effect) return;
    ++counts_;
    if (one.what.empty() || (!effect_.what.empty() && one.difference <= shown_)) return;
    shown_ = one.difference;
    effect_.first_case = one.case_id;
    effect_.what = one.what;
  }

  KnobEffect Take() {
    if (effect_.effect == Effect::kActs || effect_.effect == Effect::kTraceOnly) effect_.acted = counts_;
    const bool same = effect_.effect == Effect::kNoEffect && !effect_.effective.empty() && !differs_ &&
                      effect_.effective == effect_.base_effective;
    if (same) effect_.effect = Effect::kAsWithout;
    using enum KnobEffect::ReadBack;
    effect_.read_back = effect_.effective.empty() ? kNotRead : differs_ ? kDiffers : kAsAsked;
    return std::move(effect_);
  }

 private:
  KnobEffect effect_;
  int64_t counts_ = 0;
  bool differs_ = false;
  KnobDifference shown_ = KnobDifference::kNone;
};

}  // namespace

std::vector<KnobComparison> CompareKnobs(std::span<const Participant> participants,
                                         const OfferedKnobs& offered) {
  std::vector<KnobComparison> comparisons;
  const CaseKnobs knobs(participants, offered);
  for (const Participant& cell : participants) {
    if (cell.observation == nullptr) continue;
    for (const auto& [knob, asked] : cell.observation->knobs_asked) {
      if (!ChoosesWhatRuns(knob)) comparisons.push_back(knobs.Compare(cell, knob, asked));
    }
  }
  return comparisons;
}

std::vector<KnobEffect> SumUpKnobs(std::span<const KnobComparison> comparisons,
                                   std::span<const std::string> backends) {
  std::map<std::array<std::string, 3>, Row> rows;
  for (const KnobComparison& one : comparisons)
    rows.try_emplace({one.backend, one.knob, one.asked}, one).first->second.Add(one);
  std::vector<KnobEffect> effects;
  for (auto& [key, row] : rows) effects.push_back(row.Take());
  // A backend may be in the run with its knobs only: then the first place of its name counts.
  const auto rank = [&](const KnobEffect& effect) {
    return std::ranges::find_if(backends,
                                [&](const auto& name) { return HeadOf(name) == HeadOf(effect.backend); }) -
           backends.begin();
  };
  std::ranges::stable_sort(effects,
                           [&](const KnobEffect& a, const KnobEffect& b) { return rank(a) < rank(b); });
  return effects;
}

}  // namespace ulpscope
