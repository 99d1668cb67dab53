// Layout of the table of knobs.
#include "reports/knobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "harness/base/text.h"
#include "reports/text_safe.h"

namespace ulpscope {
namespace {

using Effect = KnobEffect::Effect;
using ReadBack = KnobEffect::ReadBack;

std::string At(const KnobEffect& effect) {
  return effect.what.empty() ? "" : fmt::format("; {}: {}", effect.first_case, effect.what);
}

std::string Padded(const std::string& text, size_t to) {
  const size_t width = DisplayWidth(text);
  return text + std::string(to > width ? to - width : 0, ' ');
}

}  // namespace

std::string KnobSentence(const KnobEffect& effect) {
  switch (effect.effect) {
    case Effect::kActs:
      return fmt::format("acts in {} of {}{}", effect.acted, Counted(effect.compared, "case"), At(effect));
    case Effect::kTraceOnly:
      return fmt::format("no value changes, what the graph says does in {} of {}{}", effect.acted,
                         Counted(effect.compared, "case"), At(effect));
    case Effect::kNoEffect:
      return fmt::format("accepted, no effect seen in {}", Counted(effect.compared, "case"));
    case Effect::kAsWithout:
      return fmt::format("is what stands without it; no effect in {}", Counted(effect.compared, "case"));
    case Effect::kRefused:
      return fmt::format("refused: {}", effect.what);
    case Effect::kNotCompared:
      return effect.what.empty() ? "nothing to compare with"
                                 : fmt::format("nothing to compare: {}", effect.what);
  }
  return "";
}

std::string KnobReadBack(const KnobEffect& effect) {
  switch (effect.read_back) {
    case ReadBack::kNotRead:
      return effect.effect == Effect::kRefused ? "-" : "not read back";
    case ReadBack::kDiffers:
      return Join(effect.effective, ", ") + " (differs)";
    case ReadBack::kAsAsked:
      return Join(effect.effective, ", ");
  }
  return "";
}

std::string WriteKnobTable(const RunReport& report, size_t columns) {
  if (report.knobs.empty()) return "";
  constexpr size_t kGap = 2;
  constexpr size_t kWidestColumn = 34;
  std::array<size_t, 3> widths{5, 5, 9};  // the heads
  std::vector<std::array<std::string, 3>> cells;
  for (const KnobEffect& effect : report.knobs) {
    cells.push_back(
        {TerminalSafe("  " + effect.knob), TerminalSafe(effect.asked), TerminalSafe(KnobReadBack(effect))});
    for (size_t i = 0; i < widths.size(); ++i)
      widths[i] = std::min(kWidestColumn, std::max(widths[i], DisplayWidth(cells.back()[i])));
  }
  const auto line = [&](const std::array<std::string, 3>& row) {
    std::string text;
    for (size_t i = 0; i < widths.size(); ++i) text += Padded(row[i], widths[i]) + std::string(kGap, ' ');
    return text;
  };
  std::string text = line({"knobs", "asked", "read back"}) + "effect\n";
  std::string backend;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (report.knobs[i].backend != backend) {
      backend = report.knobs[i].backend;
      text += TerminalSafe(backend) + "\n";
    }
    text += Wrap(line(cells[i]), TerminalSafe(KnobSentence(report.knobs[i])), columns);
  }
  return text + "\n";
}

}  // namespace ulpscope
