// Layout of the matrix and of the parts after it.
#include "reports/console.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>

#include "harness/base/distinct.h"
#include "harness/base/find.h"
#include "harness/base/text.h"
#include "reports/births.h"
#include "reports/budget.h"
#include "reports/cell.h"
#include "reports/findings.h"
#include "reports/knobs.h"
#include "reports/ledger.h"
#include "reports/matrix.h"
#include "reports/places.h"
#include "reports/text_safe.h"

namespace ulpscope {
namespace {

using Tone = MatrixCell::Tone;
using Verbosity = ConsoleOptions::Verbosity;

constexpr size_t kGap = 2;
constexpr size_t kLongestHead = 24;

std::string Paint(const std::string& text, Tone tone, const ConsoleOptions& options) {
  if (options.color == ConsoleOptions::Color::kNever || tone == Tone::kPlain || text.empty()) return text;
  const char* code = tone == Tone::kFailing ? "31" : tone == Tone::kDivergent ? "33" : "2";
  return fmt::format("\x1b[{}m{}\x1b[0m", code, text);
}

std::string Bold(const std::string& text, const ConsoleOptions& options) {
  return options.color == ConsoleOptions::Color::kNever ? text : "\x1b[1m" + text + "\x1b[0m";
}

std::string Pad(const std::string& painted, size_t width, size_t to) {
  return painted + std::string(to > width ? to - width : 0, ' ');
}

void TrimRight(std::string* line) { line->erase(line->find_last_not_of(' ') + 1); }

/// Column heads. Long backend strings are numbered and spelled out below the matrix.
struct Heads {
  std::vector<std::string> shown;
  std::vector<std::string> notes;
};

Heads MakeHeads(const std::vector<std::string>& backends) {
  Heads heads;
  for (const auto& backend : backends) {
    const std::string safe = TerminalSafe(backend);
    if (DisplayWidth(safe) <= kLongestHead) {
      heads.shown.push_back(safe);
      continue;
    }
    const std::string brief =
        fmt::format("{}:#{}", safe.substr(0, std::min<size_t>(safe.find(':'), 16)), heads.notes.size() + 1);
    heads.shown.push_back(brief);
    heads.notes.push_back(fmt::format("{} = {}", brief, safe));
  }
  return heads;
}

class Layout {
 public:
  Layout(const RunReport& report, const ConsoleOptions& options)
      : report_(report), options_(options), matrix_(BuildMatrix(report)) {
    cases_ = matrix_.cases.size() + matrix_.skipped_cases;
    legend_ = LegendOf(matrix_);
    if (options.verbosity != Verbosity::kVerbose) Fold();
  }

  std::string Write() {
    if (options_.verbosity != Verbosity::kQuiet) {
      const bool knobs = options_.subject == ConsoleOptions::Subject::kKnobs;
      const bool matrix = !knobs || options_.verbosity == Verbosity::kVerbose;
      Header();
      if (matrix) {
        Findings();
        Ledgers();
        Budgets();
        NotFinite();
        Refusals();
        Table();
      }
      if (knobs) text_ += WriteKnobTable(report_, options_.columns);
      if (matrix) {
        if (options_.verbosity == Verbosity::kVerbose) Proofs();
        Skips();
      }
      NotInstalled();
    }
    Failures();
    if (options_.verbosity != Verbosity::kQuiet) Basis();
    Counts();
    return std::move(text_);
  }

 private:
  void Line(std::string line) {
    TrimRight(&line);
    text_ += line + "\n";
  }

  void Header() {
    const std::vector<std::string> versions = VersionsOf(report_, TerminalSafe);
    std::string line = fmt::format("{} x {}", Counted(cases_, "case"),
                                   Counted(matrix_.backends.size() + matrix_.skipped.size(), "backend"));
    if (!versions.empty()) line += "  " + Join(versions, ", ");
    line += fmt::format("  seed {}", report_.seed);
    if (const auto run = report_.durations_s.find("run"); run != report_.durations_s.end()) {
      const auto seconds = static_cast<int64_t>(run->second + 0.5);
      line += fmt::format("  {:02}:{:02}", seconds / 60, seconds % 60);
    }
    text_ += Wrap("ulpscope  ", line, options_.columns);
    if (!report_.complete) Line("          this run is not complete");
    if (report_.limit) text_ += Wrap("          ", LimitSentence(*report_.limit), options_.columns);
    Line("");
  }

