// Where the libraries of the wheel lie that this program is linked with.
#pragma once

#include <string>

namespace ulpscope::torch_backend {

/// The folder of libtorch_cpu.so, without a slash at its end.
std::string LibraryFolder();

}  // namespace ulpscope::torch_backend
