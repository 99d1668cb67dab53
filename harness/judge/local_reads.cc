// How a step read its operands, as its explanations have it.
#include <algorithm>
#include <utility>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/judge/as_written.h"
#include "harness/judge/label.h"
#include "harness/judge/step_judge.h"
#include "harness/num/float_format.h"

namespace ulpscope {

void StepJudge::NoteReads(size_t last, const Explanation& simplest) {
  explained_[last] = simplest.unrounded;
  for (const std::string& operand : ComputedOperands(last)) {
    const auto word = simplest.changed.find(NameOfUse(last, operand));
    const FloatFormat* format = word == simplest.changed.end() ? nullptr : FindFormat(word->second);
    if (format != nullptr) changes_[last][operand] = {.format = format};
  }
}

void StepJudge::TellReads(size_t last, const std::vector<Explanation>& found, Classification* result) const {
  const auto operands = ComputedOperands(last);
  const Explanation& simplest = found.front();
  const auto add = [&](const std::string& operand, const std::string& word) {
    auto& words = result->reads[operand];
    if (!Contains(words, word)) words.push_back(word);
  };
  for (const Explanation& each : found) {
    // If a plain explanation from stored operands exists, one that also needs a narrower number is no explanation.
    if (simplest.plain && simplest.unrounded.empty() && simplest.changed.empty() && !each.plain) continue;
    std::map<std::string, std::string> words = each.changed;
    std::vector<std::string> together;
    for (const std::string& operand : operands) {
      if (each.unrounded.contains({last, operand})) together.push_back(NameOfUse(last, operand));
    }
    if (each.changed.empty()) result->together.push_back(Join(together, "+"));
    for (const std::string& operand : each.open) {
      const std::string name = NameOfUse(last, operand);
      add(name, "stored");
      auto fewer = together;
      std::erase(fewer, name);
      result->together.push_back(Join(fewer, "+"));
    }
    for (const std::string& operand : operands)
      words.try_emplace(NameOfUse(last, operand),
                        each.unrounded.contains({last, operand}) ? "unrounded" : "stored");
    for (const auto& [operand, word] : words) add(operand, word);
  }
  // Its own results flushed in one explanation and not in another one.
  if (const auto own = result->reads.find(steps_[last].step.as); own != result->reads.end()) {
    const auto flushes = [&](const Explanation& each) { return each.changed.contains(own->first); };
    if (!std::ranges::all_of(found, flushes)) own->second.emplace_back("stored");
  }
}

void StepJudge::NoteNarrow(size_t last, const Classification& judged) {
  constexpr size_t kMost = 4;  // chosen; nothing known tests its neighbours
  if (!sums_.contains(last) || !SumsNarrow(judged)) return;
  std::set<AccSpec> accumulators;
  for (const PrecisionModel& model : judged.models) accumulators.insert(model.acc);
  if (accumulators.size() <= kMost) narrow_[last] = std::move(accumulators);
}

void StepJudge::ShowWritten(size_t last, Classification* result) {
  const auto piece = Cut(last, {});
  if (!piece) return;
  const auto oracle = open_(piece->program, piece->inputs, {.unrounded = {}, .as_written = true});
  if (!oracle) return;
  const std::string& name = steps_[last].step.as;
  ShowAsWritten(**oracle, name, values_.at(name), result);
  counts_ += (*oracle)->Counts();
}

Classification StepJudge::Said(const std::string& value, Classification classification) {
  std::vector<std::string> parts;
  for (const auto& [operand, words] : classification.reads) {
    const bool open = Contains(words, "stored");
    if (open && operand == value)
      parts.push_back("zero in the place of subnormals, for more than one possible reason");
    if (open) continue;
    parts.push_back(words == std::vector<std::string>{"unrounded"} ? operand + " read before it is rounded"
                    : words == std::vector<std::string>{kFlushed}
                        ? "subnormals of " + operand + " taken as zero"
                        : operand + " read as " + Join(words, " or "));
  }
  if (!parts.empty()) classification.label = Join(parts, ", ") + "; " + classification.label;
  return classification;
}

}  // namespace ulpscope
