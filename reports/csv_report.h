// report.csv: one row for each observed value of each result, for spreadsheets and data frames.
//
// RFC 4180, with a line feed at the end of a row. External texts are one line, and never a formula: a spreadsheet
// executes text that begins with =, +, - or @, so such a text gets an apostrophe in front ("'=f32").
#pragma once

#include <string>
#include <string_view>

#include "harness/model/run_report.h"

namespace ulpscope {

/// A result without values has one row, whose value columns are empty.
std::string WriteCsv(const RunReport& report);

/// One field, quoted if necessary.
std::string CsvField(std::string_view text);

}  // namespace ulpscope
