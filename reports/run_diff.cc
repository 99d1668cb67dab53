// Comparing two reports.
#include "reports/run_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "harness/base/text.h"
#include "reports/cell.h"
#include "reports/findings.h"
#include "reports/matrix.h"
#include "reports/text_safe.h"

namespace ulpscope {
namespace {

using Way = RunChange::Way;
using ChangeKind = RunChange::Kind;
using CellName = std::pair<std::string, std::string>;
using CellResults = std::map<CellName, const CaseResult*>;

CellResults ResultsOf(const RunReport& report) {
  CellResults cells;
  for (const CaseResult& result : report.results) cells[{result.id, result.backend}] = &result;
  return cells;
}

/// 0 good, 1 fails, 2 incomplete or broken; higher is worse.
int Badness(Status status) {
  if (!IsFailing(status)) return 0;
  return status >= Status::kNondet ? 1 : 2;
}

bool Ran(Status status) { return status != Status::kSkip && status != Status::kNotRun; }

class Comparison {
 public:
  Comparison(const RunReport& before, const RunReport& after, const std::set<std::string>& rewritten)
      : before_(before), after_(after), rewritten_(rewritten) {
    diff_.rewritten.assign(rewritten.begin(), rewritten.end());
  }

  RunDiff Compare() {
    Versions();
    Coverage();
    const CellResults old_cells = ResultsOf(before_), new_cells = ResultsOf(after_);
    for (const auto& [cell, now] : new_cells) {
      const auto was = old_cells.find(cell);
      if (was == old_cells.end() || rewritten_.contains(cell.first)) continue;
      ++diff_.compared;
      Statuses(*was->second, *now);
      Classes(*was->second, *now);
      Conversions(*was->second, *now);
      Time(*was->second, *now);
    }
    Divergences();
    std::ranges::stable_sort(diff_.changes, [](const RunChange& a, const RunChange& b) {
      return std::tie(a.kind, a.id, a.backend) < std::tie(b.kind, b.id, b.backend);
    });
    return std::move(diff_);
  }

 private:
  void Add(ChangeKind kind, Way way, const CaseResult& result, std::string what) {
    diff_.changes.push_back(
        {.kind = kind, .way = way, .id = result.id, .backend = result.backend, .what = std::move(what)});
  }

  void Versions() {
    std::map<std::string, std::vector<std::string>> changed;
    for (const auto& [backend, packages] : after_.versions) {
      const auto was = before_.versions.find(backend);
      if (was == before_.versions.end()) continue;
      std::map<std::string, std::pair<std::string, std::string>> both;
      for (const auto& [package, version] : was->second) both[package].first = version;
      for (const auto& [package, version] : packages) both[package].second = version;
      for (const auto& [package, pair] : both) {
        const auto told = [](const std::string& version) { return version.empty() ? "none" : version; };
        if (pair.first != pair.second)
          changed[fmt::format("{} {} -> {}", package, told(pair.first), told(pair.second))].push_back(
              backend);
      }
    }
    if (before_.seed != after_.seed)
      diff_.versions.push_back(fmt::format("seed {} -> {}: other inputs", before_.seed, after_.seed));
    for (const auto& [what, backends] : changed)
      diff_.versions.push_back(fmt::format("{} ({})", what, Join(backends, ", ")));
  }

  void Coverage() {
    const auto names = [](const RunReport& report, std::string CaseResult::*name) {
      std::set<std::string> all;
      for (const auto& result : report.results) all.insert(result.*name);
      return all;
    };
    for (const auto name : {&CaseResult::backend, &CaseResult::id}) {
      const std::set<std::string> was = names(before_, name), now = names(after_, name);
      std::set_difference(was.begin(), was.end(), now.begin(), now.end(),
                          std::back_inserter(diff_.only_before));
      std::set_difference(now.begin(), now.end(), was.begin(), was.end(),
                          std::back_inserter(diff_.only_after));
      if (name == &CaseResult::backend)
        std::set_intersection(was.begin(), was.end(), now.begin(), now.end(),
                              std::inserter(shared_, shared_.end()));
    }
  }

  void Statuses(const CaseResult& was, const CaseResult& now) {
    if (was.status == now.status) return;
    const int fell = Badness(now.status) - Badness(was.status);
    const bool lost = Ran(was.status) && !Ran(now.status);
    const bool found = !Ran(was.status) && Ran(now.status);
    const Way way = fell > 0 || (lost && fell >= 0)    ? Way::kWorse
                    : fell < 0 || (found && fell <= 0) ? Way::kBetter
                                                       : Way::kOther;
    Add(ChangeKind::kStatus, way, now,
        fmt::format("{} -> {}{}", Name(was.status), Name(now.status),
                    now.reason.empty() ? "" : ": " + now.reason));
  }

