// How two tensors of the same dtype and shape differ, element by element: in number, or only in what is
// special.
#pragma once

#include <cstdint>

#include "harness/model/run_report.h"
#include "harness/model/tensor.h"

namespace ulpscope {

/// Elements where exactly one is NaN or infinite, where the infinities or the zeros differ in sign
/// (`special`), and all others whose values differ (`number`). NaN equals NaN whatever its payload.
struct TensorDifference {
  int64_t elements = 0;
  int64_t number = 0;
  int64_t special = 0;
  int64_t first_number = -1;  ///< row-major index; -1 = none
  int64_t first_special = -1;
  int64_t one_finite = 0;  ///< of `special`: one side alone is finite
  int64_t zero_signs = 0;  ///< of `special`: both are zero
  double largest_ulp = 0;  ///< of the `number` differences, as UlpDistance has it; 0 for integers
  double largest = 0;      ///< of the `number` differences, absolute
  double scale = 0;        ///< the largest finite magnitude of all elements of both

  bool Same() const { return number == 0 && special == 0; }
};

/// One element counts as `special` resp. `number`, as TensorDifference has them.
bool DiffersInKind(double left, double right);
bool DiffersInNumber(double left, double right);

/// How far two elements of `dtype` lie apart: UlpDistance, of integers the difference; infinite where only one is finite.
double ElementDistance(double left, double right, DType dtype);

/// Below the numbers of a floating `dtype` that keep all their bits; false for other dtypes.
bool IsSubnormal(double value, DType dtype);

/// Which side has zeros where the other has subnormal numbers; `alone`: no other element differs in number. Where one does, the
/// sides are not looked for any further.
struct Flushing {
  bool left = false;
  bool right = false;
  bool alone = true;
};

/// Both: tensors of one dtype and shape.
Flushing FindFlushing(const TensorData& left, const TensorData& right);
TensorDifference CompareTensors(const TensorData& left, const TensorData& right);
/// Makes `size` hold one more pair of backends.
void AddPair(const TensorDifference& difference, DifferenceSize* size);

}  // namespace ulpscope
