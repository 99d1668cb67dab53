// Program: decoding and checking.
#include "backends/sdk/program.h"

#include <set>
#include <utility>

namespace ulpscope::sdk {
namespace {

constexpr int64_t kMaxElements = int64_t{1} << 40;

Result<std::string> Text(const Json& object, const char* key, const char* where) {
  const auto found = object.find(key);
  if (found == object.end()) return std::string();
  if (!found->is_string()) return Fail(std::string(where) + ": '" + key + "' is no text");
  return found->get<std::string>();
}

Result<std::vector<int64_t>> Counts(const Json& value, const std::string& what) {
  if (!value.is_array()) return Fail(what + " is no list");
  std::vector<int64_t> counts;
  for (const Json& item : value) {
    if (!item.is_number_integer() ||
        (item.is_number_unsigned() && item.get<uint64_t>() > uint64_t{1} << 62)) {
      return Fail(what + " holds " + item.dump() + ", not an integer");
    }
    counts.push_back(item.get<int64_t>());
  }
  return counts;
}

Result<void> CheckShape(const Shape& shape, const std::string& what) {
  int64_t elements = 1;
  for (const int64_t extent : shape) {
    if (extent < 0) return Fail(what + " has a negative extent");
    if (extent != 0 && elements > kMaxElements / extent) return Fail(what + " has too many elements");
    elements *= extent;
  }
  return {};
}

Result<ProgramTensor> ParseTensor(const Json& value) {
  if (!value.is_object()) return Fail("a tensor of the program is no object");
  ProgramTensor tensor;
  tensor.name = ULPSCOPE_TRY(Text(value, "name", "tensor"));
  const std::string dtype = ULPSCOPE_TRY(Text(value, "dtype", "tensor"));
  if (tensor.name.empty()) return Fail("a tensor of the program has no name");
  const std::string what = "tensor " + tensor.name;
  const std::optional<DType> parsed = ParseDType(dtype);
  if (!parsed) return Fail(what + ": unknown dtype '" + dtype + "'");
  tensor.dtype = *parsed;
  tensor.shape = ULPSCOPE_TRY(Counts(value.value("shape", Json()), what + ": shape"));
  ULPSCOPE_TRY(CheckShape(tensor.shape, what));
  if (value.contains("strides")) {
    tensor.strides = ULPSCOPE_TRY(Counts(value["strides"], what + ": strides"));
    if (!tensor.strides.empty() && tensor.strides.size() != tensor.shape.size())
      return Fail(what + ": strides and shape differ in length");
    for (const int64_t stride : tensor.strides) {
      if (stride < 0 || stride > kMaxElements) return Fail(what + ": stride out of range");
    }
  }
  if (value.contains("requires_grad")) {
    if (!value["requires_grad"].is_boolean()) return Fail(what + ": requires_grad is no boolean");
    tensor.requires_grad = value["requires_grad"].get<bool>();
  }
  return tensor;
}

Attr ToAttr(const Json& json) {
  if (json.is_boolean()) return {.value = json.get<bool>()};
  if (json.is_number_integer()) return {.value = json.get<int64_t>()};
  if (json.is_number()) return {.value = json.get<double>()};
  if (json.is_string()) return {.value = json.get<std::string>()};
  if (json.is_array()) {
    Attr::List list;
    for (const Json& entry : json) list.push_back(ToAttr(entry));
    return {.value = std::move(list)};
  }
  if (!json.is_object()) return {};
  Attr::Map map;
  for (const auto& [key, entry] : json.items()) map.emplace(key, ToAttr(entry));
  return {.value = std::move(map)};
}

/// Decodes steps and follows which names exist. A scope's names stay visible after it, as in Python.
class StepParser {
 public:
  explicit StepParser(std::set<std::string> names) : names_(std::move(names)) {}

  Result<std::vector<Step>> ParseAll(const Json& value) {
    if (!value.is_array()) return Fail("steps are no list");
    std::vector<Step> steps;
    for (const Json& item : value) {
      Step step = ULPSCOPE_TRY(ParseStep(item));
      steps.push_back(std::move(step));
    }
    return steps;
  }

  const std::set<std::string>& names() const { return names_; }