  void Classes(const CaseResult& was, const CaseResult& now) {
    if (!Ran(was.status) || !Ran(now.status)) return;
    if (was.outcome.kind != now.outcome.kind) {
      const Way way = now.outcome.kind == OutcomeKind::kCompleted   ? Way::kBetter
                      : was.outcome.kind == OutcomeKind::kCompleted ? Way::kWorse
                                                                    : Way::kOther;
      Add(ChangeKind::kClass, way, now,
          fmt::format("{} -> {} {}", Name(was.outcome.kind), Name(now.outcome.kind),
                      now.outcome.error_class));
      return;
    }
    std::set<std::string> values;
    for (const auto& [name, value] : was.values) values.insert(name);
    for (const auto& [name, value] : now.values) values.insert(name);
    for (const auto& name : values) {
      const auto old_value = was.values.find(name), new_value = now.values.find(name);
      const std::string old_text = old_value == was.values.end() ? "none" : CellText(old_value->second);
      const std::string new_text = new_value == now.values.end() ? "none" : CellText(new_value->second);
      if (old_text == new_text) continue;
      Way way = Way::kOther;
      if (old_value != was.values.end() && new_value != now.values.end()) {
        const int old_bits = KeptBits(old_value->second), new_bits = KeptBits(new_value->second);
        way = new_bits < old_bits ? Way::kWorse : new_bits > old_bits ? Way::kBetter : Way::kOther;
      }
      Add(ChangeKind::kClass, way, now, fmt::format("{}: {} -> {}", name, old_text, new_text));
    }
  }

  void Conversions(const CaseResult& was, const CaseResult& now) {
    std::map<std::string, int64_t> counts;
    const auto count = [&](const CaseResult& result, int64_t step) {
      for (const Cast& cast : result.casts)
        counts[fmt::format("{}: {} to {} of [{}] under {}", cast.stage, cast.from, cast.to,
                           Join(cast.shape, ","), cast.under)] += step;
    };
    count(was, -1);
    count(now, 1);
    for (const auto& [what, difference] : counts) {
      if (difference == 0) continue;
      const int64_t times = std::abs(difference);
      Add(ChangeKind::kCasts, Way::kOther, now,
          fmt::format("{}{} {}", difference > 0 ? "new" : "gone",
                      times > 1 ? fmt::format(" {} times", times) : "", what));
    }
  }

  void Time(const CaseResult& was, const CaseResult& now) {
    const double old_ms = was.Milliseconds(), new_ms = now.Milliseconds();
    diff_.seconds_before += old_ms / 1000;
    diff_.seconds_after += new_ms / 1000;
    if (old_ms > 0 && new_ms > 2 * old_ms && new_ms > old_ms + 100)
      diff_.slower.push_back(
          fmt::format("{}  {}: {:.0f} ms -> {:.0f} ms", now.id, now.backend, old_ms, new_ms));
  }

  /// The identity of a finding across runs: its case, kind and value, and the groups, restricted to backends that both
  /// runs have.
  using Identity =
      std::tuple<std::string, DivergenceKind, std::string, std::vector<std::vector<std::string>>>;

  std::map<Identity, const Divergence*> Findings(const RunReport& report,
                                                 const std::set<std::string>& cases) const {
    std::map<Identity, const Divergence*> findings;
    for (const Divergence& divergence : report.divergences) {
      if (!PartsClasses(divergence) || !cases.contains(divergence.case_id) ||
          rewritten_.contains(divergence.case_id))
        continue;
      std::vector<std::vector<std::string>> groups;
      for (const auto& group : divergence.backends) {
        groups.emplace_back();
        for (const auto& backend : group) {
          if (shared_.contains(backend)) groups.back().push_back(backend);
        }
        std::ranges::sort(groups.back());
      }
      if (std::ranges::any_of(groups, [](const auto& group) { return group.empty(); })) continue;
      std::ranges::sort(groups);
      findings.emplace(Identity{divergence.case_id, divergence.kind, divergence.value, groups}, &divergence);
    }
    return findings;
  }

  /// The subject of a divergence, however it groups the backends: its case, value, and all its backends.
  using Subject = std::tuple<std::string, std::string, std::vector<std::string>>;

  static Subject SubjectOf(const Identity& identity) {
    std::vector<std::string> backends;
    for (const auto& group : std::get<3>(identity))
      backends.insert(backends.end(), group.begin(), group.end());
    std::ranges::sort(backends);
    return {std::get<0>(identity), std::get<2>(identity), backends};
  }

