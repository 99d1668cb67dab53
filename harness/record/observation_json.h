// Observation, Case program and friends as JSON, both ways: the words of the journal and of the wire.
#pragma once

#include <string>
#include <string_view>

#include "backends/sdk/wire.h"
#include "harness/base/result.h"
#include "harness/model/case.h"
#include "harness/model/observation.h"

namespace ulpscope {

/// Everything but the tensors' data and the trace, which go to files of their own. Numbers that JSON cannot
/// express are the strings "inf", "-inf" and "nan".
nlohmann::json ToJson(const Observation& observation);
/// The inverse; `values` and `trace` stay empty.
Result<Observation> ObservationFromJson(const nlohmann::json& json);

/// Parts of it that the wire spells the same way. The first problem is left in `error`; null or missing counts as
/// empty.
std::optional<FpEnvironment> FpFromJson(const nlohmann::json* value, std::string& error);
std::vector<Cast> CastsFromJson(const nlohmann::json* value, std::string& error);
nlohmann::json TraceToJson(const std::vector<TraceNode>& trace);
std::vector<TraceNode> TraceFromJson(const nlohmann::json* value, std::string& error);
Outcome OutcomeFromJson(const nlohmann::json* value, std::string& error);

/// The "program" object of a run message: tensors, steps, observe. `device` replaces `auto` (and nothing) in
/// autocast.
nlohmann::json ProgramToJson(const Case& test_case, const std::string& device);

/// Eight hex digits that change whenever anything that is computed changes (program, tensors, fills, knobs,
/// observe).
std::string CaseDigest(const Case& test_case);

/// Text from outside as valid UTF-8 of at most `limit` bytes, so that JSON can carry it.
std::string CleanText(std::string_view text, size_t limit);

}  // namespace ulpscope