  /// Takes the rows in which all agree out of the matrix.
  void Fold() {
    for (auto& c : matrix_.cases) {
      std::erase_if(c.rows, [&](const MatrixRow& row) {
        if (!AllAgree(row)) return false;
        const auto cell = std::ranges::find_if(row.cells, [](const MatrixCell& each) {
          return !each.text.empty() && each.tone != Tone::kFaint;
        });
        folded_[row.same_bits ? 0 : 1][cell->text].push_back(row.label.empty() ? c.id
                                                                               : c.id + " " + row.label);
        return true;
      });
    }
    std::erase_if(matrix_.cases, [](const MatrixCase& c) { return c.rows.empty(); });
  }

  /// One line for each cell that all backends have alike: first those whose values are equal in every bit.
  void Folded() {
    for (const bool same : {true, false}) {
      const auto& folded = folded_[same ? 0 : 1];
      if (folded.empty()) continue;
      size_t rows = 0;
      for (const auto& [cell, names] : folded) rows += names.size();
      Line(fmt::format(
          "{} in {} (-v unfolds {})",
          same ? "the same on all backends, bit for bit," : "one class on all backends, bits not the same,",
          Counted(rows, "row"), rows == 1 ? "it" : "them"));
      size_t width = 0;
      for (const auto& [cell, names] : folded) width = std::max(width, DisplayWidth(TerminalSafe(cell)));
      for (const auto& [cell, names] : folded) FoldedLine(cell, names, width);
      Line("");
    }
  }

  void FoldedLine(const std::string& cell, const std::vector<std::string>& names, size_t width) {
    const std::string safe = TerminalSafe(cell);
    std::string line = "  " + Pad(safe, DisplayWidth(safe), width + kGap);
    size_t shown = 0;
    for (const auto& name : names) {
      const std::string more = (shown == 0 ? "" : ", ") + TerminalSafe(name);
      if (shown > 0 && DisplayWidth(line + more) + 14 > options_.columns) break;
      line += more;
      ++shown;
    }
    if (shown < names.size()) line += fmt::format(", and {} more", names.size() - shown);
    Line(line);
  }

  void Table() {
    if (!matrix_.cases.empty()) Columns();
    Folded();
    if (!matrix_.cases.empty() || !folded_[0].empty() || !folded_[1].empty()) Legend();
  }

  /// Splits the columns into blocks that fit, each with its own row labels.
  void Columns() {
    if (matrix_.backends.empty()) return;
    const Heads heads = MakeHeads(matrix_.backends);
    std::vector<size_t> widths;
    size_t label_width = 0;
    for (size_t column = 0; column < heads.shown.size(); ++column) {
      size_t width = DisplayWidth(heads.shown[column]);
      for (const auto& c : matrix_.cases) {
        for (const auto& row : c.rows)
          width = std::max(width, DisplayWidth(TerminalSafe(row.cells[column].text)));
      }
      widths.push_back(width + kGap);
    }
    for (const auto& c : matrix_.cases) {
      for (const auto& row : c.rows)
        label_width = std::max(label_width, DisplayWidth(TerminalSafe(row.label)) + 2 + kGap);
    }
    for (size_t first = 0; first < widths.size();) {
      size_t last = first;
      size_t used = label_width;
      while (last < widths.size() && (last == first || used + widths[last] - kGap <= options_.columns))
        used += widths[last++];
      Block(heads, widths, label_width, first, last);
      first = last;
    }
    for (const auto& note : heads.notes) Line("  " + note);
    if (!heads.notes.empty()) Line("");
  }

  /// Breaks between entries, never inside one.
  void Legend() {
    std::string line;
    for (const auto& entry : legend_) {
      if (!line.empty() && line.size() + 3 + entry.size() > options_.columns) {
        Line(line);
        line.clear();
      }
      line += (line.empty() ? "" : "   ") + entry;
    }
    Line(line);
    Line("");
  }

  void Block(const Heads& heads, const std::vector<size_t>& widths, size_t label_width, size_t first,
             size_t last) {
    std::string head(label_width, ' ');
    for (size_t column = first; column < last; ++column) {
      head += Pad(Bold(heads.shown[column], options_), DisplayWidth(heads.shown[column]), widths[column]);
    }
    Line(head);
    size_t left_out = 0;
    for (const auto& c : matrix_.cases) {
      if (IsEmpty(c, first, last)) {
        ++left_out;
        continue;
      }
      Line(Bold(TerminalSafe(c.id), options_));
      for (const auto& row : c.rows) {
        const std::string label = "  " + TerminalSafe(row.label);
        std::string line = Pad(label, DisplayWidth(label), label_width);
        for (size_t column = first; column < last; ++column) {
          const std::string text = TerminalSafe(row.cells[column].text);
          line += Pad(Paint(text, row.cells[column].tone, options_), DisplayWidth(text), widths[column]);
        }
        Line(line);
      }
    }
    if (left_out > 0) Line(fmt::format("({} more that these backends skip)", left_out));
    Line("");
  }

