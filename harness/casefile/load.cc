// Files, folders, ids: finding cases and loading them.
#include "harness/casefile/load.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "harness/base/text.h"
#include "harness/casefile/decode.h"
#include "harness/casefile/sweep.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;

/// Nodes checked and decoded for one file, sweeps and file-level defaults counted once per case.
constexpr size_t kMaxWork = 1'000'000;

/// Every node of the file outside its cases: the parts that each case may inherit.
size_t CountDefaults(const Node& root) {
  size_t count = 0;
  for (size_t i = 0; i < root.entry_count(); ++i) {
    if (root.key(i).text != "cases") count += CountNodes(root.value(i));
  }
  return count;
}

void LoadRoot(const Node& root, const std::string& id_prefix, const Vocabulary& vocabulary, ErrorSink& errors,
              std::vector<Case>& cases) {
  CheckStructure(root, FileHeadType(), "the case file", errors);
  if (errors.reported() > 0) {
    // The cases are checked all the same: one run of the loader should report all faults of their shape.
    const Node* list = root.Find("cases");
    if (list == nullptr || list->kind != Node::Kind::kList) return;
  }
  const size_t defaults = CountDefaults(root);
  const bool sound_defaults = errors.reported() == 0;
  size_t work = 0;
  std::set<std::string, std::less<>> names;
  for (const Node& case_node : root.Find("cases")->children) {
    if (errors.full()) return;
    if (case_node.kind == Node::Kind::kMap) {
      const Node* name = case_node.Find("name");
      if (name != nullptr && name->kind == Node::Kind::kScalar && !names.insert(name->text).second) {
        errors.Add(name->mark, "duplicate case name", name->Describe() + " again", "a name of its own");
      }
    }
    ForEachCombination(case_node, errors, [&](const Node& expanded, const std::string& suffix) {
      if (work > kMaxWork || errors.full()) return;
      work += CountNodes(expanded) + defaults;
      if (work > kMaxWork) {
        errors.Add(case_node.mark, "file is too much work: sweeps and defaults multiply",
                   "more than a million entries", "fewer combinations or smaller defaults");
        return;
      }
      const size_t before = errors.reported();
      CheckStructure(expanded, CaseType(), "a case", errors);
      if (errors.reported() != before || !sound_defaults) return;
      cases.push_back(DecodeCase(expanded, root, id_prefix + "/" + expanded.Find("name")->text + suffix,
                                 vocabulary, errors));
    });
  }
}

/// `path` seen from `root`, links resolved; empty when it lies elsewhere.
fs::path RelativeTo(const fs::path& path, const fs::path& root) {
  std::error_code code;
  const fs::path relative =
      fs::weakly_canonical(path, code).lexically_relative(fs::weakly_canonical(root, code));
  return relative.empty() || *relative.begin() == ".." ? fs::path() : relative;
}

std::string IdPrefix(const fs::path& file, const fs::path& root) {
  const fs::path relative = RelativeTo(file, root);
  if (relative.empty()) return file.stem().string();
  return (relative.parent_path() / relative.stem()).generic_string();
}

bool IsCaseFile(const fs::path& path) {
  return path.extension() == ".yaml" && path.filename() != "deviations.yaml" &&
         path.filename().string()[0] != '.';
}

/// All case files below `folder`, sorted by path; links to folders are not followed.
std::vector<fs::path> CaseFiles(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code code;
  for (fs::recursive_directory_iterator it(folder, code), end; it != end && !code; it.increment(code)) {
    if (it->is_regular_file(code) && IsCaseFile(it->path())) files.push_back(it->path());
  }
  std::ranges::sort(
      files, [](const fs::path& a, const fs::path& b) { return a.generic_string() < b.generic_string(); });
  return files;
}

/// True if `id` is `wanted`, lies below it, or is one of its sweep.
bool IsWithin(std::string_view id, std::string_view wanted) {
  if (!id.starts_with(wanted)) return false;
  return id.size() == wanted.size() || wanted.ends_with('/') || id[wanted.size()] == '/' ||
         id[wanted.size()] == '[';
}

/// The meaning of one argument: files, the ids wanted of them ("" = all), and the folder that ids count from.
struct Selection {
  std::vector<fs::path> files;
  std::string ids = {};
  fs::path root;
};

