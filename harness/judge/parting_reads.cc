// Finds operands that two sides read differently: values before their rounding, in another format, subnormals as zero.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/judge/asked.h"
#include "harness/judge/parting.h"
#include "harness/judge/side.h"

namespace ulpscope {
namespace {

bool IsStored(const Words& words) { return Contains(words, "stored"); }

/// A single step, or a program that is one.
bool IsOneStep(const Classification& one) {
  return one.piece.starts_with("step") && !one.piece.starts_with("steps ");
}

/// The ways in which `one` may have read `operand`, which `other` lists. A tensor of the case that was read unchanged
/// is in no list. Null if the two are not judged alike: operands inside a longer subprogram are unknown.
const Words* FindRead(const Classification& one, const Classification& other, const std::string& operand) {
  static const Words kStored{"stored"};
  const auto found = one.reads.find(operand);
  if (found != one.reads.end()) return &found->second;
  const bool alike = (IsOneStep(one) && IsOneStep(other)) || (one.piece.empty() && other.piece.empty());
  return alike ? &kStored : nullptr;
}

/// All operands that either of the two may have read other than as stored.
std::set<std::string> OperandsOf(const Classification& a, const Classification& b) {
  std::set<std::string> operands;
  for (const Classification* one : {&a, &b}) {
    for (const auto& [operand, words] : one->reads) operands.insert(operand);
  }
  return operands;
}

/// True if reading nothing unrounded is one of the possibilities.
bool IsWrittenAmong(const Words& together) { return Contains(together, ""); }

/// True if the sets of unrounded uses exclude each other. For a step without a sum it is enough that the expected
/// computation explains one and not the other: if both read alike, both would have the same bits.
bool ReadOtherwise(const Classification& a, const Classification& b) {
  if (a.together.empty() || b.together.empty()) return false;
  // Steps inside an op have a format as sums have one; only sums have an order, and so other bits in one precision.
  const auto sums = [](const Classification& one) {
    return !one.facets.acc.empty() && one.labelled != FormatOfWhat::kSteps;
  };
  if (!sums(a) && !sums(b) && a.piece.starts_with("step") && b.piece.starts_with("step"))
    return IsWrittenAmong(a.together) != IsWrittenAmong(b.together);
  return Disjoint(a.together, b.together);
}

bool IsUnrounded(const Words& words) { return words == Words{"unrounded"}; }

/// "computes g from the unrounded s and t"; nothing without an operand.
Deed FromUnrounded(const std::string& value, const std::vector<std::string>& operands) {
  if (operands.empty()) return {};
  return Say("computes", "compute", fmt::format("{} from the unrounded {}", Code(value), JoinCode(operands)));
}

/// Every operand that a side reads unrounded and in no other way. The results follow from all of them together: an
/// operand whose rounding changes nothing on the other side may be the one that makes the difference.
Deed FromUnrounded(const std::string& value, const Classification& side) {
  std::vector<std::string> operands;
  for (const auto& [name, words] : side.reads) {
    if (IsUnrounded(words)) operands.push_back(name);
  }
  return FromUnrounded(value, operands);
}

/// The operands that all of several sets contain; if they have none in common, each set by itself: "s, or t and u".
Deed FromOneOf(const std::string& value, const Words& together) {
  if (together.empty() || IsWrittenAmong(together)) return {};
  std::vector<Words> sets;
  for (const std::string& one : together) {
    Words set = SplitOutsideParentheses(one, '+');
    if (!Contains(sets, set)) sets.push_back(std::move(set));
  }
  Words common = sets.front();
  std::erase_if(common, [&](const std::string& operand) {
    return !std::ranges::all_of(sets, [&](const Words& set) { return Contains(set, operand); });
  });
  if (!common.empty()) return FromUnrounded(value, common);
  Words either;
  for (const Words& set : sets) either.push_back(JoinCode(set));
  return Say("computes", "compute",
             fmt::format("{} from the unrounded {}", Code(value), Join(either, ", or ")));
}

}  // namespace

std::vector<Parting> FindReads(const std::string& value, const Classification& a, const Classification& b) {
  std::vector<Parting> found;
  bool a_unrounded = false, b_unrounded = false;
  for (const std::string& name : OperandsOf(a, b)) {
    const Words *mine_read = FindRead(a, b, name), *other_read = FindRead(b, a, name);
    if (mine_read == nullptr || other_read == nullptr || !Disjoint(*mine_read, *other_read)) continue;
    const Words &words = *mine_read, &others = *other_read;
    // Operands of one kind are reported together.
    if (IsUnrounded(words) && IsStored(others)) {
      a_unrounded = true;
      continue;
    }
    if (IsUnrounded(others) && IsStored(words)) {
      b_unrounded = true;
      continue;
    }
    const auto deed = [&, &operand = name](const Words& mine) {
      // A behaviour that may be absent is none: the value before its rounding gives these bits too.
      if (IsStored(mine)) return Deed{};
      if (IsUnrounded(mine)) return FromUnrounded(value, {operand});
      if (mine == Words{"flushed"})
        return Say("takes", "take",
                   operand == value ? "subnormal results of " + Code(value) + " as zero"
                                    : fmt::format("subnormals of {} as zero when computing {}", Code(operand),
                                                  Code(value)));
      Words formats = mine;
      std::erase(formats, "unrounded");
      const std::string way =
          (formats.size() < mine.size() ? "unrounded or as " : "as ") + Join(formats, " or ");
      return Say("reads", "read", fmt::format("{} {} when computing {}", Code(operand), way, Code(value)));
    };
    found.push_back({.a = deed(words), .b = deed(others)});
  }
  if (a_unrounded || b_unrounded) {
    found.insert(found.begin(), {.a = FromUnrounded(value, a), .b = FromUnrounded(value, b)});
  } else if (found.empty() && ReadOtherwise(a, b)) {
    // One by one each may be either, and not all at once.
    found.push_back({.a = FromOneOf(value, a.together), .b = FromOneOf(value, b.together)});
  }
  return found;
}

std::optional<std::string> FindOtherRead(const Classification& a, const Classification& b) {
  for (const std::string& operand : OperandsOf(a, b)) {
    const Words *mine = FindRead(a, b, operand), *other = FindRead(b, a, operand);
    if (mine != nullptr && other != nullptr && Disjoint(*mine, *other)) return operand;
  }
  if (ReadOtherwise(a, b)) return (IsWrittenAmong(a.together) ? b : a).together.front();
  return std::nullopt;
}

}  // namespace ulpscope
