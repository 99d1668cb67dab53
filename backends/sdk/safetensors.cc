// Safetensors: strict reader, deterministic writer.
#include "backends/sdk/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "backends/sdk/wire.h"
#include "harness/base/find.h"

namespace ulpscope::sdk {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr std::string_view kMetadata = "__metadata__";

/// One line of the header, checked on its own.
struct Entry {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  uint64_t begin = 0, end = 0;
};

tl::unexpected<Error> FileError(const std::string& file, std::string message) {
  return Fail(Error{
      .message = std::move(message),
      .pos = {.file = file, .line = 0, .column = 0},
  });
}

std::string Quote(std::string_view name) {
  return Json(std::string(name)).dump(-1, ' ', true, Json::error_handler_t::replace);
}

/// Bytes of a tensor, or nothing when the product overflows what a file can hold.
Result<uint64_t> TensorBytes(DType dtype, const Shape& shape) {
  uint64_t bytes = SizeOf(dtype);
  if (Contains(shape, 0)) return uint64_t{0};
  for (const int64_t extent : shape) {
    if (bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / static_cast<uint64_t>(extent)) {
      return Fail("the shape's product overflows");
    }
    bytes *= static_cast<uint64_t>(extent);
  }
  return bytes;
}

/// A JSON integer that is not negative and fits int64. nlohmann keeps 1.0 and 1e3 as floats, so those are
/// refused.
bool IsCount(const Json& value) {
  return value.is_number_unsigned() &&
         value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
}

Result<Shape> ParseShape(const Json& value, const SafetensorsLimits& limits) {
  if (!value.is_array()) return Fail("shape is no list");
  if (value.size() > limits.max_rank)
    return Fail("shape has more than " + std::to_string(limits.max_rank) + " axes");
  Shape shape;
  for (const Json& extent : value) {
    if (!IsCount(extent)) return Fail("shape holds " + extent.dump() + ", not a count");
    shape.push_back(static_cast<int64_t>(extent.get<uint64_t>()));
  }
  return shape;
}

Result<Entry> ParseEntry(const std::string& name, const Json& value, uint64_t data_bytes,
                         const SafetensorsLimits& limits) {
  if (!value.is_object()) return Fail("is no object");
  for (const auto& [key, ignored] : value.items()) {
    if (key != "dtype" && key != "shape" && key != "data_offsets") return Fail("unknown key " + Quote(key));
  }
  for (const char* key : {"dtype", "shape", "data_offsets"}) {
    if (!value.contains(key)) return Fail(std::string("has no ") + key);
  }
  const Json& dtype_name = value.at("dtype");
  const std::optional<DType> dtype =
      dtype_name.is_string() ? ParseSafetensorsName(dtype_name.get<std::string>()) : std::nullopt;
  if (!dtype) return Fail("unknown dtype " + dtype_name.dump(-1, ' ', true, Json::error_handler_t::replace));
  Shape shape = ULPSCOPE_TRY(ParseShape(value.at("shape"), limits));
  const Json& offsets = value.at("data_offsets");
  if (!offsets.is_array() || offsets.size() != 2 || !IsCount(offsets[0]) || !IsCount(offsets[1])) {
    return Fail("data_offsets are not two counts");
  }
  Entry entry{
      .name = name, .dtype = *dtype, .shape = std::move(shape), .begin = offsets[0], .end = offsets[1]};
  if (entry.begin > entry.end) return Fail("data_offsets run backwards");
  if (entry.end > data_bytes) {
    return Fail("data_offsets end at " + std::to_string(entry.end) + ", the data at " +
                std::to_string(data_bytes));
  }
  const uint64_t bytes = ULPSCOPE_TRY(TensorBytes(entry.dtype, entry.shape));
  if (bytes != entry.end - entry.begin) {
    return Fail("data_offsets span " + std::to_string(entry.end - entry.begin) +
                " bytes, dtype and shape need " + std::to_string(bytes));
  }
  return entry;
}

Result<void> CheckMetadata(const Json& value) {
  if (!value.is_object()) return Fail("__metadata__ is no object");
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) return Fail("__metadata__ holds a value that is no text, at " + Quote(key));
  }
  return {};
}

