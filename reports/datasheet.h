// Datasheets as text, as JSON and as a row of a table.
#pragma once

#include <string>
#include <vector>

#include "harness/model/datasheet.h"

namespace ulpscope {

/// Lines of a property, what was found, and what it was read by.
std::string WriteDatasheetText(const Datasheet& sheet);
/// reports/datasheet.schema.json says what it holds.
std::string WriteDatasheetJson(const Datasheet& sheet);
/// A Markdown table, a row for each datasheet.
std::string WriteDatasheetTable(const std::vector<Datasheet>& sheets);

}  // namespace ulpscope
