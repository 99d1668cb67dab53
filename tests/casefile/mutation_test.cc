// Mutated case files: whatever stands in a file, it gives cases or errors, never both, neither or a crash;
// and every case that loads can be linted and its inputs generated.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "harness/base/build_info.h"
#include "harness/casefile/deviations.h"
#include "harness/casefile/generate.h"
#include "harness/casefile/lint.h"
#include "harness/casefile/load.h"
#include "tests/support/draws.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> Corpus() {
  std::vector<std::string> texts;
  for (const char* folder : {"cases", "tests/casefile/malformed"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(SourceDir()) / folder)) {
      if (entry.path().extension() != ".yaml") continue;
      std::ifstream stream(entry.path(), std::ios::binary);
      std::ostringstream text;
      text << stream.rdbuf();
      // The good files are few and large: as many of them as of the malformed ones.
      for (int copies = folder == std::string_view("cases") ? 12 : 1; copies > 0; --copies)
        texts.push_back(text.str());
    }
  }
  return texts;
}

/// Pieces that mean something somewhere in the language.
const std::vector<std::string> kPieces{"[",
                                       "]",
                                       "{",
                                       "}",
                                       ":",
                                       " ",
                                       "\n",
                                       "-",
                                       "$k",
                                       "&a",
                                       "*a",
                                       "<<",
                                       "~",
                                       "null",
                                       "yes",
                                       "010",
                                       "1/3",
                                       "-1",
                                       "268435456",
                                       "99999999999999999999",
                                       "inf",
                                       "bits:0x1",
                                       "1e400",
                                       "'",
                                       "\"",
                                       "#",
                                       "|",
                                       "!",
                                       "?",
                                       ",",
                                       "values",
                                       "lattice",
                                       "\n    sweep: {k: [1, 2]}\n",
                                       "strides",
                                       "transpose",
                                       "[[1]]",
                                       "0x1p-1074",
                                       "int8",
                                       "bool",
                                       "float8_e4m3fn",
                                       "\xFF",
                                       "\t"};

std::string Mutate(std::string text, std::mt19937_64& random) {
  const auto rounds = 1 + random() % 4;
  for (uint64_t i = 0; i < rounds && !text.empty(); ++i) {
    const size_t at = random() % text.size();
    const std::string& piece = kPieces[random() % kPieces.size()];
    switch (random() % 5) {
      case 0:
        text.erase(at, 1 + random() % 6);
        break;
      case 1:
        text.insert(at, piece);
        break;
      case 2:
        text[at] = static_cast<char>(random());
        break;
      case 3:
        text.insert(at, text.substr(random() % text.size(), random() % 60));
        break;
      case 4: {
        const size_t digit = text.find_first_of("0123456789", at);
        if (digit != text.npos) text.replace(digit, 1, piece);
        break;
      }
    }
  }
  return text;
}

TEST(Mutation, CasesOrErrorsAndEveryCaseIsUsable) {
  const auto corpus = Corpus();
  ASSERT_GE(corpus.size(), 50u);
  std::mt19937_64 random(20240229);
  int64_t loaded = 0, refused = 0, tensors = 0;
  for (int i = 0; i < testing::Draws(4000); ++i) {
    const std::string text = Mutate(corpus[random() % corpus.size()], random);
    const LoadResult result = LoadCaseText(text, "f.yaml", "f", Vocabulary{});
    ASSERT_NE(result.cases.empty(), result.errors.empty()) << text;
    result.cases.empty() ? ++refused : ++loaded;
    for (const Case& one : result.cases) {
      Lint(one);
      for (const TensorSpec& tensor : one.tensors) {
        if (ElementCount(tensor.shape) > 10000) continue;
        const auto data = GenerateTensor(tensor, 0);
        ASSERT_TRUE(data.has_value()) << data.error().Text() << "\n" << text;
        ++tensors;
      }
    }
    LoadDeviationsText(text, "f.yaml", Vocabulary{});
  }
  EXPECT_GE(loaded, testing::Draws(50));
  EXPECT_GE(refused, testing::Draws(1000));
  EXPECT_GE(tensors, testing::Draws(100));
  std::printf("%ld loaded, %ld refused, %ld tensors generated\n", loaded, refused, tensors);
}

}  // namespace
}  // namespace ulpscope
