// cases/deviations.yaml: the known deviations from contracts, a list of flow maps, one per line.
//
//   - {case: seeds/x/y, backend: torch-eager, value: product, versions: "torch>=2.13,<2.14", found: WORDS,
//      reason: WHY, link: URL, expires: 2027-01-31}     (on one line: a program edits this file line by line)
//
// As strict as case files. An empty file, or [], states that nothing deviates.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "harness/casefile/load.h"
#include "harness/model/deviation.h"

namespace ulpscope {

struct DeviationsResult {
  std::vector<Deviation> deviations = {};
  std::vector<Error> errors;  ///< with any error there are no deviations
};

/// A file that does not exist holds no deviations.
DeviationsResult LoadDeviations(const std::filesystem::path& file, const Vocabulary& vocabulary);
DeviationsResult LoadDeviationsText(std::string_view text, const std::string& shown_as,
                                    const Vocabulary& vocabulary);

}  // namespace ulpscope
