// The rules by which the classifier decides, in the order in which it applies them.
//
// A classification walks four tables (rules_ranking.cc, rules_conclusion.cc,
// rules_outcome.cc), each from its first row to its last: the evidence that excludes models, the ranking of
// those that are left, the conclusion, and the outcome that the report has. A row is one rule. It applies where its precondition holds;
// what it finds for the rows after it stands in a Conclusion (or a ModelRanking), and nowhere else. The table's order is the order of the
// rules, and each row states in a line why it stands where it stands.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "harness/judge/rule.h"

namespace ulpscope {

/// A table by its name: "evidence", "ranking", "conclusion", "outcome".
struct RuleTable {
  std::string_view name;
  std::span<const ClassifierRule> rules;
};
std::vector<RuleTable> RuleTables();

}  // namespace ulpscope
