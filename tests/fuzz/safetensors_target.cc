// The safetensors reader on any bytes: a file that it accepts holds exactly what its header describes, and
// survives being written again.
#include <span>

#include "backends/sdk/safetensors.h"
#include "tests/fuzz/targets.h"

namespace ulpscope::fuzz {

Reached Safetensors(std::string_view input) {
  const auto bytes = std::as_bytes(std::span(input));
  const auto tensors = sdk::ParseSafetensors(bytes, "fuzz");
  if (!tensors) {
    Demand(!tensors.error().Text().empty(), "an error has a text");
    return Reached::kRefused;
  }
  size_t total = 0;
  for (const auto& [name, tensor] : *tensors) {
    total += tensor.bytes.size();
  }
  Plant(!tensors->empty() && IsPlantedLength(input.size()));
  Demand(total <= bytes.size(), "tensors hold no more than the file");
  const auto again = sdk::ParseSafetensors(sdk::FormatSafetensors(*tensors), "again");
  Demand(again && *again == *tensors, "what was read can be written and read");
  return Reached::kAccepted;
}

}  // namespace ulpscope::fuzz
