// DivergenceKind: in what two backends differ. One row a kind, and all that the judge, the reports, `ulpscope shrink` and
// report.schema.json know of it. A new kind is an enumerator, its row, and the comparison in harness/judge/divergence.cc that finds it.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace ulpscope {

enum class DivergenceKind {
  kOutcome,
  kDtype,
  kPrecision,
  kOrder,
  kBits,
  kValue,
  kSpecial,
  kCarried,
  kCasts,
  kGraphVsExecution
};

struct DivergenceRow {
  DivergenceKind kind;
  std::string_view word;
  std::string_view about = {};  ///< for report.schema.json; empty where the word is enough
  bool is_of_values = true;     ///< it states that values differ, and accounts for their other bits
  bool has_two_groups = true;   ///< of backends; else one
  bool separates_classes =
      true;  ///< reports list it among their findings; of the others they count how many there are
  bool comes_first = false;          ///< the weight in a ledger does not matter
  bool is_of_step = false;           ///< where no entry of a ledger has a share of it, it changes nothing
  bool explains_entry = false;       ///< it is a cause of an entry of a ledger
  bool is_order_only = false;        ///< both sides have one precision model, and `Divergence::bound` holds
  bool can_be_shrunk = true;         ///< `ulpscope shrink` takes it
  bool compares_both_sides = false;  ///< while shrinking, each side keeps what it gave
};

inline constexpr std::array kDivergenceRows{
    DivergenceRow{.kind = DivergenceKind::kOutcome,
                  .word = "outcome",
                  .is_of_values = false,
                  .comes_first = true,
                  .compares_both_sides = true},
    DivergenceRow{
        .kind = DivergenceKind::kDtype, .word = "dtype", .comes_first = true, .compares_both_sides = true},
    DivergenceRow{
        .kind = DivergenceKind::kPrecision, .word = "precision", .is_of_step = true, .explains_entry = true},
    DivergenceRow{.kind = DivergenceKind::kOrder,
                  .word = "order",
                  .about = "sums that one precision model holds on both sides",
                  .separates_classes = false,
                  .is_of_step = true,
                  .explains_entry = true,
                  .is_order_only = true},
    DivergenceRow{.kind = DivergenceKind::kBits,
                  .word = "bits",
                  .about = "one precision model holds both sides",
                  .separates_classes = false,
                  .is_of_step = true,
                  .explains_entry = true,
                  .is_order_only = true},
    DivergenceRow{
        .kind = DivergenceKind::kValue, .word = "value", .about = "no cause is known", .is_of_step = true},
    DivergenceRow{.kind = DivergenceKind::kSpecial, .word = "special"},
    DivergenceRow{.kind = DivergenceKind::kCarried,
                  .word = "carried",
                  .about = "an observed value differs because what it is computed from does",
                  .separates_classes = false,
                  .can_be_shrunk = false},
    DivergenceRow{
        .kind = DivergenceKind::kCasts, .word = "casts", .is_of_values = false, .separates_classes = false},
    DivergenceRow{.kind = DivergenceKind::kGraphVsExecution,
                  .word = "graph_vs_execution",
                  .is_of_values = false,
                  .has_two_groups = false,
                  .can_be_shrunk = false},
};

constexpr const DivergenceRow& RowOf(DivergenceKind kind) {
  return kDivergenceRows[static_cast<size_t>(kind)];
}

static_assert(std::ranges::all_of(kDivergenceRows,
                                  [](const DivergenceRow& row) { return &RowOf(row.kind) == &row; }),
              "the rows stand in the order of their enumerators");

constexpr std::string_view Name(DivergenceKind kind) { return RowOf(kind).word; }

constexpr std::optional<DivergenceKind> ParseDivergenceKind(std::string_view word) {
  for (const DivergenceRow& row : kDivergenceRows) {
    if (row.word == word) return row.kind;
  }
  return std::nullopt;
}

}  // namespace ulpscope
