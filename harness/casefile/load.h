// Loading cases: from paths and ids to fully resolved cases, or to errors that say where and what to write instead.
//
// The way of a file: bytes -> tree (yaml_tree.h: what YAML may contain) -> sweeps expanded (sweep.h) ->
// structure check (structure.h, by the field table in fields.h) -> decode (decode.h: names, counts, budgets)
// -> Case. Loading allocates nothing of the size that a case requests. A file with any error gives no case at
// all.
//
// The language in one place:
//   file:   about, source, tags, knobs, requires, contract, expect (defaults of the cases: knobs, requires and expect key by
//           key, the others whole), cases
//   case:   name, about, source, tags, sweep, tensors, program, observe, knobs, requires, contract, expect
//   tensor: {dtype, shape, fill, layout: {strides: [..]} | {transpose: [d0, d1]} | non_contiguous, requires_grad}
//   step:   {op, of: [name or number, ...], as, out, attributes...}; autocast, no_grad and enable_grad hold `steps`
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "harness/base/result.h"
#include "harness/casefile/known_names.h"
#include "harness/model/case.h"

namespace ulpscope {

struct LoadResult {
  std::vector<Case> cases = {};
  std::vector<Error> errors;
};

/// The cases of one file. Ids are its path relative to `root` without .yaml, "/", the case's name, and
/// "[k=v,k2=v2]" for sweeps. A file outside `root` is called by its stem.
LoadResult LoadCaseFile(const std::filesystem::path& file, const std::filesystem::path& root,
                        const Vocabulary& vocabulary);

/// The same for text; errors show `shown_as`, ids begin with `id_prefix`.
LoadResult LoadCaseText(std::string_view text, const std::string& shown_as, const std::string& id_prefix,
                        const Vocabulary& vocabulary);

/// Each of `paths_or_ids` is a folder, a file, an id or an id prefix that ends at a slash or at a sweep;
/// relative paths count from the working directory, then from `root`. Nothing given means all of `root`.
/// Order: as given, files sorted by path, cases in their order in the file; a case named twice comes once.
/// Broken files add errors; the cases of the others are kept.
LoadResult LoadCases(std::span<const std::string> paths_or_ids, const std::filesystem::path& root,
                     const Vocabulary& vocabulary);

}  // namespace ulpscope
