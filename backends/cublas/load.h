// Finding and opening CUDA's libraries, in the order in which their absence is cheap to see.
//
// libcuda is the driver's own: without it there is no device, and the question is answered in a tenth of a
// millisecond. The runtime then counts devices; only with one are the half-gigabyte libraries opened.
#pragma once

#include <string>
#include <vector>

#include "backends/cublas/api.h"
#include "harness/base/result.h"

namespace ulpscope::cublas {

/// Opens everything for good. The error of a machine that cannot do it begins with "no CUDA device" where
/// there is none, and else names the library or function that is missing. `folders` are searched before the
/// loader's own path.
Result<Api> Load(const std::vector<std::string>& folders);

/// Those of $LD_LIBRARY_PATH, $CUDA_HOME's, those of the nvidia packages beside the Python interpreter
/// `python` (may be ""), and the toolkit's usual one; all that exist.
std::vector<std::string> LibraryFolders(const std::string& python);

}  // namespace ulpscope::cublas
