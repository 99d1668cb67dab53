// Remedies: settings that are known to make a backend compute as the program is written. A remedy is reported
// only if it was tried on the program at hand, with its effect there.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ulpscope {

struct RemedyRow {
  std::string_view knob, value;
  std::string_view op;      ///< only of programs that hold this op; empty: of any
  std::string_view source;  ///< where its makers say what it does
};

std::span<const RemedyRow> RemedyRows();

/// Those that `backend` takes on `device`, of a program with `ops`.
std::vector<RemedyRow> RemediesFor(std::string_view backend, std::string_view device,
                                   const std::vector<std::string>& ops);

}  // namespace ulpscope
