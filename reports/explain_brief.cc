// A derivation in forty lines: every part has its share, and the trace uses the rest.
#include "reports/explain_brief.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "reports/births.h"
#include "reports/cell.h"
#include "reports/ledger.h"
#include "reports/op_tree.h"
#include "reports/places.h"
#include "reports/text_safe.h"
#include "reports/witness.h"

namespace ulpscope {
namespace {

using TextLines = std::vector<std::string>;

class BriefWriter {
 public:
  BriefWriter(const RunReport& report, const ConsoleOptions& options) : report_(report), options_(options) {}

  std::string Write(const CaseResult& result, const Explanation& explanation) {
    Add(fmt::format("{}  on  {}", result.id, result.backend));
    Asked(explanation);
    Observed(result);
    const Divergence* first = Parts([&](const Divergence& divergence) {
      return std::ranges::any_of(divergence.backends,
                                 [&](const auto& group) { return Contains(group, result.backend); });
    });
    Ledgers([&](const Ledger& ledger) {
      return ledger.case_id == result.id && std::ranges::any_of(ledger.backends, [&](const auto& group) {
               return Contains(group, result.backend);
             });
    });
    Proof(result, first);
    for (size_t i = 0; i < std::min<size_t>(result.notes.size(), 2); ++i) Say("note", result.notes[i], 2);
    for (size_t i = 0; i < std::min<size_t>(result.not_finite.size(), 2); ++i)
      Say("not finite", BirthSentence(result.not_finite[i], ""), 3);
    if (!result.proved_on.empty()) Say("proved on", ProvedOnSentence(result.proved_on), 2);
    const TextLines after = Ending(result);
    Trace(result, explanation,
          kMostExplainedLines - std::min(kMostExplainedLines, lines_.size() + after.size()));
    lines_.insert(lines_.end(), after.begin(), after.end());
    return Joined();
  }

  std::string WriteOverview(const std::string& case_id, const Explanation& explanation) {
    Add(case_id);
    Asked(explanation);
    size_t hidden = 0;
    for (const CaseResult& result : report_.results) {
      if (result.id != case_id || result.status == Status::kSkip) continue;
      if (lines_.size() > kMostExplainedLines - 16) {
        ++hidden;
        continue;
      }
      std::vector<std::string> cells;
      for (const auto& [name, value] : result.ValuesInOrder())
        cells.push_back(fmt::format("{} {}", name, CellText(*value)));
      if (cells.empty()) cells.push_back(std::string(Name(result.outcome.kind)));
      Say("observed", fmt::format("{}: {} {}", result.backend, Name(result.status), Join(cells, ", ")), 2);
    }
    if (hidden > 0) Say("", fmt::format("and {} more backends", hidden), 1);
    Parts([](const Divergence&) { return true; });
    Ledgers([&](const Ledger& ledger) { return ledger.case_id == case_id; });
    Say("next", fmt::format("ulpscope explain {}@BACKEND derives one of them; -v all of them", case_id), 2);
    return Joined();
  }

 private:
  void Add(const std::string& line) { lines_.push_back(TerminalSafe(line)); }

  TextLines Wrapped(std::string_view head, const std::string& text, size_t most) const {
    TextLines lines = LinesOf(Wrap(fmt::format("  {:<10} ", head), TerminalSafe(text), options_.columns));
    if (lines.size() > most) {
      lines.resize(most);
      lines.back() += " ...";
    }
    return lines;
  }

  void Say(std::string_view head, const std::string& text, size_t most) {
    const TextLines lines = Wrapped(head, text, most);
    lines_.insert(lines_.end(), lines.begin(), lines.end());
  }

  std::string Joined() {
    if (lines_.size() > kMostExplainedLines) lines_.resize(kMostExplainedLines);
    return Join(lines_, "\n") + "\n";
  }

  void Asked(const Explanation& explanation) {
    constexpr size_t kMostSteps = 6;
    if (!explanation.about.empty()) Say("asked", explanation.about, 2);
    if (!explanation.tensors.empty()) Say("", explanation.tensors, 2);
    const auto& program = explanation.program;
    const size_t shown = program.size() <= kMostSteps ? program.size() : kMostSteps - 1;
    for (size_t i = 0; i < shown; ++i) {
      Say("", program[i], 1);
      if (const std::string origin = explanation.OriginOf(i); !origin.empty()) Say("", origin, 1);
    }
    if (shown < program.size()) Say("", fmt::format("and {} more steps", program.size() - shown), 1);
  }

