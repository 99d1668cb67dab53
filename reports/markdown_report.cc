// RunReport as Markdown.
#include "reports/markdown_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "reports/births.h"
#include "reports/budget.h"
#include "reports/cell.h"
#include "reports/code_names.h"
#include "reports/findings.h"
#include "reports/ledger.h"
#include "reports/matrix.h"
#include "reports/places.h"
#include "reports/text_safe.h"

namespace ulpscope {
namespace {

constexpr size_t kMostFindings = 10, kMostFailures = 10;
/// GitHub takes a mebibyte for a step; a reader takes far less.
constexpr size_t kMostRows = 200;

std::string InTable(std::string_view text) { return MarkdownCode(text, MarkdownPlace::kTable); }

class Summary {
 public:
  explicit Summary(const RunReport& report) : report_(report) {}

  std::string Write() {
    text_ = "## ulpscope: " + FindingsTitle(report_.divergences, "") + "\n\n";
    if (!report_.complete) text_ += "**This run is not complete.**\n\n";
    if (report_.limit) text_ += "**" + MarkdownText(LimitSentence(*report_.limit)) + ".**\n\n";
    if (const std::string summary = LedgerSummary(report_); !summary.empty())
      text_ += MarkdownText(summary) + "\n\n";
    Findings();
    NotFinite();
    Ledgers();
    Budgets();
    Failures();
    Table();
    Counts();
    return std::move(text_);
  }

 private:
  void Findings() {
    size_t shown = 0, all = 0;
    for (const Divergence& divergence : report_.divergences) {
      if (!PartsClasses(divergence)) continue;
      ++all;
      if (shown == kMostFindings) continue;
      ++shown;
      const std::string values = FindingValues(divergence);
      text_ += fmt::format(
          "{}. **{}** {}{}  \n   {}\n", shown, Name(divergence.kind),
          MarkdownCode(divergence.case_id, MarkdownPlace::kText),
          values.empty() ? "" : " " + MarkdownText(values),
          MarkdownSentence(WithPlaces(BriefSentence(divergence), SourcePlacesOf(report_, divergence)),
                           MarkdownPlace::kText));
    }
    if (all > shown) text_ += fmt::format("\nand {} more\n", all - shown);
    if (all > 0) text_ += "\n";
  }

  void NotFinite() {
    const std::vector<SharedBirth> births = SharedBirthsOf(report_);
    if (births.empty()) return;
    text_ += "### Infinite or NaN\n\n";
    for (size_t i = 0; i < std::min(births.size(), kMostFindings); ++i)
      text_ += fmt::format("- {} {}\n", MarkdownCode(births[i].case_id, MarkdownPlace::kText),
                           MarkdownText(BirthSentence(report_, births[i])));
    if (births.size() > kMostFindings) text_ += fmt::format("\nand {} more\n", births.size() - kMostFindings);
    text_ += "\n";
  }

  /// The entries of each difference, in a table; only the first if there are many.
  void Ledgers() {
    if (report_.ledgers.empty()) return;
    text_ +=
        "### What each difference is made of\n\n| case | value | between | steps | which is nearer to exact "
        "|\n|---|---|---|---|---|\n";
    for (size_t i = 0; i < std::min(report_.ledgers.size(), kMostFindings); ++i) {
      const Ledger& ledger = report_.ledgers[i];
      text_ +=
          fmt::format("| {} | {} | {} and {} | {} | {} |\n", InTable(ledger.case_id), InTable(ledger.value),
                      InTable(ledger.backends.at(0).front()), InTable(ledger.backends.at(1).front()),
                      MarkdownText(EntriesText(ledger)), MarkdownText(NearnessText(ledger)));
    }
    if (report_.ledgers.size() > kMostFindings)
      text_ += fmt::format("\nand {} more\n", report_.ledgers.size() - kMostFindings);
    text_ += "\n";
  }

  /// Which rounding costs how much, in a table; of many the first.
  void Budgets() {
    const std::vector<const ErrorBudget*> shown = ShownBudgets(report_);
    if (shown.empty()) return;
    text_ +=
        "### Which rounding costs how much accuracy\n\n| case | value | backends | rms error | from | in "
        "float32 "
        "|\n|---|---|---|---|---|---|\n";
    for (size_t i = 0; i < std::min(shown.size(), kMostFindings); ++i) {
      const ErrorBudget& budget = *shown[i];
      text_ +=
          fmt::format("| {} | {} | {} | {} | {} | {} |\n", InTable(budget.case_id), InTable(budget.value),
                      InTable(Join(budget.backends, ", ")), fmt::format("{:.2g}", budget.rms),
                      MarkdownText(SharesText(budget)), MarkdownText(InFloat32Text(budget)));
    }
    if (shown.size() > kMostFindings) text_ += fmt::format("\nand {} more\n", shown.size() - kMostFindings);
    text_ += "\n";
  }

