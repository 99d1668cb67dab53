// Datasheets as text and as JSON.
#pragma once

#include <string>

#include "harness/model/datasheet.h"

namespace ulpscope {

/// Lines of a property, its finding, and the probe behind it.
std::string WriteDatasheetText(const Datasheet& sheet);
/// The format is reports/datasheet.schema.json.
std::string WriteDatasheetJson(const Datasheet& sheet);

}  // namespace ulpscope
