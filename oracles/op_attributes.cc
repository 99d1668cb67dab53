// The attributes of a step, as op expansions take them.
#include <utility>

#include "oracles/lower.h"

namespace ulpscope {
namespace {

template <typename T>
T Need(Result<T> value) {
  if (!value) throw LoweringError{value.error().message};
  return *std::move(value);
}

}  // namespace

std::optional<DType> DTypeAttr(const Step& step, const std::string& name) {
  return step.Find(name) == nullptr ? std::nullopt : std::optional(Need(ReadDType(step, name)));
}

std::vector<int64_t> IntsAttr(const Step& step, const std::string& name) {
  return step.Find(name) == nullptr ? std::vector<int64_t>() : Need(ReadInts(step, name));
}

std::optional<int64_t> IntAttr(const Step& step, const std::string& name) {
  return step.Find(name) == nullptr ? std::nullopt : std::optional(Need(ReadInt(step, name)));
}

double NumberAttr(const Step& step, const std::string& name, double otherwise) {
  return Need(ReadNumber(step, name, otherwise));
}

std::string TextAttr(const Step& step, const std::string& name, const std::string& otherwise) {
  return Need(ReadText(step, name, otherwise));
}

bool BoolAttr(const Step& step, const std::string& name, bool otherwise) {
  return Need(ReadBool(step, name, otherwise));
}

}  // namespace ulpscope