 private:
  Result<Operand> ParseOperand(const Json& json, const std::string& op) const {
    if (json.is_string()) {
      if (!names_.contains(json.get<std::string>())) {
        return Fail("step " + op + ": operand '" + json.get<std::string>() +
                    "' names nothing made before it");
      }
      return Operand{.name = json.get<std::string>()};
    }
    if (json.is_object() && json.size() == 1 && json.contains("scalar")) {
      const Json& scalar = json["scalar"];
      const Attr value = ToAttr(scalar);
      if (scalar.is_boolean() || scalar.is_number_integer()) return Operand{.scalar = value};
      if (const auto number = value.Number()) return Operand{.scalar = Attr{.value = *number}};
    }
    return Fail("step " + op + ": an operand is neither a name nor {\"scalar\": number}");
  }

  Result<Step> ParseStep(const Json& value) {
    if (!value.is_object()) return Fail("a step is no object");
    Step step;
    for (const auto& [key, target] : {std::pair{"op", &step.op}, {"out", &step.out}, {"as", &step.as}}) {
      *target = ULPSCOPE_TRY(Text(value, key, "step"));
    }
    if (step.op.empty()) return Fail("a step has no op");
    const Json operands = value.value("of", Json::array());
    if (!operands.is_array()) return Fail("step " + step.op + ": 'of' is no list");
    for (const Json& item : operands) {
      Operand operand = ULPSCOPE_TRY(ParseOperand(item, step.op));
      step.of.push_back(std::move(operand));
    }
    if (!step.out.empty() && !names_.contains(step.out)) {
      return Fail("step " + step.op + ": out '" + step.out + "' names nothing made before it");
    }
    const Json attrs = value.value("attrs", Json::object());
    if (!attrs.is_object()) return Fail("step " + step.op + ": attrs are no object");
    for (const auto& [key, attr] : attrs.items()) step.attrs.emplace(key, ToAttr(attr));
    if (value.contains("steps")) {
      step.steps = ULPSCOPE_TRY(ParseAll(value["steps"]));
    }
    if (!step.as.empty()) names_.insert(step.as);
    return step;
  }

  std::set<std::string> names_;
};

}  // namespace

Json ToJson(const Attr& attr) {
  struct Visitor {
    Json operator()(std::monostate) const { return nullptr; }
    Json operator()(bool value) const { return value; }
    Json operator()(int64_t value) const { return value; }
    Json operator()(double value) const { return FloatToJson(value); }
    Json operator()(const std::string& value) const { return value; }
    Json operator()(const Attr::List& list) const {
      Json array = Json::array();
      for (const auto& entry : list) array.push_back(ToJson(entry));
      return array;
    }
    Json operator()(const Attr::Map& map) const {
      Json object = Json::object();
      for (const auto& [name, entry] : map) object[name] = ToJson(entry);
      return object;
    }
  };
  return std::visit(Visitor{}, attr.value);
}

Json ToJson(const Step& step) {
  Json of = Json::array(), attrs = Json::object();
  for (const Operand& operand : step.of)
    of.push_back(operand.IsScalar() ? Json{{"scalar", ToJson(*operand.scalar)}} : Json(operand.name));
  for (const auto& [name, attr] : step.attrs) attrs[name] = ToJson(attr);
  Json json{{"op", step.op}, {"of", of}, {"out", step.out}, {"as", step.as}, {"attrs", attrs}};
  if (!IsScope(step.op)) return json;
  json["steps"] = Json::array();
  for (const Step& inner : step.steps) json["steps"].push_back(ToJson(inner));
  return json;
}

ObservedName SplitObserved(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {.value = std::string(name)};
  return {.value = std::string(name.substr(0, dot)), .property = std::string(name.substr(dot + 1))};
}

Result<Program> ParseProgram(const Json& value) {
  if (!value.is_object()) return Fail("the program is no object");
  Program program;
  const Json tensors = value.value("tensors", Json::array());
  if (!tensors.is_array()) return Fail("the program's tensors are no list");
  std::set<std::string> names;
  for (const Json& item : tensors) {
    ProgramTensor tensor = ULPSCOPE_TRY(ParseTensor(item));
    if (!names.insert(tensor.name).second)
      return Fail("two tensors of the program are named '" + tensor.name + "'");
    program.tensors.push_back(std::move(tensor));
  }
  StepParser parser(std::move(names));
  program.steps = ULPSCOPE_TRY(parser.ParseAll(value.value("steps", Json::array())));
  const Json observe = value.value("observe", Json::array());
  if (!observe.is_array()) return Fail("the program's observe is no list");
  for (const Json& item : observe) {
    if (!item.is_string()) return Fail("an observed name is no text");
    program.observe.push_back(item.get<std::string>());
  }
  return program;
}

}  // namespace ulpscope::sdk
