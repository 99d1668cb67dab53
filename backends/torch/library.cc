// The wheel's folder, as the build was told it: in a file of its own, because it is another one in each checkout, and a compiler cache
// would know none of the others that are told it.
#include "backends/torch/library.h"

namespace ulpscope::torch_backend {

std::string LibraryFolder() { return ULPSCOPE_TORCH_LIB; }

}  // namespace ulpscope::torch_backend
