// The safetensors file format: 8 bytes of header length, a JSON header, then the tensors' bytes. Read
// strictly.
//
// Format: https://huggingface.co/docs/safetensors (little endian; row-major; offsets count from the end of
// the header; "__metadata__" is a map of strings). Every framework reads it and nothing in it can execute. A
// file here comes from a process that may be broken or hostile, so every number is checked before it is used:
// lengths, types, shapes whose product overflows, offsets that overlap, leave holes or run past the end. A
// file that passes holds exactly what its header describes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "harness/base/result.h"
#include "harness/num/tensor_data.h"

namespace ulpscope::sdk {

using TensorMap = std::map<std::string, TensorData>;

struct SafetensorsLimits {
  size_t max_file_bytes = size_t{4} << 30;
  size_t max_header_bytes = size_t{8} << 20;
  size_t max_tensors = 65536;
  size_t max_rank = 64;
};

/// Reads a regular file (no symbolic link is followed, no FIFO waited for). Errors carry `path` as their
/// place.
Result<TensorMap> ReadSafetensors(const std::string& path, const SafetensorsLimits& limits = {});

/// The same from memory; `name` stands for the file in errors.
Result<TensorMap> ParseSafetensors(std::span<const std::byte> bytes, const std::string& name,
                                   const SafetensorsLimits& limits = {});

/// One tensor, without its bytes.
struct TensorShape {
  DType dtype = DType::kFloat32;
  Shape shape;
};

/// The tensors of an open file of `size` bytes, without reading those behind the header; errors carry `name` as their place. A length
/// that the header does not give to some tensor is an error.
Result<std::map<std::string, TensorShape>> ReadSafetensorsHeader(int file, int64_t size,
                                                                 const std::string& name,
                                                                 const SafetensorsLimits& limits = {});

/// Writes (or overwrites) `path`: header padded to 8 bytes, wide elements first, so that every tensor is
/// aligned. The same tensors give the same bytes.
Result<void> WriteSafetensors(const std::string& path, const TensorMap& tensors);

/// The bytes that WriteSafetensors writes.
std::vector<std::byte> FormatSafetensors(const TensorMap& tensors);

}  // namespace ulpscope::sdk
