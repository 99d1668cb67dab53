// Casts and nodes as JSON.
#include "backends/sdk/trace_json.h"

#include <utility>

namespace ulpscope::sdk {
namespace {

// A trace may have thousands of nodes, and a library of C++ runs a small case in a tenth of a millisecond:
// nodes are moved into place, where lists in braces would copy each of them twice.
Json TensorsToJson(const std::vector<TraceTensor>& tensors) {
  Json::array_t list;
  list.reserve(tensors.size());
  for (const TraceTensor& tensor : tensors) {
    Json::array_t pair;
    pair.reserve(2);
    pair.emplace_back(tensor.dtype);
    pair.emplace_back(tensor.shape);
    list.emplace_back(std::move(pair));
  }
  return list;
}

}  // namespace

Json ToJson(const Cast& cast) {
  Json json{{"from", cast.from},   {"to", cast.to},       {"shape", cast.shape}, {"bytes", cast.bytes},
            {"under", cast.under}, {"stage", cast.stage}, {"node", cast.node}};
  if (cast.us) json["us"] = FloatToJson(*cast.us);
  return json;
}

Json ToJson(const TraceNode& node) {
  Json::object_t json;
  json.emplace("from", node.from);
  json.emplace("id", node.id);
  json.emplace("inputs", TensorsToJson(node.inputs));
  if (node.kind != TraceKind::kCompute) json.emplace("kind", Name(node.kind));
  json.emplace("op", node.op);
  json.emplace("outputs", TensorsToJson(node.outputs));
  json.emplace("parent", node.parent);
  json.emplace("stage", node.stage);
  if (node.us) json.emplace("us", FloatToJson(*node.us));
  return json;
}

}  // namespace ulpscope::sdk
