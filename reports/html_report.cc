// RunReport as a page.
#include "reports/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "reports/births.h"
#include "reports/budget.h"
#include "reports/cell.h"
#include "reports/code_names.h"
#include "reports/environments.h"
#include "reports/findings.h"
#include "reports/html_assets.h"
#include "reports/html_details.h"
#include "reports/ledger.h"
#include "reports/matrix.h"
#include "reports/places.h"
#include "reports/text_safe.h"

namespace ulpscope {
namespace {

constexpr size_t kMostPageBytes = size_t{2} << 20;
/// Reserved for details, however long the matrix is.
constexpr size_t kLeastDetailBytes = size_t{1} << 18;
/// A page that opens with a wall of text is not read: with more findings than this, only the first causes are unfolded.
constexpr size_t kMostUnfolded = 12;

using Tone = MatrixCell::Tone;
using Cells = std::map<std::pair<std::string, std::string>, size_t>;

/// Divergences of one kind and cause.
struct Cause {
  DivergenceKind kind;
  std::string text;
  std::vector<const Divergence*> findings = {};
};

std::vector<Cause> GroupByCause(const RunReport& report) {
  std::vector<Cause> causes;
  std::map<std::pair<DivergenceKind, std::string>, size_t> places;
  for (const Divergence& divergence : report.divergences) {
    if (!PartsClasses(divergence)) continue;
    const auto [place, added] = places.try_emplace({divergence.kind, divergence.summary}, causes.size());
    if (added) causes.push_back({.kind = divergence.kind, .text = divergence.summary});
    causes[place->second].findings.push_back(&divergence);
  }
  std::ranges::stable_sort(causes, [](const Cause& a, const Cause& b) {
    // Causes with computed values come before refusals.
    const bool a_first = a.kind == DivergenceKind::kPrecision, b_first = b.kind == DivergenceKind::kPrecision;
    return a_first != b_first ? a_first : a.findings.size() > b.findings.size();
  });
  return causes;
}

class Page {
 public:
  Page(const RunReport& report, const ReportDetails& details)
      : report_(report), details_(details), matrix_(BuildMatrix(report)) {
    for (size_t i = 0; i < matrix_.cases.size(); ++i) rows_[matrix_.cases[i].id] = i;
  }

  std::string Write() {
    // With every possible link, to see how much room is left for the details.
    for (const CaseResult* result : CellsWithDetails(report_)) cells_[{result->id, result->backend}] = 1000;
    const size_t used = Body().size() + kPageStyle.size() + kPageScript.size() + 4096;
    const size_t left = used + kLeastDetailBytes > kMostPageBytes ? kLeastDetailBytes : kMostPageBytes - used;
    HtmlDetails collected = CollectHtmlDetails(report_, details_, left);
    cells_ = std::move(collected.cells);
    left_out_ = collected.wanted - cells_.size();
    without_ = details_.of_cell ? collected.without : 0;
    return Head() + Body() +
           "<dialog id=cell aria-labelledby=cell-title><button id=close class=close>Close</button><h2 "
           "id=cell-title></h2>"
           "<div id=cell-body></div></dialog>\n<script type=application/json id=data>" +
           collected.json + "</script>\n<script nonce=ulpscope>" + std::string(kPageScript) +
           "</script>\n</body></html>\n";
  }

 private:
  std::string Head() const {
    return "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n"
           "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src "
           "'unsafe-inline'; script-src "
           "'nonce-ulpscope'; base-uri 'none'; form-action 'none'\">\n"
           "<meta name=viewport content=\"width=device-width, initial-scale=1\"><title>ulpscope: " +
           HtmlText(FindingsTitle(report_.divergences, "")) + "</title>\n<style>" + std::string(kPageStyle) +
           "</style><style id=hidden></style><noscript><style>.only "
           ".same{display:revert}</style></noscript></head>\n";
  }

