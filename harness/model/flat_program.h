// FlatProgram: an opened program as a list of steps, each with the scopes around it.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/model/case.h"

namespace ulpscope {

/// One step, with the scopes around it from the outermost in.
struct FlatStep {
  Step step;
  std::vector<Step> scopes;
};

/// It gives the elements of its operand, arranged otherwise.
bool IsArrangement(const Step& step);

struct FlatProgram {
  /// `program`: each of whose steps gives one new value (harness/casefile/open.h).
  explicit FlatProgram(const std::vector<Step>& program);

  std::vector<FlatStep> steps;
  std::map<std::string, size_t> made_by;  ///< value -> the step that gives it

  /// There is nothing to judge.
  bool IsArrangement(size_t i) const { return ulpscope::IsArrangement(steps[i].step); }
  /// The step that computes what `name` shows, views and the steps `seen_through` skipped; none for tensors of the case.
  std::optional<size_t> ComputedBy(const std::string& name, const std::set<size_t>& seen_through = {}) const;

 private:
  void Flatten(const std::vector<Step>& steps, const std::vector<Step>& scopes);
};

/// The step that gives `value`, wherever it stands; null without one.
const Step* FindStep(const std::vector<Step>& steps, const std::string& value);

/// `step` inside `scopes`.
Step Inside(const std::vector<Step>& scopes, Step step);

}  // namespace ulpscope
