// Attributes and names of steps.
#include "harness/words/program.h"

#include <cctype>
#include <limits>

#include "harness/base/find.h"
#include "harness/words/ops.h"

namespace ulpscope {
namespace {

tl::unexpected<Error> AttrError(const Step& step, const std::string& key, const std::string& what) {
  return Fail("step " + step.op + ": attribute '" + key + "' " + what);
}

/// The attribute as a T; `otherwise` where it is absent.
template <typename T>
Result<T> Read(const Step& step, const std::string& key, const std::string& what,
               std::optional<T> otherwise) {
  const Attr* attr = step.Find(key);
  if (attr == nullptr && otherwise) return *std::move(otherwise);
  if (attr == nullptr) return AttrError(step, key, "is missing");
  if (const T* value = attr->If<T>()) return *value;
  return AttrError(step, key, "is no " + what);
}

void Collect(const std::vector<Step>& steps, StepNames* names) {
  const auto read = [&](const std::string& name) {
    if (!name.empty() && !names->made.contains(name)) names->read.insert(name);
  };
  const auto read_attr = [&](const Attr& attr) {
    if (const auto* text = attr.If<std::string>()) read(*text);
  };
  for (const Step& step : steps) {
    for (const Operand& operand : step.of) read(operand.name);
    read(step.out);
    for (const auto& [key, attr] : step.attrs) {
      read_attr(attr);
      if (const auto* list = attr.If<Attr::List>()) {
        for (const Attr& item : *list) read_attr(item);
      }
    }
    Collect(step.steps, names);
    if (!step.as.empty() && step.op != "empty") names->made.insert(step.as);
  }
}

}  // namespace

std::optional<double> Attr::Number() const {
  if (const auto* integer = If<int64_t>()) return static_cast<double>(*integer);
  if (const auto* number = If<double>()) return *number;
  const auto* word = If<std::string>();
  if (word == nullptr) return std::nullopt;
  if (*word == "inf") return std::numeric_limits<double>::infinity();
  if (*word == "-inf") return -std::numeric_limits<double>::infinity();
  if (*word == "nan") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

const Attr* Step::Find(const std::string& key) const {
  const auto found = attrs.find(key);
  return found == attrs.end() || found->second.IsNull() ? nullptr : &found->second;
}

std::string StepOrigin::Text() const {
  if (file.empty()) return module;
  const std::string place = file.substr(file.rfind('/') + 1) + ":" + std::to_string(line);
  return module.empty() ? place : module + ", " + place;
}

StepOrigin StepOrigin::OfAnyLayer() const {
  StepOrigin masked = *this;
  masked.module.clear();
  bool begins = true, in_number = false;
  for (size_t i = 0; i < module.size(); ++i) {
    const bool digit = std::isdigit(static_cast<unsigned char>(module[i])) != 0;
    if (digit && (begins || in_number)) {
      if (!in_number) masked.module += '*';
      in_number = true;
    } else {
      masked.module += module[i];
      in_number = false;
    }
    begins = module[i] == '.';
  }
  return masked;
}

namespace {

void GatherOrigins(const std::vector<Step>& steps, std::map<std::string, SourceStep>* placed) {
  for (const Step& step : steps) {
    if (!step.as.empty() && !step.at.IsEmpty()) placed->try_emplace(step.as, SourceStep{.at = step.at});
    GatherOrigins(step.steps, placed);
  }
}

}  // namespace

std::map<std::string, SourceStep> SourceSteps(const std::vector<Step>& steps) {
  std::map<std::string, SourceStep> placed;
  GatherOrigins(steps, &placed);
  std::map<StepOrigin, std::set<std::string>> modules;  // of one line of source, in whatever layer
  for (const auto& [value, step] : placed) modules[step.at.OfAnyLayer()].insert(step.at.module);
  for (auto& [value, step] : placed)
    step.layers = static_cast<int64_t>(modules.at(step.at.OfAnyLayer()).size());
  return placed;
}

bool AreOfOneCall(const Step& a, const Step& b) {
  const std::string key(kResultKey);
  const auto result = [&](const Step& step) { return LookupOr(step.attrs, key, Attr{.value = int64_t{0}}); };
  const auto others = [&](const Step& step) {
    auto attrs = step.attrs;
    attrs.erase(key);
    return attrs;
  };
  return a.op == b.op && a.of == b.of && a.out.empty() && b.out.empty() && a.steps.empty() &&
         b.steps.empty() && others(a) == others(b) && !(result(a) == result(b));
}

Result<DType> ReadDType(const Step& step, const std::string& key) {
  const auto text = ULPSCOPE_TRY(Read<std::string>(step, key, "dtype", {}));
  if (const auto dtype = ParseDType(text)) return *dtype;
  return AttrError(step, key, "is no dtype: '" + text + "'");
}

Result<std::vector<int64_t>> ReadInts(const Step& step, const std::string& key) {
  const Attr* attr = step.Find(key);
  if (attr == nullptr) return AttrError(step, key, "is missing");
  if (const auto* one = attr->If<int64_t>()) return std::vector<int64_t>{*one};
  const auto* list = attr->If<Attr::List>();
  if (list == nullptr) return AttrError(step, key, "is no list of integers");
  std::vector<int64_t> integers;
  for (const Attr& item : *list) {
    const auto* integer = item.If<int64_t>();
    if (integer == nullptr) return AttrError(step, key, "holds what is no integer");
    integers.push_back(*integer);
  }
  return integers;
}

Result<int64_t> ReadInt(const Step& step, const std::string& key, std::optional<int64_t> otherwise) {
  return Read(step, key, "integer", otherwise);
}

Result<double> ReadNumber(const Step& step, const std::string& key, std::optional<double> otherwise) {
  const Attr* attr = step.Find(key);
  if (attr == nullptr && otherwise) return *otherwise;
  if (attr == nullptr) return AttrError(step, key, "is missing");
  if (const auto number = attr->Number()) return *number;
  return AttrError(step, key, "is no number");
}

Result<bool> ReadBool(const Step& step, const std::string& key, std::optional<bool> otherwise) {
  return Read(step, key, "boolean", otherwise);
}

Result<std::string> ReadText(const Step& step, const std::string& key, std::optional<std::string> otherwise) {
  return Read(step, key, "text", std::move(otherwise));
}

Result<SetDataTo> ReadSetDataTo(const Step& step) {
  const Attr* attr = step.Find("to");
  const Attr::Map* to = attr == nullptr ? nullptr : attr->If<Attr::Map>();
  const auto word = [&](const char* key) -> const std::string* {
    if (to == nullptr || !to->contains(key)) return nullptr;
    return to->at(key).If<std::string>();
  };
  if (const std::string* cast = word("cast")) {
    if (const auto dtype = ParseDType(*cast)) return *dtype;
    return AttrError(step, "to", "names no dtype: '" + *cast + "'");
  }
  if (const std::string* name = word("value")) return *name;
  return AttrError(step, "to", "is neither {cast: DTYPE} nor {value: NAME}");
}

StepNames NamesOf(const std::vector<Step>& steps) {
  StepNames names;
  Collect(steps, &names);
  return names;
}

}  // namespace ulpscope
