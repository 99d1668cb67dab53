// Names of the kinds, and remarks as texts.
#include "harness/model/remark.h"

#include <algorithm>
#include <array>

#include "harness/base/text.h"

namespace ulpscope {
namespace {

constexpr std::array<std::string_view, 18> kRemarkNames{
    "change", "factor",       "bits",      "errors",         "neighbours",   "places",
    "lost",   "order",        "rejected",  "share",          "auxiliary",    "too_many_models",
    "wrong",  "no_reference", "undecided", "signs_of_zeros", "models_tried", "of_earlier_record"};

}  // namespace

std::string_view Name(RemarkKind kind) { return kRemarkNames[static_cast<size_t>(kind)]; }

std::optional<RemarkKind> ParseRemarkKind(std::string_view name) {
  const auto found = std::ranges::find(kRemarkNames, name);
  if (found == kRemarkNames.end()) return std::nullopt;
  return static_cast<RemarkKind>(found - kRemarkNames.begin());
}

std::vector<std::string> TextsOf(const std::vector<Remark>& remarks) {
  std::vector<std::string> texts;
  for (const Remark& remark : remarks) texts.push_back(remark.text);
  return texts;
}

std::string JoinTexts(const std::vector<Remark>& remarks) { return Join(TextsOf(remarks), "; "); }

}  // namespace ulpscope