  std::string Body() const {
    return "<body><a class=skip href=#matrix>To the matrix</a>\n" + Top() + "<main>\n" + Findings() +
           Ledgers() + Budgets() + Environments() + Failures() + MatrixPart() + Legend() + Skips() +
           NotInstalled() + "</main>\n";
  }

  std::string Top() const {
    std::string text = "<header><h1>ulpscope: " + HtmlText(FindingsTitle(report_.divergences, "")) +
                       "</h1>\n<p>" + Counted(matrix_.cases.size() + matrix_.skipped_cases, "case") + " on " +
                       Counted(matrix_.backends.size() + matrix_.skipped.size(), "backend") + ": " +
                       HtmlText(Join(StatusCounts(report_), ", "));
    if (!report_.complete) text += ". <strong>This run is not complete.</strong>";
    if (report_.limit) text += ". <strong>" + HtmlText(LimitSentence(*report_.limit)) + ".</strong>";
    if (const std::string summary = LedgerSummary(report_); !summary.empty())
      text += "</p>\n<p>" + HtmlText(summary);
    text +=
        "</p>\n<p class=soft>" +
        HtmlText(Join(VersionsOf(report_, [](std::string_view plain) { return std::string(plain); }), ", ")) +
        fmt::format("; seed {}", report_.seed);
    if (!report_.started.empty()) text += "; " + HtmlText(report_.started);
    return text + "</p></header>\n";
  }

  std::string CellLink(const std::string& id, const std::string& backend, const std::string& text) const {
    const auto cell = cells_.find({id, backend});
    if (cell == cells_.end()) return HtmlText(text);
    return fmt::format("<a href=#c{}>{}</a>", cell->second, HtmlText(text));
  }

  /// The members of a group that the matrix shows, each linked to its cell.
  std::string Group(const Divergence& divergence, const std::vector<std::string>& group) const {
    std::vector<std::string> members;
    for (const auto& backend : group) members.push_back(CellLink(divergence.case_id, backend, backend));
    return Join(members, ", ");
  }

  std::string Finding(const Divergence& divergence) const {
    const auto row = rows_.find(divergence.case_id);
    std::vector<std::string> groups;
    for (const auto& group : divergence.backends) groups.push_back(Group(divergence, group));
    std::string text = "<li>";
    if (row == rows_.end()) {
      text += "<span class=id>" + HtmlText(divergence.case_id) + "</span>";
    } else {
      text += fmt::format("<a class=id href=#r{}>{}</a>", row->second, HtmlText(divergence.case_id));
    }
    const std::string values = FindingValues(divergence),
                      places = PlacesText(SourcePlacesOf(report_, divergence));
    return text + (values.empty() ? "" : " " + HtmlText(values)) + ": " +
           HtmlSentence(BriefSentence(divergence)) +
           (places.empty() ? "" : "<br><span class=\"soft at\">" + HtmlText(places) + "</span>") +
           "<br><span class=cells>" + Join(groups, " | ") + "</span></li>\n";
  }

  /// Infinities and NaNs that begin alike on several backends, or on one: a cause of their own.
  std::string NotFinite() const {
    const std::vector<SharedBirth> births = SharedBirthsOf(report_);
    if (births.empty()) return "";
    std::string text = fmt::format(
        "<details class=cause open><summary><h3>infinite or NaN <span class=kind>not finite, {}</span></h3>"
        "</summary>\n<ul>\n",
        Counted(births.size(), "finding"));
    for (const SharedBirth& each : births) {
      const auto row = rows_.find(each.case_id);
      text += "<li>" + (row == rows_.end() ? "<span class=id>" + HtmlText(each.case_id) + "</span>"
                                           : fmt::format("<a class=id href=#r{}>{}</a>", row->second,
                                                         HtmlText(each.case_id)));
      text += ": " + HtmlText(BirthSentence(report_, each)) + "</li>\n";
    }
    return text + "</ul></details>\n";
  }

