// The index in SQLite.
#include "harness/record/history_index.h"

#include <sqlite3.h>

#include <filesystem>
#include <functional>

namespace ulpscope {
namespace {

constexpr const char* kForm = "2";  // of the tables; another one is made anew
constexpr const char* kTables = R"(
PRAGMA journal_mode = MEMORY;
PRAGMA synchronous = OFF;
CREATE TABLE IF NOT EXISTS form (version TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS runs (folder TEXT PRIMARY KEY, stamp TEXT, id TEXT, started TEXT, night TEXT, version TEXT);
CREATE TABLE IF NOT EXISTS versions (folder TEXT, backend TEXT, text TEXT, PRIMARY KEY (folder, backend));
CREATE TABLE IF NOT EXISTS cells (folder TEXT, case_id TEXT, backend TEXT, value TEXT, status TEXT, class TEXT);
CREATE INDEX IF NOT EXISTS cells_by_case ON cells (case_id);
CREATE INDEX IF NOT EXISTS cells_by_folder ON cells (folder);
)";
/// The last run of each cell and night.
constexpr const char* kLastOfNight = R"(
SELECT c.case_id, c.backend, c.value, r.night, c.status, c.class, COALESCE(v.text, '') AS versions, c.folder,
       ROW_NUMBER() OVER (PARTITION BY c.case_id, c.backend, c.value, r.night ORDER BY r.started DESC, r.id DESC) AS late
FROM cells c JOIN runs r ON r.folder = c.folder
LEFT JOIN versions v ON v.folder = c.folder AND v.backend = c.backend
)";

}  // namespace

class HistoryIndex::Database {
 public:
  explicit Database(sqlite3* handle) : handle_(handle) {}
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database() { sqlite3_close(handle_); }

  Result<void> Execute(const char* sql) const {
    if (sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
    return Problem();
  }

  using Row = std::function<void(const std::vector<std::string>&)>;
  /// One statement; its parameters are bound as text, never pasted in.
  Result<void> Query(const std::string& sql, const std::vector<std::string>& parameters,
                     const Row& row = {}) const {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(handle_, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) return Problem();
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> held(statement, &sqlite3_finalize);
    for (size_t i = 0; i < parameters.size(); ++i) {
      sqlite3_bind_text(statement, static_cast<int>(i + 1), parameters[i].data(),
                        static_cast<int>(parameters[i].size()), SQLITE_STATIC);
    }
    int step;
    while ((step = sqlite3_step(statement)) == SQLITE_ROW) {
      std::vector<std::string> columns;
      for (int i = 0; i < sqlite3_column_count(statement); ++i) {
        const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, i));
        columns.emplace_back(text == nullptr ? "" : text);
      }
      if (row) row(columns);
    }
    if (step == SQLITE_DONE) return {};
    return Problem();
  }

 private:
  tl::unexpected<Error> Problem() const {
    return Fail(std::string("the history index: ") + sqlite3_errmsg(handle_));
  }

  sqlite3* handle_;
};

Result<HistoryIndex> HistoryIndex::Open(const std::string& file) {
  for (const bool anew : {false, true}) {
    std::error_code ignored;
    // Nothing is lost with it: the folders hold it all.
    if (anew && file != ":memory:") std::filesystem::remove(file, ignored);
    sqlite3* handle = nullptr;
    const int opened = sqlite3_open_v2(
        file.c_str(), &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW, nullptr);
    auto database = std::make_shared<Database>(handle);
    if (opened != SQLITE_OK) {
      if (anew) return Fail("cannot open the history index " + file + ": " + sqlite3_errmsg(handle));
      continue;
    }
    sqlite3_busy_timeout(handle, 10000);
    std::string form = kForm;
    const auto made = database->Execute(kTables);
    const auto read =
        made ? database->Query("SELECT version FROM form", {}, [&](const auto& row) { form = row[0]; })
             : made;
    if (read && form == kForm) {
      if (auto noted = database->Query("INSERT OR IGNORE INTO form VALUES (?)", {kForm}); !noted) {
        if (anew) return tl::unexpected(noted.error());
        continue;
      }
      return HistoryIndex(std::move(database));
    }
    if (anew && !read) return tl::unexpected(read.error());
  }
  return Fail("cannot make the history index " + file);
}

