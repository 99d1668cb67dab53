// Text of a derivation.
#include "reports/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "reports/births.h"
#include "reports/cell.h"
#include "reports/explain_brief.h"
#include "reports/knobs.h"
#include "reports/ledger.h"
#include "reports/op_tree.h"
#include "reports/places.h"
#include "reports/text_safe.h"

namespace ulpscope {
namespace {

constexpr size_t kShownElements = 4;
constexpr size_t kShownCasts = 40;

std::string Coordinates(const std::vector<int64_t>& coordinates) {
  return "[" + Join(coordinates, ",") + "]";
}

class Writer {
 public:
  Writer(const RunReport& report, const CaseResult& result, const Explanation& explanation,
         const ConsoleOptions& options)
      : report_(report), result_(result), explanation_(explanation), options_(options) {}

  std::string Write() {
    text_ += TerminalSafe(fmt::format("{}  on  {}", result_.id, result_.backend)) + "\n";
    if (!explanation_.about.empty()) Say("about", explanation_.about);
    if (!explanation_.source.empty()) Say("source", explanation_.source);
    if (!explanation_.tensors.empty()) Say("tensors", explanation_.tensors);
    for (size_t i = 0; i < explanation_.program.size(); ++i) {
      Say("step", explanation_.program[i]);
      if (const std::string origin = explanation_.OriginOf(i); !origin.empty()) Say("", origin);
    }
    Say("status", result_.reason.empty() ? std::string(Name(result_.status))
                                         : fmt::format("{}: {}", Name(result_.status), result_.reason));
    Say("outcome", DescribeWhole(result_.outcome));
    if (const auto* versions = Lookup(report_.versions, result_.backend)) Say("versions", Join(*versions));
    for (const auto& [name, value] : result_.ValuesInOrder()) Value(name, *value);
    for (const auto& [name, text] : result_.observations) Say("observed", fmt::format("{} = {}", name, text));
    Trace();
    Knobs();
    for (const auto& note : result_.notes) Say("note", note);
    for (const NonFiniteBirth& each : result_.not_finite) Say("not finite", BirthSentence(each, ""));
    if (result_.opened) Steps(*result_.opened);
    if (!result_.proved_on.empty()) Say("proved on", ProvedOnSentence(result_.proved_on));
    Divergences();
    Ledgers();
    text_ += fmt::format("  {:<11}{}\n", "repeat", TerminalSafe(result_.repro));
    return std::move(text_);
  }

 private:
  void Say(std::string_view head, std::string_view what) {
    text_ += Wrap(fmt::format("  {:<10} ", head), TerminalSafe(what), options_.columns);
  }
  void SayInner(std::string_view head, std::string_view what) {
    text_ += Wrap(fmt::format("    {:<10} ", head), TerminalSafe(what), options_.columns);
  }

  void Value(const std::string& name, const ValueResult& value) {
    const Classification& classification = value.classification;
    text_ +=
        TerminalSafe(fmt::format("  {}  {}  {}", name, Describe(value.dtype, value.shape), CellText(value)));
    text_ += value.part.empty() ? "\n" : TerminalSafe(fmt::format("  ({})", value.part)) + "\n";
    if (!classification.label.empty()) SayInner("class", classification.label);
    SayInner("checked",
             fmt::format("{} of {} elements against the exact value, {} models tried", classification.checked,
                         classification.elements, classification.models_tried));
    if (IsMeasured(classification.kind)) {
      const bool two = HasOwnError(classification);
      SayInner("error",
               fmt::format(
                   "at most {} ulp of {}{}",
                   ShortestDecimal(two ? classification.step_ulp : classification.max_ulp), Name(value.dtype),
                   two ? fmt::format(" from the exact result of its operands, {} from that of the program",
                                     ShortestDecimal(classification.max_ulp))
                       : ""));
    }
    if (!classification.decided_by.empty()) SayInner("decided by", classification.decided_by);
    References(classification);
    Survivors(classification);
    Exclusions(classification);
    for (const auto& [cut, roundings] : classification.cuts)
      SayInner("between", fmt::format("{}: {}", cut, Join(WordsOf(roundings, MidWord), " or ")));
    for (const auto& region : classification.regions)
      SayInner("region", fmt::format("{}: {}", region.where, region.label));
    std::vector<std::string> floors;
    for (const auto& [facet, bits] : classification.floors)
      floors.push_back(fmt::format("{} {}", facet, bits));
    if (!floors.empty())
      SayInner("open", "roundings to so many bits or more cannot be seen here: " + Join(floors, ", "));
    for (const Remark& note : classification.notes) SayInner("note", note.text);
    SayInner("contract", Name(value.contract));
  }

