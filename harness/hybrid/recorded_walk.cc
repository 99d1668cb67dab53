// The walks of a recorded run: the results for each prefix of given values.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "harness/base/find.h"
#include "harness/base/text.h"
#include "harness/hybrid/hybrid_runs.h"

namespace ulpscope {

RecordedWalk WalkOf(const RecordedResult& recorded) {
  RecordedWalk walk;
  const Observation& observation = recorded.observation;
  walk.carrier = LookupOr(observation.observations, "carrier", "");
  walk.left_out = LookupOr(observation.observations, "left_out", "");
  std::map<int64_t, std::map<std::string, TensorData>> by_number;
  constexpr std::string_view kStored = "stored/", kRemedy = "remedy/";
  for (const auto& [key, tensor] : observation.values) {
    if (key.starts_with(kRemedy)) {
      const size_t end = key.find('/', kRemedy.size());
      if (end != key.npos)
        walk.remedies[key.substr(kRemedy.size(), end - kRemedy.size())][key.substr(end + 1)] = tensor;
    }
    if (key.starts_with(kStored)) walk.stored[key.substr(kStored.size())] = tensor;
    const size_t slash = key.find('/');
    const auto number = slash == key.npos ? std::nullopt : WholeNumber<int64_t>(key.substr(0, slash));
    if (number) by_number[*number][key.substr(slash + 1)] = tensor;
  }
  for (const auto& [key, step] : observation.observations) {
    if (!key.starts_with("step/")) continue;
    if (const TensorData* again = Lookup(observation.values, "again/" + key.substr(5)))
      walk.again[step] = *again;
  }
  for (auto& [number, values] : by_number) {
    const std::string* step = Lookup(observation.observations, fmt::format("step/{}", number));
    for (auto& [name, tensor] : values) {
      if (number == 0)
        walk.start[name] = std::move(tensor);
      else if (step != nullptr)
        walk.hybrids[name].push_back({.step = *step, .value = std::move(tensor)});
    }
  }
  return walk;
}

}  // namespace ulpscope
