// Safetensors: round trips, and malformed files each refused with an error that names the fault.
#include "backends/sdk/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "backends/sdk/wire.h"

namespace ulpscope::sdk {
namespace {

using testing::HasSubstr;

std::vector<std::byte> File(const std::string& header, size_t data_bytes, uint64_t length) {
  std::vector<std::byte> bytes(8 + header.size() + data_bytes);
  std::memcpy(bytes.data(), &length, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  return bytes;
}
std::vector<std::byte> File(const std::string& header, size_t data_bytes) {
  return File(header, data_bytes, header.size());
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    char text[] = "/tmp/ulpscope-test-XXXXXX";
    path_ = mkdtemp(text);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

TensorData Sample(DType dtype, Shape shape, int seed) {
  TensorData tensor = TensorData::Zeros(dtype, std::move(shape));
  for (size_t i = 0; i < tensor.bytes.size(); ++i)
    tensor.bytes[i] = static_cast<std::byte>(31 * i + static_cast<size_t>(seed));
  return tensor;
}

TEST(Safetensors, EveryDTypeAndShapeSurvivesARoundTrip) {
  const TemporaryFolder folder;
  TensorMap tensors;
  int seed = 0;
  for (const std::string& name : AllDTypeNames()) {
    const DType dtype = *ParseDType(name);
    tensors[name] = Sample(dtype, {2, 3, 1}, ++seed);
    tensors[name + ".scalar"] = Sample(dtype, {}, ++seed);
    tensors[name + ".empty"] = TensorData::Zeros(dtype, {4, 0});
  }
  tensors["name with \"quotes\", \n and \xc3\xbc"] = Sample(DType::kFloat32, {5}, 9);
  ASSERT_GE(tensors.size(), 37U);
  ASSERT_TRUE(WriteSafetensors(folder / "a.safetensors", tensors));
  const auto read = ReadSafetensors(folder / "a.safetensors");
  ASSERT_TRUE(read) << read.error().Text();
  EXPECT_EQ(*read, tensors);
  EXPECT_EQ(FormatSafetensors(*read), FormatSafetensors(tensors));
}

TEST(Safetensors, EveryTensorIsAlignedToItsElement) {
  const TensorMap tensors = {{"a", Sample(DType::kInt8, {3}, 1)},
                             {"b", Sample(DType::kFloat64, {2}, 2)},
                             {"c", Sample(DType::kBfloat16, {3}, 3)},
                             {"d", Sample(DType::kFloat32, {1}, 4)}};
  const std::vector<std::byte> bytes = FormatSafetensors(tensors);
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), 8);
  EXPECT_EQ(header % 8, 0U);
  const auto json = ParseMessage({reinterpret_cast<const char*>(bytes.data()) + 8, header});
  ASSERT_TRUE(json);
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ((*json)[name]["data_offsets"][0].get<size_t>() % SizeOf(tensor.dtype), 0U) << name;
  }
}

TEST(Safetensors, ReadsMetadataPaddingAndAnyOrder) {
  const auto read = ParseSafetensors(
      File(R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]},)"
           R"("a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}    )",
           6),
      "m");
  ASSERT_TRUE(read) << read.error().Text();
  EXPECT_EQ(read->size(), 2U);
  EXPECT_EQ(read->at("b").shape, Shape{1});
}

struct Malformed {
  const char* what;
  std::vector<std::byte> bytes;
  const char* error;
};

std::string One(const std::string& entry) { return R"({"a":)" + entry + "}"; }

/// A header of two int8 tensors; `shape` goes on from the value of "shape".
std::string Two(const std::string& name_a, const std::string& shape_a, const std::string& name_b,
                const std::string& shape_b) {
  const auto entry = [](const std::string& name, const std::string& shape) {
    return "\"" + name + R"(":{"dtype":"I8","shape":)" + shape + "}";
  };
  return "{" + entry(name_a, shape_a) + "," + entry(name_b, shape_b) + "}";
}