  void Observed(const CaseResult& result) {
    constexpr size_t kMostValues = 4;
    if (result.outcome.kind != OutcomeKind::kCompleted) Say("observed", DescribeWhole(result.outcome), 3);
    size_t count = 0;
    for (const auto& [name, value] : result.ValuesInOrder()) {
      if (++count > kMostValues) continue;
      const Classification& classification = value->classification;
      std::string text = fmt::format("{} {}  {}  {}", name, Describe(value->dtype, value->shape),
                                     CellText(*value), classification.label);
      text += fmt::format("; {} of {} elements checked", classification.checked, classification.elements);
      if (classification.checked > 0) text += ", " + ErrorText(classification);
      Say("observed", text, 2);
      for (const Remark& remark : classification.says) Say("", remark.text, 1);
      if (classification.fits && !classification.notes.empty()) Say("", classification.notes.front().text, 1);
      if (!classification.regions.empty())
        Say("", fmt::format("{}: {}", classification.regions[0].where, classification.regions[0].label), 1);
    }
    if (count > kMostValues) Say("", fmt::format("and {} more values", count - kMostValues), 1);
    Say("status",
        result.reason.empty() ? std::string(Name(result.status))
                              : fmt::format("{}: {}", Name(result.status), result.reason),
        3);
  }

  /// Writes the divergences that `mine` selects; returns the one that needs a proof.
  template <class Mine>
  const Divergence* Parts(Mine mine) {
    constexpr size_t kMostParts = 3;
    const Divergence* first = nullptr;
    size_t count = 0;
    for (const Divergence& divergence : report_.divergences) {
      if (!mine(divergence)) continue;
      if (first == nullptr && divergence.kind == DivergenceKind::kPrecision) first = &divergence;
      if (++count <= kMostParts) {
        Say("parts", fmt::format("{} ({}): {}", Name(divergence.kind), divergence.basis, divergence.sentence),
            3);
        if (const std::string places = PlacesText(SourcePlacesOf(report_, divergence)); !places.empty())
          Say("", places, 2);
      }
    }
    if (count > kMostParts) Say("", fmt::format("and in {} more ways", count - kMostParts), 1);
    if (count == 0) Say("parts", "from no other backend of this run", 1);
    return first;
  }

  /// The entries of the differences that `mine` selects.
  template <class Mine>
  void Ledgers(Mine mine) {
    constexpr size_t kMostLedgers = 2, kMostTexts = 4;
    size_t count = 0;
    for (const Ledger& ledger : report_.ledgers) {
      if (!mine(ledger) || ++count > kMostLedgers) continue;
      Say("ledger", LedgerText(ledger), 3);
      const auto causes = CauseTexts(ledger, report_.divergences);
      for (size_t i = 0; i < std::min(causes.size(), kMostTexts); ++i) Say("", causes[i], 2);
      for (const std::string& tried : RemedyTexts(ledger)) Say("", tried, 1);
    }
    if (count > kMostLedgers) Say("", fmt::format("and {} more values", count - kMostLedgers), 1);
  }

  /// One element, and the rival's value: the rival is the backend that it differs from, or the nearest model.
  void Proof(const CaseResult& result, const Divergence* divergence) {
    const auto witness = Witnesses(report_).Of(result, divergence);
    if (!witness) return;
    Say("proof", witness->proof, 2);
    Say("rival", witness->rival, 3);
  }

  TextLines Ending(const CaseResult& result) const {
    size_t models = 0, excluded = 0;
    for (const auto& [name, value] : result.values) {
      models += value.classification.models_proved.size();
      excluded +=
          value.classification.excluded.size() + static_cast<size_t>(value.classification.excluded_elsewhere);
    }
    TextLines lines = Wrapped("repeat", result.repro, 3);
    const TextLines more =
        Wrapped("-v",
                fmt::format("{} models that are left, {} recorded exclusions, all stages of the trace",
                            models, excluded),
                1);
    lines.insert(lines.end(), more.begin(), more.end());
    return lines;
  }

  /// The conversions of the last stage, each below the op that causes it.
  void Trace(const CaseResult& result, const Explanation& explanation, size_t room) {
    constexpr size_t kMostTraced = 10;
    if (explanation.trace.empty() || room < 3) return;
    OpTreeOptions tree{.console = options_};
    tree.console.color = ConsoleOptions::Color::kNever;
    const std::string last(LastStage(explanation.trace));
    tree.stages.push_back(last);
    const TextLines drawn = LinesOf(DrawOpTree(explanation.trace, result.casts, tree));
    std::set<size_t> chosen;
    const size_t most = std::min(room - 1, kMostTraced);
    for (size_t i = 0; i < drawn.size() && chosen.size() + 2 <= most; ++i) {
      if (!drawn[i].starts_with("    >")) continue;
      if (i > 0) chosen.insert(i - 1);
      chosen.insert(i);
    }
    for (size_t i = 0; i < drawn.size() && chosen.size() < most && chosen.empty(); ++i) {
      if (drawn[i].find(last) != std::string::npos) chosen.insert(i);
    }
    Add("  trace");
    for (const size_t i : chosen) lines_.push_back(drawn[i].substr(0, options_.columns));
  }

  const RunReport& report_;
  const ConsoleOptions& options_;
  TextLines lines_;
};

}  // namespace

std::string WriteBriefExplanation(const RunReport& report, const CaseResult& result,
                                  const Explanation& explanation, const ConsoleOptions& options) {
  return BriefWriter(report, options).Write(result, explanation);
}

std::string WriteCaseOverview(const RunReport& report, const std::string& case_id,
                              const Explanation& explanation, const ConsoleOptions& options) {
  return BriefWriter(report, options).WriteOverview(case_id, explanation);
}

}  // namespace ulpscope
