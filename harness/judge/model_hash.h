// Hashes and compares precision models by content, without copies.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "harness/model/classification.h"

namespace ulpscope {

/// Compares models by content, without copies: thousands of candidates mostly differ in what is compared last.
struct OrderOfModels {
  bool operator()(const PrecisionModel* a, const PrecisionModel* b) const { return *a < *b; }
};
struct SameModel {
  bool operator()(const PrecisionModel* a, const PrecisionModel* b) const { return *a == *b; }
};
struct HashOfModel {
  size_t operator()(const PrecisionModel* model) const {
    size_t hash = 0;
    const auto add = [&](size_t part) { hash = hash * 31 + part; };
    const auto add_rounding = [&](const RoundSpec& spec) {
      add(std::hash<const void*>()(spec.format));
      add(static_cast<size_t>(spec.rounding) * 16 + static_cast<size_t>(spec.passes));
    };
    for (const auto* roundings : {&model->in, &model->cuts}) {
      for (const auto& [name, spec] : *roundings) {
        add(std::hash<std::string>()(name));
        add_rounding(spec);
      }
    }
    for (const auto* spec : {&model->prod, &model->mid, &model->out}) add_rounding(*spec);
    for (const FloatFormat* format : {model->acc.format, model->acc.partial, model->acc.combine})
      add(std::hash<const void*>()(format));
    add(static_cast<size_t>(model->acc.block * 64 + model->acc.fraction));
    add(static_cast<size_t>(model->acc.rounding) * 64 + (model->acc.via_float32 ? 32 : 0) +
        static_cast<size_t>(model->acc.two_words));
    return hash;
  }
};

/// The hash of a range of models, in its order.
template <typename Models>
size_t HashOfModels(const Models& models) {
  size_t hash = models.size();
  for (const PrecisionModel& model : models) hash = hash * 1000003 + HashOfModel()(&model);
  return hash;
}

}  // namespace ulpscope
