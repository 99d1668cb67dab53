// A stratified sample by an integer hash.
#include "harness/judge/sample.h"

#include <algorithm>

#include "harness/base/hash.h"
#include "harness/judge/rule_numbers.h"

namespace ulpscope {

std::set<int64_t> Spread(int64_t count, int64_t parts) {
  std::set<int64_t> chosen;
  for (int64_t i = 0; i < parts; ++i) {
    const int64_t first = i * count / parts, last = std::max(first + 1, (i + 1) * count / parts);
    const auto within = static_cast<int64_t>(MixBits(static_cast<uint64_t>(first) + kGoldenGamma) %
                                             static_cast<uint64_t>(last - first));
    chosen.insert(i == 0 ? 0 : i + 1 == parts ? count - 1 : first + within);
  }
  return chosen;
}

std::vector<int64_t> ElementsToCheck(const Shape& shape, int64_t most) {
  const int64_t count = ElementCount(shape);
  std::vector<int64_t> elements;
  if (count <= most) {
    for (int64_t i = 0; i < count; ++i) elements.push_back(i);
    return elements;
  }
  const int64_t length = shape.back(), taken = std::min(length, kPieceOfSample * kPiecesOfSample),
                rows = count / length;
  std::set<int64_t> columns;
  if (length == taken) {
    for (int64_t column = 0; column < length; ++column) columns.insert(column);
  } else {
    for (const int64_t piece : Spread(length / kPieceOfSample, kPiecesOfSample)) {
      for (int64_t i = 0; i < kPieceOfSample; ++i) columns.insert(piece * kPieceOfSample + i);
    }
    for (int64_t i = 0; i < kPieceOfSample; ++i) columns.insert(length - 1 - i);
  }
  const auto budget = std::max<int64_t>(1, most / static_cast<int64_t>(columns.size()));
  for (const int64_t row : Spread(rows, std::min(rows, budget))) {
    for (const int64_t column : columns) elements.push_back(row * length + column);
  }
  return elements;
}

}  // namespace ulpscope