  /// True if columns first to last only show that the case was skipped.
  static bool IsEmpty(const MatrixCase& c, size_t first, size_t last) {
    return std::ranges::all_of(c.rows, [&](const MatrixRow& row) {
      return std::all_of(row.cells.begin() + static_cast<std::ptrdiff_t>(first),
                         row.cells.begin() + static_cast<std::ptrdiff_t>(last), [](const MatrixCell& cell) {
                           return cell.text.empty() || cell.tone == Tone::kFaint;
                         });
    });
  }

  bool IsShown(const Divergence& divergence) const {
    return options_.verbosity == Verbosity::kVerbose || PartsClasses(divergence);
  }

  /// The findings: three lines each, unless verbose.
  void Findings() {
    constexpr size_t kMostSentenceLines = 2;
    const bool verbose = options_.verbosity == Verbosity::kVerbose;
    const size_t shown = static_cast<size_t>(std::ranges::count_if(
        report_.divergences, [&](const Divergence& divergence) { return IsShown(divergence); }));
    if (const std::string summary = LedgerSummary(report_); !summary.empty())
      text_ += Wrap("", TerminalSafe(summary), options_.columns);
    const bool listed = options_.findings == ConsoleOptions::Findings::kListed;
    const std::string title = verbose ? Counted(shown, "divergence")
                                      : FindingsTitle(report_.divergences, listed ? " (-v lists them)" : "");
    text_ += Wrap("", title, options_.columns);
    if (!listed) return Line("");
    size_t number = 0;
    bool cut = false;
    size_t folded = 0;
    for (const WeighedDivergence& each : ByWeight(report_)) {
      const Divergence& divergence = *each.divergence;
      if (!IsShown(divergence)) continue;
      if (each.weight.moves_nothing && !verbose) {
        ++folded;
        continue;
      }
      const std::string head = fmt::format("  {:>3}  {:<10} ", ++number, Name(divergence.kind));
      std::string subject = FindingSubject(divergence);
      if (const std::string weighs = WeightText(each.weight); !weighs.empty()) subject += ": " + weighs;
      text_ += Wrap(head, TerminalSafe(subject), options_.columns);
      const std::string sentence =
          Wrap(std::string(7, ' '), TerminalSafe(verbose ? divergence.sentence : BriefSentence(divergence)),
               options_.columns);
      text_ += verbose ? sentence : FirstLines(sentence, kMostSentenceLines, &cut);
      if (const std::string likewise = each.LikewiseText(); !likewise.empty())
        text_ += Wrap(std::string(6, ' '), TerminalSafe(likewise), options_.columns);
      if (const std::string places = PlacesText(SourcePlacesOf(report_, each)); !places.empty())
        text_ += Wrap(std::string(7, ' '), TerminalSafe(places), options_.columns);
    }
    if (folded > 0) {
      text_ += Wrap("  ",
                    fmt::format("{} of steps that move no observed bit (-v lists {})",
                                Counted(folded, "finding"), folded == 1 ? "it" : "them"),
                    options_.columns);
    }
    if (shown > 0)
      text_ += Wrap("  ",
                    cut ? "ulpscope explain ID@BACKEND shows the derivation, -v whole sentences"
                        : "ulpscope explain ID@BACKEND shows the derivation",
                    options_.columns);
    Line("");
  }

  /// The entries of each difference, if there are few enough to read.
  void Ledgers() {
    constexpr size_t kMostLedgers = 12;
    if (report_.ledgers.empty()) return;
    const bool all = options_.verbosity == Verbosity::kVerbose || report_.ledgers.size() <= kMostLedgers;
    if (!all) return;
    Line(Bold("what each difference is made of", options_));
    std::vector<Divergence> shown;
    std::ranges::copy_if(report_.divergences, std::back_inserter(shown),
                         [&](const Divergence& each) { return IsShown(each); });
    for (const Ledger& ledger : report_.ledgers) {
      const std::string text = cases_ == 1 ? LedgerText(ledger) : ledger.case_id + "  " + LedgerText(ledger);
      text_ += Wrap("  ", TerminalSafe(text), options_.columns);
      for (const auto& texts : {CauseTexts(ledger, shown), RemedyTexts(ledger)}) {
        for (const std::string& text_of : texts)
          text_ += Wrap("       ", TerminalSafe(text_of), options_.columns);
      }
    }
    Line("");
  }

