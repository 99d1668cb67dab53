// report.json, schema "ulpscope.report/3" (reports/report.schema.json). Within a version it only grows. The run folder
// holds the rest: every exclusion, and the models of lists that are too long to read.
#pragma once

#include <string>

#include "harness/model/ledger.h"
#include "harness/model/run_report.h"

namespace ulpscope {

/// UTF-8, one line for each result, model, exclusion, divergence and knob, a stable order of keys, a newline at the
/// end. Non-finite numbers are "inf", "-inf", "nan". Everything that differs between two equal runs is in the object
/// `volatile`. Models and exclusions are indices into the tables `models` and `exclusions`.
std::string WriteJson(const RunReport& report);
/// One entry of its `ledgers`.
std::string WriteLedgerJson(const Ledger& ledger);

}  // namespace ulpscope