  void Steps(const OpenedRun& opened) {
    if (!opened.left_out.empty())
      Say("steps", "not judged one by one: with every intermediate observed, the program " + opened.left_out);
    if (!opened.changed.empty())
      Say("steps", "with every intermediate observed the program computes other bits for " +
                       Join(opened.changed, ", ") +
                       "; the steps do not show what the program does without observation:");
    for (const auto& step : opened.steps) {
      const StepOrigin* origin = OriginOf(report_, result_.id, step.value);
      Say(step.value, fmt::format("{}: {}", step.op, step.result.classification.label));
      if (origin != nullptr) Say("", "at " + origin->Text());
    }
  }

  /// A few elements with their exact values: those that excluded a model.
  void References(const Classification& classification) {
    std::vector<std::vector<int64_t>> told;
    for (const Exclusion& exclusion : classification.excluded) {
      if (told.size() >= kShownElements) break;
      if (Contains(told, exclusion.element)) continue;
      told.push_back(exclusion.element);
      SayInner("reference", fmt::format("{} exact {}; observed {}", Coordinates(exclusion.element),
                                        FormatNumber(exclusion.reference), FormatNumber(exclusion.observed)));
    }
  }

  void Survivors(const Classification& classification) {
    const auto& likely = classification.models;
    std::vector<const PrecisionModel*> aside;
    for (const auto& model : classification.models_proved) {
      if (!Contains(likely, model)) aside.push_back(&model);
    }
    for (const auto& model : likely) SayInner("survives", model.Name());
    for (const auto* model : aside) SayInner("set aside", model->Name() + " (possible, far less likely)");
  }

  void Exclusions(const Classification& classification) {
    for (const Exclusion& exclusion : classification.excluded) {
      SayInner("excluded", fmt::format("{}: {} {}", exclusion.model.Name(), Coordinates(exclusion.element),
                                       exclusion.why));
    }
  }

  /// The tree in full for the last stage and for those that a divergence names; then the costs of the conversions.
  void Trace() {
    text_ += "\n";
    OpTreeOptions tree{.console = options_};
    tree.stages.emplace_back(LastStage(explanation_.trace));
    for (const auto& divergence : report_.divergences) {
      const bool mine = divergence.case_id == result_.id &&
                        divergence.kind == DivergenceKind::kGraphVsExecution &&
                        divergence.backends.front().front() == result_.backend;
      if (mine) tree.stages.insert(tree.stages.end(), divergence.stages.begin(), divergence.stages.end());
    }
    if (!explanation_.trace.empty())
      text_ += "  trace\n" + DrawOpTree(explanation_.trace, result_.casts, tree);
    Casts();
    for (const CastCost& cost : result_.cast_costs) Cost(cost);
  }

  /// Those that the tree does not show.
  void Casts() {
    std::vector<const Cast*> casts;
    for (const Cast& cast : result_.casts) {
      if (explanation_.trace.empty() || cast.node < 0) casts.push_back(&cast);
    }
    const size_t shown = std::min(casts.size(), kShownCasts);
    for (size_t i = 0; i < shown; ++i) {
      const Cast& cast = *casts[i];
      Say("cast", fmt::format("{}: {} to {} of {}, {} bytes, under {}{}", cast.stage, cast.from, cast.to,
                              Coordinates(cast.shape), cast.bytes, cast.under,
                              cast.redundant ? " (changes no value)" : ""));
    }
    if (shown < casts.size())
      Say("", fmt::format("and {} more (the JSON report has them)", casts.size() - shown));
  }

