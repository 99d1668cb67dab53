// The ops of PyTorch's dispatcher, as far as a program that names one asks: whether there is such an op, and whether it writes.
#pragma once

#include <string>
#include <string_view>

namespace ulpscope {

/// True for "aten::NAME" and "aten::NAME.OVERLOAD".
bool IsAten(std::string_view op);

/// True where some op of the dispatcher has this name (that of PyTorch 2.13, or of an in-place form), whatever its overload.
bool IsKnownAten(std::string_view op);

/// The known op that is spelt most like `op`, with its aten::; empty where none is near.
std::string NearestAten(std::string_view op);

/// True for aten:: ops that give a new value and write into nothing. An in-place op says that it writes by the last letter of its
/// name, an out= form by its overload; those that write and say neither are listed.
bool GivesNewValue(std::string_view op);

}  // namespace ulpscope
