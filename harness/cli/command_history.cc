// ulpscope history [ID]: since which night, and which version, a case is what it is.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/cli/commands.h"
#include "harness/cli/exit_codes.h"
#include "harness/cli/terminal.h"
#include "harness/judging/judged_run.h"
#include "harness/record/history_index.h"
#include "harness/record/run_file.h"
#include "harness/words/backend_name.h"
#include "harness/workspace/recorded_run.h"
#include "reports/cell.h"
#include "reports/text_safe.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;

struct HistoryArguments {
  std::string id;
  std::vector<std::string> places;
  bool anew = false;
};

std::string StampOf(const fs::path& folder) {
  std::string stamp;
  for (const char* name : {"journal.jsonl", "classified.jsonl"}) {
    struct stat status {};
    if (::lstat((folder / name).c_str(), &status) == 0)
      stamp += fmt::format("{} {}.{:09} ", status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  }
  return stamp;
}

Result<HistoryRun> ReadNight(const fs::path& folder, const std::string& stamp) {
  const auto judged = ULPSCOPE_TRY(JudgeRecorded(folder.string(), {}, Source::kRecorded));
  const RecordedRun& run = judged->run;
  HistoryRun night{
      .folder = folder.string(),
      .stamp = stamp,
      .id = run.header.id,
      .started = run.header.started,
      .version = run.header.version,
  };
  for (const auto& [backend, versions] : run.versions) night.versions[backend] = Join(versions);
  for (const CaseResult& result : judged->report.results) {
    if (result.status == Status::kNotRun) continue;  // a gap, as if the night had not been
    HistoryCell cell{
        .case_id = result.id, .backend = result.backend, .status = std::string(Name(result.status))};
    if (result.values.empty()) {
      cell.cls = Describe(result.outcome);
      night.cells.push_back(cell);
    }
    for (const auto& [name, value] : result.values) {
      cell.value = name;
      cell.cls = CellText(value);
      night.cells.push_back(cell);
    }
  }
  return night;
}

/// Folders that hold a run, in `place` or `place` itself; links (runs/latest) lead to what is found anyway.
std::vector<fs::path> RunFolders(const fs::path& place) {
  std::vector<fs::path> folders;
  std::error_code code;
  const auto holds = [](const fs::path& folder) {
    return IsThere({.folder = folder, .name = "journal.jsonl"}).value_or(false);
  };
  if (holds(place)) return {place};
  for (auto it = fs::directory_iterator(place, code); !code && it != fs::directory_iterator();
       it.increment(code)) {
    std::error_code ignored;
    if (!it->is_symlink(ignored) && it->is_directory(ignored) && holds(it->path()))
      folders.push_back(it->path());
  }
  std::ranges::sort(folders);
  return folders;
}

Result<HistoryIndex> OpenIndex(const HistoryArguments& arguments) {
  const fs::path file = fs::path(arguments.places.front()) / "history.sqlite";
  std::error_code code;
  if (arguments.anew && fs::is_regular_file(fs::symlink_status(file, code))) fs::remove(file, code);
  // A place that cannot be written to is read all the same.
  if (auto index = HistoryIndex::Open(file.string())) return index;
  return HistoryIndex::Open(":memory:");
}

Result<void> Update(const std::vector<std::string>& places, HistoryIndex* index) {
  auto known = ULPSCOPE_TRY(index->Stamps());
  for (const auto& place : places) {
    for (const fs::path& folder : RunFolders(place)) {
      const std::string stamp = StampOf(folder);
      const bool same = LookupOr(known, folder.string(), "new") == stamp;
      known.erase(folder.string());
      if (same) continue;
      const auto night = ReadNight(folder, stamp);
      if (!night) {
        PrintError("ulpscope: left out: " + night.error().Text());
        ULPSCOPE_TRY(index->Forget(folder.string()));
      } else if (auto stored = index->Store(*night); !stored) {
        return stored;
      }
    }
  }
  for (const auto& [folder, stamp] : known) {
    ULPSCOPE_TRY(index->Forget(folder));
  }
  return {};
}

std::chrono::sys_days DayOf(const std::string& night) {
  int year = 0;
  unsigned month = 1, day = 1;
  std::sscanf(night.c_str(), "%4d-%2u-%2u", &year, &month, &day);
  return std::chrono::year_month_day(std::chrono::year(year), std::chrono::month(month),
                                     std::chrono::day(day));
}

std::string NightOf(std::chrono::sys_days day) {
  const std::chrono::year_month_day date(day);
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()));
}

std::string Span(const std::string& first, const std::string& last) {
  return first == last ? fmt::format("{:<24}", first) : fmt::format("{} .. {}", first, last);
}

/// The nights between two that were not tested; empty where they follow each other.
std::string GapLine(const std::string& before, const std::string& after) {
  const auto from = DayOf(before) + std::chrono::days(1), to = DayOf(after) - std::chrono::days(1);
  if (from > to) return "";
  return fmt::format("  {}  not tested\n", Span(NightOf(from), NightOf(to)));
}

