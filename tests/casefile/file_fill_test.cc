// Tensors beside a case file: the digest, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "backends/sdk/safetensors.h"
#include "harness/base/sha256.h"
#include "harness/casefile/fill_data.h"
#include "harness/casefile/generate.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;

std::string Digest(std::string_view text) { return Sha256(std::as_bytes(std::span(text))); }

/// The examples of FIPS 180-4's publisher, and lengths around a block.
TEST(Sha256, IsTheOneThatIsPublished) {
  EXPECT_EQ(Digest(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Digest(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(Digest(std::string(55, 'a')), "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  EXPECT_EQ(Digest(std::string(64, 'a')), "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
}

TEST(FileFill, GivesTheBitsAndNoOthers) {
  const fs::path dir = fs::path(::testing::TempDir()) / "file_fill";
  fs::create_directories(dir);
  TensorData data = TensorData::Zeros(DType::kBfloat16, {2, 3});
  for (size_t i = 0; i < data.bytes.size(); ++i) data.bytes[i] = static_cast<std::byte>(0xff - 3 * i);
  ASSERT_TRUE(sdk::WriteSafetensors((dir / "c.safetensors").string(), {{"x", data}}));
  TensorSpec spec;
  spec.name = "x";
  spec.dtype = DType::kBfloat16;
  spec.shape = {2, 3};
  spec.pos.file = (dir / "c.yaml").string();
  const auto fill = [&](const std::string& path, const std::string& tensor, const std::string& digest) {
    spec.fill = Attr{.value = Attr::Map{{"file", Attr{.value = Attr::Map{{"path", {.value = path}},
                                                                         {"tensor", {.value = tensor}},
                                                                         {"sha256", {.value = digest}}}}}}};
    return GenerateTensor(spec, 0);
  };
  const std::string digest = Sha256(data.bytes);
  const auto given = fill("c.safetensors", "x", digest);
  ASSERT_TRUE(given) << given.error().Text();
  EXPECT_EQ(*given, data);
  EXPECT_EQ(FileOfFill(spec), dir / "c.safetensors");
  EXPECT_FALSE(fill("c.safetensors", "y", digest));
  EXPECT_FALSE(fill("c.safetensors", "x", Digest("")));
  for (const char* path :
       {"../file_fill/c.safetensors", "/etc/passwd", "c.yaml", ".safetensors", "d.safetensors"})
    EXPECT_FALSE(fill(path, "x", digest)) << path;
  spec.shape = {3, 2};
  EXPECT_FALSE(fill("c.safetensors", "x", digest)) << "another shape";
  spec.shape = {2, 3};
  spec.dtype = DType::kFloat16;
  EXPECT_FALSE(fill("c.safetensors", "x", digest)) << "another dtype";
}

}  // namespace
}  // namespace ulpscope
