// Case look-ups.
#include "harness/model/case.h"

#include <utility>

#include "harness/base/find.h"

namespace ulpscope {

DemandWord::DemandWord(std::string written)
    : text(std::move(written)),
      in(ParseIn(text)),
      prod(ParseProd(text)),
      mid(ParseMid(text)),
      out(ParseOut(text)),
      acc(ParseAcc(text)) {
  for (const AccClass& each : AccClasses()) {
    if (each.name == text) acc_class = &each;
  }
}

std::vector<std::string> TextsOf(const DemandWords& words) { return Mapped(words, &DemandWord::text); }

const TensorSpec* Case::FindTensor(std::string_view name) const {
  for (const auto& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

}  // namespace ulpscope