/// One value on one backend: spans of nights that are the same, and the gaps between nights.
std::string Timeline(const std::vector<HistoryEntry>& entries, const std::string& last_night) {
  std::string text;
  std::string since = entries.front().night, earliest;
  for (size_t begin = 0; begin < entries.size();) {
    const HistoryEntry& first = entries[begin];
    size_t end = begin + 1;
    const auto follows = [&](const HistoryEntry& entry) {
      return entry.status == first.status && entry.cls == first.cls && entry.versions == first.versions &&
             DayOf(entry.night) == DayOf(entries[end - 1].night) + std::chrono::days(1);
    };
    while (end < entries.size() && follows(entries[end])) ++end;
    if (begin > 0) {
      const HistoryEntry& before = entries[begin - 1];
      const std::string gap = GapLine(before.night, first.night);
      text += gap;
      if (before.status != first.status || before.cls != first.cls) {
        since = first.night;
        earliest = gap.empty() ? "" : NightOf(DayOf(before.night) + std::chrono::days(1));
      }
    }
    text += fmt::format("  {}  {:>3} night{}  {:<6} {:<20}  {}\n", Span(first.night, entries[end - 1].night),
                        end - begin, end - begin == 1 ? " " : "s", first.status, TerminalSafe(first.cls),
                        TerminalSafe(first.versions));
    begin = end;
  }
  if (entries.back().night < last_night)
    text += GapLine(entries.back().night, NightOf(DayOf(last_night) + std::chrono::days(1)));
  text += "  so since " + since;
  if (!earliest.empty()) text += ", or since " + earliest + ": the nights between were not tested";
  return text + "\n";
}

Result<int> ShowCase(const HistoryIndex& index, const std::string& asked, const std::string& last_night) {
  const ResultName name = ParseResultName(asked);
  const auto entries = ULPSCOPE_TRY(index.Of(name.id));
  std::string text;
  for (size_t begin = 0; begin < entries.size();) {
    size_t end = begin;
    const HistoryEntry& first = entries[begin];
    while (end < entries.size() && entries[end].backend == first.backend && entries[end].value == first.value)
      ++end;
    if (name.backend.empty() || CanonicalBackend(name.backend) == CanonicalBackend(first.backend)) {
      text +=
          TerminalSafe(name.id + " on " + first.backend + (first.value.empty() ? "" : ", " + first.value)) +
          "\n";
      text += Timeline(std::vector(entries.begin() + static_cast<std::ptrdiff_t>(begin),
                                   entries.begin() + static_cast<std::ptrdiff_t>(end)),
                       last_night);
    }
    begin = end;
  }
  if (text.empty()) {
    const auto known = index.Cases();
    PrintError(Problem("no run has a result of it", "'" + asked + "'", {},
                       known ? DidYouMean(name.id, *known) : ""));
    return kExitNothing;
  }
  Print(text);
  return 0;
}

std::string NightsText(const std::vector<HistoryNight>& nights) {
  std::string text = "night         runs   cells  changed\n";
  for (size_t i = 0; i < nights.size(); ++i) {
    if (i > 0) text += GapLine(nights[i - 1].night, nights[i].night);
    text += fmt::format("  {}  {:>4}  {:>6}  {:>7}\n", nights[i].night, nights[i].runs, nights[i].cells,
                        nights[i].changed);
  }
  return text;
}

Result<int> RunHistory(const HistoryArguments& asked) {
  HistoryArguments arguments = asked;
  if (arguments.places.empty()) arguments.places = {"runs"};
  auto index = ULPSCOPE_TRY(OpenIndex(arguments));
  ULPSCOPE_TRY(Update(arguments.places, &index));
  const auto nights = ULPSCOPE_TRY(index.Nights());
  if (nights.empty()) {
    PrintError(Problem("no run is found", Join(arguments.places, ", "), "folders of runs (--runs)"));
    return kExitNothing;
  }
  if (!arguments.id.empty()) return ShowCase(index, arguments.id, nights.back().night);
  Print(NightsText(nights));
  return 0;
}

}  // namespace

void AddHistoryCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("history", "since which night and version a case is what it is");
  HistoryArguments* arguments = OptionsOf(command, exit_code, RunHistory);
  command->add_option("id", arguments->id,
                      "ID or ID@BACKEND (default: every night, with what changed in it)");
  command->add_option("--runs", arguments->places, "folders that hold run folders (default: runs)")
      ->allow_extra_args(false);
  command->add_flag("--anew", arguments->anew, "read every run again, not only those that are new");
  command->footer(
      "Reads the run folders and keeps an index of them, history.sqlite, in the first place; it can be "
      "deleted at any "
      "time.\nNights without a result are shown as gaps. Exits 5 where no run has the case.");
}

}  // namespace ulpscope
