// Selection of cases.
#include "harness/cli/select.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "harness/base/find.h"
#include "harness/base/text.h"

namespace ulpscope {

/// Recursive descent: or < and < not. Depth is bounded, since the text may come from anywhere.
class IdExpression::Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) { Next(); }

  Result<Node> Parse() {
    auto node = Or();
    if (node && kind_ != Token::kEnd) return Unexpected("and, or, or the end");
    return node;
  }

 private:
  enum class Token { kEnd, kWord, kAnd, kOr, kNot, kOpen, kClose, kBroken };
  static constexpr int kMaxDepth = 64;

  void Next() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
    match_ = Node::Match::kPart;
    if (rest_.starts_with("=\"")) {
      match_ = Node::Match::kWhole;
      rest_.remove_prefix(1);
    }
    token_ = rest_.substr(0, 1);
    kind_ = Token::kEnd;
    if (rest_.empty()) return;
    if (rest_.front() == '(' || rest_.front() == ')') {
      kind_ = rest_.front() == '(' ? Token::kOpen : Token::kClose;
      rest_.remove_prefix(1);
      return;
    }
    if (rest_.front() == '"') {
      const size_t end = rest_.find('"', 1);
      kind_ = end == std::string_view::npos ? Token::kBroken : Token::kWord;
      token_ = end == std::string_view::npos ? rest_ : rest_.substr(1, end - 1);
      rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
      return;
    }
    token_ = rest_.substr(0, rest_.find_first_of(" ()"));
    rest_.remove_prefix(token_.size());
    kind_ = token_ == "and"   ? Token::kAnd
            : token_ == "or"  ? Token::kOr
            : token_ == "not" ? Token::kNot
                              : Token::kWord;
  }

  tl::unexpected<Error> Unexpected(std::string_view expected) const {
    return Fail(Problem("-k cannot be read",
                        kind_ == Token::kEnd ? "the end" : "'" + std::string(token_) + "'",
                        std::string(expected), "e.g. -k \"matmul and not (cuda or nightly)\""));
  }

  Result<Node> Or() { return Chain(Token::kOr, Node::Kind::kOr, &Parser::And); }
  Result<Node> And() { return Chain(Token::kAnd, Node::Kind::kAnd, &Parser::Not); }

  Result<Node> Chain(Token joint, Node::Kind kind, Result<Node> (Parser::*operand)()) {
    auto first = (this->*operand)();
    if (!first || kind_ != joint) return first;
    Node node;
    node.kind = kind;
    node.children.push_back(std::move(*first));
    while (kind_ == joint) {
      Next();
      auto next = ULPSCOPE_TRY((this->*operand)());
      node.children.push_back(std::move(next));
    }
    return node;
  }

  Result<Node> Not() {
    if (++depth_ > kMaxDepth) return Unexpected("fewer levels");
    Node node;
    if (kind_ == Token::kNot) {
      Next();
      auto operand = ULPSCOPE_TRY(Not());
      node.kind = Node::Kind::kNot;
      node.children.push_back(std::move(operand));
    } else if (kind_ == Token::kOpen) {
      Next();
      auto inner = ULPSCOPE_TRY(Or());
      if (kind_ != Token::kClose) return Unexpected("')'");
      Next();
      node = std::move(inner);
    } else if (kind_ == Token::kWord) {
      node.word = token_;
      node.match = match_;
      Next();
    } else {
      return Unexpected("a word of an id");
    }
    --depth_;
    return node;
  }

  std::string_view rest_, token_;
  Token kind_ = Token::kEnd;
  Node::Match match_ = Node::Match::kPart;
  int depth_ = 0;
};

Result<IdExpression> IdExpression::Parse(std::string_view text) {
  auto root = ULPSCOPE_TRY(Parser(text).Parse());
  IdExpression expression;
  expression.root_ = std::move(root);
  return expression;
}

bool IdExpression::Evaluate(const Node& node, std::string_view id) {
  const auto matches = [&](const Node& child) { return Evaluate(child, id); };
  switch (node.kind) {
    case Node::Kind::kWord:
      return node.match == Node::Match::kWhole ? id == node.word
                                               : id.find(node.word) != std::string_view::npos;
    case Node::Kind::kNot:
      return !matches(node.children[0]);
    case Node::Kind::kAnd:
      return std::ranges::all_of(node.children, matches);
    case Node::Kind::kOr:
      return std::ranges::any_of(node.children, matches);
  }
  return false;
}

bool IdExpression::Matches(std::string_view id) const { return Evaluate(root_, id); }

bool HasTag(const Case& test_case, std::string_view tags) {
  static constexpr std::array<std::string_view, 3> kTiers{"smoke", "ci", "nightly"};
  const auto rank = [](std::string_view tag) { return std::ranges::find(kTiers, tag) - kTiers.begin(); };
  constexpr auto kNoTier = static_cast<std::ptrdiff_t>(kTiers.size());
  std::ptrdiff_t tier = kNoTier;
  for (const auto& tag : test_case.tags) tier = std::min(tier, rank(tag));
  if (tier == kNoTier) tier = rank("ci");
  const auto wanted = SplitOutsideParentheses(tags, ',');
  return std::ranges::any_of(wanted, [&](const std::string& tag) {
    if (rank(tag) != kNoTier) return tier <= rank(tag);
    return Contains(test_case.tags, tag);
  });
}

Result<Shard> ParseShard(std::string_view text) {
  Shard shard;
  const char* end = text.data() + text.size();
  const auto [slash, index_error] = std::from_chars(text.data(), end, shard.index);
  if (index_error == std::errc() && slash != end && *slash == '/') {
    const auto [last, count_error] = std::from_chars(slash + 1, end, shard.count);
    if (count_error == std::errc() && last == end && shard.index >= 1 && shard.index <= shard.count)
      return shard;
  }
  return Fail(Problem("--shard cannot be read", "'" + std::string(text) + "'",
                      "i/n with 1 <= i <= n, such as 2/3, or auto"));
}

std::vector<Case> TakeShard(std::vector<Case> cases, const Shard& shard,
                            const std::map<std::string, double>& times) {
  std::ranges::sort(cases, [](const Case& a, const Case& b) { return a.id < b.id; });
  std::vector<Case> taken;
  if (!times.empty()) {
    double all = 0;
    for (const auto& [id, time] : times) all += time;
    const auto time_of = [&](const Case& one) {
      return LookupOr(times, one.id, all / static_cast<double>(times.size()));
    };
    std::ranges::stable_sort(cases, [&](const Case& a, const Case& b) { return time_of(a) > time_of(b); });
    std::vector<double> load(shard.count);
    for (Case& one : cases) {
      const auto least = std::ranges::min_element(load);
      *least += std::max(time_of(one), 1e-3);  // what takes no time at all must not all go to one
      if (static_cast<size_t>(least - load.begin()) + 1 == shard.index) taken.push_back(std::move(one));
    }
    std::ranges::sort(taken, [](const Case& a, const Case& b) { return a.id < b.id; });
    return taken;
  }
  for (size_t i = shard.index - 1; i < cases.size(); i += shard.count) taken.push_back(std::move(cases[i]));
  return taken;
}

}  // namespace ulpscope