/// The ranges must tile the data: no overlap, no hole, nothing left at the end.
Result<void> CheckTiling(const std::vector<Entry>& entries, uint64_t data_bytes) {
  std::vector<const Entry*> order;
  for (const Entry& entry : entries) order.push_back(&entry);
  std::ranges::sort(order, [](const Entry* a, const Entry* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  uint64_t reached = 0;
  for (const Entry* entry : order) {
    if (entry->begin < reached) return Fail("tensor " + Quote(entry->name) + " overlaps the one before it");
    if (entry->begin > reached) {
      return Fail("a hole of " + std::to_string(entry->begin - reached) + " bytes before tensor " +
                  Quote(entry->name));
    }
    reached = entry->end;
  }
  if (reached != data_bytes) {
    return Fail(std::to_string(data_bytes - reached) + " bytes after the last tensor belong to none");
  }
  return {};
}

Result<std::vector<Entry>> ParseHeader(std::string_view header, uint64_t data_bytes,
                                       const SafetensorsLimits& limits) {
  if (header.empty() || header.front() != '{') return Fail("the header does not start with '{'");
  const Result<Json> json = ParseMessage(header, {.max_bytes = limits.max_header_bytes, .max_depth = 4});
  if (!json) return Fail("bad header: " + json.error().message);
  if (json->size() > limits.max_tensors)
    return Fail("more than " + std::to_string(limits.max_tensors) + " tensors");
  std::vector<Entry> entries;
  for (const auto& [name, value] : json->items()) {
    if (name == kMetadata) {
      ULPSCOPE_TRY(CheckMetadata(value));
      continue;
    }
    Result<Entry> entry = ParseEntry(name, value, data_bytes, limits);
    if (!entry) return Fail("tensor " + Quote(name) + ": " + entry.error().message);
    entries.push_back(std::move(*entry));
  }
  ULPSCOPE_TRY(CheckTiling(entries, data_bytes));
  return entries;
}

/// `start`: the first bytes of a file of `size`.
Result<uint64_t> HeaderLength(std::span<const std::byte> start, uint64_t size, const std::string& name,
                              const SafetensorsLimits& limits) {
  if (size < kLengthBytes || start.size() < kLengthBytes)
    return FileError(name, "shorter than the 8 bytes of its header's length");
  uint64_t header_bytes = 0;
  for (size_t i = kLengthBytes; i-- > 0;)
    header_bytes = header_bytes << 8 | std::to_integer<uint64_t>(start[i]);
  if (header_bytes > limits.max_header_bytes) {
    return FileError(name, "header of " + std::to_string(header_bytes) + " bytes; the limit is " +
                               std::to_string(limits.max_header_bytes));
  }
  if (header_bytes > size - kLengthBytes) return FileError(name, "the file ends inside its header");
  return header_bytes;
}

bool ReadWhole(int file, std::span<std::byte> bytes, int64_t offset) {
  size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t got = pread(file, bytes.data() + at, bytes.size() - at,
                              static_cast<off_t>(offset) + static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += static_cast<size_t>(got);
  }
  return true;
}

/// Closes a descriptor at the end of its scope.
struct FileHandle {
  int fd = -1;
  ~FileHandle() {
    if (fd >= 0) close(fd);
  }
};

}  // namespace

Result<TensorMap> ParseSafetensors(std::span<const std::byte> bytes, const std::string& name,
                                   const SafetensorsLimits& limits) {
  const uint64_t header_bytes = ULPSCOPE_TRY(HeaderLength(bytes, bytes.size(), name, limits));
  const auto header = bytes.subspan(kLengthBytes, header_bytes);
  const auto data = bytes.subspan(kLengthBytes + header_bytes);
  const Result<std::vector<Entry>> entries =
      ParseHeader({reinterpret_cast<const char*>(header.data()), header.size()}, data.size(), limits);
  if (!entries) return FileError(name, entries.error().message);
  TensorMap tensors;
  for (const Entry& entry : *entries) {
    const auto part = data.subspan(entry.begin, entry.end - entry.begin);
    tensors.emplace(
        entry.name,
        TensorData{.dtype = entry.dtype, .shape = entry.shape, .bytes = {part.begin(), part.end()}});
  }
  return tensors;
}

Result<std::map<std::string, TensorShape>> ReadSafetensorsHeader(int file, int64_t size,
                                                                 const std::string& name,
                                                                 const SafetensorsLimits& limits) {
  std::vector<std::byte> start(std::min(kLengthBytes, static_cast<size_t>(size)));
  if (!ReadWhole(file, start, 0)) return FileError(name, "cannot read its header");
  const uint64_t length = ULPSCOPE_TRY(HeaderLength(start, static_cast<uint64_t>(size), name, limits));
  std::string header(length, '\0');
  if (!ReadWhole(file, std::as_writable_bytes(std::span(header)), kLengthBytes))
    return FileError(name, "cannot read its header");
  const auto entries = ParseHeader(header, static_cast<uint64_t>(size) - kLengthBytes - length, limits);
  if (!entries) return FileError(name, entries.error().message);
  std::map<std::string, TensorShape> tensors;
  for (const Entry& entry : *entries)
    tensors.emplace(entry.name, TensorShape{.dtype = entry.dtype, .shape = entry.shape});
  return tensors;
}

Result<TensorMap> ReadSafetensors(const std::string& path, const SafetensorsLimits& limits) {
  const FileHandle file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)};
  if (file.fd < 0) return FileError(path, std::string("cannot open: ") + std::strerror(errno));
  struct stat info {};
  if (fstat(file.fd, &info) != 0) return FileError(path, std::string("cannot stat: ") + std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return FileError(path, "is no regular file");
  if (static_cast<uint64_t>(info.st_size) > limits.max_file_bytes) {
    return FileError(path, "file of " + std::to_string(info.st_size) + " bytes; the limit is " +
                               std::to_string(limits.max_file_bytes));
  }
  std::vector<std::byte> bytes(static_cast<size_t>(info.st_size));
  size_t reached = 0;
  while (reached < bytes.size()) {
    const ssize_t got = read(file.fd, bytes.data() + reached, bytes.size() - reached);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError(path, std::string("cannot read: ") + std::strerror(errno));
    if (got == 0) return FileError(path, "shrank while it was read");
    reached += static_cast<size_t>(got);
  }
  return ParseSafetensors(bytes, path, limits);
}