  void Divergences() {
    std::set<std::string> was, now, both;
    for (const auto& result : before_.results) was.insert(result.id);
    for (const auto& result : after_.results) now.insert(result.id);
    std::set_intersection(was.begin(), was.end(), now.begin(), now.end(), std::inserter(both, both.end()));
    const auto old_findings = Findings(before_, both), new_findings = Findings(after_, both);
    const auto tell = [&](const Divergence& divergence, Way way) {
      const std::string values = FindingValues(divergence);
      diff_.changes.push_back(
          {.kind = ChangeKind::kDivergence,
           .way = way,
           .id = divergence.case_id,
           .what = fmt::format("{} {}{}: {}", way == Way::kWorse ? "new" : "gone", Name(divergence.kind),
                               values.empty() ? "" : " of " + values, BriefSentence(divergence))});
    };
    std::map<Subject, std::vector<const Divergence*>> gone;
    for (const auto& [identity, divergence] : old_findings) {
      if (!new_findings.contains(identity)) gone[SubjectOf(identity)].push_back(divergence);
    }
    for (const auto& [identity, divergence] : new_findings) {
      if (old_findings.contains(identity)) continue;
      const auto before = gone.find(SubjectOf(identity));
      if (before == gone.end() || before->second.empty()) {
        tell(*divergence, Way::kWorse);
        continue;
      }
      // The same backends differ at the same value in another way: one change. The classes decide whether it is for the
      // worse.
      const Divergence& old = *before->second.front();
      before->second.erase(before->second.begin());
      const std::string values = FindingValues(*divergence);
      diff_.changes.push_back(
          {.kind = ChangeKind::kDivergence,
           .way = Way::kOther,
           .id = divergence->case_id,
           .what = fmt::format("changed {}{}: {} (before, {}: {})", Name(divergence->kind),
                               values.empty() ? "" : " of " + values, BriefSentence(*divergence),
                               Name(old.kind), BriefSentence(old))});
    }
    for (const auto& [subject, divergences] : gone) {
      for (const Divergence* divergence : divergences) tell(*divergence, Way::kBetter);
    }
  }

  const RunReport& before_;
  const RunReport& after_;
  const std::set<std::string>& rewritten_;
  std::set<std::string> shared_;  ///< backends of both
  RunDiff diff_;
};

class DiffWriter {
 public:
  DiffWriter(const RunDiff& diff, DiffLength length, size_t columns)
      : diff_(diff),
        most_(length == DiffLength::kWhole ? diff.changes.size() + diff.slower.size() + 1 : 20),
        columns_(columns) {}

  std::string Write() {
    for (const auto& version : diff_.versions) text_ += Wrap("", TerminalSafe(version), columns_);
    if (!diff_.versions.empty()) text_ += "\n";
    Part("for the worse", [](const RunChange& change) { return change.way == Way::kWorse; });
    Part("for the better", [](const RunChange& change) { return change.way == Way::kBetter; });
    Part("otherwise", [](const RunChange& change) {
      return change.way == Way::kOther && change.kind != ChangeKind::kCasts;
    });
    Part("conversions", [](const RunChange& change) { return change.kind == ChangeKind::kCasts; });
    List("only in the first run", diff_.only_before);
    List("only in the second run", diff_.only_after);
    List("cases that compute something else by now, not compared", diff_.rewritten);
    List("slower", diff_.slower);
    if (diff_.changes.empty()) text_ += "nothing changed\n";
    text_ += fmt::format("{} compared; they took {:.1f} s, then {:.1f} s\n",
                         Counted(diff_.compared, "result"), diff_.seconds_before, diff_.seconds_after);
    return std::move(text_);
  }

 private:
  template <class Wanted>
  void Part(const std::string& title, Wanted wanted) {
    static constexpr std::string_view kKinds[] = {"status", "class", "divergence", "casts"};
    std::vector<std::string> lines;
    for (const RunChange& change : diff_.changes) {
      if (!wanted(change)) continue;
      lines.push_back(fmt::format("{:<10}  {}{}  {}", kKinds[static_cast<size_t>(change.kind)], change.id,
                                  change.backend.empty() ? "" : "  " + change.backend, change.what));
    }
    List(title, lines);
  }

  void List(const std::string& title, const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    text_ += fmt::format("{} ({})\n", title, lines.size());
    const size_t shown = std::min(lines.size(), most_);
    for (size_t i = 0; i < shown; ++i) text_ += Wrap("  ", TerminalSafe(lines[i]), columns_);
    if (shown < lines.size()) text_ += fmt::format("  and {} more (-v lists them)\n", lines.size() - shown);
    text_ += "\n";
  }

  const RunDiff& diff_;
  size_t most_, columns_;
  std::string text_;
};

}  // namespace

RunDiff CompareRuns(const RunReport& before, const RunReport& after, const std::set<std::string>& rewritten) {
  return Comparison(before, after, rewritten).Compare();
}

bool HasWorse(const RunDiff& diff) {
  return std::ranges::any_of(diff.changes, [](const RunChange& change) { return change.way == Way::kWorse; });
}

std::string WriteRunDiff(const RunDiff& diff, DiffLength length, size_t columns) {
  return DiffWriter(diff, length, columns).Write();
}

}  // namespace ulpscope
