// The table that the benches fill and the gates that they must keep.
#pragma once

#include <string>
#include <vector>

namespace ulpscope::bench {

/// Whether a row's gate is the most that its figure may be (ratios, shares) or the least (speed-ups).
enum class Sense { kAtMost, kAtLeast };

struct Row {
  std::string what, size;
  int threads = 1;
  double figure = 0;
  double gate = 0, aim = 0;
  Sense sense = Sense::kAtMost;
  std::string note;

  bool Kept() const { return sense == Sense::kAtMost ? figure <= gate : figure >= gate; }
  bool AimReached() const { return sense == Sense::kAtMost ? figure <= aim : figure >= aim; }
};

class Table {
 public:
  static Table& Instance();
  void Add(Row row) { rows_.push_back(std::move(row)); }
  /// Prints all rows; returns how many gates fell.
  int Print() const;
  size_t size() const { return rows_.size(); }

 private:
  std::vector<Row> rows_;
};

}  // namespace ulpscope::bench
