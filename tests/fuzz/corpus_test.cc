// The recorded corpus through every target, without a fuzzer: what once reached a new place, or broke one, still runs clean.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "harness/base/build_info.h"
#include "tests/fuzz/targets.h"

namespace ulpscope::fuzz {
namespace {

namespace fs = std::filesystem;

struct Target {
  std::string_view name;  ///< also that of its folder in corpus/
  Reached (*run)(std::string_view input) = nullptr;
};
constexpr Target kTargets[] = {
    {"casefile", Casefile}, {"journal", Journal}, {"protocol", Protocol}, {"safetensors", Safetensors}};

TEST(FuzzCorpus, EveryTargetReadsItsOwn) {
  const fs::path corpus = fs::path(SourceDir()) / "tests/fuzz/corpus";
  for (const Target& target : kTargets) {
    size_t files = 0, accepted = 0, bytes = 0;
    for (const auto& entry : fs::directory_iterator(corpus / target.name)) {
      std::ifstream stream(entry.path(), std::ios::binary);
      const std::string input((std::istreambuf_iterator<char>(stream)), {});
      accepted += target.run(input) == Reached::kAccepted;
      ++files;
      bytes += input.size();
    }
    std::printf("%s: %zu files, %zu bytes, %zu accepted\n", std::string(target.name).c_str(), files, bytes,
                accepted);
    EXPECT_GE(files, 10U) << target.name;
    EXPECT_GE(accepted, 3U) << target.name << ": a corpus that is refused at the door tests nothing";
    EXPECT_LT(accepted, files) << target.name << ": a corpus without a refusal tests half";
    EXPECT_LT(bytes, size_t{200} << 10) << target.name << ": minimise it";
  }
}

TEST(FuzzCorpus, EveryFolderHasATarget) {
  for (const auto& entry : fs::directory_iterator(fs::path(SourceDir()) / "tests/fuzz/corpus")) {
    size_t found = 0;
    for (const Target& target : kTargets) found += entry.path().filename() == target.name;
    EXPECT_EQ(found, 1U) << entry.path();
  }
}

}  // namespace
}  // namespace ulpscope::fuzz