  /// The causes of the errors of values that differ: at most two lines each.
  void Budgets() {
    constexpr size_t kMostBudgets = 12;
    const std::vector<const ErrorBudget*> shown = ShownBudgets(report_);
    if (shown.empty() || (options_.verbosity != Verbosity::kVerbose && shown.size() > kMostBudgets)) return;
    Line(Bold("which rounding costs how much accuracy", options_));
    for (const ErrorBudget* budget : shown) {
      const std::string text = BudgetText(*budget), in_float32 = InFloat32Text(*budget);
      text_ += Wrap("  ", TerminalSafe(cases_ == 1 ? text : budget->case_id + "  " + text), options_.columns);
      if (!in_float32.empty()) text_ += Wrap("       ", TerminalSafe(in_float32), options_.columns);
    }
    Line("");
  }

  /// With " ..." behind the last line, for which its last words give way.
  std::string FirstLines(const std::string& text, size_t most, bool* cut) const {
    std::vector<std::string> lines = LinesOf(text);
    if (lines.size() <= most) return text;
    lines.resize(most);
    *cut = true;
    constexpr std::string_view kMore = " ...";
    std::string& last = lines.back();
    const auto word = [&] { return last.find_last_of(' '); };
    while (DisplayWidth(last) + kMore.size() > options_.columns && word() != std::string::npos &&
           last.find_first_not_of(' ') < word())
      last.erase(word());
    return Join(lines, "\n") + std::string(kMore) + "\n";
  }

  /// Results that are lost on every backend alike; if backends differ in that, a finding reports it.
  void NotFinite() {
    std::vector<SharedBirth> shown = SharedBirthsOf(report_);
    std::erase_if(shown, [](const SharedBirth& each) { return each.diverges; });
    if (shown.empty()) return;
    Line(Bold("infinite or NaN", options_));
    for (const SharedBirth& each : shown) {
      const std::string sentence = BirthSentence(report_, each);
      text_ += Wrap("       ", TerminalSafe(cases_ == 1 ? sentence : each.case_id + ": " + sentence),
                    options_.columns);
    }
    Line("");
  }

  /// Errors that no divergence reports: every backend that ran the case raised them.
  void Refusals() {
    std::set<std::string> told;
    for (const auto& divergence : report_.divergences) {
      if (divergence.kind == DivergenceKind::kOutcome) told.insert(divergence.case_id);
    }
    std::vector<std::pair<std::string, std::vector<std::string>>> errors;
    std::map<std::string, size_t> place;  // of a text among them
    for (const auto& result : report_.results) {
      if (result.outcome.kind != OutcomeKind::kRaised || told.contains(result.id) || result.demanded)
        continue;
      const std::string text =
          fmt::format("{}: {} {}", result.id, result.outcome.error_class, FirstLineOf(result.outcome.text));
      const auto [same, is_new] = place.try_emplace(text, errors.size());
      if (is_new) errors.push_back({text, {}});
      errors[same->second].second.push_back(result.backend);
    }
    if (errors.empty()) return;
    Line(Bold("raised, and nothing was checked", options_));
    bool cut = false;
    for (const auto& [text, backends] : errors) {
      text_ += FirstLines(
          Wrap("       ", TerminalSafe(fmt::format("{} ({})", text, Join(backends, ", "))), options_.columns),
          3, &cut);
    }
    Line("");
  }

  /// The auxiliary inputs of cases with `prove`.
  void Proofs() {
    bool any = false;
    for (const auto& result : report_.results) {
      if (result.proved_on.empty()) continue;
      any = true;
      text_ += Wrap("  ",
                    TerminalSafe(fmt::format("{} on {}: {}", result.id, result.backend,
                                             ProvedOnSentence(result.proved_on))),
                    options_.columns);
    }
    if (any) Line("");
  }