  std::string Findings() const {
    const std::vector<Cause> causes = GroupByCause(report_);
    std::string text = "<h2 id=findings>Findings</h2>\n";
    if (causes.empty()) return text + "<p>No two backends part.</p>\n" + NotFinite();
    size_t shown = 0;
    for (const Cause& cause : causes) {
      std::set<std::string> cases;
      for (const Divergence* divergence : cause.findings) cases.insert(divergence->case_id);
      const std::string count = Counted(cause.findings.size(), "finding") +
                                (cases.size() > 1 ? " in " + Counted(cases.size(), "case") : "");
      text += fmt::format(
          "<details class=cause{}><summary><h3>{} <span class=kind>{}, {}</span></h3></summary>\n<ul>\n",
          shown < kMostUnfolded ? " open" : "", HtmlSentence(cause.text), HtmlText(Name(cause.kind)), count);
      for (const Divergence* divergence : cause.findings) text += Finding(*divergence);
      text += "</ul></details>\n";
      shown += cause.findings.size();
    }
    return text + NotFinite();
  }

  /// A bar for each difference: its entries, as wide as their shares, by whether a cause is known.
  std::string Ledgers() const {
    constexpr size_t kMostLedgers = 200;
    if (report_.ledgers.empty()) return "";
    std::string text =
        "<section id=ledgers><h2>What each difference is made of</h2>\n<p class=soft><i class=\"key "
        "cause\"></i> a known cause "
        "<i class=\"key order\"></i> order of summation or last bits <i class=\"key open\"></i> not "
        "explained</p>\n";
    for (size_t i = 0; i < std::min(report_.ledgers.size(), kMostLedgers); ++i)
      text += LedgerBar(report_.ledgers[i]);
    if (report_.ledgers.size() > kMostLedgers)
      text +=
          "<p>and " + std::to_string(report_.ledgers.size() - kMostLedgers) + " more, in report.json</p>\n";
    return text + "</section>\n";
  }

  static std::string LedgerBar(const Ledger& ledger) {
    double whole = 0;
    for (const LedgerEntry& entry : ledger.entries) whole += std::fabs(entry.share);
    std::string bar;
    for (const LedgerEntry& entry : ledger.entries) {
      const char* kind = !entry.IsExplained() ? "open" : entry.IsOrderOnly() ? "order" : "cause";
      const double width = whole > 0 ? 100 * std::fabs(entry.share) / whole : 0;
      bar += fmt::format("<i class={} style=\"width:{:.2f}%\" title=\"{} {}\"></i>", kind, width,
                         HtmlText(entry.step), Percent(entry.share));
    }
    std::string text = "<div class=ledger><p><span class=id>" + HtmlText(ledger.case_id) + "</span> " +
                       HtmlText(LedgerText(ledger)) + "</p><div class=bar>" + bar + "</div>";
    std::string items;
    for (const auto& texts : {CauseTexts(ledger, {}), RemedyTexts(ledger)}) {
      for (const std::string& each : texts) items += "<li>" + HtmlSentence(each) + "</li>";
    }
    if (!items.empty()) text += "<details><summary>causes</summary><ul>" + items + "</ul></details>";
    return text + "</div>\n";
  }

  /// A table: a row for each value and backend.
  std::string Budgets() const {
    constexpr size_t kMostBudgets = 200;
    const std::vector<const ErrorBudget*> shown = ShownBudgets(report_);
    if (shown.empty()) return "";
    std::string text =
        "<section id=budgets><h2>Which rounding costs how much accuracy</h2>\n<table class=budgets>"
        "<thead><tr><th>case<th>value<th>backends<th>rms error<th>from<th>in float32</thead><tbody>\n";
    for (size_t i = 0; i < std::min(shown.size(), kMostBudgets); ++i) {
      const ErrorBudget& budget = *shown[i];
      text += "<tr><td>" + HtmlText(budget.case_id) + "<td>" + HtmlText(budget.value) + "<td>" +
              HtmlText(Join(budget.backends, ", ")) + "<td>" + fmt::format("{:.2g}", budget.rms) + "<td>" +
              HtmlText(SharesText(budget)) + "<td>" + HtmlText(InFloat32Text(budget)) + "\n";
    }
    text += "</tbody></table>\n";
    if (shown.size() > kMostBudgets)
      text += "<p>and " + std::to_string(shown.size() - kMostBudgets) + " more, in report.json</p>\n";
    return text + "</section>\n";
  }

