// One self-contained page: findings first, grouped by cause; the failures; the matrix with filters and search; and the
// derivation of every cell that is not green or takes part in a divergence.
//
// The findings and the matrix are plain HTML, readable without scripts; the details of a cell are data
// (reports/html_details.h) that the script (reports/html/page.js) shows. Nothing is fetched: a policy in the page
// forbids it.
#pragma once

#include <string>
#include <string_view>

#include "harness/model/run_report.h"
#include "reports/details.h"

namespace ulpscope {

/// At most two mebibytes, unless the matrix alone is larger; the page states which details are left out.
std::string WriteHtml(const RunReport& report, const ReportDetails& details);

/// Text of others as HTML shows it, in an element or in a quoted attribute.
std::string HtmlText(std::string_view text);
/// A sentence in an element: its names, which stand in backticks, as code.
std::string HtmlSentence(std::string_view sentence);

}  // namespace ulpscope
