// The file that `ulpscope plan` writes: a selection, the cases and backends that it came to, and a digest of it all. Machines that run
// parts of it find out before they start whether they would run the same.
//
//   {"schema": "ulpscope.plan/1", "digest": "1a2b3c4d", "version": "0.1.0", "selection": {"backends": "jax", "seed": 0, ...},
//    "backends": ["jax"], "cases": [{"id": "seeds/x/y", "digest": "0a1b2c3d", "ms": 12.5}]}
#pragma once

#include <string>

#include "harness/base/result.h"
#include "harness/cli/run_selection.h"

namespace ulpscope {

std::string WriteFrozenPlan(const FrozenPlan& plan);
/// Eight hex digits over everything else in it.
std::string DigestOf(const FrozenPlan& plan);

/// A plan that was edited is no plan any more.
Result<FrozenPlan> ReadFrozenPlan(const std::string& file);

/// Whether what was found here is what was frozen; the error names the first difference.
Result<void> CheckAgainst(const FrozenPlan& frozen, const Preparation& prepared);

}  // namespace ulpscope