  /// The changes from one environment of this run to another: every status, class and divergence of class.
  std::string Environments() const {
    std::string text;
    for (const EnvironmentDiff& pair : CompareEnvironments(report_)) {
      text += "<h2>From " + HtmlText(pair.before) + " to " + HtmlText(pair.after) + "</h2>\n<p class=soft>" +
              Counted(pair.diff.compared, "result") + " compared; " +
              HtmlText(pair.diff.versions.empty() ? "no version differs" : Join(pair.diff.versions, "; ")) +
              "</p>\n";
      std::string rows;
      for (const RunChange& change : pair.diff.changes) {
        if (change.kind == RunChange::Kind::kCasts) continue;
        const char* way = change.way == RunChange::Way::kWorse    ? "for the worse"
                          : change.way == RunChange::Way::kBetter ? "for the better"
                                                                  : "changed";
        const auto row = rows_.find(change.id);
        rows += "<li>" + (row == rows_.end() ? HtmlText(change.id)
                                             : fmt::format("<a class=id href=#r{}>{}</a>", row->second,
                                                           HtmlText(change.id)));
        rows += fmt::format(" {}{} <span class=kind>{}</span></li>\n",
                            change.backend.empty() ? "" : HtmlText(change.backend) + " ",
                            HtmlSentence(change.what), way);
      }
      text += rows.empty() ? "<p>No class changed.</p>\n" : "<ul>\n" + rows + "</ul>\n";
    }
    return text;
  }

  std::string Failures() const {
    std::string rows;
    for (const CaseResult& result : report_.results) {
      if (!IsFailing(result.status)) continue;
      rows += fmt::format("<li><strong>{}</strong> {}: {}<br><code>{}</code></li>\n", Name(result.status),
                          CellLink(result.id, result.backend, result.id + " on " + result.backend),
                          HtmlSentence(result.reason), HtmlText(result.repro));
    }
    return rows.empty() ? "" : "<h2 id=failed>Failed</h2>\n<ul>\n" + rows + "</ul>\n";
  }

  std::string Filters() const {
    std::string text =
        "<div class=filters hidden><label>Search <input type=search id=search placeholder=\"case, value or "
        "class\"></label>\n"
        "<label>Show <select id=status><option value=\"\">all<option value=parts>where backends "
        "differ<option "
        "value=fails>what "
        "fails</select></label>\n<label><input type=checkbox id=only checked> only rows in which backends "
        "differ</label>\n"
        "<span id=shown role=status class=soft></span>\n<fieldset id=columns><legend>Backends</legend>";
    for (const auto& backend : matrix_.backends)
      text += "<label><input type=checkbox checked> " + HtmlText(backend) + "</label>";
    return text + "</fieldset></div>\n";
  }

