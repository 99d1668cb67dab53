// The casts of two traces, stage by stage.
#pragma once

#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "harness/model/run_report.h"

namespace ulpscope {

/// In the order of the trace.
std::vector<Cast> CastsOf(const CaseResult& result, const std::string& stage);

/// The casts of a stage as (from, to, shape), with their multiplicity.
using CastKeys = std::multiset<std::tuple<std::string, std::string, Shape>>;
CastKeys CastKeysOf(const CaseResult& result, const std::string& stage);

/// The first stage of both traces, for the same part of the program, whose casts differ; empty if there is none.
std::string StageThatDiffers(const CaseResult& a, const CaseResult& b);

}  // namespace ulpscope
