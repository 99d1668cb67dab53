// A classification as JSON, both ways.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "harness/model/classification.h"

namespace ulpscope {

nlohmann::json ClassificationToJson(const Classification& classification);
/// `error` keeps the first problem.
Classification ClassificationFromJson(const nlohmann::json& object, std::string& error);

}  // namespace ulpscope
