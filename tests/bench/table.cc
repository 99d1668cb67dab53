// Prints the table of the benches.
#include "tests/bench/table.h"

#include <cstdio>

namespace ulpscope::bench {

Table& Table::Instance() {
  static Table table;
  return table;
}

int Table::Print() const {
  int fallen = 0;
  std::printf("\n%-44s %-12s %7s %10s %10s %10s  %s\n", "what", "size", "threads", "figure", "gate", "aim",
              "");
  for (const Row& row : rows_) {
    const char* verdict = row.Kept() ? (row.AimReached() ? "aim reached" : "gate kept") : "GATE FELL";
    fallen += row.Kept() ? 0 : 1;
    std::printf("%-44s %-12s %7d %10.4g %10.4g %10.4g  %s%s%s\n", row.what.c_str(), row.size.c_str(),
                row.threads, row.figure, row.gate, row.aim, verdict, row.note.empty() ? "" : "; ",
                row.note.c_str());
  }
  std::printf("%zu figures, %d gates fell\n", rows_.size(), fallen);
  return fallen;
}

}  // namespace ulpscope::bench
