// Probes and records as elements.
#include "harness/casefile/fill_data.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "backends/sdk/safetensors.h"
#include "harness/base/build_info.h"
#include "harness/base/find.h"
#include "harness/base/sha256.h"
#include "harness/base/text.h"
#include "harness/casefile/element.h"
#include "harness/casefile/number.h"
#include "harness/casefile/words.h"
#include "harness/model/cross.h"
#include "harness/model/probe.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;

enum class Role { kA, kB, kAddend, kSum };

struct ProbeFill {
  std::string name;
  Role role = Role::kA;
  size_t axis = 0;
  int64_t k = 0;  ///< extent of `axis`; for an addend the K that the other operands have
  int64_t rows = 0;
  std::vector<ProbeDot> dots;
};

/// The text of a parameter; "" if it is not given.
Result<std::string> Word(const Attr::Map& map, const std::string& key) {
  const Attr* given = Lookup(map, key);
  if (given == nullptr) return std::string();
  if (const auto* text = given->If<std::string>()) return *text;
  if (const auto* integer = given->If<int64_t>()) return std::to_string(*integer);
  return Fail("'" + key + "' is one word");
}

tl::unexpected<Error> NoSuch(const std::string& what, const std::string& name,
                             const std::vector<std::string>& known) {
  return Fail(Problem("no such " + what, "'" + name + "'", Join(known, ", "), DidYouMean(name, known)));
}

/// Parameters under `fill` in the tensor's fill; null if it is another fill.
const Attr* ParametersOf(const TensorSpec& spec, const std::string& fill) {
  const auto* map = spec.fill.If<Attr::Map>();
  return map == nullptr ? nullptr : Lookup(*map, fill);
}

Result<int64_t> IntegerOr(const Attr::Map& map, const std::string& key, int64_t otherwise) {
  auto text = ULPSCOPE_TRY(Word(map, key));
  return text.empty() ? Result<int64_t>(otherwise) : ParseInteger(text);
}

Result<Role> RoleOf(const Attr::Map& map) {
  auto word = ULPSCOPE_TRY(Word(map, "role"));
  if (word.empty() || word == "a") return Role::kA;
  if (word == "b") return Role::kB;
  if (word == "addend") return Role::kAddend;
  if (word == "sum") return Role::kSum;
  return Fail(Problem("no such role", "'" + word + "'", "a, b, addend or sum"));
}

/// The dimension that dot products lie along.
Result<size_t> AxisOf(const Attr::Map& map, const TensorSpec& spec, Role role, std::string_view fill) {
  const auto rank = static_cast<int64_t>(spec.shape.size());
  const auto dim = ULPSCOPE_TRY(IntegerOr(map, "dim", role == Role::kB ? -2 : -1));
  if (dim < -rank || dim >= rank) {
    return Fail(Problem(std::string(fill) + ": the dot products lie along no dimension of " +
                            Describe(spec.dtype, spec.shape),
                        "dim " + std::to_string(dim),
                        "-" + std::to_string(rank) + " to " + std::to_string(rank - 1)));
  }
  return static_cast<size_t>(dim < 0 ? dim + rank : dim);
}

/// Elements between two neighbours along `axis`.
int64_t StrideOf(const Shape& shape, size_t axis) {
  int64_t inner = 1;
  for (size_t i = shape.size(); i-- > axis + 1;) inner *= shape[i];
  return inner;
}

/// Which dimension the dot products lie along, and how many they are.
Result<void> Place(const Attr::Map& map, const TensorSpec& spec, ProbeFill* fill) {
  if (fill->role == Role::kAddend) {
    const auto k = ULPSCOPE_TRY(IntegerOr(map, "k", 0));
    if (k < 1) return Fail("probe: an addend needs 'k', the length of the sums that it is added to");
    fill->k = k;
    fill->rows = ElementCount(spec.shape);
    return {};
  }
  fill->axis = ULPSCOPE_TRY(AxisOf(map, spec, fill->role, "probe"));
  fill->k = spec.shape[fill->axis];
  fill->rows = fill->k == 0 ? 0 : ElementCount(spec.shape) / fill->k;
  return {};
}

Result<ProbeFill> ReadProbe(const Attr& parameters, const TensorSpec& spec) {
  static const Attr::Map none;
  ProbeFill fill;
  const auto* map = std::get_if<Attr::Map>(&parameters.value);
  if (map == nullptr) map = &none;
  if (const auto* word = std::get_if<std::string>(&parameters.value)) {
    fill.name = *word;
  } else {
    fill.name = ULPSCOPE_TRY(Word(*map, "name"));
  }
  const auto& families = ProbeFamilies();
  if (!Contains(families, fill.name)) return NoSuch("probe", fill.name, families);
  if (FormatOf(spec.dtype) == nullptr)
    return Fail("probe: for floating dtypes, not " + std::string(Name(spec.dtype)));
  const auto role = ULPSCOPE_TRY(RoleOf(*map));
  if (role == Role::kSum) return Fail(Problem("no such role", "'sum'", "a, b or addend"));
  fill.role = role;
  ULPSCOPE_TRY(Place(*map, spec, &fill));
  for (ProbeGroup& group : ProbeGroups(fill.name, spec.dtype, fill.k)) {
    for (ProbeDot& dot : group.members) fill.dots.push_back(std::move(dot));
  }
  if (fill.dots.empty()) {
    return Fail("probe '" + fill.name + "' has no dot product of " + std::to_string(fill.k) + " terms in " +
                std::string(Name(spec.dtype)));
  }
  return fill;
}

