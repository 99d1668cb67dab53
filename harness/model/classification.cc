// Spelling of precision models.
#include "harness/model/classification.h"

#include <array>

namespace ulpscope {
namespace {

std::string Spell(const std::map<std::string, std::string>& entries, std::string_view nothing) {
  if (entries.empty()) return std::string(nothing);
  std::string text;
  for (const auto& [name, word] : entries) {
    if (!text.empty()) text += ",";
    text += name + ":" + word;
  }
  return text;
}

}  // namespace

std::string PrecisionModel::Name() const {
  std::string name =
      "in=" + Spell(in, "as_is") + ";prod=" + prod + ";acc=" + acc + ";mid=" + mid + ";out=" + out;
  if (!cuts.empty()) name += ";cuts=" + Spell(cuts, "none");
  return name;
}

std::string_view Name(ClassificationKind kind) {
  static constexpr std::array<std::string_view, 9> kNames{"identified", "indistinguishable", "unmodelled",
                                                          "exact_only", "not_floating",      "no_reference",
                                                          "not_judged", "wrong_shape",       "wrong_value"};
  return kNames[static_cast<size_t>(kind)];
}

bool IsMeasured(ClassificationKind kind) {
  using enum ClassificationKind;
  return kind != kNoReference && kind != kNotFloating && !IsWrong(kind);
}

bool IsWrong(ClassificationKind kind) {
  return kind == ClassificationKind::kWrongShape || kind == ClassificationKind::kWrongValue;
}

}  // namespace ulpscope
