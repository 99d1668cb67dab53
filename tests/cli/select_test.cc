// -k, -m and --shard.
#include "harness/cli/select.h"

#include <gtest/gtest.h>

#include <set>

namespace ulpscope {
namespace {

Case Named(const std::string& id, std::vector<std::string> tags = {}) {
  Case c;
  c.id = id;
  c.tags = std::move(tags);
  return c;
}

TEST(IdExpression, WordsAreSubstringsJoinedByLogic) {
  struct Row {
    const char* expression;
    bool matmul, cuda, norm;
  };
  const Row rows[] = {
      {"matmul", true, true, false},
      {"matmul and not cuda", true, false, false},
      {"not matmul", false, false, true},
      {"norm or cuda", false, true, true},
      {"not (norm or cuda)", true, false, false},
      {"norm or matmul and cuda", false, true, true},  // and binds tighter
      {"not not norm", false, false, true},
      {"\"matmul/as posted\"", false, false, false},
      {"[k=64]", false, false, true},
      {"=\"seeds/matmul/plain\"", true, false, false},  // the whole id
      {"=\"matmul\" or =\"seeds/norm/plain[k=64]\"", false, false, true},
  };
  for (const Row& row : rows) {
    const auto expression = IdExpression::Parse(row.expression);
    ASSERT_TRUE(expression) << row.expression;
    EXPECT_EQ(expression->Matches("seeds/matmul/plain"), row.matmul) << row.expression;
    EXPECT_EQ(expression->Matches("seeds/matmul/plain_cuda"), row.cuda) << row.expression;
    EXPECT_EQ(expression->Matches("seeds/norm/plain[k=64]"), row.norm) << row.expression;
  }
}

TEST(IdExpression, BrokenExpressionsAreErrors) {
  for (const char* text : {"", "and", "a and", "(a", "a)", "not", "a b", "\"open", "()", "a or or b"}) {
    EXPECT_FALSE(IdExpression::Parse(text)) << text;
  }
  EXPECT_FALSE(IdExpression::Parse(std::string(100000, '(')));
  std::string nots;
  for (int i = 0; i < 100000; ++i) nots += "not ";
  EXPECT_FALSE(IdExpression::Parse(nots + "a")) << "no recursion without an end";
}

TEST(Tags, TiersNest) {
  const Case smoke = Named("a", {"smoke"}), ci = Named("b", {"ci"}), nightly = Named("c", {"nightly"}),
             none = Named("d");
  struct Row {
    const char* tags;
    bool smoke, ci, nightly, none;
  };
  const Row rows[] = {{"smoke", true, false, false, false},
                      {"ci", true, true, false, true},
                      {"nightly", true, true, true, true},
                      {"gpu", false, false, false, false},
                      {"gpu,smoke", true, false, false, false}};
  for (const Row& row : rows) {
    EXPECT_EQ(HasTag(smoke, row.tags), row.smoke) << row.tags;
    EXPECT_EQ(HasTag(ci, row.tags), row.ci) << row.tags;
    EXPECT_EQ(HasTag(nightly, row.tags), row.nightly) << row.tags;
    EXPECT_EQ(HasTag(none, row.tags), row.none) << row.tags;
  }
  EXPECT_TRUE(HasTag(Named("e", {"nightly", "gpu"}), "gpu"));
}

TEST(Shards, CoverEveryCaseOnceWhateverTheOrder) {
  std::vector<Case> cases, reversed;
  for (const char* id : {"a", "b", "c", "d", "e", "f", "g"}) cases.push_back(Named(id));
  reversed.assign(cases.rbegin(), cases.rend());
  for (const size_t count : {1, 2, 3, 7, 64}) {
    std::multiset<std::string> seen;
    for (size_t index = 1; index <= count; ++index) {
      const auto shard = TakeShard(cases, {.index = index, .count = count});
      const auto same = TakeShard(reversed, {.index = index, .count = count});
      ASSERT_EQ(shard.size(), same.size());
      for (size_t i = 0; i < shard.size(); ++i) EXPECT_EQ(shard[i].id, same[i].id);
      for (const auto& c : shard) seen.insert(c.id);
    }
    EXPECT_EQ(seen, (std::multiset<std::string>{"a", "b", "c", "d", "e", "f", "g"})) << count;
  }
}

TEST(Shards, Parse) {
  EXPECT_EQ(ParseShard("2/3")->index, 2u);
  for (const char* text : {"", "2", "0/3", "4/3", "1/0", "a/b", "1/2/3", "-1/2", "1/2 ", "auto"})
    EXPECT_FALSE(ParseShard(text)) << text;
}

}  // namespace
}  // namespace ulpscope
