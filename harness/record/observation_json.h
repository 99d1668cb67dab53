// Observation, Case program and friends as JSON, both ways: the words of the journal and of the wire.
#pragma once

#include <nlohmann/json.hpp>

#include "harness/base/result.h"
#include "harness/model/case.h"
#include "harness/model/observation.h"

namespace ulpscope {

/// Everything but the tensors' data, which goes to a file of its own. Numbers that JSON cannot say are the strings "inf",
/// "-inf", "nan".
nlohmann::json ToJson(const Observation& observation);
/// The inverse; `values` stays empty.
Result<Observation> ObservationFromJson(const nlohmann::json& json);

nlohmann::json ToJson(const Attr& attr);

/// The "program" object of a run message: tensors, steps, observe. `device` replaces `auto` (and nothing) in autocast.
nlohmann::json ProgramToJson(const Case& test_case, const std::string& device);

/// Eight hex digits that change whenever anything that is computed changes (program, tensors, fills, knobs, observe).
std::string CaseDigest(const Case& test_case);

/// A line of at most `max_depth` nested brackets, valid UTF-8, one JSON value.
Result<nlohmann::json> ParseStrictJson(std::string_view text, int max_depth);

/// Text from outside as valid UTF-8 of at most `limit` bytes, so that JSON can carry it.
std::string CleanText(std::string_view text, size_t limit);

}  // namespace ulpscope