std::vector<std::byte> FormatSafetensors(const TensorMap& tensors) {
  std::vector<const TensorMap::value_type*> order;
  for (const auto& entry : tensors) order.push_back(&entry);
  std::ranges::stable_sort(
      order, [](const auto* a, const auto* b) { return SizeOf(a->second.dtype) > SizeOf(b->second.dtype); });
  Json header = Json::object();
  size_t offset = 0;
  for (const auto* entry : order) {
    const TensorData& tensor = entry->second;
    header[entry->first] = {{"dtype", std::string(SafetensorsName(tensor.dtype))},
                            {"shape", tensor.shape},
                            {"data_offsets", {offset, offset + tensor.bytes.size()}}};
    offset += tensor.bytes.size();
  }
  std::string text = header.dump(-1, ' ', true, Json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::vector<std::byte> bytes;
  bytes.reserve(kLengthBytes + text.size() + offset);
  for (size_t i = 0; i < kLengthBytes; ++i)
    bytes.push_back(static_cast<std::byte>(uint64_t{text.size()} >> (8 * i) & 0xff));
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  bytes.insert(bytes.end(), begin, begin + text.size());
  for (const auto* entry : order)
    bytes.insert(bytes.end(), entry->second.bytes.begin(), entry->second.bytes.end());
  return bytes;
}

Result<void> WriteSafetensors(const std::string& path, const TensorMap& tensors) {
  const std::vector<std::byte> bytes = FormatSafetensors(tensors);
  // Whatever lies there already (a pipe, on which an open would wait for ever, or a link) is none of this file.
  struct stat there {};
  if (lstat(path.c_str(), &there) == 0 && S_ISFIFO(there.st_mode)) unlink(path.c_str());
  const FileHandle file{
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600)};
  struct stat opened {};
  if (file.fd >= 0 && (fstat(file.fd, &opened) != 0 || !S_ISREG(opened.st_mode)))
    return FileError(path, "is no regular file");
  if (file.fd < 0) return FileError(path, std::string("cannot create: ") + std::strerror(errno));
  size_t reached = 0;
  while (reached < bytes.size()) {
    const ssize_t put = write(file.fd, bytes.data() + reached, bytes.size() - reached);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) {
      const std::string why = std::strerror(errno);
      unlink(path.c_str());  // half a file only fills the memory that the next one needs
      return FileError(path, "cannot write: " + why);
    }
    reached += static_cast<size_t>(put);
  }
  return {};
}

}  // namespace ulpscope::sdk
