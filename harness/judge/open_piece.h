// OpenPiece: an oracle for a part of a program, for judging by steps.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "harness/model/oracle.h"

namespace ulpscope {

/// How the oracle computes a subprogram.
struct PieceOptions {
  std::set<std::string> unrounded = {};  ///< values that are read before they are rounded to their dtype
  bool natural = false;                  ///< only sums in float32, and what the program itself rounds
  bool as_written = false;  ///< sums in float32, and each value rounded that is not in `unrounded`: one model
};
using OpenPiece = std::function<Result<std::unique_ptr<CaseOracle>>(
    const Case& piece, std::map<std::string, TensorData> inputs, const PieceOptions& options)>;

/// Elements of values that are looked at besides a sample: those in which backends differ.
using LookedAt = std::map<std::string, std::vector<int64_t>>;

/// For a step with more models than this, those of a conforming kernel are tried before all others.
constexpr int64_t kManyModels = 4096;

}  // namespace ulpscope
