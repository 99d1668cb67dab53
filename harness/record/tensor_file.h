// Tensors in a file: safetensors, written canonically and read as if an enemy had written them.
//
// The format (https://github.com/huggingface/safetensors): 8 bytes little-endian header length, a JSON object
// {name: {dtype, shape, data_offsets}}, then the data. The reader trusts nothing: lengths, offsets, overlaps, gaps, dtype
// names and shapes are checked before a byte is copied.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "harness/base/result.h"
#include "harness/model/tensor.h"

namespace ulpscope {

using TensorMap = std::map<std::string, TensorData>;

/// The same tensors always give the same bytes.
std::string EncodeTensors(const TensorMap& tensors);
Result<TensorMap> DecodeTensors(std::span<const std::byte> bytes);

/// Writes a new file (mode 0600); an existing one is replaced.
Result<void> WriteTensorFile(const std::filesystem::path& file, const TensorMap& tensors);
/// Reads a regular file of at most `limit` bytes. Never follows a link, never blocks on a pipe.
Result<TensorMap> ReadTensorFile(const std::filesystem::path& file, int64_t limit = int64_t{64} << 30);

/// The same, without decoding: the bytes of a regular file.
Result<std::string> ReadFileBytes(const std::filesystem::path& file, int64_t limit);

}  // namespace ulpscope
