// Opens the workspace.
#include "harness/workspace/workspace.h"

#include <algorithm>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/casefile/deviations.h"
#include "harness/casefile/load.h"
#include "harness/casefile/prove.h"
#include "harness/judge/judge.h"
#include "harness/record/observation_json.h"
#include "harness/run/hello.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;

bool LiesIn(const fs::path& path, const fs::path& folder) {
  std::error_code code;
  const fs::path relative =
      fs::weakly_canonical(path, code).lexically_relative(fs::weakly_canonical(folder, code));
  return !relative.empty() && *relative.begin() != "..";
}

/// The argument that a case outside the suite came from.
std::string ArgumentOf(const Case& test_case, const std::vector<std::string>& arguments) {
  for (const auto& argument : arguments) {
    if (LiesIn(test_case.pos.file, argument)) return argument;
  }
  return test_case.pos.file;
}

/// An argument that names an auxiliary input, one/case~swamp, selects its case; the auxiliary input replaces it
/// afterwards.
std::vector<std::string> WithoutCompanions(const std::vector<std::string>& arguments) {
  std::vector<std::string> plain;
  for (const auto& argument : arguments) {
    std::error_code code;
    const std::string base(BaseOf(argument));
    const bool names_one = !base.empty() && base.find('/') != base.npos && !fs::exists(argument, code);
    plain.push_back(names_one ? base : argument);
  }
  return plain;
}

void TakeCompanions(const std::vector<std::string>& arguments, LoadResult* loaded) {
  for (const auto& argument : arguments) {
    const auto base =
        std::ranges::find_if(loaded->cases, [&](const Case& one) { return one.id == BaseOf(argument); });
    if (base == loaded->cases.end()) continue;
    auto companions = CompanionsOf(*base);
    const auto named = std::ranges::find_if(
        companions, [&](const Companion& each) { return each.test_case.id == argument; });
    if (named != companions.end()) {
      *base = std::move(named->test_case);
      continue;
    }
    std::vector<std::string> known;
    for (const Companion& each : companions) known.push_back(each.name);
    loaded->errors.push_back(Problem("case " + base->id + " has no such auxiliary input",
                                     "'" + argument + "'",
                                     known.empty() ? "its contract says no prove: true" : Join(known, ", ")));
  }
}

Vocabulary VocabularyOf(const Workspace& workspace) {
  return {.backends = workspace.any_backend ? std::vector<std::string>() : workspace.registry.Names()};
}

}  // namespace

const Case* Workspace::Find(std::string_view id) const {
  const auto found = std::ranges::find_if(cases, [&](const Case& c) { return c.id == id; });
  return found == cases.end() ? nullptr : &*found;
}

CaseIndex::CaseIndex(const Workspace& workspace) {
  for (const Case& test_case : workspace.cases) cases_.try_emplace(test_case.id, &test_case);
}

const Case* CaseIndex::Find(std::string_view id) const { return LookupOr(cases_, id); }

std::string Workspace::ExtraFlags() const {
  return Join(Mapped(adapters, [&](const auto& adapter) { return "--adapter " + ShellQuote(adapter); }), " ");
}

Result<Workspace> OpenBeforeAdapters() {
  auto workspace = ULPSCOPE_TRY(OpenWorkspace({}));
  workspace.any_backend = true;
  return workspace;
}

Result<Workspace> OpenWithCases(const std::vector<std::string>& adapters,
                                const std::vector<std::string>& arguments, std::vector<Error>* errors) {
  auto before = ULPSCOPE_TRY(OpenBeforeAdapters());
  if (!adapters.empty()) *errors = LoadInto(&before, arguments);
  if (!errors->empty()) return before;
  auto workspace = ULPSCOPE_TRY(OpenWorkspace(adapters));
  *errors = LoadInto(&workspace, arguments);
  return workspace;
}

Result<Workspace> OpenWorkspace(const std::vector<std::string>& adapters) {
  auto registry = ULPSCOPE_TRY(Registry::LoadDefault());
  Workspace workspace{
      .registry = std::move(registry),
  };
  workspace.root = workspace.registry.places().root / "cases";
  for (const auto& adapter : adapters) {
    const std::vector<std::string> built_in = workspace.registry.Names();
    const auto added = ULPSCOPE_TRY(AddAdapter(workspace.registry, adapter));
    if (!workspace.registry.Find(added.front())->of_caller) workspace.adapters.push_back(adapter);
    for (const auto& name : added) {
      if (Contains(built_in, name))
        workspace.notes.push_back(name + " is what " + adapter +
                                  " serves, not the backend of this name that comes with ulpscope");
    }
  }
  return workspace;
}

std::vector<Error> LoadInto(Workspace* workspace, const std::vector<std::string>& arguments) {
  const Vocabulary vocabulary = VocabularyOf(*workspace);
  LoadResult loaded = LoadCases(WithoutCompanions(arguments), workspace->root, vocabulary);
  TakeCompanions(arguments, &loaded);
  // Ids are written in JSON, which carries UTF-8 alone: two ids must not become one.
  std::erase_if(loaded.cases, [&](const Case& test_case) {
    if (CleanText(test_case.id, test_case.id.size()) == test_case.id) return false;
    loaded.errors.push_back(Problem("the name of a case's file is no UTF-8",
                                    "'" + CleanText(test_case.id, test_case.id.size()) + "'", {},
                                    "rename the file"));
    return true;
  });
  workspace->cases = std::move(loaded.cases);
  std::map<std::string, std::string> argument_of;  // by file; "" for those of the suite
  for (const Case& test_case : workspace->cases) {
    const auto [known, is_new] = argument_of.try_emplace(test_case.pos.file);
    if (is_new && !LiesIn(test_case.pos.file, workspace->root))
      known->second = ArgumentOf(test_case, arguments);
    std::string selector = ShellQuote(test_case.id);
    if (!known->second.empty())
      selector = ShellQuote(known->second) + " -k " + ShellQuote("\"" + test_case.id + "\"");
    workspace->selectors.emplace(test_case.id, std::move(selector));
  }
  const auto errors = LoadDeviationsInto(workspace);
  loaded.errors.insert(loaded.errors.end(), errors.begin(), errors.end());
  return std::move(loaded.errors);
}

std::vector<Error> LoadDeviationsInto(Workspace* workspace) {
  const Vocabulary vocabulary = VocabularyOf(*workspace);
  auto listed = LoadDeviations(workspace->root / "deviations.yaml", vocabulary);
  workspace->deviations = std::move(listed.deviations);
  return std::move(listed.errors);
}

}  // namespace ulpscope
