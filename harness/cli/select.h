// Which of the loaded cases a run takes: -k EXPR, -m TAGS, --shard i/n.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/base/result.h"
#include "harness/model/case.h"

namespace ulpscope {

/// An expression over ids: words are substrings, joined by `and`, `or`, `not` and parentheses ("matmul and
/// not cuda"). A word with spaces or parentheses stands in double quotes;
/// with = before them, ="seeds/x/y", it is the whole id.
class IdExpression {
 public:
  static Result<IdExpression> Parse(std::string_view text);
  bool Matches(std::string_view id) const;

 private:
  struct Node {
    enum class Kind { kWord, kNot, kAnd, kOr } kind = Kind::kWord;
    std::string word;
    enum class Match { kPart, kWhole } match = Match::kPart;
    std::vector<Node> children;
  };
  class Parser;
  static bool Evaluate(const Node& node, std::string_view id);
  Node root_;
};

/// True if one of the comma-separated `tags` selects the case. The tiers nest, smoke < ci < nightly:
/// `nightly` takes all of them, `ci` takes ci and smoke; a case without a tier counts as ci. Any other word
/// is a tag that the case must carry.
bool HasTag(const Case& test_case, std::string_view tags);

/// One of `count` shards, `index` from 1.
struct Shard {
  size_t index = 1;
  size_t count = 1;
};
/// "2/3".
Result<Shard> ParseShard(std::string_view text);
/// Every count-th case, by id: which shard a case falls into does not depend on the order of the files. With `times` (id ->
/// how long it took) the longest cases first, each into the shard that has least to do; one without a time takes as long as the mean.
std::vector<Case> TakeShard(std::vector<Case> cases, const Shard& shard,
                            const std::map<std::string, double>& times = {});

}  // namespace ulpscope
