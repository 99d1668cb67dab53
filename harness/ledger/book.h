// Booking a difference: from the hybrids of two backends to the entries of a ledger (harness/model/ledger.h).
#pragma once

#include <string>
#include <vector>

#include "harness/model/ledger.h"
#include "harness/model/tensor.h"

namespace ulpscope {

/// How one observed value of one backend comes to be, from the carrier's result to its own.
struct LedgerWalk {
  struct Hybrid {
    std::string step;  ///< the values of the steps up to this one are the backend's
    TensorData value;
  };
  std::vector<Hybrid> hybrids = {};  ///< in program order; between two of them nothing changes
  TensorData end;                    ///< the backend's value if nothing else is observed
};

/// The entries that are not zero, in program order; the one without a step comes last. `order`: the program's computed values. `start`:
/// the carrier's result; all values have its dtype and shape. Fills what follows from the numbers; names and causes are the caller's.
Ledger Book(const TensorData& start, const LedgerWalk& a, const LedgerWalk& b,
            const std::vector<std::string>& order);

}  // namespace ulpscope
