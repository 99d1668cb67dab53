// Fills whose elements are looked up: the dot products of a probe, the rows of a record.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/result.h"
#include "harness/model/case.h"

namespace ulpscope {

/// Whether the elements are wanted, or only whether there would be some (then none are returned).
enum class WithValues { kNo, kYes };

/// {probe: NAME} or {probe: {name: NAME, role: a, b or addend, dim: D}}. Dot product r of the probe (groups
/// and their members in order, from the front again when there are more rows) lies along dimension `dim` (-1;
/// role b: -2) of row r.
Result<std::vector<uint64_t>> ProbeElements(const Attr& parameters, const TensorSpec& spec,
                                            WithValues with_values);

/// {cross: {name: NAME, role: a, b or sum, dim: D, from: F}}: line F + r of the crossed probe (harness/model/cross.h) lies along
/// dimension `dim` (-1; role b: -2) of row r.
Result<std::vector<uint64_t>> CrossElements(const Attr& parameters, const TensorSpec& spec,
                                            WithValues with_values);

/// {record: {name: NAME, tensor: T}}: the tensor T of backends/recorded/data/NAME.safetensors, from its
/// front. Values that the dtype does not hold are rounded to it. `name` is one word: no path leads out of
/// that folder.
Result<std::vector<uint64_t>> RecordElements(const Attr& parameters, const TensorSpec& spec,
                                             WithValues with_values);

/// {file: {path: NAME.safetensors, tensor: T, sha256: DIGEST}}: the tensor T of a file next to the case file, bit by
/// bit. Dtype, shape and digest (of the tensor's bytes, row-major and little-endian) have to be those of the case.
/// `path` is a single name, which cannot leave the folder.
Result<std::vector<uint64_t>> FileElements(const Attr& parameters, const TensorSpec& spec,
                                           WithValues with_values);

/// The file next to the case file with the elements of `spec`; empty if there is none.
std::filesystem::path FileOfFill(const TensorSpec& spec);

/// Dot products that a fill holds, and those that its probe has; nothing for other fills.
struct ProbeShare {
  std::string name;
  std::string role;  ///< a, b or addend
  int64_t held = 0, all = 0;
};
std::optional<ProbeShare> ShareOfProbe(const TensorSpec& spec);

}  // namespace ulpscope
