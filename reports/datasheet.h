// Datasheets as text and as JSON.
#pragma once

#include <string>

#include "harness/model/datasheet.h"

namespace ulpscope {

/// Lines of a property, what was found, and what it was read by.
std::string WriteDatasheetText(const Datasheet& sheet);
/// reports/datasheet.schema.json says what it holds.
std::string WriteDatasheetJson(const Datasheet& sheet);

}  // namespace ulpscope
