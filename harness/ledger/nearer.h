// Which of two results lies nearer to the exact one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "harness/model/ledger.h"
#include "harness/model/reference.h"
#include "harness/model/tensor.h"

namespace ulpscope {

/// The errors of both results against the exact ones (`references`, of `elements`), and the nearer side. Nothing if no
/// element has an exact result. Both have one floating dtype and shape.
std::optional<Nearness> MeasureNearness(std::span<const int64_t> elements,
                                        std::span<const Reference> references, const TensorData& a,
                                        const TensorData& b);

}  // namespace ulpscope
