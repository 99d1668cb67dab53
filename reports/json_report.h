// report.json: the lossless report, schema "ulpscope.report/1" (reports/report.schema.json). It only ever
// grows.
#pragma once

#include <string>

#include "harness/model/run_report.h"

namespace ulpscope {

/// UTF-8, two-space indentation, a stable order of keys, a newline at the end. Non-finite numbers are "inf",
/// "-inf", "nan". Everything that differs between two equal runs stands in the object `volatile`.
std::string WriteJson(const RunReport& report);

}  // namespace ulpscope
