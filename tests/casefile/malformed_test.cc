// Malformed case files: each gives its error at its place and no case; junk of any size is refused in time.
//
// The first line of each file in malformed/ is `# expect: LINE:COLUMN TEXT`: where the first error stands and
// what its line holds (0:0: the file has no place to point at).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <limits>
#include <sstream>

#include "harness/base/build_info.h"
#include "harness/casefile/load.h"
#include "harness/casefile/yaml_tree.h"

namespace ulpscope {
namespace {

namespace fs = std::filesystem;

const Vocabulary kTestVocabulary{.backends = {"torch-eager", "torch-aot-eager", "jax"}};

std::vector<fs::path> MalformedFiles() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(fs::path(SourceDir()) / "tests/casefile/malformed")) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

class Malformed : public ::testing::TestWithParam<fs::path> {};

TEST_P(Malformed, GivesTheErrorAtItsPlaceAndNoCase) {
  std::ifstream stream(GetParam());
  std::string header;
  std::getline(stream, header);
  std::istringstream words(header);
  std::string hash, expect, text;
  int line = -1, column = -1;
  char colon = 0;
  words >> hash >> expect >> line >> colon >> column >> std::ws;
  std::getline(words, text);
  ASSERT_EQ(hash + " " + expect, "# expect:") << "the first line says what is expected";
  ASSERT_FALSE(text.empty());
  const LoadResult result = LoadCaseFile(GetParam(), GetParam().parent_path(), kTestVocabulary);
  EXPECT_TRUE(result.cases.empty());
  ASSERT_FALSE(result.errors.empty());
  const Error& first = result.errors[0];
  EXPECT_THAT(first.Text(), ::testing::HasSubstr(text));
  EXPECT_EQ(first.pos.line, line) << first.Text();
  EXPECT_EQ(first.pos.column, column) << first.Text();
  EXPECT_EQ(first.pos.file, GetParam().generic_string());
}

INSTANTIATE_TEST_SUITE_P(Files, Malformed, ::testing::ValuesIn(MalformedFiles()),
                         [](const auto& file) { return file.param.stem().string(); });

TEST(MalformedCorpus, IsThere) { EXPECT_GE(MalformedFiles().size(), 40u); }

std::string Repeat(std::string_view unit, size_t bytes) {
  std::string text;
  while (text.size() + unit.size() <= bytes) text += unit;
  return text;
}

/// `head`, then `unit` up to 1 MiB.
std::string Filled(std::string head, std::string_view unit) {
  return head + Repeat(unit, kMaxFileBytes - head.size());
}

/// Processor seconds, the least of at most three: fewer where `enough` is reached.
double SecondsToLoad(const std::string& text, double enough, LoadResult* result) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 3 && least >= enough; ++i) {
    const std::clock_t start = std::clock();
    *result = LoadCaseText(text, "junk.yaml", "junk", kTestVocabulary);
    least = std::min(least, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return least;
}

// About a second on an idle machine of today. The work done in a second differs between machines and builds,
// and on a machine in use from minute to minute: the unit is a file that the YAML library reads up to our
// bound on its nodes. A reader that is quadratic in a mebibyte takes a hundred times as long, the unit itself
// included; a linear one took up to 2.5 units under AddressSanitizer, which weighs allocations otherwise,
// with nothing else running.
TEST(Junk, OneMebibyteIsRefusedInAboutASecond) {
  std::vector<std::string> files;
  for (const char* unit :
       {"[",         "{",     "- ",   "? ",     "a: ",      "1,",   "a\n",          "a",        ",",
        "&a ",       "!",     "%",    " ",      "\n",       "#",    "- a\n",        "'",        "\"",
        "- - a\n  ", "---\n", "[{",   "[a ,]",  "-\n",      "*a ",  "| \n",         "\xC3\xA9", "\xFF",
        "\t",        "[\n",   "{a: ", "a: [\n", "{a: 1,\n", "a:\n", "x: 1\nx: 1\n", ": ",       "<<: "}) {
    files.push_back(Repeat(unit, kMaxFileBytes));
  }
  files.push_back(Filled("cases:\n", "- {}\n"));
  files.push_back(Filled("cases:\n", "- {a: 1}\n"));
  files.push_back(Filled("cases:\n", "- \n"));
  files.push_back(Filled("cases:\n  - name: c\n    program:\n", "      - {op: neg, of: [x], as: y}\n"));
  files.push_back(Filled("cases:\n  - name: c\n    observe: [r]\n    program:\n", "      - {op: bogus}\n"));
  files.push_back(
      Filled("cases:\n  - name: c\n    sweep: {a: [1, 2, 3], b: [1, 2, 3], c: [1, 2, 3]}\n    observe: [$a, "
             "$b, $c]\n    program:\n",
             "      - {op: sync}\n"));
  // Many cases, each with all the defaults of the file.
  files.push_back(
      Filled("expect:\n  jax: [" + Repeat("{unsupported: a},\n    ", 500000) + "]\ncases:\n",
             "  - {name: c, program: [{op: ones, shape: [1], dtype: int8, as: r}], observe: [r]}\n"));
  std::string tensors =
      "cases:\n  - name: c\n    program: [{op: sync}]\n    observe: [trace]\n    tensors:\n";
  for (int i = 0; tensors.size() < kMaxFileBytes - 300; ++i)
    tensors += "      t" + std::to_string(i) + ": {dtype: int8, shape: [1], fill: ones}\n";
  files.push_back(tensors);
  files.push_back(
      Filled("cases:\n  - name: c\n    program: [{op: sync}]\n    observe: [trace]\n    tensors:\n      t: "
             "{dtype: float16, shape: [9], fill: {values: [\n",
             "1e-999,\n"));
  std::string keys = "cases:\n  - name: c\n    expect:\n";
  for (int i = 0; keys.size() < kMaxFileBytes - 300; ++i)
    keys += "      b" + std::to_string(i) + ": [{raised: {match: \"" + std::to_string(i) + "(a|b)*\"}}]\n";
  files.push_back(keys + "    program: [{op: sync}]\n    observe: [trace]\n    tensors: {x: 1}\n");
  files.push_back(keys + "    program: [{op: sync}]\n    observe: [trace, x]\n");
  LoadResult result;
  const double unit = SecondsToLoad(Repeat("- a\n", kMaxFileBytes), 0, &result);
  EXPECT_LT(unit, 20);
  double slowest = 0;
  for (const std::string& text : files) {
    ASSERT_LE(text.size(), kMaxFileBytes) << text.substr(0, 40);
    const double spent = SecondsToLoad(text, 4 * unit, &result);
    EXPECT_LT(spent, 10 * unit) << text.substr(0, 40);
    EXPECT_TRUE(result.cases.empty()) << text.substr(0, 40);
    EXPECT_FALSE(result.errors.empty()) << text.substr(0, 40);
    EXPECT_LE(result.errors.size(), 50u);
    slowest = std::max(slowest, spent);
  }
  std::printf("%zu files of 1 MiB, the slowest took %.3f s, the unit %.3f s\n", files.size(), slowest, unit);
}

TEST(Junk, LargerFilesAreNotRead) {
  const fs::path path =
      fs::temp_directory_path() /
      ("ulpscope_large." + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) + ".yaml");
  std::ofstream(path) << Repeat("# nothing but a comment\n", kMaxFileBytes + 100);
  const LoadResult result = LoadCaseFile(path, path.parent_path(), kTestVocabulary);
  fs::remove(path);
  ASSERT_EQ(result.errors.size(), 1u);
  EXPECT_THAT(result.errors[0].Text(), ::testing::HasSubstr("file is too large"));
  EXPECT_THAT(LoadCaseFile("/dev/null", "/dev", kTestVocabulary).errors.at(0).Text(),
              ::testing::HasSubstr("not a regular file"));
  EXPECT_THAT(LoadCaseFile("/no/such.yaml", "/no", kTestVocabulary).errors.at(0).Text(),
              ::testing::HasSubstr("does not exist"));
}

}  // namespace
}  // namespace ulpscope
