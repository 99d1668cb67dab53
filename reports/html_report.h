// One self-contained page: findings first, grouped by cause; what failed; the matrix with filters and search; and for every cell
// that is not green, or that takes part in a divergence, what it was derived from.
//
// The findings and the matrix are plain HTML, which a reader without scripts has too; what a cell opens is data
// (reports/html_details.h) that the script (reports/html/page.js) shows. Nothing is fetched: a policy in the page forbids it.
#pragma once

#include <string>
#include <string_view>

#include "harness/model/run_report.h"
#include "reports/details.h"

namespace ulpscope {

/// At most two mebibytes, as long as the matrix alone fits: what is left out of the details then is said.
std::string WriteHtml(const RunReport& report, const ReportDetails& details);

/// Text of others as HTML shows it, in an element or in a quoted attribute.
std::string HtmlText(std::string_view text);
/// A sentence in an element: its names, which stand in backticks, as code.
std::string HtmlSentence(std::string_view sentence);

}  // namespace ulpscope