std::optional<Selection> FindOnDisk(const fs::path& path, const fs::path& root) {
  std::error_code code;
  // A folder outside the root is a suite of its own.
  if (fs::is_directory(path, code))
    return Selection{.files = CaseFiles(path), .root = RelativeTo(path, root).empty() ? path : root};
  if (fs::exists(path, code)) return Selection{.files = {path}, .root = root};
  return std::nullopt;
}

std::optional<Selection> Find(const std::string& argument, const fs::path& root) {
  if (auto found = FindOnDisk(argument, root)) return found;
  std::string id = argument;
  const std::string root_name = root.filename().string() + "/";
  if (!root.filename().empty() && id.starts_with(root_name)) id = id.substr(root_name.size());
  if (fs::path(id).is_absolute() || id.find("..") != id.npos) return std::nullopt;
  if (auto found = FindOnDisk(root / id, root)) return found;
  // path[/name[sweep]]: the longest part that is a file. A slash inside [] belongs to no path.
  std::string path = id.substr(0, id.find('['));
  while (!path.empty()) {
    std::error_code code;
    const fs::path file = root / (path + ".yaml");
    if (fs::is_regular_file(file, code)) return Selection{.files = {file}, .ids = id, .root = root};
    const size_t slash = path.rfind('/');
    path = slash == path.npos ? "" : path.substr(0, slash);
  }
  return std::nullopt;
}

/// Loads each file once, whatever the number of arguments that name it.
class Loader {
 public:
  explicit Loader(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  /// Adds the errors of the file the first time only; its result keeps them.
  const LoadResult& Load(const fs::path& file, const fs::path& root, std::vector<Error>& errors) {
    std::error_code code;
    const auto [place, added] = files_.try_emplace(fs::weakly_canonical(file, code).generic_string());
    if (added) {
      place->second = LoadCaseFile(file, root, vocabulary_);
      errors.insert(errors.end(), place->second.errors.begin(), place->second.errors.end());
    }
    return place->second;
  }

 private:
  const Vocabulary& vocabulary_;
  std::map<std::string, LoadResult> files_;
};

Error UnknownId(const std::string& argument, const fs::path& root, Loader& loader) {
  std::vector<std::string> known;
  std::vector<Error> ignored;
  for (const fs::path& file : CaseFiles(root)) {
    known.push_back(IdPrefix(file, root));
    for (const Case& one : loader.Load(file, root, ignored).cases) known.push_back(one.id);
  }
  return Problem("no such case, file or folder", "'" + argument + "'",
                 "a path or an id such as seeds/matmul_out/as_posted", Suggest(argument, known));
}

}  // namespace

LoadResult LoadCaseText(std::string_view text, const std::string& shown_as, const std::string& id_prefix,
                        const Vocabulary& vocabulary) {
  LoadResult result;
  auto root = ParseYaml(text, shown_as);
  if (!root) {
    result.errors.push_back(root.error());
    return result;
  }
  ErrorSink errors(shown_as);
  LoadRoot(*root, id_prefix, vocabulary, errors, result.cases);
  result.errors = errors.Take();
  if (!result.errors.empty()) result.cases.clear();
  return result;
}

LoadResult LoadCaseFile(const fs::path& file, const fs::path& root, const Vocabulary& vocabulary) {
  const std::string shown_as = file.generic_string();
  auto text = ReadSmallFile(file, shown_as);
  if (!text) return {.errors = {text.error()}};
  return LoadCaseText(*text, shown_as, IdPrefix(file, root), vocabulary);
}

LoadResult LoadCases(std::span<const std::string> paths_or_ids, const fs::path& root,
                     const Vocabulary& vocabulary) {
  LoadResult result;
  Loader loader(vocabulary);
  std::set<std::string> taken;
  const auto take = [&](const Selection& selection) {
    bool found = false;
    for (const fs::path& file : selection.files) {
      const LoadResult& loaded = loader.Load(file, selection.root, result.errors);
      if (!loaded.errors.empty()) found = true;  // the request may be in there: the file's errors suffice
      for (const Case& one : loaded.cases) {
        if (!selection.ids.empty() && !IsWithin(one.id, selection.ids)) continue;
        found = true;
        if (taken.insert(one.id).second) result.cases.push_back(one);
      }
    }
    return found;
  };
  if (paths_or_ids.empty()) take(Selection{.files = CaseFiles(root), .root = root});
  for (const std::string& argument : paths_or_ids) {
    const auto selection = Find(argument, root);
    if (!selection || !take(*selection)) result.errors.push_back(UnknownId(argument, root, loader));
  }
  return result;
}

}  // namespace ulpscope
