// Knobs set, read back and tested: the table below the matrix, and the phrases that JSON shows too.
#pragma once

#include <string>

#include "harness/model/run_report.h"

namespace ulpscope {

/// "acts in 2 of 3 cases; knobs/gemm/bf16: bits of product: 2 of 4096, at most 1 ulp": the last column.
std::string KnobSentence(const KnobEffect& effect);

/// The value that was read back: "off", "on, not off as asked", "not read back".
std::string KnobReadBack(const KnobEffect& effect);

/// Rows requested | read back | effect, by backend, wrapped to `columns`; empty without a knob in the run.
std::string WriteKnobTable(const RunReport& report, size_t columns);

}  // namespace ulpscope
