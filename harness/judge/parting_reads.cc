// What two steps read otherwise: values before their rounding, in another format, subnormals as zero.
#include <fmt/format.h>

#include <algorithm>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/judge/asked.h"
#include "harness/judge/parting.h"
#include "harness/judge/side.h"

namespace ulpscope {
namespace {

bool IsStored(const Words& words) { return Contains(words, "stored"); }

/// Nothing read unrounded is among what may have been.
bool IsWrittenAmong(const Words& together) { return Contains(together, ""); }

/// Sets of unrounded uses that exclude each other. Of a step without a sum it is enough that what is written explains the one and
/// not the other: where both read alike both would have the same bits.
bool ReadOtherwise(const Classification& a, const Classification& b) {
  if (a.together.empty() || b.together.empty()) return false;
  // Steps inside an op have a format as sums have one; only sums have an order, and so other bits in one precision.
  const auto sums = [](const Classification& one) {
    const auto acc = one.facets.find("acc");
    return acc != one.facets.end() && !acc->second.empty() &&
           one.label.find("each step in ") == std::string::npos;
  };
  if (!sums(a) && !sums(b) && a.piece.starts_with("step") && b.piece.starts_with("step"))
    return IsWrittenAmong(a.together) != IsWrittenAmong(b.together);
  return Disjoint(a.together, b.together);
}

/// "computes g from the unrounded s and t"; nothing without an operand.
Deed FromUnrounded(const std::string& value, const std::vector<std::string>& operands) {
  if (operands.empty()) return {};
  return Say("computes", "compute", fmt::format("{} from the unrounded {}", value, JoinNames(operands)));
}

}  // namespace

std::vector<Parting> FindReads(const std::string& value, const Classification& a, const Classification& b) {
  std::vector<Parting> found;
  std::vector<std::string> unrounded_a, unrounded_b;
  for (const auto& [name, words] : a.reads) {
    const auto other = b.reads.find(name);
    if (other == b.reads.end() || !Disjoint(words, other->second)) continue;
    // Those of one kind are told together.
    if (words == Words{"unrounded"} && IsStored(other->second)) {
      unrounded_a.push_back(name);
      continue;
    }
    if (other->second == Words{"unrounded"} && IsStored(words)) {
      unrounded_b.push_back(name);
      continue;
    }
    const auto deed = [&, &operand = name](const Words& mine) {
      // What may be no deed is none: the value before its rounding gives these bits too.
      if (IsStored(mine)) return Deed{};
      if (mine == Words{"unrounded"}) return FromUnrounded(value, {operand});
      if (mine == Words{"flushed"})
        return Say("takes", "take",
                   operand == value
                       ? "subnormal results of " + value + " as zero"
                       : fmt::format("subnormals of {} as zero when computing {}", operand, value));
      Words formats = mine;
      std::erase(formats, "unrounded");
      const std::string way =
          (formats.size() < mine.size() ? "unrounded or as " : "as ") + Join(formats, " or ");
      return Say("reads", "read", fmt::format("{} {} when computing {}", operand, way, value));
    };
    found.push_back({.a = deed(words), .b = deed(other->second)});
  }
  if (found.empty() && unrounded_a.empty() && unrounded_b.empty() && ReadOtherwise(a, b)) {
    // One by one each may be either, and not all at once.
    const auto operands = [](const Words& together) {
      return IsWrittenAmong(together) ? Words() : SplitOutsideParentheses(together.front(), '+');
    };
    unrounded_a = operands(a.together);
    unrounded_b = operands(b.together);
  }
  if (!unrounded_a.empty() || !unrounded_b.empty()) {
    found.insert(found.begin(),
                 {.a = FromUnrounded(value, unrounded_a), .b = FromUnrounded(value, unrounded_b)});
  }
  return found;
}

std::optional<std::string> FindOtherRead(const Classification& a, const Classification& b) {
  for (const auto& [operand, words] : a.reads) {
    const auto other = b.reads.find(operand);
    if (other != b.reads.end() && Disjoint(words, other->second)) return operand;
  }
  if (ReadOtherwise(a, b)) return (IsWrittenAmong(a.together) ? b : a).together.front();
  return std::nullopt;
}

}  // namespace ulpscope
