// Which names a stretch of a program reads and makes: the interface of whatever is compiled of it.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "backends/sdk/program.h"

namespace ulpscope::torch_backend {

/// Names that the steps read (operands, buffers, tensors named by attributes) and make.
struct Names {
  std::set<std::string> read, made;
};

/// Adds those of `steps`, scopes included. What a step makes is no longer read from outside; the buffer of an
/// `empty` counts as read, since it is made before the stretch.
void CollectNames(const std::vector<sdk::Step>& steps, Names& names);

}  // namespace ulpscope::torch_backend