constexpr uintmax_t kMostRecordBytes = uintmax_t{64} << 20;
/// All tensors of a case are in memory, several times over.
constexpr uintmax_t kMostFileBytes = uintmax_t{1} << 30;

fs::path RecordFolder() {
  const char* root = std::getenv("ULPSCOPE_ROOT");
  return fs::path(root != nullptr && *root != '\0' ? root : SourceDir()) / "backends" / "recorded" / "data";
}

std::vector<std::string> RecordNames() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(RecordFolder(), error)) {
    if (entry.path().extension() == ".safetensors") names.push_back(entry.path().stem().string());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

Result<std::vector<uint64_t>> ProbeElements(const Attr& parameters, const TensorSpec& spec,
                                            WithValues with_values) {
  const auto fill = ULPSCOPE_TRY(ReadProbe(parameters, spec));
  std::vector<uint64_t> elements;
  if (with_values == WithValues::kNo) return elements;
  elements.assign(static_cast<size_t>(ElementCount(spec.shape)), 0);
  const int64_t inner = StrideOf(spec.shape, fill.axis);
  for (int64_t row = 0; row < fill.rows; ++row) {
    const ProbeDot& dot = fill.dots[static_cast<size_t>(row % static_cast<int64_t>(fill.dots.size()))];
    if (fill.role == Role::kAddend) {
      elements[static_cast<size_t>(row)] = BitsOf(dot.addend, spec.dtype);
      continue;
    }
    const int64_t first = row / inner * inner * fill.k + row % inner;
    for (const ProbeTerm& term : dot.terms)
      elements[static_cast<size_t>(first + term.position * inner)] =
          BitsOf(fill.role == Role::kA ? term.a : term.b, spec.dtype);
  }
  return elements;
}

Result<std::vector<uint64_t>> CrossElements(const Attr& parameters, const TensorSpec& spec,
                                            WithValues with_values) {
  const auto* map = std::get_if<Attr::Map>(&parameters.value);
  if (map == nullptr) return Fail("fill 'cross' takes named parameters, {cross: {name: ...}}");
  const auto name = ULPSCOPE_TRY(Word(*map, "name"));
  const auto& names = CrossNames();
  if (!Contains(names, name)) return NoSuch("crossed probe", name, names);
  const auto role = ULPSCOPE_TRY(RoleOf(*map));
  if (role == Role::kAddend) return Fail(Problem("no such role", "'addend'", "a, b or sum"));
  const auto from = ULPSCOPE_TRY(IntegerOr(*map, "from", 0));
  if (from < 0) return Fail(Problem("cross: no such line", "from " + std::to_string(from), "0 or more"));
  const FloatFormat* format = FormatOf(spec.dtype);
  if (format == nullptr || format->precision < kLeastCrossBits)
    return Fail("cross: for floating dtypes of 8 or more significant bits, not " +
                std::string(Name(spec.dtype)));
  const auto axis = ULPSCOPE_TRY(AxisOf(*map, spec, role, "cross"));
  const int64_t k = spec.shape[axis];
  if (k < LeastCrossLength(name))
    return Fail("crossed probe '" + name + "' has no dot product of " + std::to_string(k) + " terms");
  std::vector<uint64_t> elements;
  if (with_values == WithValues::kNo) return elements;
  elements.assign(static_cast<size_t>(ElementCount(spec.shape)), 0);
  const int64_t inner = StrideOf(spec.shape, axis), rows = ElementCount(spec.shape) / k;
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t first = row / inner * inner * k + row % inner;
    const CrossSide side = role == Role::kA   ? CrossSide::kA
                           : role == Role::kB ? CrossSide::kB
                                              : CrossSide::kSum;
    for (const CrossTerm& term : CrossLine(name, side, spec.dtype, k, from + row))
      elements[static_cast<size_t>(first + term.position * inner)] = BitsOf(term.value, spec.dtype);
  }
  return elements;
}

