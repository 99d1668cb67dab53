// Location of the wheel's libraries that this program is linked with.
#pragma once

#include <string>

namespace ulpscope::torch_backend {

/// The folder of libtorch_cpu.so, without a slash at its end.
std::string LibraryFolder();

}  // namespace ulpscope::torch_backend