  void Cost(const CastCost& cost) {
    std::string text = fmt::format("{}: {}", cost.stage, Counted(cost.casts, "conversion"));
    if (cost.in_kernels > 0)
      text += fmt::format(", {} in registers, inside kernels that compute too", cost.in_kernels);
    if (cost.in_kernels < cost.casts)
      text += fmt::format("{} and write {} bytes", cost.in_kernels > 0 ? "; the rest read" : " read",
                          cost.moved_bytes);
    if (cost.redundant_pairs > 0) {
      text += fmt::format("; {} change{} no value: {} bytes moved and {} bytes of tensors alive for nothing",
                          Counted(cost.redundant_pairs, "pair"), cost.redundant_pairs == 1 ? "s" : "",
                          cost.redundant_bytes, cost.extra_alive_bytes);
    }
    for (const CastCost::Share& share : cost.shares) {
      const std::string beside =
          share.before.empty() ? "of its own" : "of " + share.before + ", which reads what it gives";
      text += fmt::format("; under {} {:.1f} us beside {:.1f} us {}", share.under, share.casts_us,
                          share.op_us, beside);
      if (share.op_us > 0) text += fmt::format(" ({:.0f} %)", 100 * share.casts_us / share.op_us);
    }
    Say("cost", text);
  }

  void Knobs() {
    for (const auto& [knob, asked] : result_.knobs_asked) {
      Say("knob",
          fmt::format("{}: requested {}, effective {}{}", knob, asked,
                      LookupOr(result_.knobs_effective, knob, "not read back"), KnobEffectOf(knob, asked)));
    }
    for (const auto& [knob, effective] : result_.knobs_effective) {
      if (!result_.knobs_asked.contains(knob)) Say("knob", fmt::format("{}: effective {}", knob, effective));
    }
  }

  /// The effect of this setting in this case's run; empty if nothing was compared with it.
  std::string KnobEffectOf(const std::string& knob, const std::string& asked) const {
    for (const KnobEffect& effect : report_.knobs) {
      const bool mine =
          effect.knob == knob && effect.asked == asked && result_.backend.starts_with(effect.backend);
      if (mine && effect.compared > 0) return "; " + KnobSentence(effect);
    }
    return "";
  }

  void Ledgers() {
    for (const Ledger& ledger : report_.ledgers) {
      const bool takes_part = std::ranges::any_of(
          ledger.backends, [&](const auto& group) { return Contains(group, result_.backend); });
      if (ledger.case_id != result_.id || !takes_part) continue;
      Say("ledger", LedgerText(ledger));
      for (const auto& texts : {CauseTexts(ledger, {}), RemedyTexts(ledger)}) {
        for (const std::string& text : texts) SayInner("", text);
      }
    }
  }

  void Divergences() {
    for (const auto& divergence : report_.divergences) {
      if (divergence.case_id != result_.id) continue;
      const bool member = std::ranges::any_of(
          divergence.backends, [&](const auto& group) { return Contains(group, result_.backend); });
      if (member)
        Say("diverges", fmt::format("{} ({}): {}", Name(divergence.kind), divergence.basis,
                                    WithPlaces(divergence.sentence, SourcePlacesOf(report_, divergence))));
    }
  }

  const RunReport& report_;
  const CaseResult& result_;
  const Explanation& explanation_;
  const ConsoleOptions& options_;
  std::string text_;
};

}  // namespace

std::string WriteExplanation(const RunReport& report, const CaseResult& result,
                             const Explanation& explanation, const ConsoleOptions& options) {
  if (options.verbosity != ConsoleOptions::Verbosity::kVerbose)
    return WriteBriefExplanation(report, result, explanation, options);
  return Writer(report, result, explanation, options).Write();
}

}  // namespace ulpscope
