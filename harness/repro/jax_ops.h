// The JAX adapter's definitions of its steps, for scripts that run without it.
#pragma once

#include <string_view>

namespace ulpscope {

extern const std::string_view kJaxOps;  ///< backends/jax/ops.py

}  // namespace ulpscope
