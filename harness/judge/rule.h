// One rule of the classifier, and what rules tell one another (rules.h has the tables).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/judge/trial.h"
#include "harness/model/classification.h"

namespace ulpscope {

class Classifier;
struct MeasuredLines;

struct ClassifierRule {
  std::string_view name;            ///< kebab-case, unique over all tables
  bool (*when)(const Classifier&);  ///< its precondition
  void (Classifier::*apply)();      ///< its effect
  std::string_view place;           ///< why it stands where it stands
  std::string_view numbers;         ///< those of rule_numbers.h that it uses, with blanks between them
  std::string_view test;            ///< a test that fails without it; "": tests/mutants/survivors has it
};

/// What the rules of the ranking tell one another.
struct ModelRanking {
  std::set<PrecisionModel> likely;
  double best = 0;                    ///< the log likelihood that others are measured against
  std::set<PrecisionModel> too_near;  ///< sums of exact products that err far more than the results do
  std::string_view decided_by;        ///< the last rule that changed `likely`
  bool forms = false;                 ///< of steps inside an op some model fits that is not biased
};

/// Likely models of which none gives the bits: all that explains them is the size of their errors.
struct ErrorsAlone {
  bool split = true;                ///< each reads an operand as a sum of narrower numbers
  bool large = false;               ///< the errors are as large as those of some model's own sums
  const Trial* baseline = nullptr;  ///< until a trial is added
};

/// The results of a sample that err, or some of it where these are few.
struct ErringResults {
  std::vector<int64_t> elements;
  std::vector<double> stored;
  bool enough = false;  ///< these are the ones that err
  int64_t given = 0;    ///< of the sample, results that are the exact values rounded once
};

/// What the rules of the conclusion tell one another.
struct Conclusion {
  std::set<PrecisionModel> likely;
  bool rounded_twice = false;
  std::optional<ErrorsAlone> by_errors;  ///< until a rule decides
  const Trial* baseline =
      nullptr;  ///< what errors are measured against; until a trial is added. Null: by exclusion alone
  std::optional<ErringResults> erring;  ///< until a rule decides
  bool misread = false;                 ///< an operand or a step inside is in fewer bits
  std::vector<int64_t> looked;          ///< elements of the look at every element
  std::vector<int64_t> odd;             ///< those of them that nothing explains
  std::shared_ptr<const MeasuredLines> rows;
  bool rows_err = false;  ///< of a norm or a softmax, as no order of sums does
  int bits = 0;           ///< that the results use, where that is too few; else 0
  int perhaps_bits = 0;   ///< that they all use by rounding or by chance; else 0
  bool to_odd = false;    ///< of these the last one is set nearly everywhere
  std::string errors;     ///< what is said of their size; empty for nothing, as the next two
  std::string lean;       ///< of errors that have one sign mostly, and are those of no order tried
  std::string too_near;   ///< of results nearer to the exact values than any order of a float32 sum
  std::set<PrecisionModel> proved;
};

}  // namespace ulpscope
