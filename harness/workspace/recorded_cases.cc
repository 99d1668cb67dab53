// Between cases and run folders.
#include "harness/workspace/recorded_cases.h"

#include <algorithm>
#include <optional>
#include <set>

#include "harness/base/find.h"
#include "harness/base/secrets.h"
#include "harness/base/text.h"
#include "harness/casefile/fill_data.h"
#include "harness/casefile/load.h"
#include "harness/casefile/prove.h"
#include "harness/record/cases.h"
#include "harness/record/file_bytes.h"
#include "harness/record/observation_json.h"
#include "harness/record/run_file.h"
#include "harness/workspace/case_yaml.h"

namespace ulpscope {
namespace {

constexpr size_t kLongestPath = 4096;  // Linux's PATH_MAX

void GatherLines(const std::vector<Step>& steps, std::map<std::string, int64_t>* lines) {
  for (const Step& step : steps) {
    if (!step.as.empty()) lines->try_emplace(step.as, step.pos.line);
    GatherLines(step.steps, lines);
  }
}

void SetLines(const std::map<std::string, int64_t>& lines, std::vector<Step>* steps) {
  for (Step& step : *steps) {
    const int64_t* line = Lookup(lines, step.as);
    step.pos.line = line == nullptr ? 0 : static_cast<int>(*line);
    SetLines(lines, &step.steps);
  }
}

/// The case as it was run: the record keeps the parts that a file cannot express (its id, the case whose auxiliary
/// input it is) next to the file.
Result<Case> FromRecord(const std::string& id, const std::string& digest, const RecordedCase& record,
                        const std::string& shown_as) {
  const LoadResult loaded = LoadCaseText(record.yaml, shown_as, "case", {});
  if (!loaded.errors.empty()) return Fail(loaded.errors.front());
  if (loaded.cases.size() != 1) return Fail(shown_as + ": " + id + " is not one case");
  Case test_case = loaded.cases.front();
  test_case.id = id;
  test_case.companion_of = BaseOf(id);
  test_case.pos.line = 0;  // a line of the record is no line of a source file
  test_case.written = record.at;
  SetLines(record.lines, &test_case.program);
  if (CaseDigest(test_case) != digest) return Fail(shown_as + ": " + id + " is not the case that was run");
  return test_case;
}

void Take(Case test_case, std::string selector, Workspace* workspace) {
  workspace->selectors[test_case.id] = std::move(selector);
  workspace->cases.push_back(std::move(test_case));
}

/// FILE/NAME: the cases of FILE.yaml, or FILE, among which NAME is searched.
std::optional<std::string> FileOf(const std::string& what) {
  const std::string path = what.substr(0, what.find_first_of("[~"));
  for (size_t slash = path.rfind('/'); slash != path.npos && slash > 0; slash = path.rfind('/', slash - 1)) {
    const std::string head = path.substr(0, slash);
    std::error_code code;
    for (const auto& file : {head, head + ".yaml"}) {
      if (file.ends_with(".yaml") && std::filesystem::is_regular_file(file, code)) return file;
    }
  }
  return std::nullopt;
}

bool LacksCases(const RecordedRun& run, const Workspace& workspace) {
  const CaseIndex cases(workspace);
  return std::ranges::any_of(run.header.cases, [&](const std::string& id) {
    return cases.Find(id) == nullptr && BaseOf(id).empty();
  });
}

/// The tensor files next to the file of `test_case`, by name.
Result<std::map<std::string, std::string>> TensorFiles(const Case& test_case) {
  std::map<std::string, std::string> files;
  for (const TensorSpec& tensor : test_case.tensors) {
    const auto file = FileOfFill(tensor);
    if (file.empty() || files.contains(file.filename().string())) continue;
    files[file.filename().string()] = ULPSCOPE_TRY(ReadFileBytes(file, kMostInputBytes));
  }
  return files;
}

}  // namespace

Result<void> CopyTensorFiles(const Case& test_case, const std::filesystem::path& dir) {
  const auto files = ULPSCOPE_TRY(TensorFiles(test_case));
  for (const auto& [name, bytes] : files) {
    ULPSCOPE_TRY(ReplaceRunFile({.folder = dir, .name = name}, bytes));
  }
  return {};
}

Result<void> RecordCases(const Workspace& workspace, const std::filesystem::path& dir,
                         const std::string& run_id) {
  RecordedCases cases;
  std::map<std::set<std::filesystem::path>, std::string> kept;  // many cases may share large files
  for (const Case& test_case : workspace.cases) {
    auto yaml = WriteCaseYaml(test_case, kEveryBackend);
    if (!yaml) continue;
    RecordedCase one{.yaml = std::move(*yaml),
                     .selector = WithoutSecrets(LookupOr(workspace.selectors, test_case.id)),
                     .at = test_case.written.line > 0 ? test_case.written : test_case.pos};
    one.at.file = CleanText(WithoutSecrets(one.at.file), kLongestPath);
    GatherLines(test_case.program, &one.lines);
    std::set<std::filesystem::path> paths;
    for (const TensorSpec& tensor : test_case.tensors) paths.insert(FileOfFill(tensor));
    paths.erase(std::filesystem::path());
    const auto known = kept.find(paths);
    if (known != kept.end()) {
      one.inputs = known->second;
    } else if (!paths.empty()) {
      const auto files = ULPSCOPE_TRY(TensorFiles(test_case));
      one.inputs = ULPSCOPE_TRY(KeepInputs(dir, files));
      kept[paths] = one.inputs;
    }
    cases[{test_case.id, CaseDigest(test_case)}] = std::move(one);
  }
  return WriteRecordedCases(dir, run_id, cases);
}

Result<void> TakeRecorded(const RecordedRun& run, Workspace* workspace) {
  const auto recorded = ULPSCOPE_TRY(ReadRecordedCases(run.dir, run.header.id));
  std::set<std::string> known;
  for (const Case& test_case : workspace->cases) known.insert(test_case.id);
  for (const auto& id : run.header.cases) {
    const std::string digest = LookupOr(run.header.digests, id);
    const auto record = recorded.find({id, digest});
    if (record == recorded.end() || !known.insert(id).second) continue;
    const RecordedCase& one = record->second;
    // The folder in which the case's files are looked for.
    if (!one.inputs.empty()) {
      ULPSCOPE_TRY(IsFolderThere({.folder = run.dir, .name = one.inputs}));
    }
    const auto shown = run.dir / one.inputs / "cases.jsonl";
    auto test_case = ULPSCOPE_TRY(FromRecord(id, digest, one, shown.string()));
    Take(std::move(test_case), one.selector, workspace);
  }
  return {};
}

Result<void> LoadCasesOf(const RecordedRun& run, const std::vector<std::string>& arguments,
                         Workspace* workspace) {
  if (!arguments.empty()) {
    if (const auto errors = LoadInto(workspace, arguments); !errors.empty()) return Fail(errors.front());
  } else if (const auto errors = LoadDeviationsInto(workspace); !errors.empty()) {
    return Fail(errors.front());
  }
  ULPSCOPE_TRY(TakeRecorded(run, workspace));
  if (!arguments.empty() || !LacksCases(run, *workspace)) return {};
  Workspace suite = *workspace;
  if (const auto errors = LoadInto(&suite, {}); !errors.empty()) return Fail(errors.front());
  for (const Case& test_case : suite.cases) {
    if (workspace->Find(test_case.id) == nullptr)
      Take(test_case, suite.selectors.at(test_case.id), workspace);
  }
  return {};
}

Result<Case> FindOneCase(const std::string& what, const RecordedRun* run, Workspace* workspace) {
  if (run != nullptr) {
    Workspace recorded = *workspace;
    ULPSCOPE_TRY(TakeRecorded(*run, &recorded));
    if (const Case* found = recorded.Find(what)) {
      Take(*found, recorded.selectors.at(what), workspace);
      if (const auto errors = LoadDeviationsInto(workspace); !errors.empty()) return Fail(errors.front());
      return *found;
    }
  }
  std::error_code code;
  const bool is_path = std::filesystem::exists(what, code);
  const auto file = is_path ? std::nullopt : FileOf(what);
  if (const auto errors = LoadInto(workspace, {file ? *file : what}); !errors.empty())
    return Fail(errors.front());
  const auto& cases = workspace->cases;
  if (const Case* found = workspace->Find(what)) return *found;
  const std::string name = what.substr(what.rfind('/') + 1);
  std::vector<std::string> ids;
  for (const Case& test_case : cases) {
    if (file && test_case.id.ends_with("/" + name)) return test_case;
    ids.push_back(test_case.id);
  }
  if (cases.size() == 1 && !file) return cases.front();
  return Fail(Problem("this takes one case", "'" + what + "'", "a whole id",
                      ids.empty() ? "" : "it holds " + Join(ids, ", ")));
}

}  // namespace ulpscope
