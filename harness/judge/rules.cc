// The tables of rules by name.
#include "harness/judge/rules.h"

#include "harness/judge/classifier.h"

namespace ulpscope {

std::vector<RuleTable> RuleTables() {
  return {{.name = "evidence", .rules = Classifier::EvidenceRules()},
          {.name = "ranking", .rules = Classifier::RankingRules()},
          {.name = "conclusion", .rules = Classifier::ConclusionRules()},
          {.name = "outcome", .rules = Classifier::OutcomeRules()}};
}

}  // namespace ulpscope