  void Skips() {
    struct Skip {
      size_t count = 0;
      Distinct backends;
    };
    std::vector<std::string> order;
    std::map<std::string, Skip> skips;
    for (const auto& result : report_.results) {
      if (result.status != Status::kSkip) continue;
      const std::string reason = TerminalSafe(result.reason);
      Skip& skip = skips[reason];
      if (skip.count++ == 0) order.push_back(reason);
      skip.backends.Add(TerminalSafe(result.backend));
    }
    if (order.empty()) return;
    Line(Bold(matrix_.skipped_cases == 0
                  ? "skipped"
                  : fmt::format("skipped ({} by every backend)", Counted(matrix_.skipped_cases, "case")),
              options_));
    for (const auto& reason : order) {
      const Skip& skip = skips[reason];
      text_ += Wrap(fmt::format("  {:>3}  ", skip.count),
                    fmt::format("{}: {}", Join(skip.backends.texts(), ", "), reason), options_.columns);
    }
    Line("");
  }

  void NotInstalled() {
    if (report_.not_installed.empty()) return;
    Line(Bold("not installed", options_));
    std::map<std::string, std::vector<std::string>> by_line;
    for (const auto& [backend, line] : report_.not_installed)
      by_line[TerminalSafe(line)].push_back(TerminalSafe(backend));
    for (const auto& [line, backends] : by_line) {
      text_ += Wrap("       ", fmt::format("{}: {}", Join(backends, ", "), line), options_.columns);
    }
    Line("");
  }

  /// The results that an interrupted run did not reach: hundreds may share a reason.
  bool NotReached() {
    std::map<std::string, size_t> reasons;
    for (const auto& result : report_.results) {
      if (result.status == Status::kNotRun) ++reasons[result.reason];
    }
    for (const auto& [reason, count] : reasons)
      text_ += Wrap(fmt::format("{}  ", Name(Status::kNotRun)),
                    TerminalSafe(fmt::format("{}: {}", Counted(count, "result"), reason)), options_.columns);
    return !reasons.empty();
  }

  void Failures() {
    const bool each = options_.verbosity == Verbosity::kVerbose;
    bool any = !each && NotReached();
    for (const auto& result : report_.results) {
      if (!IsFailing(result.status) || (!each && result.status == Status::kNotRun)) continue;
      any = true;
      const std::string head = fmt::format("{}  ", Name(result.status));
      std::string wrapped = Wrap(head, TerminalSafe(FailureText(result)), options_.columns);
      if (options_.color == ConsoleOptions::Color::kAlways)
        wrapped.replace(0, head.size(), Paint(head, Tone::kFailing, options_));
      text_ += wrapped;
      Line("    " + TerminalSafe(result.repro));
    }
    if (any) Line("");
  }

  /// The evidence behind a PASS.
  void Basis() {
    size_t demanded = 0, observed = 0, unreferenced = 0, raised = 0;
    for (const auto& result : report_.results) {
      if (result.status == Status::kSkip || result.status == Status::kNotRun) continue;
      const bool checked = std::ranges::any_of(result.values, [](const auto& value) {
        return value.second.classification.checked > 0 || !IsFloating(value.second.dtype);
      });
      if (result.demanded) {
        ++demanded;
      } else if (result.outcome.kind == OutcomeKind::kRaised) {
        ++raised;
      } else if (result.outcome.kind == OutcomeKind::kCompleted) {
        ++(checked ? observed : unreferenced);
      }
    }
    std::vector<std::string> parts;
    const auto add = [&](size_t count, std::string_view what) {
      if (count > 0) parts.push_back(fmt::format("{} {}", count, what));
    };
    add(demanded, "judged against a contract or an expectation");
    add(observed, "observed only");
    add(unreferenced, "without a reference");
    add(raised, "raised");
    if (!parts.empty()) text_ += Wrap("", Join(parts, ", "), options_.columns);
  }

  void Counts() {
    int64_t elements = 0;
    for (const auto& result : report_.results) {
      for (const auto& [name, value] : result.values) elements += value.classification.checked;
    }
    text_ += Wrap("",
                  fmt::format("{}   ({} elements checked against exact values)",
                              Join(StatusCounts(report_), "  "), elements),
                  options_.columns);
  }

  const RunReport& report_;
  const ConsoleOptions& options_;
  Matrix matrix_;
  size_t cases_ = 0;
  std::vector<std::string> legend_;
  /// Cell -> the rows that have it throughout: with the same bits, and with others.
  std::array<std::map<std::string, std::vector<std::string>>, 2> folded_;
  std::string text_;
};

}  // namespace

std::string WriteConsole(const RunReport& report, const ConsoleOptions& options) {
  return Layout(report, options).Write();
}

std::string WriteTables(const RunReport& report) {
  return WriteConsole(report, {.findings = ConsoleOptions::Findings::kCounted});
}

}  // namespace ulpscope
