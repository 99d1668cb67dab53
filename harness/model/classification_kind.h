// ClassificationKind: what the classifier concludes about one observed value. One row a kind, and all that contracts, divergences,
// reports, run folders and report.schema.json know of it. A new kind is an enumerator, its row, and the place in the classifier that
// gives it with its label.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

namespace ulpscope {

enum class ClassificationKind {
  kIdentified,
  kIndistinguishable,
  kUnmodelled,
  kExactOnly,
  kNotFloating,
  kNoReference,
  kNotJudged,
  kWrongShape,
  kWrongValue
};

struct ClassificationRow {
  /// kModels: precision models explain the value. kNoModel: none does. kNothing: nothing is known that a contract could be compared
  /// with. kWrong: the program gives another value in any precision, and the value violates whatever a contract demands or accepts.
  enum class Means { kModels, kNoModel, kNothing, kWrong };

  ClassificationKind kind;
  std::string_view word;
  Means means;
  std::string_view about = {};   ///< for report.schema.json; empty where the word is enough
  bool is_measured = true;       ///< elements of such a value were compared with exact ones
  std::string_view cell = {};    ///< in the matrix, $ being the dtype; empty: its models say it
  std::string_view legend = {};  ///< of that cell; empty where it is in every legend
};

inline constexpr std::array kClassificationRows{
    ClassificationRow{.kind = ClassificationKind::kIdentified,
                      .word = "identified",
                      .means = ClassificationRow::Means::kModels},
    ClassificationRow{.kind = ClassificationKind::kIndistinguishable,
                      .word = "indistinguishable",
                      .means = ClassificationRow::Means::kModels},
    ClassificationRow{.kind = ClassificationKind::kUnmodelled,
                      .word = "unmodelled",
                      .means = ClassificationRow::Means::kNoModel,
                      .cell = "unmodelled",
                      .legend = "no candidate model gives these bits"},
    ClassificationRow{.kind = ClassificationKind::kExactOnly,
                      .word = "exact_only",
                      .means = ClassificationRow::Means::kModels,
                      .about = "every model gives these bits",
                      .cell = "$"},
    ClassificationRow{.kind = ClassificationKind::kNotFloating,
                      .word = "not_floating",
                      .means = ClassificationRow::Means::kNothing,
                      .is_measured = false,
                      .cell = "$"},
    ClassificationRow{.kind = ClassificationKind::kNoReference,
                      .word = "no_reference",
                      .means = ClassificationRow::Means::kNothing,
                      .is_measured = false,
                      .cell = "[$]"},
    ClassificationRow{.kind = ClassificationKind::kNotJudged,
                      .word = "not_judged",
                      .means = ClassificationRow::Means::kNothing,
                      .about = "several steps as one: too many models for the work that one value may cost",
                      .cell = "?$"},
    ClassificationRow{.kind = ClassificationKind::kWrongShape,
                      .word = "wrong_shape",
                      .means = ClassificationRow::Means::kWrong,
                      .about = "not the shape that the program has: no element is compared with anything",
                      .is_measured = false,
                      .cell = "shape!",
                      .legend = "not the shape that the program gives"},
    ClassificationRow{
        .kind = ClassificationKind::kWrongValue,
        .word = "wrong_value",
        .means = ClassificationRow::Means::kWrong,
        .about = "whole numbers or truth values, of which no step is rounded, that are not the program's",
        .is_measured = false,
        .cell = "value!",
        .legend = "whole numbers or truth values that the program does not give"},
};

constexpr const ClassificationRow& RowOf(ClassificationKind kind) {
  return kClassificationRows[static_cast<size_t>(kind)];
}

static_assert(std::ranges::all_of(kClassificationRows,
                                  [](const ClassificationRow& row) { return &RowOf(row.kind) == &row; }),
              "the rows stand in the order of their enumerators");

constexpr std::string_view Name(ClassificationKind kind) { return RowOf(kind).word; }

constexpr std::optional<ClassificationKind> ParseClassificationKind(std::string_view word) {
  for (const ClassificationRow& row : kClassificationRows) {
    if (row.word == word) return row.kind;
  }
  return std::nullopt;
}

/// Whether elements of such a value were compared with exact ones.
constexpr bool IsMeasured(ClassificationKind kind) { return RowOf(kind).is_measured; }
/// Precision models explain it.
constexpr bool HasModels(ClassificationKind kind) {
  return RowOf(kind).means == ClassificationRow::Means::kModels;
}
/// Nothing is known that a contract could be held against.
constexpr bool IsUnknown(ClassificationKind kind) {
  return RowOf(kind).means == ClassificationRow::Means::kNothing;
}
/// Not what the program gives in any precision: whatever the contract asks for, or accepts, is violated.
constexpr bool IsWrong(ClassificationKind kind) {
  return RowOf(kind).means == ClassificationRow::Means::kWrong;
}

}  // namespace ulpscope
