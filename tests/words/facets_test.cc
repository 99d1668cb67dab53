// Words of facets: one grammar for the parsers and for the patterns of the JSON Schema, and their meanings.
#include "harness/words/facets.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>

namespace ulpscope {
namespace {

const FacetRow& Row(std::string_view name) {
  for (const FacetRow& row : Facets()) {
    if (row.name == name) return row;
  }
  throw std::runtime_error("no facet " + std::string(name));
}

/// Every known word, every word with a piece cut out or doubled, and every word with every flag.
std::set<std::string> Corpus() {
  std::set<std::string> words{"",
                              "none",
                              "exact+ftz",
                              "at_least_float32",
                              "float32_class",
                              "blockfma",
                              "p1",
                              "p2",
                              "p12",
                              "p52",
                              "p53",
                              "p012",
                              "p26_rz",
                              "p26_odd+ftz",
                              "p26_rne",
                              "p53_rz",
                              "p",
                              "float32_rne",
                              "float8_e5m2_rz",
                              "tf32_rne",
                              "tf32",
                              "int8_rne",
                              "float32_rnd",
                              "blockfma(1,24,rz)",
                              "blockfma(64,40,rna)",
                              "blockfma(65,24,rz)",
                              "blockfma(8,41,rz)",
                              "blockfma(8,7,rz)",
                              "blockfma(08,24,rz)",
                              "blockfma(8,24,RZ)",
                              "blockfma(8,24)",
                              "blockfma(8,24,rz",
                              "blockfma(8,24,rz_float16)",
                              "split_k(tf32,float32)",
                              "split_k(exact,float32)",
                              "split_k(float32)",
                              "float16_rz",
                              "float8_e4m3fn",
                              "bool"};
  for (const auto* list : {&InWords(), &ProdWords(), &AccWords(), &MidWords()}) {
    for (const std::string& word : *list) {
      for (const char* flag : {"", "+ftz", "+daz", "+ftz+ftz", " ", ")"}) words.insert(word + flag);
      for (size_t at = 0; at < word.size(); ++at) {
        words.insert(word.substr(0, at) + word.substr(at + 1));
        words.insert(word.substr(0, at) + word[at] + word.substr(at));
      }
    }
  }
  return words;
}

TEST(Facets, ThePatternOfAFacetHoldsForTheWordsThatItsParserReads) {
  int known = 0;
  const auto corpus = Corpus();
  for (const FacetRow& row : Facets()) {
    const std::regex pattern(row.regex, std::regex::ECMAScript);
    for (const std::string& word : corpus) {
      const bool reads = row.knows(word);
      ASSERT_EQ(std::regex_search(word, pattern), reads) << row.name << " " << word;
      known += reads ? 1 : 0;
    }
  }
  EXPECT_GT(known, 100);
  EXPECT_GT(corpus.size(), 800u);
}

TEST(Facets, EachWordIsSpeltAsItIsRead) {
  int read = 0;
  const auto check = [&](const auto& spec, const auto& spell, const std::string& word) {
    if (!spec) return;
    EXPECT_EQ(spell(*spec), word);
    ++read;
  };
  for (const std::string& word : Corpus()) {
    check(ParseIn(word), InWord, word);
    check(ParseProd(word), ProdWord, word);
    check(ParseAcc(word), AccWord, word);
    check(ParseMid(word), MidWord, word);
    check(ParseOut(word), OutWord, word);
  }
  EXPECT_GT(read, 100);
  EXPECT_EQ(AccWord(JoinedWider()), "split_k(float32,float64)");
  EXPECT_EQ(AccWord(SumsIn(FormatOfBits(26), Rounding::kTowardZero)), "p26_rz");
  EXPECT_EQ(OutWord({.format = &Binary16(), .faithful = true}), "float16_faithful");
}

TEST(Facets, ModesThatRoundToNearestKeepSubnormals) {
  EXPECT_TRUE(ParseOut("float32_rne")->to_nearest());
  for (const char* word : {"float32_rne+ftz", "float32_rz", "float32_rna", "float32_faithful"})
    EXPECT_FALSE(ParseOut(word)->to_nearest()) << word;
  EXPECT_TRUE(ParseMid("p24")->to_bits());
  EXPECT_FALSE(ParseMid("float32")->to_bits()) << "as many bits, and a format that a dtype has";
  EXPECT_TRUE(ParseAcc("p24_rz")->in_bits());
  EXPECT_FALSE(ParseAcc("split_k(float32,p24)")->in_bits());
}

TEST(Facets, TheWordsOfTheBankAreWords) {
  for (const auto& [name, words] :
       {std::pair{"in", &InWords()}, {"prod", &ProdWords()}, {"acc", &AccWords()}, {"mid", &MidWords()}}) {
    for (const std::string& word : *words) EXPECT_TRUE(Row(name).knows(word)) << word;
    EXPECT_EQ(std::set<std::string>(words->begin(), words->end()).size(), words->size());
  }
}

TEST(Facets, BitsThatAreKept) {
  const auto acc = [](std::string_view word) { return ParseAcc(word)->bits(); };
  EXPECT_EQ(acc("exact"), kAllBits);
  EXPECT_EQ(acc("compensated"), 24) << "rounded to float32 once, at the end";
  EXPECT_EQ(acc("float32_rz+ftz"), 24);
  EXPECT_EQ(acc("bfloat16_via_float32"), 8);
  EXPECT_EQ(acc("blockfma(4,23,rz)"), 24);
  EXPECT_EQ(acc("blockfma(32,25,rz)"), 24) << "the sum is float32, whatever the window";
  EXPECT_EQ(acc("blockfma(32,13,rz)"), 14);
  EXPECT_EQ(acc("blockfma(16,25,rne_float16)"), 11);
  EXPECT_EQ(acc("split_k(bfloat16,float32)"), 8);
  EXPECT_EQ(acc("split_k(float32,float16)"), 11);
  EXPECT_TRUE(JoinedWider().wide()) << "no partial sum keeps fewer bits than float32 does";
  EXPECT_FALSE(ParseAcc("split_k(bfloat16,float32)")->wide());
  EXPECT_EQ(ParseIn("as_is+daz")->bits(), kAllBits);
  EXPECT_EQ(ParseIn("bf16x3")->bits(), 16);
  EXPECT_EQ(ParseIn("bf16x9")->bits(), 24);
  EXPECT_EQ(ParseIn("tf32x3")->bits(), 22);
  EXPECT_EQ(ParseMid("none")->bits(), kAllBits);
  EXPECT_EQ(ParseMid("p12")->bits(), 12);
  EXPECT_EQ(ParseAcc("p26_rz")->bits(), 26);
  EXPECT_EQ(ParseAcc("p26_rz")->rounding, Rounding::kTowardZero);
  EXPECT_TRUE(ParseAcc("p29_rna")->wide());
  EXPECT_FALSE(ParseAcc("p26_rne")) << "p26 is its name";
  EXPECT_EQ(ParseOut("float16_rna+ftz")->bits(), 11);
}

TEST(Facets, BriefSpellingsTellWordsApart) {
  std::set<std::string> seen;
  for (const auto& word : AccWords()) {
    if (word.starts_with("blockfma(") || word.starts_with("split_k(") || word.ends_with("_via_float32"))
      continue;
    EXPECT_TRUE(seen.insert(Brief(*ParseAcc(word))).second) << word;
  }
  seen.clear();
  for (const auto& word : InWords()) EXPECT_TRUE(seen.insert(Brief(*ParseIn(word))).second) << word;
  EXPECT_EQ(Brief(*ParseIn("tf32_rna+daz")), "tf32rnadaz");
  EXPECT_EQ(Brief(*ParseAcc("blockfma(4,23,rne_float16)+ftz")), "bfma23f16ftz");
  EXPECT_EQ(Brief(*ParseOut("float8_e5m2_rz+ftz")), "e5m2rzftz");
}

TEST(Facets, ARoundingToSoManyBits) {
  EXPECT_EQ(ParseMid("p12")->Apply(1 + 0x1p-11 + 0x1p-12), 1 + 0x1p-10) << "ties to even";
  EXPECT_EQ(ParseMid("p12")->Apply(0x1.ffep127), 0x1.ffep127);
  EXPECT_EQ(ParseMid("p11")->Apply(0x1.2345p3), ParseMid("tf32")->Apply(0x1.2345p3));
  EXPECT_EQ(ParseIn("as_is+daz")->Apply(0x1p-127), 0.0);
}

}  // namespace
}  // namespace ulpscope
