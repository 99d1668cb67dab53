// OpenPiece: an oracle for a part of a program, as those who judge it by its steps ask for one.
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

/// Opens an oracle for a piece of a program on these tensors.
struct PieceOptions {
  std::set<std::string> unrounded =
      {};                   ///< values of the piece that are read before they are rounded to their dtype
  bool natural = false;     ///< only sums in float32, and what the program itself rounds
  bool as_written = false;  ///< sums in float32, and each value rounded that is not in `unrounded`: one model
};
using OpenPiece = std::function<Result<std::unique_ptr<CaseOracle>>(
    const Case& piece, std::map<std::string, TensorData> inputs, const PieceOptions& options)>;

/// Elements of values that are looked at besides a sample: those in which backends differ.
using LookedAt = std::map<std::string, std::vector<int64_t>>;

/// Of a step with as many models as this, what an honest kernel computes is tried before all of them.
constexpr int64_t kManyModels = 4096;

}  // namespace ulpscope
