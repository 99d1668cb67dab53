// Cases as records.
#include "harness/record/cases.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "harness/base/sha256.h"
#include "harness/base/text.h"
#include "harness/record/journal_format.h"
#include "harness/record/json_fields.h"
#include "harness/record/run_file.h"

namespace ulpscope {
namespace {

constexpr int64_t kMostCaseBytes = int64_t{1} << 30;
/// Limit for one case: tensors with literal values take some 10 bytes an element.
constexpr size_t kMostYaml = size_t{1} << 28;

constexpr std::string_view kInputsPrefix = "inputs/";

RunFile CasesFile(const std::filesystem::path& dir) { return {.folder = dir, .name = "cases.jsonl"}; }

/// True for inputs/ and 64 hex digits. A record may name such a folder only.
bool IsInputsFolder(std::string_view name) {
  if (!name.starts_with(kInputsPrefix)) return false;
  const std::string_view digest = name.substr(kInputsPrefix.size());
  return digest.size() == 64 &&
         std::ranges::all_of(digest, [](char c) { return IsDigit(c) || (c >= 'a' && c <= 'f'); });
}

std::string Digest(std::string_view text) { return Sha256(std::as_bytes(std::span(text))); }

}  // namespace

Result<RecordedCases> ReadRecordedCases(const std::filesystem::path& dir, const std::string& run_id) {
  RecordedCases cases;
  const RunFile name = CasesFile(dir);
  const std::string file = name.path().string();
  const bool there = ULPSCOPE_TRY(IsThere(name));
  if (!there) return cases;
  const auto text = ULPSCOPE_TRY(ReadRunFile(name, kMostCaseBytes));
  const auto journal = ParseJournal(text);
  std::string problem;
  if (!journal) {
    Error damaged = journal.error();
    damaged.pos.file = file;
    return Fail(damaged);
  }
  for (const auto& record : journal->records) {
    JsonFields fields(record, problem);
    const std::string type = fields.Text("type");
    if (type == "run" && fields.Text("id") != run_id) return RecordedCases();
    if (type != "case") continue;
    RecordedCase one{
        .yaml = fields.Text("yaml", kMostYaml),
        .selector = fields.Text("selector"),
        .inputs = fields.Text("inputs"),
        .at = {.file = fields.Text("file"), .line = static_cast<int>(fields.Integer("line")), .column = 1}};
    if (const auto lines = record.find("lines"); lines != record.end() && lines->is_object()) {
      for (const auto& [value, line] : lines->items()) {
        if (line.is_number_integer()) one.lines[value] = line.get<int64_t>();
      }
    }
    if (!one.inputs.empty() && !IsInputsFolder(one.inputs))
      fields.Complain("inputs", "folder of inputs of a run");
    cases[{fields.Text("id"), fields.Text("digest")}] = std::move(one);
    if (!problem.empty()) return Fail(file + ": " + problem);
  }
  return cases;
}

Result<void> WriteRecordedCases(const std::filesystem::path& dir, const std::string& run_id,
                                const RecordedCases& cases) {
  auto all = ULPSCOPE_TRY(ReadRecordedCases(dir, run_id));
  for (const auto& [key, one] : cases) all[key] = one;
  std::string text = JournalLine({{"type", "run"}, {"id", run_id}});
  for (const auto& [key, one] : all) {
    nlohmann::json record{{"type", "case"},      {"id", key.first},          {"digest", key.second},
                          {"yaml", one.yaml},    {"selector", one.selector}, {"file", one.at.file},
                          {"line", one.at.line}, {"lines", one.lines}};
    if (!one.inputs.empty()) record["inputs"] = one.inputs;
    text += JournalLine(record);
  }
  return ReplaceRunFile(CasesFile(dir), text);
}

Result<std::string> KeepInputs(const std::filesystem::path& dir,
                               const std::map<std::string, std::string>& files) {
  std::string named;
  for (const auto& [name, bytes] : files) named += name + "\n" + Digest(bytes) + "\n";
  const std::string folder = std::string(kInputsPrefix) + Digest(named);
  for (const auto& [name, bytes] : files) {
    const RunFile file{.folder = dir, .name = folder + "/" + name};
    ULPSCOPE_TRY(MakeFoldersOf(file));
    const auto there = ReadRunFile(file, kMostInputBytes);
    if (there && *there == bytes) continue;
    ULPSCOPE_TRY(ReplaceRunFile(file, bytes));
  }
  return folder;
}

Result<void> CopyInputs(const std::filesystem::path& from, const std::filesystem::path& to,
                        const std::string& inputs) {
  const auto names = ULPSCOPE_TRY(NamesIn({.folder = from, .name = inputs}));
  for (const auto& name : names) {
    const std::string file = inputs + "/" + name;
    const auto bytes = ULPSCOPE_TRY(ReadRunFile({.folder = from, .name = file}, kMostInputBytes));
    ULPSCOPE_TRY(MakeFoldersOf({.folder = to, .name = file}));
    ULPSCOPE_TRY(ReplaceRunFile({.folder = to, .name = file}, bytes));
  }
  return {};
}

}  // namespace ulpscope