std::vector<Malformed> MalformedFiles() {
  return {
      {"empty file", {}, "shorter than the 8 bytes"},
      {"seven bytes", std::vector<std::byte>(7), "shorter than the 8 bytes"},
      {"header length 0", File("", 0), "does not start with '{'"},
      {"header past the end", File("{}", 0, 3), "ends inside its header"},
      {"header length 2^64-1", File("{}", 0, ~uint64_t{0}), "the limit is"},
      {"header over the limit", File("{}", 0, (uint64_t{8} << 20) + 1), "the limit is"},
      {"leading space", File(" {}", 0), "does not start with '{'"},
      {"no JSON", File("{\"a\":", 0), "no JSON"},
      {"a list", File("[]", 0), "does not start with '{'"},
      {"bytes after the object", File("{}{}", 0), "no JSON"},
      {"invalid UTF-8", File("{\"\xff\":{}}", 0), "no JSON"},
      {"too deep", File(R"({"a":{"dtype":[[[[1]]]],"shape":[],"data_offsets":[0,1]}})", 1), "nested"},
      {"the same tensor twice",
       File(Two("a", R"([1],"data_offsets":[0,1])", "a", R"([1],"data_offsets":[1,2])"), 2), "twice"},
      {"a key twice", File(One(R"({"dtype":"I8","dtype":"I8","shape":[1],"data_offsets":[0,1]})"), 1),
       "twice"},
      {"entry no object", File(One("3"), 0), "is no object"},
      {"no dtype", File(One(R"({"shape":[1],"data_offsets":[0,1]})"), 1), "has no dtype"},
      {"no shape", File(One(R"({"dtype":"I8","data_offsets":[0,1]})"), 1), "has no shape"},
      {"no offsets", File(One(R"({"dtype":"I8","shape":[1]})"), 1), "has no data_offsets"},
      {"unknown key", File(One(R"({"dtype":"I8","shape":[1],"data_offsets":[0,1],"x":1})"), 1),
       "unknown key"},
      {"unknown dtype", File(One(R"({"dtype":"F7","shape":[1],"data_offsets":[0,1]})"), 1), "unknown dtype"},
      {"framework's dtype", File(One(R"({"dtype":"float32","shape":[1],"data_offsets":[0,4]})"), 4),
       "unknown dtype"},
      {"dtype a number", File(One(R"({"dtype":1,"shape":[1],"data_offsets":[0,1]})"), 1), "unknown dtype"},
      {"shape no list", File(One(R"({"dtype":"I8","shape":1,"data_offsets":[0,1]})"), 1), "shape is no list"},
      {"negative extent", File(One(R"({"dtype":"I8","shape":[-1],"data_offsets":[0,1]})"), 1), "not a count"},
      {"fractional extent", File(One(R"({"dtype":"I8","shape":[1.0],"data_offsets":[0,1]})"), 1),
       "not a count"},
      {"extent over int64",
       File(One(R"({"dtype":"I8","shape":[9223372036854775808],"data_offsets":[0,1]})"), 1), "not a count"},
      {"product overflows",
       File(One(R"({"dtype":"F64","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,0]})"), 0),
       "overflows"},
      {"wraps to the right size",
       File(One(R"({"dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4]})"), 4), "overflows"},
      {"one offset", File(One(R"({"dtype":"I8","shape":[1],"data_offsets":[0]})"), 1), "not two counts"},
      {"negative offset", File(One(R"({"dtype":"I8","shape":[1],"data_offsets":[-1,0]})"), 1),
       "not two counts"},
      {"backwards", File(One(R"({"dtype":"I8","shape":[1],"data_offsets":[1,0]})"), 1), "backwards"},
      {"past the end", File(One(R"({"dtype":"I8","shape":[2],"data_offsets":[0,2]})"), 1), "the data at 1"},
      {"short for its shape", File(One(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})"), 4), "need 8"},
      {"long for its shape", File(One(R"({"dtype":"I8","shape":[1],"data_offsets":[0,2]})"), 2), "need 1"},
      {"overlap", File(Two("a", R"([2],"data_offsets":[0,2])", "b", R"([2],"data_offsets":[1,3])"), 3),
       "overlaps"},
      {"the same range twice",
       File(Two("a", R"([2],"data_offsets":[0,2])", "b", R"([2],"data_offsets":[0,2])"), 2), "overlaps"},
      {"hole", File(Two("a", R"([1],"data_offsets":[0,1])", "b", R"([1],"data_offsets":[2,3])"), 3),
       "a hole of 1"},
      {"bytes that belong to none", File(One(R"({"dtype":"I8","shape":[1],"data_offsets":[0,1]})"), 2),
       "belong to none"},
      {"metadata no object", File(R"({"__metadata__":3})", 0), "__metadata__"},
      {"metadata with numbers", File(R"({"__metadata__":{"a":3}})", 0), "no text"},
      {"too many axes",
       File(One(R"({"dtype":"I8","shape":[)" +
                [] {
                  std::string ones = "1";
                  for (int i = 0; i < 64; ++i) ones += ",1";
                  return ones;
                }() +
                R"(],"data_offsets":[0,1]})"),
            1),
       "more than 64 axes"},
  };
}

TEST(Safetensors, EveryMalformedFileIsRefusedForItsOwnReason) {
  const TemporaryFolder folder;
  int checked = 0;
  for (const Malformed& file : MalformedFiles()) {
    const std::string path = folder / "bad.safetensors";
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(file.bytes.data()),
               static_cast<std::streamsize>(file.bytes.size()));
    const auto read = ReadSafetensors(path);
    ASSERT_FALSE(read) << file.what;
    EXPECT_THAT(read.error().message, HasSubstr(file.error)) << file.what;
    EXPECT_EQ(read.error().pos.file, path) << file.what;
    ++checked;
  }
  EXPECT_GE(checked, 40);
}

TEST(Safetensors, EveryTruncationOfAGoodFileIsRefused) {
  const std::vector<std::byte> good =
      FormatSafetensors({{"a", Sample(DType::kFloat32, {3}, 1)}, {"b", Sample(DType::kInt8, {2}, 2)}});
  ASSERT_TRUE(ParseSafetensors(good, "good"));
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_FALSE(ParseSafetensors(std::span(good).first(length), "cut")) << length << " of " << good.size();
  }
}

TEST(Safetensors, OpensOnlyRegularFiles) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteSafetensors(folder / "real", {}));
  std::filesystem::create_symlink(folder / "real", folder / "link");
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  EXPECT_TRUE(ReadSafetensors(folder / "real"));
  EXPECT_FALSE(ReadSafetensors(folder / "link"));
  EXPECT_FALSE(ReadSafetensors(folder / "fifo"));  // would wait for ever if it were opened plainly
  EXPECT_FALSE(ReadSafetensors(folder / "absent"));
  EXPECT_FALSE(WriteSafetensors(folder / "link", {}));
}

}  // namespace
}  // namespace ulpscope::sdk
