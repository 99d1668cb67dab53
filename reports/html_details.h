// The details behind the cells of the page, as JSON. Cells refer to texts by index in one table, since graphs, reasons
// and labels of many cells are the same.
//
//   {"texts":  ["torch-eager", ...],
//    "cases":  [[id, about, tensors, [step, ...]], ...],
//    "finds":  [[kind, basis, subject, value, sentence], ...],
//    "cells":  [[case, backend, status, reason, outcome, repro, [VALUE, ...], [proof, rival], [[knob, asked, effective], ...],
//                [finding, ...], [note, ...], 0 or [trace line, ...], [ERRORS, ...]], ...]}
//   VALUE      [name, dtype and shape, cell, label, largest error, contract, [phrase, ...]]
//   ERRORS     [name, elements, elements that were looked at, codes, the largest finite error in ulp]
//
// `case` and `finding` are indices into their lists; every other entry that is no list is an index into `texts`. In
// `repro` U+E000 replaces the id and U+E001 the backend, so one text serves all cells. `codes` has two characters for
// each bar of the plot, its lowest and its highest error, on the scale of html_details.cc; "~" for an error that is not
// finite.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "harness/model/run_report.h"
#include "reports/details.h"

namespace ulpscope {

struct HtmlDetails {
  std::string json;                                             ///< safe inside a script element
  std::map<std::pair<std::string, std::string>, size_t> cells;  ///< (case, backend) -> its place
  size_t wanted = 0;   ///< cells that are not green or take part in a divergence
  size_t without = 0;  ///< of `cells`, those without trace and plot
};

/// Failing cells first, then those of divergences of class, then the others; as many as fit into `bytes`, and then as many traces
/// and plots as do.
HtmlDetails CollectHtmlDetails(const RunReport& report, const ReportDetails& details, size_t bytes);

/// The cells that get details as far as there is room, in this order.
std::vector<const CaseResult*> CellsWithDetails(const RunReport& report);

}  // namespace ulpscope