std::optional<ProbeShare> ShareOfProbe(const TensorSpec& spec) {
  const Attr* parameters = ParametersOf(spec, "probe");
  if (parameters == nullptr) return std::nullopt;
  const auto fill = ReadProbe(*parameters, spec);
  if (!fill) return std::nullopt;
  const auto all = static_cast<int64_t>(fill->dots.size());
  return ProbeShare{.name = fill->name,
                    .role = fill->role == Role::kA   ? "a"
                            : fill->role == Role::kB ? "b"
                                                     : "addend",
                    .held = std::min(all, fill->rows),
                    .all = all};
}

Result<std::vector<uint64_t>> RecordElements(const Attr& parameters, const TensorSpec& spec,
                                             WithValues with_values) {
  const auto* map = std::get_if<Attr::Map>(&parameters.value);
  if (map == nullptr) return Fail("fill 'record' takes named parameters, {record: {name: ..., tensor: ...}}");
  auto name = ULPSCOPE_TRY(Word(*map, "name"));
  auto tensor = ULPSCOPE_TRY(Word(*map, "tensor"));
  const auto names = RecordNames();
  // A name out of the folder's own list can lead nowhere else.
  if (!Contains(names, name))
    return Fail(Problem("no such record", "'" + name + "'",
                        names.empty() ? "no record is there" : Join(names, ", "), DidYouMean(name, names)));
  const FloatFormat* format = FormatOf(spec.dtype);
  if (format == nullptr) return Fail("record: for floating dtypes, not " + std::string(Name(spec.dtype)));
  const auto record = ULPSCOPE_TRY(
      sdk::ReadSafetensors(RecordFolder() / (name + ".safetensors"), {.max_file_bytes = kMostRecordBytes}));
  const TensorData* found = Lookup(record, tensor);
  if (found == nullptr) return NoSuch("tensor in record " + name, tensor, Keys(record));
  const TensorData& data = *found;
  if (ElementCount(spec.shape) > data.size()) {
    return Fail("tensor '" + tensor + "' of record " + name + " has " + std::to_string(data.size()) +
                " elements, too few for " + Describe(spec.dtype, spec.shape));
  }
  std::vector<uint64_t> elements;
  if (with_values == WithValues::kNo) return elements;
  for (int64_t i = 0; i < ElementCount(spec.shape); ++i)
    elements.push_back(BitsOf(RoundTo(data.At(i), *format), spec.dtype));
  return elements;
}

std::filesystem::path FileOfFill(const TensorSpec& spec) {
  const Attr* file = ParametersOf(spec, "file");
  const auto* parameters = file == nullptr ? nullptr : file->If<Attr::Map>();
  const auto path = parameters == nullptr ? Result<std::string>("") : Word(*parameters, "path");
  if (!path || path->empty()) return {};
  return fs::path(spec.pos.file).parent_path() / *path;
}

Result<std::vector<uint64_t>> FileElements(const Attr& parameters, const TensorSpec& spec,
                                           WithValues with_values) {
  const auto* map = std::get_if<Attr::Map>(&parameters.value);
  if (map == nullptr)
    return Fail("fill 'file' takes named parameters, {file: {path: ..., tensor: ..., sha256: ...}}");
  const auto path = ULPSCOPE_TRY(Word(*map, "path"));
  const auto tensor = ULPSCOPE_TRY(Word(*map, "tensor"));
  const auto due = ULPSCOPE_TRY(Word(*map, "sha256"));
  if (!TensorFilePattern().matches(path))
    return Fail(Problem("no file of tensors", "'" + path + "'", std::string(TensorFilePattern().what)));
  const fs::path file = fs::path(spec.pos.file).parent_path() / path;
  const auto tensors = sdk::ReadSafetensors(file.string(), {.max_file_bytes = kMostFileBytes});
  if (!tensors) {
    return Fail(Problem(file.generic_string() + " cannot be read", tensors.error().message,
                        "the tensors of the case, beside its file"));
  }
  const TensorData* found = Lookup(*tensors, tensor);
  if (found == nullptr) return NoSuch("tensor in " + file.generic_string(), tensor, Keys(*tensors));
  const TensorData& data = *found;
  if (data.dtype != spec.dtype || data.shape != spec.shape) {
    return Fail(Problem("another tensor than the case's", Describe(data.dtype, data.shape),
                        Describe(spec.dtype, spec.shape)));
  }
  if (const std::string digest = Sha256(data.bytes); digest != due) {
    return Fail(Problem("tensor '" + tensor + "' of " + file.generic_string() +
                            " is not the one that the case was written for",
                        "sha256 " + digest, due));
  }
  std::vector<uint64_t> elements;
  if (with_values == WithValues::kNo) return elements;
  const size_t width = SizeOf(data.dtype);
  elements.resize(static_cast<size_t>(data.size()));
  for (size_t i = 0; i < elements.size(); ++i) {
    for (size_t byte = width; byte-- > 0;)
      elements[i] = elements[i] << 8 | std::to_integer<uint64_t>(data.bytes[i * width + byte]);
  }
  return elements;
}

}  // namespace ulpscope
