// Between cases and run folders.
#include "harness/cli/recorded_cases.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/casefile/fill_data.h"
#include "harness/casefile/load.h"
#include "harness/casefile/prove.h"
#include "harness/cli/case_yaml.h"
#include "harness/record/cases.h"
#include "harness/record/observation_json.h"

namespace ulpscope {
namespace {

/// The case as it was run: what a file cannot say of it (its id, what it is a companion of) stands beside the file.
Result<Case> FromRecord(const std::string& id, const RecordedCase& record, const std::string& shown_as) {
  const LoadResult loaded = LoadCaseText(record.yaml, shown_as, "case", {});
  if (!loaded.errors.empty()) return Fail(loaded.errors.front());
  if (loaded.cases.size() != 1) return Fail(shown_as + ": " + id + " is not one case");
  Case test_case = loaded.cases.front();
  test_case.id = id;
  test_case.companion_of = BaseOf(id);
  if (CaseDigest(test_case) != record.digest)
    return Fail(shown_as + ": " + id + " is not the case that was run");
  return test_case;
}

void Take(Case test_case, std::string selector, Workspace* workspace) {
  workspace->selectors[test_case.id] = std::move(selector);
  workspace->cases.push_back(std::move(test_case));
}

/// FILE/NAME: the cases of FILE.yaml, or FILE, among which NAME is looked for.
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

std::string Bytes(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

Result<void> CopyTensorFiles(const Case& test_case, const std::filesystem::path& dir) {
  std::set<std::filesystem::path> files;
  for (const TensorSpec& tensor : test_case.tensors) files.insert(FileOfFill(tensor));
  files.erase(std::filesystem::path());
  for (const auto& from : files) {
    const auto to = dir / from.filename();
    std::error_code code;
    if (std::filesystem::exists(to, code)) {
      if (Bytes(from) == Bytes(to)) continue;
      return Fail(to.string() + " would stand for two files, " + from.string() +
                  " is the second: run them apart");
    }
    std::filesystem::copy_file(from, to, code);
    if (code) return Fail(from.string() + " cannot be copied to " + dir.string() + ": " + code.message());
  }
  return {};
}

Result<void> RecordCases(const Workspace& workspace, const std::filesystem::path& dir,
                         const std::string& run_id) {
  std::map<std::string, RecordedCase> cases;
  for (const Case& test_case : workspace.cases) {
    ULPSCOPE_TRY(CopyTensorFiles(test_case, dir));
    auto yaml = WriteCaseYaml(test_case, kEveryBackend);
    if (!yaml) continue;
    cases[test_case.id] = {.digest = CaseDigest(test_case),
                           .yaml = std::move(*yaml),
                           .selector = LookupOr(workspace.selectors, test_case.id)};
  }
  return WriteRecordedCases(dir, run_id, cases);
}

Result<void> TakeRecorded(const RecordedRun& run, Workspace* workspace) {
  const auto recorded = ULPSCOPE_TRY(ReadRecordedCases(run.dir, run.header.id));
  std::set<std::string> known;
  for (const Case& test_case : workspace->cases) known.insert(test_case.id);
  for (const auto& id : run.header.cases) {
    const auto record = recorded.find(id);
    const auto digest = run.header.digests.find(id);
    if (record == recorded.end() || !known.insert(id).second) continue;
    if (digest == run.header.digests.end() || digest->second != record->second.digest) continue;
    auto test_case = ULPSCOPE_TRY(FromRecord(id, record->second, (run.dir / "cases.jsonl").string()));
    Take(std::move(test_case), record->second.selector, workspace);
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
