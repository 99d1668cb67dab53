// Reads {"nodes": [...], "casts": [...]}, as an adapter answers, and prints for each cast whether the harness
// finds that it changes no value: tests of adapters check that the trace suffices for that.
#include <iostream>
#include <nlohmann/json.hpp>

#include "harness/model/redundant_casts.h"
#include "harness/record/observation_json.h"

int main() {
  using namespace ulpscope;
  const auto answer = nlohmann::json::parse(std::cin);
  std::string error;
  const std::vector<TraceNode> nodes = TraceFromJson(&answer.at("nodes"), error);
  std::vector<Cast> casts = CastsFromJson(&answer.at("casts"), error);
  MarkRedundantCasts(nodes, &casts);
  nlohmann::json flags = nlohmann::json::array();
  for (const Cast& cast : casts) flags.push_back(cast.redundant);
  std::cout << (error.empty() ? flags.dump() : error) << "\n";
  return error.empty() ? 0 : 1;
}
