// Cases as records.
#include "harness/record/cases.h"

#include "harness/record/file_bytes.h"
#include "harness/record/journal_format.h"
#include "harness/record/json_fields.h"

namespace ulpscope {
namespace {

constexpr int64_t kMostCaseBytes = int64_t{1} << 30;
/// Of one case: tensors whose values are written out take some 10 bytes an element.
constexpr size_t kMostYaml = size_t{1} << 28;

std::filesystem::path CasesFile(const std::filesystem::path& dir) { return dir / "cases.jsonl"; }

}  // namespace

Result<std::map<std::string, RecordedCase>> ReadRecordedCases(const std::filesystem::path& dir,
                                                              const std::string& run_id) {
  std::map<std::string, RecordedCase> cases;
  const auto file = CasesFile(dir);
  std::error_code code;
  if (!std::filesystem::exists(file, code)) return cases;
  const auto text = ULPSCOPE_TRY(ReadFileBytes(file, kMostCaseBytes));
  const auto journal = ParseJournal(text);
  std::string problem;
  if (!journal) {
    Error damaged = journal.error();
    damaged.pos.file = file.string();
    return Fail(damaged);
  }
  for (const auto& record : journal->records) {
    JsonFields fields(record, problem);
    const std::string type = fields.Text("type");
    if (type == "run" && fields.Text("id") != run_id) return std::map<std::string, RecordedCase>();
    if (type != "case") continue;
    cases[fields.Text("id")] = {.digest = fields.Text("digest"),
                                .yaml = fields.Text("yaml", kMostYaml),
                                .selector = fields.Text("selector")};
    if (!problem.empty()) return Fail(file.string() + ": " + problem);
  }
  return cases;
}

Result<void> WriteRecordedCases(const std::filesystem::path& dir, const std::string& run_id,
                                const std::map<std::string, RecordedCase>& cases) {
  auto all = ULPSCOPE_TRY(ReadRecordedCases(dir, run_id));
  for (const auto& [id, one] : cases) all[id] = one;
  std::string text = JournalLine({{"type", "run"}, {"id", run_id}});
  for (const auto& [id, one] : all) {
    text += JournalLine({{"type", "case"},
                         {"id", id},
                         {"digest", one.digest},
                         {"yaml", one.yaml},
                         {"selector", one.selector}});
  }
  return ReplaceFileBytes(CasesFile(dir), text);
}

}  // namespace ulpscope