  void Failures() {
    std::vector<const CaseResult*> failing;
    for (const CaseResult& result : report_.results) {
      if (IsFailing(result.status)) failing.push_back(&result);
    }
    if (failing.empty()) return;
    text_ += "### Failed\n\n| status | case | backend | why | again |\n|---|---|---|---|---|\n";
    for (size_t i = 0; i < std::min(failing.size(), kMostFailures); ++i) {
      const CaseResult& result = *failing[i];
      text_ += fmt::format("| {} | {} | {} | {} | {} |\n", Name(result.status), InTable(result.id),
                           InTable(result.backend), MarkdownSentence(result.reason, MarkdownPlace::kTable),
                           InTable(result.repro));
    }
    if (failing.size() > kMostFailures)
      text_ += fmt::format("\nand {} more\n", failing.size() - kMostFailures);
    text_ += "\n";
  }

  void Table() {
    const Matrix matrix = BuildMatrix(report_);
    size_t rows = 0, agreed = 0, same = 0, left_out = 0;
    std::string table;
    for (const MatrixCase& c : matrix.cases) {
      for (const MatrixRow& row : c.rows) {
        if (!Differs(row)) {
          agreed += AllAgree(row);
          same += AllAgree(row) && row.same_bits;
        } else if (rows == kMostRows) {
          ++left_out;
        } else {
          ++rows;
          table += "| " + InTable(c.id) + " | " + InTable(row.label) + " |";
          for (const MatrixCell& cell : row.cells) table += " " + InTable(cell.text) + " |";
          table += "\n";
        }
      }
    }
    if (rows > 0) {
      std::string head = "| case | value |", line = "|---|---|";
      for (const auto& backend : matrix.backends) {
        head += " " + InTable(backend) + " |";
        line += "---|";
      }
      text_ += "### Where backends part\n\n" + head + "\n" + line + "\n" + table + "\n";
      std::vector<std::string> legend;
      for (const auto& entry : LegendOf(matrix)) legend.push_back(MarkdownText(entry));
      text_ += Join(legend, " · ") + "\n\n";
    }
    if (left_out > 0) text_ += fmt::format("{} more rows do not fit here.\n\n", left_out);
    if (agreed > 0)
      text_ += fmt::format("One class on all backends in {}, the same bits in {}.\n\n",
                           Counted(agreed, "row"), same);
  }

  void Counts() {
    text_ += MarkdownText(Join(StatusCounts(report_), ", ")) + fmt::format(" · seed {}", report_.seed);
    const std::vector<std::string> versions = VersionsOf(report_, MarkdownText);
    text_ += (versions.empty() ? "" : " · " + Join(versions, ", ")) + "\n";
  }

  const RunReport& report_;
  std::string text_;
};

}  // namespace

std::string WriteMarkdown(const RunReport& report) { return Summary(report).Write(); }

std::string MarkdownText(std::string_view text) {
  constexpr std::string_view kEscaped = "\\`*_{}[]()<>#|~!&@$^";
  const std::string safe = TerminalSafe(text);
  std::string escaped;
  for (size_t i = 0; i < safe.size(); ++i) {
    const char c = safe[i];
    // GitHub would turn such text into a link, a list or a heading.
    const bool link =
        (c == ':' && safe.compare(i, 3, "://") == 0) || (c == '.' && i >= 3 && (safe[i - 1] | 32) == 'w');
    const bool begins = i == 0 && (c == '-' || c == '+' || c == '=');
    const bool numbers = c == '.' && i > 0 && safe.find_first_not_of("0123456789") == i;
    if (kEscaped.find(c) != std::string_view::npos || link || begins || numbers) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string MarkdownCode(std::string_view text, MarkdownPlace place) {
  const std::string safe = TerminalSafe(text);
  if (safe.empty()) return "";
  size_t longest = 0, run = 0;
  std::string inside;
  for (const char c : safe) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
    if (c == '|' && place == MarkdownPlace::kTable) inside += '\\';  // it ends a cell even in code
    inside += c;
  }
  const std::string fence(longest + 1, '`');
  const bool pad = inside.starts_with('`') || inside.ends_with('`');
  return fence + (pad ? " " : "") + inside + (pad ? " " : "") + fence;
}

std::string MarkdownSentence(std::string_view sentence, MarkdownPlace place) {
  return ShowNames(sentence, MarkdownText,
                   [place](std::string_view name) { return MarkdownCode(name, place); });
}

}  // namespace ulpscope