  std::string MatrixPart() const {
    std::string text = "<h2>Matrix</h2>\n" + Filters();
    text +=
        "<div class=scroll tabindex=0 role=group aria-label=matrix><table class=\"matrix only\" "
        "id=matrix><caption "
        "class=soft>"
        "Cases down, backends across; a linked cell opens its derivation, arrow keys go from one to the "
        "next.</caption>\n"
        "<thead><tr><th scope=col>case and value";
    for (const auto& backend : matrix_.backends) text += "<th scope=col>" + HtmlText(backend);
    text += "</thead>\n";
    for (size_t i = 0; i < matrix_.cases.size(); ++i) {
      const MatrixCase& c = matrix_.cases[i];
      const bool same = std::ranges::none_of(c.rows, Differs);
      text += fmt::format("<tbody{}><tr class=c><th scope=rowgroup colspan={} id=r{}>{}\n",
                          same ? " class=same" : "", matrix_.backends.size() + 1, i, HtmlText(c.id));
      for (const MatrixRow& row : c.rows) text += Row(c, row);
    }
    text += "</table></div>\n";
    if (left_out_ > 0)
      text += fmt::format(
          "<p class=soft>{} more would open a derivation, but do not fit this page: ulpscope explain "
          "ID@BACKEND shows it.</p>\n",
          Counted(left_out_, "cell"));
    if (without_ > 0)
      text += fmt::format("<p class=soft>The ops and the errors of {} do not fit this page.</p>\n",
                          Counted(without_, "cell"));
    return text;
  }

  std::string Row(const MatrixCase& c, const MatrixRow& row) const {
    std::string text = fmt::format("<tr{}><th scope=row>{}", Differs(row) ? "" : " class=same",
                                   HtmlText(row.label.empty() ? "outcome" : row.label));
    for (size_t i = 0; i < row.cells.size(); ++i) {
      const MatrixCell& cell = row.cells[i];
      text += cell.tone == Tone::kFailing     ? "<td class=f>"
              : cell.tone == Tone::kDivergent ? "<td class=d>"
              : cell.tone == Tone::kFaint     ? "<td class=n>"
                                              : "<td>";
      if (!cell.text.empty()) text += CellLink(c.id, matrix_.backends[i], cell.text);
    }
    return text + "\n";
  }

  std::string Legend() const {
    std::string text = "<h2>How to read a cell</h2>\n<ul class=legend>\n";
    for (const auto& entry : LegendOf(matrix_)) text += "<li>" + HtmlText(entry) + "</li>\n";
    return text + "</ul>\n";
  }

  std::string Skips() const {
    std::map<std::string, std::set<std::string>> skips;
    std::map<std::string, size_t> counts;
    for (const auto& result : report_.results) {
      if (result.status != Status::kSkip) continue;
      skips[result.reason].insert(result.backend);
      ++counts[result.reason];
    }
    if (skips.empty()) return "";
    std::string text = "<h2>Skipped</h2>\n<ul>\n";
    for (const auto& [reason, backends] : skips) {
      text += fmt::format("<li>{} on {}: {}</li>\n", Counted(counts[reason], "result"),
                          HtmlText(Join(std::vector<std::string>(backends.begin(), backends.end()), ", ")),
                          HtmlText(reason));
    }
    return text + "</ul>\n";
  }

  std::string NotInstalled() const {
    if (report_.not_installed.empty()) return "";
    std::string text = "<h2>Not installed</h2>\n<ul>\n";
    for (const auto& [backend, line] : report_.not_installed)
      text += "<li>" + HtmlText(backend) + ": " + HtmlText(line) + "</li>\n";
    return text + "</ul>\n";
  }

  const RunReport& report_;
  const ReportDetails& details_;
  Matrix matrix_;
  std::map<std::string, size_t> rows_;  ///< case -> its place in the matrix
  Cells cells_;
  size_t left_out_ = 0, without_ = 0;
};

}  // namespace

std::string WriteHtml(const RunReport& report, const ReportDetails& details) {
  return Page(report, details).Write();
}

std::string HtmlText(std::string_view text) {
  std::string escaped;
  for (const char c : XmlSafe(text)) {
    escaped += c == '&'    ? "&amp;"
               : c == '<'  ? "&lt;"
               : c == '>'  ? "&gt;"
               : c == '"'  ? "&quot;"
               : c == '\'' ? "&#39;"
                           : std::string(1, c);
  }
  return escaped;
}

std::string HtmlSentence(std::string_view sentence) {
  return ShowNames(sentence, HtmlText,
                   [](std::string_view name) { return "<code>" + HtmlText(name) + "</code>"; });
}

}  // namespace ulpscope
