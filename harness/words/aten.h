// The ops of PyTorch's dispatcher, as far as a program that names one needs them: whether there is such an
// op, and whether it writes.
#pragma once

#include <string>
#include <string_view>

namespace ulpscope {

/// True for "aten::NAME" and "aten::NAME.OVERLOAD".
bool IsAten(std::string_view op);

/// True where some op of the dispatcher has this name (that of PyTorch 2.13, or of an in-place form), whatever its overload.
bool IsKnownAten(std::string_view op);

/// True for a public function of PyTorch by its whole name: torch.NAME, torch.nn.functional.NAME, torch.special.NAME and torch.linalg.NAME.
/// A name of which nothing is public (_NAME), or which writes into its operand (NAME_), is none.
bool IsTorchFunction(std::string_view op);

/// Why a case cannot request an op of PyTorch that is no word of the vocabulary; empty if it can. A case is
/// data: a function that opens files is out of its reach, and of PyTorch's functions it reaches those behind
/// which the dispatcher has an op.
std::string WhyOutOfReach(std::string_view op);

/// The known op that is spelt most like `op`, with its aten::; empty where none is near.
std::string NearestAten(std::string_view op);

/// True for aten:: ops that give a new value and write into nothing. An in-place op shows that it writes by
/// the last letter of its name, an out= form by its overload; those that write and show neither are listed.
bool GivesNewValue(std::string_view op);

}  // namespace ulpscope
