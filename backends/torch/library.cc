// The wheel's folder, which the build defines: in a file of its own, because it is another one in each
// checkout, and a compiler cache would then keep no object of any other file with that definition.
#include "backends/torch/library.h"

namespace ulpscope::torch_backend {

std::string LibraryFolder() { return ULPSCOPE_TORCH_LIB; }

}  // namespace ulpscope::torch_backend