Result<std::map<std::string, std::string>> HistoryIndex::Stamps() const {
  std::map<std::string, std::string> stamps;
  ULPSCOPE_TRY(database_->Query("SELECT folder, stamp FROM runs", {},
                                [&](const auto& row) { stamps[row[0]] = row[1]; }));
  return stamps;
}

Result<void> HistoryIndex::Forget(const std::string& folder) {
  for (const char* table : {"runs", "versions", "cells"}) {
    ULPSCOPE_TRY(database_->Query(std::string("DELETE FROM ") + table + " WHERE folder = ?", {folder}));
  }
  return {};
}

Result<void> HistoryIndex::Store(const HistoryRun& run) {
  ULPSCOPE_TRY(database_->Execute("BEGIN"));
  const auto store = [&]() -> Result<void> {
    ULPSCOPE_TRY(Forget(run.folder));
    auto stored = database_->Query(
        "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?)",
        {run.folder, run.stamp, run.id, run.started, run.started.substr(0, 10), run.version});
    for (auto it = run.versions.begin(); stored && it != run.versions.end(); ++it)
      stored = database_->Query("INSERT INTO versions VALUES (?, ?, ?)", {run.folder, it->first, it->second});
    for (auto it = run.cells.begin(); stored && it != run.cells.end(); ++it)
      stored = database_->Query("INSERT INTO cells VALUES (?, ?, ?, ?, ?, ?)",
                                {run.folder, it->case_id, it->backend, it->value, it->status, it->cls});
    return stored;
  };
  const auto stored = store();
  const auto ended = database_->Execute(stored ? "COMMIT" : "ROLLBACK");
  return stored ? ended : stored;
}

Result<std::vector<HistoryEntry>> HistoryIndex::Of(const std::string& case_id) const {
  std::vector<HistoryEntry> entries;
  const std::string sql = std::string("SELECT * FROM (") + kLastOfNight +
                          " WHERE c.case_id = ?) WHERE late = 1 ORDER BY backend, value, night";
  ULPSCOPE_TRY(database_->Query(sql, {case_id}, [&](const auto& row) {
    entries.push_back({.backend = row[1],
                       .value = row[2],
                       .night = row[3],
                       .status = row[4],
                       .cls = row[5],
                       .versions = row[6],
                       .folder = row[7]});
  }));
  return entries;
}

Result<std::vector<HistoryNight>> HistoryIndex::Nights() const {
  std::vector<HistoryNight> nights;
  const std::string sql = std::string("WITH told AS (SELECT * FROM (") + kLastOfNight + R"() WHERE late = 1),
changes AS (SELECT night, status || ' ' || class AS now,
                   LAG(status || ' ' || class) OVER (PARTITION BY case_id, backend, value ORDER BY night) AS before FROM told),
counted AS (SELECT night, COUNT(*) AS cells, SUM(before IS NOT NULL AND before <> now) AS changed FROM changes GROUP BY night)
SELECT r.night, COUNT(*), COALESCE(MAX(c.cells), 0), COALESCE(MAX(c.changed), 0)
FROM runs r LEFT JOIN counted c ON c.night = r.night GROUP BY r.night ORDER BY r.night)";
  ULPSCOPE_TRY(database_->Query(sql, {}, [&](const auto& row) {
    nights.push_back({.night = row[0],
                      .runs = std::stoll(row[1]),
                      .cells = std::stoll(row[2]),
                      .changed = std::stoll(row[3])});
  }));
  return nights;
}

Result<std::vector<std::string>> HistoryIndex::Cases() const {
  std::vector<std::string> ids;
  ULPSCOPE_TRY(database_->Query("SELECT DISTINCT case_id FROM cells ORDER BY case_id", {},
                                [&](const auto& row) { ids.push_back(row[0]); }));
  return ids;
}

}  // namespace ulpscope
